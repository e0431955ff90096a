"""Some of what each record changed, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from kbcore.ids import link_id
from kbcore.model.renames import joined
from kbcore.model.state import ElementChange
from kbcore.store.history.touched import TouchedElement, Word, changes_of, touched
from kbcore.view.history import changes_of as changes_at
from kbcore.view.view import View
from tests.support.repository.project import Project


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture
def recorded(project: Project) -> Project:
    """Four records: two entities, a change of one with an edge, the end of the other, and a third one."""
    project.apply(entities=[entity("A"), entity("B")])
    depends = {"type": "depends_on", "from": "A", "to": "B"}
    project.apply(entities=[{"id": "A", "status": "done"}], edges=[depends])
    project.delete(entities=[{"id": "B"}], cascade=True)
    project.apply(entities=[entity("C")])
    return project


EDGE = ("A", "depends_on", "", "B")


def test_each_record_has_what_it_changed_entities_first(recorded: Project) -> None:
    assert touched(recorded.view(), [1, 2, 3], limit=9) == {
        1: [TouchedElement("created", "A"), TouchedElement("created", "B")],
        2: [TouchedElement("updated", "A"), TouchedElement("created", *EDGE)],
        3: [TouchedElement("deleted", "B"), TouchedElement("deleted", *EDGE)],
    }


def test_no_more_is_named_of_a_record_than_is_asked_for(recorded: Project) -> None:
    assert touched(recorded.view(), [1, 4], limit=1) == {
        1: [TouchedElement("created", "A")],
        4: [TouchedElement("created", "C")],
    }
    assert touched(recorded.view(), [], limit=1) == {}


def test_only_one_entity_and_its_edges_can_be_asked_for(recorded: Project) -> None:
    assert touched(recorded.view(), [1, 2, 3, 4], limit=9, ids=["B"]) == {
        1: [TouchedElement("created", "B")],
        2: [TouchedElement("created", *EDGE)],
        3: [TouchedElement("deleted", "B"), TouchedElement("deleted", *EDGE)],
    }


def test_the_changes_of_an_entity_are_there_from_a_record_on(recorded: Project) -> None:
    found = changes_of(recorded.view(), "A", 1)
    assert [(seq, one.before is None, one.after is None) for seq, one in found.items()] == [
        (1, True, False),
        (2, False, False),
    ]
    assert list(changes_of(recorded.view(), "A", 2)) == [2]
    assert changes_of(recorded.view(), "X", 1) == {}


class Counting:
    """Answers as a view does, and counts the rows that are read."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.basis = view.basis
        self.count = 0

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found = self._view.rows(sql, params)
        self.count += len(found)
        return found


def word_of(change: ElementChange[Any]) -> Word:
    return "created" if not change.before else "updated" if change.after else "deleted"


def link(kind: str, from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "relates_to", "kind": kind, "from": from_id, "to": to_id, **fields}


def test_of_a_rename_the_edges_that_changed_are_read_and_not_those_that_have_another_id_only(project: Project) -> None:
    page = "---\nid: {}\ntitle: T\nstatus: open\n{}---\n"
    others = [f"N-{number:02}" for number in range(40)]
    project.write({".kb/schema/own.yaml": "edges: {doubts: {from: [req], to: [link], description: About an edge}}\n"})
    waiting = page.format("WAITS", "depends_on: [NEW, HUB]\n")
    hub = page.format("HUB", "depends_on: [N-00, N-01]\n")
    project.sync({"docs/requirements/a.md": hub, "docs/requirements/c.md": waiting})
    edges = [link("k", "HUB", other) for other in others] + [link("k", "N-03", "HUB", confidence=0.5)]
    about = link_id("relates_to", "k", "HUB", "N-00")
    project.apply(entities=[entity(other) for other in others], edges=edges)
    project.apply(edges=[{"type": "doubts", "from": "N-05", "to": about}])
    project.apply(edges=[{"type": "doubts", "from": "HUB", "to": link_id("doubts", "", "N-05", about)}])
    project.sync(
        {
            "docs/requirements/a.md": page.format("NEW", "former_ids: [HUB]\ndepends_on: [N-01, N-02, HUB]\n"),
            "docs/requirements/b.md": page.format("OTHER", "depends_on: [N-01]\n"),
        }
    )
    view = project.view()
    [changes] = changes_at(view, [5]).values()
    expected = [
        TouchedElement(word_of(one), now.from_id, now.type, now.kind, now.to_id)
        for one in joined(changes).links
        if (now := one.after or one.before)
    ]
    assert len(expected) > 3
    assert len(changes.links) > 80
    counting = Counting(view)
    found = touched(cast("View", counting), [5], limit=99)[5]
    assert found[0] == TouchedElement("renamed", "NEW", was="HUB")
    assert [one for one in found if one.type] == expected
    assert counting.count < 20
    assert touched(view, [5], limit=4)[5] == found[:4]
    meant = [one for one in found if {one.id, one.to_id, one.was} & {"OTHER"}]
    assert touched(view, [5], limit=99, ids=["OTHER"])[5] == meant != []
