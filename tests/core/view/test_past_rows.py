"""Records and superseded rows are looked up without tables, as long as nothing else made these."""

from __future__ import annotations

from kbcore.model.record import Operation, PutNode
from tests.support.generators.histories import basis_at, entries_of
from tests.support.views.grown import built

CREATED: list[Operation] = [PutNode(id="N-1", base=0, set={"type": "req", "title": "x"})]


def test_that_nothing_ended_in_a_young_branch_is_known_without_a_database() -> None:
    entries = entries_of([CREATED, [PutNode(id="N-1", base=1, set={"title": "y"})]])
    with built(entries, 0) as view:
        view.extend(iter(entries[:1]), basis_at(entries, 1))
        assert view.past.is_known_empty("node")
        view.extend(iter(entries[1:]), basis_at(entries, 2))
        assert not view.past.is_known_empty("node")
        assert view.past.is_known_empty("link")
        assert "_connection" not in vars(view)
        assert view.rows("select count(*) from node_history") == [(1,)]
        assert not view.past.is_known_empty("link"), "what is in tables is not known"


def test_that_nothing_ended_is_not_known_of_a_base_with_records() -> None:
    entries = entries_of([CREATED])
    with built(entries, 1) as view:
        assert not view.past.is_known_empty("node")


def test_records_and_superseded_rows_of_a_short_branch_are_answered_without_a_database() -> None:
    entries = entries_of([CREATED, [PutNode(id="N-1", base=1, set={"title": "y"})]])
    with built(entries, 0) as view:
        view.extend(iter(entries), basis_at(entries, 2))
        assert view.past.superseded("node", ["N-1", "N-2"], ["id", "version", "ended"]) == [("N-1", 1, 2)]
        assert view.past.superseded("node", ["N-1"], ["id"], since=2) == []
        assert view.past.records([2, 3], ["seq", "changeset_id"]) == [(2, entries[1].record.changeset_id)]
        assert "_connection" not in vars(view)
