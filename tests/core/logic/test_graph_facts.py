"""The facts of the graph, and what changed of them between two records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbcore.logic.graph_facts import GraphChange, GraphState, all_facts, changed_facts, state_of
from kbcore.view.view import View
from tests.support.repository.clauses import change, clause_store
from tests.support.repository.project import Project

STEPS: list[dict[str, Any]] = [
    {"entities": [{"id": "A", "type": "req", "title": "a", "status": "open", "tags": ["x", "y"], "priority": "must"}]},
    {
        "entities": [
            {
                "id": "B",
                "type": "test",
                "title": 'a "b"',
                "status": "open",
                "attributes": {"n": 1, "f": -2.5, "l": [1, {"k": None}]},
            }
        ],
        "edges": [{"from": "A", "to": "B", "type": "verified_by", "confidence": 1}],
    },
    {"entities": [{"id": "A", "type": "req", "title": "other", "status": "done", "tags": []}]},
    {
        "entities": [{"id": "C", "type": "req", "title": "c", "status": "open"}],
        "edges": [{"from": "C", "to": "A", "type": "depends_on", "attributes": {"why": "so"}}],
    },
    {"delete": True, "entities": [{"id": "C"}]},
    {"entities": [{"id": "C", "type": "req", "title": "again", "status": "open"}]},
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "p")


def looked(project: Project, before: GraphState | None) -> tuple[GraphState, GraphChange | None, list[str]]:
    def look(view: View) -> tuple[GraphState, GraphChange | None, list[str]]:
        return state_of(view), changed_facts(view, before) if before else None, all_facts(view)

    return project.workspace().store("main").read(look)


def applied(facts: list[str], change: GraphChange) -> list[str]:
    """Return facts after a change, as ``graph.pl`` removes and adds them."""
    gone = [one.removesuffix(")") + "," for one in change.removed]
    gone += [f"a{one.removeprefix('n')}" for one in gone if one.startswith("n(")]
    return [*(one for one in facts if not one.startswith(tuple(gone))), *change.added]


@pytest.mark.parametrize("every", [1, 3])
def test_the_facts_that_changed_turn_those_of_before_into_those_of_now(project: Project, every: int) -> None:
    change(clause_store(project), "p(0).")
    before, _, facts = looked(project, None)
    for number, step in enumerate(STEPS, start=1):
        if step.get("delete"):
            project.delete(entities=step["entities"])
        else:
            project.apply(**step)
        change(clause_store(project), f"p({number}).")
        if number % every == 0:
            before, changed, now = looked(project, before)
            assert changed is not None
            facts = applied(facts, changed)
            assert sorted(facts) == sorted(now)
    assert len(facts) > len(STEPS)
