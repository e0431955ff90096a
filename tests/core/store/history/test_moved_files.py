"""Facts of files that moved since: what was said under the old name is undone under the new one."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.errors import RevertConflict
from kbcore.ids import link_id
from kbcore.model.graph import Link, Statement
from kbcore.store.answers import Outcome
from kbcore.store.history import undo
from kbcore.store.history.moved_files import followed
from kbcore.store.history.undo import UndoOptions
from kbcore.view.history import Later
from tests.support.repository.project import AUTHOR, Project, req

OLD, NEW, NEWER = "docs/requirements/a.md", "docs/requirements/b.md", "docs/requirements/c.md"


def revert(project: Project, *seqs: int, force: bool = False) -> Outcome:
    return undo.revert(project.workspace(), "main", AUTHOR, seqs, UndoOptions(force=force), follows_head=True)


def facts(project: Project, key: str) -> tuple[Any, ...]:
    node = project.node(key)
    assert node
    return node.fields["title"], node.owners["title"], node.source, node.fields["text_ref"]


def test_a_change_is_undone_after_its_file_moved_under_the_name_that_it_has_now(project: Project) -> None:
    project.sync({OLD: req("A")})
    project.sync({OLD: req("A", title="New")})
    project.sync({OLD: None, NEW: req("A", title="New")})
    project.sync({NEW: None, NEWER: req("A", title="New")})
    outcome = revert(project, 2)
    assert facts(project, "A") == ("Title of A", NEWER, NEWER, NEWER)
    assert [NEWER in warning for warning in outcome.warnings] == [True]
    project.sync()
    assert facts(project, "A") == ("New", NEWER, NEWER, NEWER)


def test_a_value_that_the_moved_file_changed_later_conflicts_with_the_undo(project: Project) -> None:
    project.sync({OLD: req("A")})
    project.sync({OLD: req("A", title="New")})
    project.sync({OLD: None, NEW: req("A", title="Newer")})
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert refused.value.data["conflicts"] == [
        {"seq": 3, "id": "A", "change": "updated", "field": "title", "before": "New", "after": "Newer"}
    ]


def test_what_a_file_made_is_unmade_after_it_moved(project: Project) -> None:
    project.apply(entities=[{"id": "B", "type": "req", "title": "B", "status": "open"}])
    project.sync({OLD: req("A", depends_on="B")})
    project.sync({OLD: None, NEW: req("A", depends_on="B")})
    outcome = revert(project, 2)
    assert (outcome.deleted, outcome.edges.deleted) == (("A",), 1)
    assert project.edges("B") == set()
    assert project.sync().outcome.created == ("A",)


def test_an_edge_that_a_file_stated_again_is_withdrawn_after_the_file_moved(project: Project) -> None:
    project.apply(entities=[{"id": "B", "type": "req", "title": "B", "status": "open"}])
    project.sync({OLD: req("A")})
    project.sync({OLD: req("A", depends_on="B")})
    project.sync({OLD: None, NEW: req("A", depends_on="B")})
    assert revert(project, 3).edges.deleted == 1
    assert project.edges("B") == set()


def test_the_move_itself_is_undone_without_touching_what_was_changed_since(project: Project) -> None:
    project.sync({OLD: req("A")})
    project.sync({OLD: None, NEW: req("A")})
    project.sync({NEW: req("A", title="New")})
    revert(project, 2)
    assert facts(project, "A") == ("New", OLD, OLD, OLD)
    project.sync()
    assert facts(project, "A") == ("New", NEW, NEW, NEW)


def test_a_file_that_takes_a_field_over_as_it_is_does_not_stand_against_the_undo(project: Project) -> None:
    project.sync({OLD: req("A")})
    project.apply(entities=[{"id": "A", "priority": "low"}])
    project.apply(entities=[{"id": "A", "priority": "high"}])
    project.sync({OLD: req("A", priority="high")})
    outcome = revert(project, 3)
    node = project.node("A")
    assert node
    assert node.fields["priority"] == "low"
    assert len(outcome.warnings) == 1
    project.sync()
    node = project.node("A")
    assert node
    assert node.fields["priority"] == "high"


def link(version: int, *files: str, **fields: Any) -> Link:
    key = link_id("depends_on", "", "A", "B")
    statements = tuple(Statement(path) for path in sorted(files))
    owners = dict.fromkeys(fields, files[0])
    return Link(key, "depends_on", "", "A", "B", fields, owners, statements, True, "", "", 1, version)


def test_moves_are_followed_from_name_to_name_and_only_for_what_came_before_them() -> None:
    key = link(1, OLD).id
    later = [
        Later(2, key, link(1, OLD, confidence=1.0), link(2, NEW, confidence=1.0)),
        Later(3, key, link(2, NEW, confidence=1.0), link(3, NEWER, confidence=1.0)),
        Later(4, key, link(3, NEWER, confidence=1.0), link(4, NEWER, OLD, confidence=1.0)),
    ]
    names, reported = followed(later)
    assert names == {OLD: NEWER, NEW: NEWER}
    files = [
        [{one.src for one in side.statements} for side in (change.before, change.after) if side] for change in reported
    ]
    assert files == [[{NEWER}, {NEWER}], [{NEWER}, {NEWER}], [{NEWER}, {NEWER, OLD}]]
    assert [change.before.owners for change in reported if change.before] == [{"confidence": NEWER}] * 3
