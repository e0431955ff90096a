"""Laws of undo, on real stores with random histories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from kbcore.history.undo import revert_planner, rollback_planner
from kbcore.ids import link_id
from kbcore.inverse import differs, node_units
from kbcore.record import DropNode, Operation, PutNode, StateLink, WithdrawLink
from kbcore.schema import CORE
from kbcore.state import State
from kbcore.store import Request
from kbcore.view.past import changes_at, state_at
from tests.support.histories import IDS, content, laws, lines_of, records
from tests.support.stores import AUTHOR, Stored

LAWS = laws(12)

_VERIFIED = ("verified_by", "", "A", "B")
_ABOUT = {"type": "relates_to", "kind": "about", "from_id": link_id(*_VERIFIED), "to_id": "é c", "base": 0}
BARE_EDGE_OF_OTHER_TYPES = [
    [PutNode(id=key, base=0, set={"type": "req", "title": key}) for key in IDS],
    [StateLink(type="verified_by", kind="", from_id="A", to_id="B", base=0, src="docs/a.md", said="A")],
    [StateLink(**_ABOUT)],
    [WithdrawLink(**_ABOUT), DropNode(id="B", base=0)],
]
"""A bare link that is not the edge which the types of its ends mean now, and an edge about it."""


@contextmanager
def stored(history: list[list[Operation]]) -> Iterator[Stored]:
    with tempfile.TemporaryDirectory() as folder:
        made = Stored(Path(folder))
        for ops in history:
            made.commit(ops)
        yield made
        made.close()


def now(made: Stored) -> State:
    view = made.view()
    return state_at(view, view.seq)


def rolled_back(made: Stored, seq: int) -> State:
    made.store.commit(AUTHOR, Request(), rollback_planner(seq), branch="main")
    return now(made)


def reverted(made: Stored, *seqs: int, force: bool = False) -> State:
    made.store.commit(AUTHOR, Request(), revert_planner(seqs, CORE, force=force), branch="main")
    return now(made)


@LAWS
@given(records(), st.data())
def test_a_rollback_leads_to_the_state_of_that_seq_and_the_journal_only_grows(history, data) -> None:
    with stored(history) as made:
        head = made.view().seq
        target = data.draw(st.integers(0, head))
        past = [lines_of(state_at(made.view(), seq)) for seq in range(head + 1)]
        lines = (made.directory / "journal-0000000001.jsonl").read_bytes()
        assert content(rolled_back(made, target)) == content(state_at(made.view(), target))
        view = made.view()
        assert head <= view.seq <= head + 1
        assert (made.directory / "journal-0000000001.jsonl").read_bytes().startswith(lines)
        assert [lines_of(state_at(view, seq)) for seq in range(head + 1)] == past
        rebuilt = made.store.view_until(view.seq)
        assert lines_of(state_at(rebuilt, view.seq)) == lines_of(now(made))
        rebuilt.close()
        assert content(rolled_back(made, head)) == content(state_at(made.view(), head))


@LAWS
@given(records())
@example(BARE_EDGE_OF_OTHER_TYPES)
@example([*BARE_EDGE_OF_OTHER_TYPES[:3], [DropNode(id="B", base=0)]])
def test_reverting_the_last_record_undoes_it_whole_and_reverting_that_brings_it_back(history) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        before = content(state_at(made.view(), head - 1), with_files=False)
        after = content(now(made), with_files=False)
        assert content(reverted(made, head), with_files=False) == before
        if made.view().seq == head + 1:
            assert content(reverted(made, head + 1), with_files=False) == after


@LAWS
@given(records(), st.integers(0, 7))
@example(BARE_EDGE_OF_OTHER_TYPES, 1)
def test_reverting_the_last_records_together_is_going_back_before_them(history, more) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        first = max(1, head - more)
        before = content(state_at(made.view(), first - 1), with_files=False)
        assert content(reverted(made, *range(first, head + 1)), with_files=False) == before


@LAWS
@given(records(), st.integers(0, 7))
@example(BARE_EDGE_OF_OTHER_TYPES, 0)
@example(BARE_EDGE_OF_OTHER_TYPES, 1)
def test_reverting_the_last_records_is_never_refused_whatever_stood_before_them(history, more) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head:
            reverted(made, *range(max(1, head - more), head + 1))


@LAWS
@given(records(), st.data())
def test_a_forced_revert_puts_every_field_of_an_entity_back_that_the_record_changed(history, data) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        seq = data.draw(st.integers(1, head))
        changes, then = changes_at(made.view(), seq), now(made)
        state = reverted(made, seq, force=True)
        for change in changes.nodes:
            before, after = node_units(change.before), node_units(change.after)
            names = {name for name in before.keys() | after.keys() if differs(before.get(name), after.get(name))}
            units, were = node_units(state.nodes.get(change.key)), node_units(then.nodes.get(change.key))
            if change.before is None:
                assert change.key not in state.nodes
                continue
            if change.key not in then.nodes:
                assert units == (before if names else {}), "what was removed since comes back as it was"
                continue
            for name in names:
                found, old, new = units.get(name), before.get(name), after.get(name)
                # Value and who states it are undone each by itself, where the record changed it: another file may
                # state it since, and a value that the record left alone may have been removed.
                if old is None or new is None:
                    assert found == old
                elif differs(old[0], new[0]):
                    assert (found[0] == old[0]) if old[1] == new[1] else (found == old)
                else:
                    assert found is None if name not in were else found[1] == old[1]


@LAWS
@given(records(), st.data())
def test_after_an_undo_every_file_that_owns_a_fact_is_noted(history, data) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        before = now(made)
        state = reverted(made, data.draw(st.integers(1, head)), force=True)
        assert owners(state) - owners(before) <= state.sources.keys()


def owners(state: State) -> set[str]:
    files = {owner for node in state.nodes.values() for owner in node.owners.values()}
    return files | {one.src for link in state.links.values() for one in link.statements if one.src}
