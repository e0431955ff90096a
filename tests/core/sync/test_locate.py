"""The line that a refusal names: of the files that are here, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbcore.checks.introduced.written import apply_changeset
from kbcore.errors import DerivedFact, Rejected, of_problems
from kbcore.model.changeset import parse, parse_deletion
from kbcore.store.planning.plan_builder import stated_problem
from kbcore.sync.locate import with_lines, withdrawn
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.view import View
from tests.support.repository.project import AUTHOR, Project, req

DOCUMENT = "docs/requirements/1.md"


@pytest.mark.parametrize(("branch", "place"), [("main", f"{DOCUMENT}:3"), ("other", DOCUMENT)])
def test_only_the_branch_that_is_checked_out_has_lines(project: Project, branch: str, place: str) -> None:
    project.write({DOCUMENT: req("REQ-1")})
    problem = stated_problem("$.entities[0].title", "REQ-1", [DOCUMENT], field="title")
    found = with_lines(project.workspace(), of_problems(DerivedFact, "", [problem]), branch=branch)
    assert (found.details[0].place, found.message) == (place, f"`title` of 'REQ-1' is stated by {place!r}.")


def test_a_former_id_of_a_rename_in_files_is_not_taken_for_gone(project: Project) -> None:
    project.sync({DOCUMENT: req("REQ-1")})
    project.write({DOCUMENT: req("REQ-2", former_ids="[REQ-1]")})
    workspace, files = project.workspace(), WorktreeFiles()

    def read(use: Callable[[View], Any]) -> Any:
        return files.read(workspace, "main", lambda view, _: use(view), time_s=10)

    recorded = workspace.store("main").read
    assert withdrawn(read, recorded, ["REQ-1", "REQ-9"]) == []
    project.write({DOCUMENT: req("REQ-2")})
    assert withdrawn(read, recorded, ["REQ-1", "REQ-9"]) == ["REQ-1"]


@pytest.mark.parametrize(
    ("item", "code", "said"),
    [
        ({"title": "Other"}, "derived_fact", "`title` of 'REQ-1' is stated by 'docs/requirements/one.md:3'."),
        ({"owner": None}, "not_synced", f"'REQ-1' is in 'docs/requirements/one.md', and was in {DOCUMENT!r}."),
        (
            {"type": "req", "title": "T", "status": "open", "create": True},
            "not_synced",
            f"'REQ-1' is in 'docs/requirements/one.md', and was in {DOCUMENT!r}.",
        ),
    ],
)
def test_a_refusal_names_the_file_that_a_document_moved_to(
    project: Project, item: dict[str, Any], code: str, said: str
) -> None:
    project.sync({DOCUMENT: req("REQ-1", owner="ann")})
    project.write({DOCUMENT: None, "docs/requirements/one.md": req("REQ-1")})
    workspace = project.workspace()
    read = WorktreeFiles().reading(workspace, "main")
    asked = parse({"entities": [{"id": "REQ-1", **item}]})
    with pytest.raises(Rejected) as refused:
        apply_changeset(workspace, "main", AUTHOR, asked, follows_head=True, read=read)
    assert (refused.value.code, said in refused.value.message) == (code, True)


def test_a_deletion_is_refused_with_the_file_that_a_document_moved_to(project: Project) -> None:
    project.sync({DOCUMENT: req("REQ-1")})
    project.write({DOCUMENT: None, "docs/requirements/one.md": req("REQ-1")})
    workspace = project.workspace()
    read = WorktreeFiles().reading(workspace, "main")
    with pytest.raises(DerivedFact, match=r"'REQ-1' is stated by 'docs/requirements/one\.md:2'") as refused:
        apply_changeset(
            workspace, "main", AUTHOR, parse_deletion({"entities": [{"id": "REQ-1"}]}), follows_head=True, read=read
        )
    assert "Delete it in 'docs/requirements/one.md'" in refused.value.hint
