"""A check of named files looks at what they state, and of a file that is gone at what it stated last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.checks.targets import Targets, files_of_repository, targets_of
from kbcore.sync.overlay import WorktreeFiles
from tests.support.repository.project import Project, document, req

DOCS = "docs/requirements"
LOGIN, LOGOUT, AUDIT = (f"{DOCS}/{name}.md" for name in ("login", "logout", "old/audit"))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "repo")
    made.sync(
        {
            LOGIN: req("REQ-1", depends_on="[REQ-3]"),
            LOGOUT: req("REQ-2", depends_on="[REQ-1]"),
            AUDIT: req("REQ-3"),
        }
    )
    yield made
    made.close()


def targets(project: Project, *names: str) -> Targets:
    workspace = project.workspace()

    def on(view, _) -> Targets:
        return targets_of(view, names, project.root, project.root, lambda paths: files_of_repository(workspace, paths))

    files = WorktreeFiles()
    found = files.read(workspace, "main", on, time_s=60)
    files.close()
    return found


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_synced", [False, True])
def test_a_file_that_is_gone_means_its_entities_and_the_ends_of_its_edges(project, is_synced):
    project.write({LOGIN: None})
    if is_synced:
        project.sync()
        project.sync({LOGOUT: req("REQ-2", title="Another", depends_on="[REQ-1]")})
    found = targets(project, LOGIN)
    assert (found.ids, found.gone, found.unknown) == (["REQ-1", "REQ-3"], [LOGIN], [])
    assert found.notes() == [f"Checked by what it stated last, as no fact comes from it any more: '{LOGIN}'."]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_synced", [False, True])
def test_a_folder_with_files_means_what_nothing_states_any_more_of_those_that_are_gone(project, is_synced):
    project.sync({"docs/tests/t.md": document("TEST-1", title="T", status="active", links="[REQ-1]")})
    project.sync({"docs/tests/u.md": document("TEST-2", title="U", status="active", links="[REQ-2]")})
    project.write({LOGIN: None, "docs/tests/t.md": None})
    if is_synced:
        project.sync()
    found = targets(project, DOCS)
    assert (found.ids, found.gone) == (sorted([AUDIT, LOGOUT, "REQ-1", "REQ-2", "REQ-3"]), [])
    assert targets(project, "docs/tests").ids == ["REQ-1", "REQ-2", "TEST-1", "TEST-2", "docs/tests/u.md"]


@pytest.mark.parametrize("is_synced", [False, True])
def test_what_has_moved_to_another_folder_is_judged_only_there(project, is_synced):
    project.write({LOGIN: None, "docs/requirements/new/login.md": req("REQ-1", depends_on="[REQ-3]")})
    project.sync({f"{DOCS}/old/other.md": req("REQ-4")})
    project.write({AUDIT: None, f"{DOCS}/new/audit.md": req("REQ-3")})
    if is_synced:
        project.sync()
    assert targets(project, f"{DOCS}/old").ids == sorted([f"{DOCS}/old/other.md", "REQ-4"])


def test_a_folder_that_is_gone_means_what_its_files_stated_last(project):
    project.sync({AUDIT: None})
    found = targets(project, f"{DOCS}/old")
    assert (found.ids, found.gone) == (["REQ-3"], [f"{DOCS}/old"])


def test_an_entity_of_a_file_that_is_gone_has_its_present_id(project):
    project.sync({LOGIN: None, f"{DOCS}/new.md": req("REQ-9", former_ids="[REQ-1]", depends_on="[REQ-3]")})
    assert "REQ-9" in targets(project, LOGIN).ids
