"""The line that a refusal names: of the files that are here, and of no others."""

from __future__ import annotations

import pytest

from kbcore.errors import DerivedFact, Problem
from kbcore.model import changeset
from kbcore.sync.locate import with_lines
from tests.support.project import Project, req

DOCUMENT = "docs/requirements/1.md"


@pytest.mark.parametrize(("branch", "source"), [("main", f"{DOCUMENT}:3"), ("other", DOCUMENT)])
def test_only_the_branch_that_is_checked_out_has_lines(project: Project, branch: str, source: str) -> None:
    project.write({DOCUMENT: req("REQ-1")})
    parsed = changeset.parse({"entities": [{"id": "REQ-1", "title": "Mine"}]})
    problem = Problem("$.entities[0].title", "derived_fact", f"It is stated by {DOCUMENT!r}.", source=DOCUMENT)
    refused = DerivedFact(problem.message, details=[problem])
    found = with_lines(project.workspace(), parsed, refused, branch=branch)
    assert (found.details[0].source, found.message) == (source, f"It is stated by {source!r}.")
