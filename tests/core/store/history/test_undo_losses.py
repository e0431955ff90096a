"""The references that an undo would break, without those that were broken before."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import RevertConflict
from kbcore.ids import link_id
from kbcore.model.record import DropNode, Operation, PutNode, StateLink
from kbcore.model.schema import CORE
from kbcore.store.history.undo import revert_planner
from kbcore.store.write_request import Request
from kbcore.view.history import state_at
from tests.support.generators.histories import content
from tests.support.repository.stores import AUTHOR, Stored


def put(key: str, type_: str) -> PutNode:
    return PutNode(id=key, base=0, set={"type": type_, "title": key, "status": "open"})


def stated(from_id: str, to_id: str, name: str = "depends_on", **values: float) -> StateLink:
    return StateLink(type=name, kind="", from_id=from_id, to_id=to_id, base=0, set=values, src="docs/a.md")


def made(folder: Path, *records: list[Operation]) -> Stored:
    stored = Stored(folder)
    for ops in records:
        stored.commit(ops)
    return stored


def revert(stored: Stored, *seqs: int) -> None:
    stored.store.commit(AUTHOR, Request(), revert_planner(seqs, CORE), branch="main")


def test_an_edge_that_did_not_fit_before_the_record_does_not_refuse_its_undo(tmp_path: Path) -> None:
    stored = made(
        tmp_path,
        [put("A", "test"), put("B", "req"), stated("A", "B")],
        [put("A", "req"), stated("A", "B", confidence=0.5)],
    )
    before = content(state_at(stored.view(), 1))
    revert(stored, 2)
    assert content(state_at(stored.view(), 3), with_files=False) == before


def test_an_edge_that_waited_for_its_end_before_the_record_may_wait_again(tmp_path: Path) -> None:
    stored = made(tmp_path, [put("A", "req"), stated("A", "B")], [put("B", "req")], [put("C", "req")])
    revert(stored, 2)
    assert not state_at(stored.view(), 4).links[link_id("depends_on", "", "A", "B")].is_resolved


def test_an_edge_that_would_come_to_stand_where_it_does_not_fit_refuses_the_undo(tmp_path: Path) -> None:
    stored = made(tmp_path, [put("A", "req"), put("B", "adr")], [DropNode(id="B", base=0)], [stated("A", "B")])
    with pytest.raises(RevertConflict, match="does not lead from req to adr") as refused:
        revert(stored, 2)
    assert "last changed by record 3" in refused.value.message
    assert refused.value.hint.startswith("Remove the edge first")


def test_an_edge_newer_than_the_record_refuses_the_undo_even_beside_one_that_was_broken_before(tmp_path: Path) -> None:
    stored = made(
        tmp_path,
        [put("A", "test"), put("B", "req"), stated("A", "B")],
        [put("A", "req")],
        [put("C", "req"), stated("A", "C")],
    )
    with pytest.raises(RevertConflict) as refused:
        revert(stored, 2)
    assert [problem.path for problem in refused.value.details] == ["A depends_on C"]


def test_the_advice_names_all_records_that_are_to_be_undone_together(tmp_path: Path) -> None:
    stored = made(tmp_path, [put("A", "req")], [put("A", "test")], [put("A", "adr")], [put("A", "flag")])
    with pytest.raises(RevertConflict) as refused:
        revert(stored, 2)
    assert "`kb revert 4 3 2`" in refused.value.hint
    assert refused.value.message.startswith("Record 2 cannot be undone: Record 3 changed `type` of A")
    assert refused.value.message.endswith("1 more problem is listed.")
    revert(stored, 4, 3, 2)
    assert state_at(stored.view(), 5).nodes["A"].type == "req"
