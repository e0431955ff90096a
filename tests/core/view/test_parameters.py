"""An error of DuckDB about a parameter is no error of the base: no view is thrown away for a caller's mistake."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from kbcore.view.view import View
from tests.support.repository.project import Project, req

BAD = "\udcff"


@pytest.mark.parametrize(
    "ask",
    [
        lambda view: view.nodes([BAD]),
        lambda view: view.touching([BAD]),
        lambda view: view.nodes([BAD] * 100),
        lambda view: view.changeset(BAD),
        lambda view: view.rows("select id from node where id = ?", [BAD]),
    ],
)
def test_a_parameter_that_cannot_be_bound_is_the_callers_mistake_and_no_damage(
    project: Project, ask: Callable[[View], object]
) -> None:
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.pool.close()
    view = project.view()
    with pytest.raises(duckdb.InvalidInputException):
        ask(view)
    assert [node.id for node in view.nodes(["REQ-1"])] == ["REQ-1"]
