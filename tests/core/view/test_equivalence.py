"""Whatever way a view came about, it answers as a full replay does, now and at every seq before."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.view.history import LINKS, NODES, SOURCES, changes_between, changes_of, later_changes, state_at
from kbcore.view.tables import ELEMENTS, RECORD, WHOLE
from tests.support.generators.histories import entries_of, laws, lines_of, records, states_of
from tests.support.views.grown import WAYS, built, grown

STEPS = st.lists(
    st.tuples(st.sampled_from(WAYS), st.integers(0, 3)),
    min_size=1,
    max_size=5,
)


@pytest.mark.sliced
@laws(25)
@given(records(), STEPS)
def test_a_view_grown_in_any_way_equals_full_replay_at_every_seq(history, steps) -> None:
    entries = entries_of(history)
    states = states_of(entries)
    with tempfile.TemporaryDirectory() as folder, grown(entries, steps, Path(folder)) as view:
        assert view.seq == len(entries)
        for seq, state in enumerate(states):
            assert lines_of(state_at(view, seq)) == lines_of(state), f"at seq {seq}"


@laws(15)
@given(records())
def test_a_rebuilt_view_equals_full_replay_and_says_what_changed_between_any_two_seqs(history) -> None:
    entries = entries_of(history)
    states = states_of(entries)
    with built(entries, len(entries)) as view:
        for seq, state in enumerate(states):
            assert lines_of(state_at(view, seq)) == lines_of(state), f"at seq {seq}"
        for low in range(len(states)):
            for high in range(low, len(states)):
                changes = changes_between(view, low, high)
                assert {one.key: (one.before, one.after) for one in changes.nodes} == differences(
                    states[low].nodes, states[high].nodes
                )
                assert {one.key: (one.before, one.after) for one in changes.links} == differences(
                    states[low].links, states[high].links
                )
                assert {one.key: (one.before, one.after) for one in changes.sources} == differences(
                    states[low].sources, states[high].sources
                )
        seqs = range(len(states) - 1, 0, -2)
        assert changes_of(view, seqs) == {seq: changes_between(view, seq - 1, seq) for seq in seqs}


@laws(15)
@given(records(), STEPS, st.integers(0, 4))
def test_records_and_superseded_rows_are_the_same_before_and_after_they_are_in_tables(history, steps, since) -> None:
    entries = entries_of(history)
    states = states_of(entries)
    with tempfile.TemporaryDirectory() as folder, grown(entries, steps, Path(folder)) as view:
        seqs = range(len(entries), -1, -2)
        wanted = {
            "node": sorted({key for state in states for key in state.nodes})[::2],
            "link": sorted({key for state in states for key in state.links})[::2],
            "source": sorted({key for state in states for key in state.sources})[::2],
        }

        def found() -> list[object]:
            past = [
                view.past.superseded(name, keys, [*ELEMENTS[name][1], "ended"], since=since)
                for name, keys in wanted.items()
            ]
            return [sorted(map(repr, rows)) for rows in (view.past.records(seqs, [*RECORD]), *past)]

        before = found()
        assert before == found(), "asking loads nothing"
        of_tables = [view.rows(f"select {', '.join(RECORD)} from record where seq in (select unnest(?))", [[*seqs]])]
        for name, keys in wanted.items():
            key, columns = ELEMENTS[name]
            sql = (
                f"select {', '.join(columns)}, ended from {WHOLE.get(f'{name}_history', f'{name}_history')} "
                f"where {key} in (select unnest(?::varchar[])) and version >= ?"
            )
            of_tables.append(view.rows(sql, [keys, since]))
        assert before == [sorted(map(repr, rows)) for rows in of_tables]
        assert before == found()


@laws(15)
@given(records(), st.integers(0, 8))
def test_later_changes_lists_each_change_of_an_element_once_and_in_order(history, after) -> None:
    entries = entries_of(history)
    states = states_of(entries)
    with built(entries, len(entries)) as view:
        for table, name in ((NODES, "nodes"), (LINKS, "links"), (SOURCES, "sources")):
            values = [getattr(state, name) for state in states]
            keys = {key for value in values for key in value}
            wanted: dict[str, list[tuple[object, ...]]] = {}
            for seq in range(after + 1, len(states)):
                for key, (before, now) in differences(values[seq - 1], values[seq]).items():
                    wanted.setdefault(key, []).append((seq, before, now))
            found = later_changes(view, table, keys, after)
            assert {key: [(one.seq, one.before, one.after) for one in all_] for key, all_ in found.items()} == wanted


def differences(old: dict, new: dict) -> dict:
    return {key: (old.get(key), new.get(key)) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
