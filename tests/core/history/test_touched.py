"""Some of what each record changed, by name."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.history.touched import Touched, changes_of, touched
from tests.support.project import Project


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture
def told(project: Project) -> Project:
    """Four records: two entities, a change of one with an edge, the end of the other, and a third one."""
    project.apply(entities=[entity("A"), entity("B")])
    depends = {"type": "depends_on", "from": "A", "to": "B"}
    project.apply(entities=[{"id": "A", "status": "done"}], edges=[depends])
    project.delete(entities=[{"id": "B"}], cascade=True)
    project.apply(entities=[entity("C")])
    return project


EDGE = ("A", "depends_on", "", "B")


def test_each_record_has_what_it_changed_entities_first(told: Project) -> None:
    assert touched(told.view(), [1, 2, 3], limit=9) == {
        1: [Touched("created", "A"), Touched("created", "B")],
        2: [Touched("updated", "A"), Touched("created", *EDGE)],
        3: [Touched("deleted", "B"), Touched("deleted", *EDGE)],
    }


def test_no_more_is_named_of_a_record_than_is_asked_for(told: Project) -> None:
    assert touched(told.view(), [1, 4], limit=1) == {1: [Touched("created", "A")], 4: [Touched("created", "C")]}
    assert touched(told.view(), [], limit=1) == {}


def test_only_one_entity_and_its_edges_can_be_asked_for(told: Project) -> None:
    assert touched(told.view(), [1, 2, 3, 4], limit=9, ids=["B"]) == {
        1: [Touched("created", "B")],
        2: [Touched("created", *EDGE)],
        3: [Touched("deleted", "B"), Touched("deleted", *EDGE)],
    }


def test_the_changes_of_an_entity_are_there_from_a_record_on(told: Project) -> None:
    found = changes_of(told.view(), "A", 1)
    assert [(seq, one.before is None, one.after is None) for seq, one in found.items()] == [
        (1, True, False),
        (2, False, False),
    ]
    assert list(changes_of(told.view(), "A", 2)) == [2]
    assert changes_of(told.view(), "X", 1) == {}
