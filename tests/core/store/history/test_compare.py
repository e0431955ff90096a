"""The differences between two seqs, and between two branches."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.store.history.compare import count_differences, diff, diff_branches, differences_from
from kbcore.store.history.reach import merge_base
from kbcore.view.history import state_at
from tests.support.generators.histories import content, laws, records
from tests.support.repository.project import AUTHOR, Project, req
from tests.support.repository.stores import Stored


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id, **fields}


def changes_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["change"]) for one in found["entities"]]


def renamed(project: Project, old: str, new: str, branch: str) -> None:
    workspace = project.workspace()
    rename(WriteTarget(workspace, branch, AUTHOR, workspace.store(branch).read, follows_head=False), old, new)


def test_a_diff_lists_what_came_changed_and_went_in_order(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B"), entity("D")], edges=[edge("A", "B", confidence=0.5)])
    project.apply(entities=[{"id": "A", "status": "done"}, entity("C")], edges=[edge("A", "B", confidence=0.75)])
    project.delete(entities=[{"id": "B"}], cascade=True)
    found = diff(project.view(), 1, 3)
    assert (found["from"], found["to"]) == (1, 3)
    assert changes_of(found) == [("A", "updated"), ("B", "deleted"), ("C", "created")]
    assert found["entities"][0]["before"]["status"] == "open"
    assert found["entities"][0]["fields"] == {"status": {"before": "open", "after": "done"}}
    assert [(one["from"], one["to"], one["change"]) for one in found["edges"]] == [("A", "B", "deleted")]
    (changed,) = diff(project.view(), 1, 2)["edges"]
    assert changed["fields"] == {"confidence": {"before": 0.5, "after": 0.75}}


def test_what_came_and_went_or_was_changed_back_in_between_is_not_in_a_diff(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}, entity("B")], edges=[edge("B", "A")])
    project.apply(entities=[{"id": "A", "status": "open"}])
    project.delete(entities=[{"id": "B"}], cascade=True)
    assert diff(project.view(), 1, 4) == {"from": 1, "to": 4, "entities": [], "edges": []}


def test_a_diff_read_backwards_swaps_its_sides(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[entity("B")])
    assert changes_of(diff(project.view(), 2, 0)) == [("A", "deleted"), ("B", "deleted")]
    assert changes_of(diff(project.view(), 0, 2)) == [("A", "created"), ("B", "created")]
    assert diff(project.view(), 1, 1)["entities"] == []


def test_an_edge_that_lost_its_end_is_in_a_diff(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A"), "docs/requirements/b.md": req("B", depends_on="A")})
    project.sync({"docs/requirements/a.md": None})
    (changed,) = diff(project.view(), 1, 2)["edges"]
    assert changed["after"]["unresolved"] is True


def diverge(project: Project) -> None:
    """Let main and a copy of it part after record 2."""
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(edges=[edge("A", "B")])
    project.switch("feature", create=True)
    project.view("feature")


def test_the_merge_base_is_the_last_record_that_both_branches_have(project: Project) -> None:
    diverge(project)
    assert merge_base(project.view("main"), project.view("feature")) == 2
    project.apply(branch="main", entities=[entity("C")])
    project.apply(branch="feature", entities=[entity("C")])
    project.apply(branch="feature", entities=[entity("D")])
    assert merge_base(project.view("main"), project.view("feature")) == 2
    assert merge_base(project.view("main"), project.view("main")) == 3


def test_a_diff_of_branches_shows_both_sides_and_the_base_of_each_field(project: Project) -> None:
    diverge(project)
    project.apply(branch="main", entities=[{"id": "A", "status": "done", "title": "Main"}, entity("M"), entity("S")])
    project.apply(branch="feature", entities=[{"id": "A", "title": "Feature"}, entity("F"), entity("S")])
    project.delete(branch="feature", edges=[edge("A", "B")])
    found = diff_branches(project.view("main"), project.view("feature"))
    assert (found["from"], found["to"], found["base"]) == (3, 4, 2)
    by_id = {one["id"]: one for one in found["entities"]}
    assert [(key, one["change"], one["changed_in"]) for key, one in by_id.items()] == [
        ("A", "updated", ["from", "to"]),
        ("F", "created", ["to"]),
        ("M", "deleted", ["from"]),
        ("S", "updated", ["from", "to"]),
    ]
    assert by_id["A"]["fields"] == {
        "status": {"base": "open", "from": "done", "to": "open"},
        "title": {"base": "Title of A", "from": "Main", "to": "Feature"},
    }
    assert by_id["S"]["fields"].keys() == {"created_at"}
    (gone,) = found["edges"]
    assert (gone["from"], gone["to"], gone["change"], gone["changed_in"]) == ("A", "B", "deleted", ["to"])


def test_branches_that_came_to_the_same_do_not_differ(project: Project) -> None:
    diverge(project)
    for branch in ("main", "feature"):
        project.apply(branch=branch, entities=[{"id": "A", "status": "done"}])
    found = diff_branches(project.view("main"), project.view("feature"))
    assert (found["base"], found["entities"], found["edges"]) == (2, [], [])


def test_branches_without_a_common_history_are_compared_whole(tmp_path: Path) -> None:
    one, other = Project(tmp_path / "one"), Project(tmp_path / "other")
    one.import_(entities=[entity("A", created_at="2020-01-01"), entity("B")])
    other.import_(entities=[entity("A", created_at="2020-01-01", status="done")])
    found = diff_branches(one.view(), other.view())
    assert found["base"] is None
    assert changes_of(found) == [("A", "updated"), ("B", "deleted")]
    assert found["entities"][0]["fields"] == {"status": {"base": None, "from": "open", "to": "done"}}
    one.close()
    other.close()


@laws(15)
@given(records(), st.data())
def test_a_diff_is_empty_exactly_when_the_two_states_say_the_same(history, data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Stored(Path(folder))
        for ops in history:
            made.commit(ops)
        view = made.view()
        a, b = data.draw(st.integers(0, view.seq)), data.draw(st.integers(0, view.seq))
        found = diff(view, a, b)
        one, other = state_at(view, a), state_at(view, b)
        assert {
            item["id"] for item in found["entities"] if item["change"] == "created"
        } == other.nodes.keys() - one.nodes.keys()
        assert {
            item["id"] for item in found["entities"] if item["change"] == "deleted"
        } == one.nodes.keys() - other.nodes.keys()
        if content(one, with_files=False) == content(other, with_files=False):
            assert not found["entities"]
            assert not found["edges"]
        made.close()


@laws(15)
@given(records(), st.data())
def test_a_diff_in_parts_is_the_diff_whole_and_is_counted_without_its_parts(history, data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Stored(Path(folder))
        for ops in history:
            made.commit(ops)
        view = made.view()
        a, b = data.draw(st.integers(0, view.seq)), data.draw(st.integers(0, view.seq))
        size, at_once = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
        found: list[tuple[str, Any]] = []
        place = 0
        while part := list(itertools.islice(differences_from(view, a, b, place, at_once=at_once), size)):
            found += [(key, one) for _, key, one in part]
            place = part[-1][0]
        whole = diff(view, a, b)
        assert found == [(key, one) for key in ("entities", "edges") for one in whole[key]]
        assert count_differences(view, a, b) == len(found)
        made.close()


def test_branches_of_which_one_renamed_an_entity_differ_in_a_rename(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")], edges=[edge("A", "B")])
    project.switch("topic", create=True)
    project.apply(entities=[{"id": "A", "status": "done"}, entity("C")], edges=[edge("C", "A")])
    renamed(project, "A", "Z", "main")
    main, topic = project.view("main"), project.view("topic")
    found = diff_branches(main, topic)
    assert [(one["id"], one.get("was"), one["change"]) for one in found["entities"]] == [
        ("A", "Z", "renamed"),
        ("C", None, "created"),
    ]
    assert found["entities"][0]["changed_in"] == ["from", "to"]
    assert [(one["from"], one["to"], one["change"]) for one in found["edges"]] == [("C", "A", "created")]
    back = diff_branches(topic, main)
    assert [(one["id"], one.get("was"), one["change"]) for one in back["entities"]] == [
        ("C", None, "deleted"),
        ("Z", "A", "renamed"),
    ]
    assert [(one["from"], one["to"], one["change"]) for one in back["edges"]] == [("C", "A", "deleted")]


def test_an_edge_that_both_branches_made_to_an_entity_of_another_id_is_one(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")])
    project.switch("topic", create=True)
    project.apply(edges=[edge("B", "A", confidence=0.5)])
    renamed(project, "A", "Z", "main")
    project.apply(branch="main", edges=[edge("B", "Z", confidence=0.75)])
    (change,) = diff_branches(project.view("main"), project.view("topic"))["edges"]
    assert (change["change"], change["fields"]["confidence"]["from"]) == ("updated", 0.75)
