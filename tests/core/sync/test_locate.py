"""The line that a refusal names: of the files that are here, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbcore.errors import DerivedFact, of_problems
from kbcore.store.planning.findings import stated_problem
from kbcore.sync.locate import with_lines, withdrawn
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.view import View
from tests.support.repository.project import Project, req

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
