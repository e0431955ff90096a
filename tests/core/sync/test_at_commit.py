"""Answers as of a commit at which no record was made."""

from __future__ import annotations

from kbcore.store import branches
from kbcore.store.history.when import point_in
from kbcore.sync.at_commit import read_point
from kbcore.sync.overlay import FileState, as_of
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files, git

PATH = "docs/requirements/1.md"


def titles_at(project: Project, point: str) -> tuple[dict[str, str], FileState, list[str]]:
    """Return the titles as of a point, and what is said of it."""
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    notes: list[str] = []
    titles, meant = read_point(
        workspace,
        store,
        point_in(workspace, choice.branch, point),
        lambda view, meant: (dict(view.rows("select id, title from node order by id", [])), meant),
        notes=notes,
    )
    return titles, as_of(meant.seq, meant.said, is_of_documents=meant.is_of_documents), notes


def tagged(project: Project) -> Project:
    """Commit a requirement as ``v1``, change it and add another one, and sync only then."""
    commit_files(project.root, {PATH: req("REQ-1", title="Old")})
    git(project.root, "tag", "v1")
    commit_files(project.root, {PATH: req("REQ-1", title="New"), "docs/requirements/2.md": req("REQ-2", title="Two")})
    project.sync()
    project.apply(entities=[{"id": "T-1", "type": "test", "title": "T", "status": "open"}])
    return project


def test_a_tag_older_than_the_store_shows_what_its_documents_state(project: Project) -> None:
    titles, state, _ = titles_at(tagged(project), "v1")
    assert titles == {"REQ-1": "Old"}
    assert state.is_of_documents
    assert "'v1' is commit" in state.reason


def test_a_commit_with_a_record_is_read_from_the_records(project: Project) -> None:
    titles, state, _ = titles_at(tagged(project), "HEAD")
    assert titles == {"REQ-1": "New", "REQ-2": "Two", "T-1": "T"}
    assert not state.is_of_documents


def test_reading_an_old_commit_changes_nothing_of_the_branch(project: Project) -> None:
    seq = tagged(project).seq()
    titles_at(project, "v1")
    assert project.seq() == seq
    assert not project.sync().outcome.applied
