"""The line that a refusal names: of the files that are here, and of no others."""

from __future__ import annotations

import pytest

from kbcore.errors import DerivedFact, of_problems
from kbcore.store.planning.findings import stated_problem
from kbcore.sync.locate import with_lines
from tests.support.project import Project, req

DOCUMENT = "docs/requirements/1.md"


@pytest.mark.parametrize(("branch", "place"), [("main", f"{DOCUMENT}:3"), ("other", DOCUMENT)])
def test_only_the_branch_that_is_checked_out_has_lines(project: Project, branch: str, place: str) -> None:
    project.write({DOCUMENT: req("REQ-1")})
    problem = stated_problem("$.entities[0].title", "REQ-1", [DOCUMENT], field="title")
    found = with_lines(project.workspace(), of_problems(DerivedFact, "", [problem]), branch=branch)
    assert (found.details[0].place, found.message) == (place, f"`title` of 'REQ-1' is stated by {place!r}.")
