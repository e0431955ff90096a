"""A scratch copy is the view at a seq, and hypothetical changes of it stay in it."""

from __future__ import annotations

import resource
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import HistoryPruned, StorageError
from kbcore.model.folding import apply
from kbcore.model.read_set import needs
from kbcore.model.record import PutNode
from kbcore.model.state import Stamp
from kbcore.view.database import scratch_folder
from kbcore.view.history import state_at
from kbcore.view.replay import pruned
from kbcore.view.scratch_copy import scratch_copy
from kbcore.view.tables import ELEMENTS
from tests.support.generators.histories import content, entries_of, laws, records
from tests.support.repository.stores import Stored
from tests.support.views.grown import built


@pytest.mark.sliced
@laws(25)
@given(records(), st.data())
def test_a_copy_as_of_a_seq_is_the_view_that_a_fold_up_to_there_makes(history, data):
    entries = entries_of(history)
    seq = data.draw(st.integers(0, len(entries)))
    with built(entries, len(entries)) as view, scratch_copy(view, seq) as copy, built(entries, seq) as folded:
        assert copy.seq == seq
        assert content(state_at(copy, seq)) == content(state_at(folded, seq))
        for table in (*ELEMENTS, *(f"{name}_history" for name in ELEMENTS), "record"):
            of_both = [sorted(map(repr, one.rows(f"select * from {table}"))) for one in (copy, folded)]
            assert of_both[0] == of_both[1], table


@pytest.fixture
def stored(tmp_path):
    made = Stored(tmp_path)
    for number in range(3):
        made.put(f"REQ-{number}")
    yield made
    made.close()


def ids(view) -> list[str]:
    return [row[0] for row in view.rows("select id from node order by id")]


def test_what_is_supposed_of_a_copy_is_seen_there_and_nowhere_else(stored):
    view = stored.view()
    op = PutNode(id="REQ-9", base=0, set={"type": "req", "title": "t"})
    with scratch_copy(view, 2) as copy:
        state = copy.gather(needs([op]))
        stamp = Stamp(3, "2026-11-21T00:00:00.000000Z", "kb", "sync")
        copy.overlay(stamp, apply(state, stamp, [op]))
        assert (ids(copy), copy.seq) == (["REQ-0", "REQ-1", "REQ-9"], 3)
        assert copy.rows("select source, actor from record where seq = 3") == [("sync", "kb")]
    assert ids(view) == ["REQ-0", "REQ-1", "REQ-2"]
    assert ids(stored.reopen().read(lambda again: again)) == ["REQ-0", "REQ-1", "REQ-2"]


def test_a_seq_beyond_what_is_known_is_refused(stored):
    view = stored.view()
    view.basis = msgspec.structs.replace(view.basis, history_from=2)
    with pytest.raises(HistoryPruned) as refused, scratch_copy(view, 1):
        pass
    assert refused.value.message == pruned(1, 2).message


def test_a_copy_leaves_no_file_and_one_that_cannot_be_written_says_where(stored):
    with scratch_folder() as scratch:
        folder = Path(scratch).parent
    before = {*folder.iterdir()}
    view = stored.view()
    with scratch_copy(view, 1):
        assert len({*folder.iterdir()} - before) == 1
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageError, match="temporary folder"), scratch_copy(view, 1):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {*folder.iterdir()} == before
    assert ids(view) == ["REQ-0", "REQ-1", "REQ-2"]
