"""A check of named files looks at what they state, and of a file that is gone at what it stated last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.checks.targets import Targets, files_of_repository, targets_of
from kbcore.errors import InvalidQuery, NotFound
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


def test_a_glob_means_the_files_from_which_facts_come_or_came(project):
    project.sync({LOGIN: None})
    found = targets(project, f"{DOCS}/*.md")
    assert (found.globs, found.paths) == ([f"{DOCS}/*.md"], [])
    assert found.ids == sorted([LOGOUT, "REQ-1", "REQ-2", "REQ-3"])
    assert "REQ-3" in targets(project, "docs/**/old/*").ids


def test_a_glob_that_no_file_is_like_is_refused(project):
    with pytest.raises(NotFound) as refused:
        targets(project, "services/**")
    assert refused.value.message == "No file from which facts come is like 'services/**'."


def test_an_empty_name_is_refused_instead_of_meaning_everything(project):
    with pytest.raises(InvalidQuery) as refused:
        targets(project, f"{DOCS}", "")
    assert [(one.path, one.code) for one in refused.value.details] == [("$.targets[1]", "empty")]


def test_a_file_whose_name_has_the_signs_of_a_glob_is_that_file(project):
    project.sync({f"{DOCS}/[x].md": req("REQ-9"), f"{DOCS}/x.md": req("REQ-8")})
    assert targets(project, f"{DOCS}/[x].md").ids == sorted([f"{DOCS}/[x].md", "REQ-9"])


def test_symbols_that_are_said_to_be_in_a_file_are_of_that_file(project):
    project.sync({"docs/symbols.yaml": "symbols:\n- id: pay\n  title: Pay\n  file: src/pay.c\n  status: active\n"})
    assert targets(project, "src").ids == ["pay", "src/pay.c"]


def test_an_entity_at_which_only_an_edge_of_a_file_begins_is_not_inside(project):
    project.sync({"docs/tests/t.md": document("TEST-1", title="T", status="active", links="[REQ-1]")})
    found = targets(project, "docs/tests")
    assert "REQ-1" in found.ids
    assert found.inside == ["TEST-1", "docs/tests/t.md"]
