"""How far back a branch can be asked: one boundary, and the same words from everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbcore.errors import HistoryPruned, NotFound
from kbcore.history.compare import count_differences, diff, differences_from
from kbcore.history.log import log, missing, record_json
from kbcore.history.moment import seq_at
from kbcore.history.reach import first_record, is_pruned
from kbcore.history.undo import revert_planner, rollback_planner
from kbcore.schema import CORE
from kbcore.state import Stamp
from kbcore.upkeep.compacting import compact
from kbcore.view.past import state_at
from kbcore.view.view import View
from tests.support.project import Project

STAMP = Stamp(9, "2999-01-01T00:00:00.000000Z", "tester", "cli")


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture
def pruned(project: Project) -> View:
    """Five records, of which 1 to 3 are pruned; B came and went among these."""
    project.apply(entities=[entity("A"), entity("B")])
    project.delete(entities=[{"id": "B"}])
    project.apply(entities=[{"id": "A", "status": "done"}])
    compact(project.workspace(), "main")
    project.apply(entities=[{"id": "A", "status": "met"}])
    project.apply(entities=[entity("C")])
    compact(project.workspace(), "main", prune_before=4)
    return project.view()


ASKED: list[Callable[[View], Any]] = [
    lambda view: seq_at(view, "2"),
    lambda view: seq_at(view, "2001-01-01"),
    lambda view: state_at(view, 2),
    lambda view: next(differences_from(view, 5, 2, 0, at_once=1)),
    lambda view: count_differences(view, 2, 5),
    lambda view: diff(view, 2, 5),
    lambda view: diff(view, 5, 0),
    lambda view: rollback_planner(2)(view, STAMP),
    lambda view: revert_planner([3], CORE)(view, STAMP),
    lambda view: revert_planner([5, 3], CORE)(view, STAMP),
]


@pytest.mark.parametrize("ask", ASKED)
def test_everybody_names_the_same_first_record(pruned: View, ask: Callable[[View], Any]) -> None:
    with pytest.raises(HistoryPruned, match="Records before seq 4 were pruned") as refused:
        ask(pruned)
    assert "record 4 or later" in refused.value.hint
    assert "at seq 3 or later" in refused.value.hint
    assert refused.value.data == {"history_from": 3, "pruned_before": 4}


def test_the_last_pruned_record_is_out_of_reach_and_how_it_left_things_is_not(pruned: View, project: Project) -> None:
    store = project.workspace().store("main")
    with pytest.raises(HistoryPruned, match="record 3 is out of reach"):
        record_json(store, pruned, 3)
    assert (seq_at(pruned, "3"), record_json(store, pruned, 4)["seq"]) == (3, 4)
    assert [one["change"] for one in diff(pruned, 3, 5)["entities"]] == ["updated", "created"]
    assert (first_record(pruned), is_pruned(pruned)) == (4, True)


def test_an_id_of_pruned_records_alone_is_not_said_never_to_have_been(pruned: View) -> None:
    with pytest.raises(NotFound, match="since seq 4; records before seq 4 were pruned"):
        log(pruned, id="B")
    assert "since seq 4" in missing(pruned, "B").message


def test_a_record_that_never_was_is_not_said_to_be_pruned(pruned: View, project: Project) -> None:
    store = project.workspace().store("main")
    for seq in (0, 6):
        with pytest.raises(NotFound) as refused:
            record_json(store, pruned, seq)
        assert "4 to 5" in refused.value.hint


def test_as_long_as_nothing_was_pruned_everything_is_in_reach(project: Project) -> None:
    project.apply(entities=[entity("A")])
    view = project.view()
    assert (first_record(view), is_pruned(view), seq_at(view, "2001-01-01"), seq_at(view, "0")) == (1, False, 0, 0)


def test_where_nothing_was_written_there_is_no_record_to_name(project: Project) -> None:
    with pytest.raises(NotFound) as refused:
        revert_planner([1], CORE)(project.view(), STAMP)
    assert refused.value.hint == "Nothing was written yet."
