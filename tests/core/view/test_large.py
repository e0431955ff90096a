"""Statements over a large branch that DuckDB 2.0 did not end. See ADR 0015, which has the smallest of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbcore.config.settings import KipLimits
from kbcore.kip.binding import read
from kbcore.kip.find import find
from kbcore.query.data_names import DataNames
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.view.view import View
from tests.support.generators.kip_queries import SCHEMA
from tests.support.views.large import ROWS, large_view

_TIME_S = 20.0
CODE = Path(__file__).parents[3] / "kbcore"

ONE_TABLE = {
    "select 1 from {table} limit 1": "one table",
    "select 1 from {self._tables[0]} where type = ? limit 1": "one table",
    "select 1 from {table} where json_exists({column}, ?) limit 1": "one table",
    "{' union all '.join(parts)} limit {_MOST_ROWS + 1}": "look-ups by key in one table, without a join",
    "select n.id from {table} n where {named} limit {_MOST_ROWS}": "one table, with the vocabulary beside it",
    "{_VALUES[name].format(entities)} limit {_MAX_VALUES + 1}": "each of _VALUES is ordered",
    "is_resolved and not {IS_MENTION} limit {most}": "one table, without an order that anything depends on",
    "limit ?": "added to a statement that is ordered",
    "limit {bind(limit)}": "likewise",
}
"""Texts with a LIMIT and no ORDER BY, and why DuckDB ends them all the same."""


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with large_view(tmp_path_factory.mktemp("large")) as made:
        yield made


def rows(view: View, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
    return view.rows(sql, params, time_s=_TIME_S)


def test_suspect_edges_are_found_in_a_large_branch(view: View) -> None:
    changed = f"REQ-{ROWS // 2}"
    [found] = suspect_edges(lambda sql, params: rows(view, sql, params))
    assert (found.from_id, found.to_id) == (f"REQ-{ROWS // 2 + 1}", changed)
    assert [one.id for one in suspect_edges(lambda sql, params: rows(view, sql, params), ids=[found.id])] == [found.id]
    assert suspect_edges(lambda sql, params: rows(view, sql, params), ends=["REQ-1"]) == []


@pytest.mark.parametrize(
    "pattern",
    [
        '?x {type: "Requirement"} (?x, "depends_on", ?y) ?y {type: "Requirement"}',
        'UNION { (?x, "depends_on", ?y) } (?y, "depends_on", ?z)',
        '(?x, "depends_on"{1,2}, ?y) (?y, "depends_on", ?z)',
    ],
)
def test_a_not_that_shares_no_variable_is_answered_in_a_large_branch(view: View, pattern: str) -> None:
    query: Any = read(f'FIND(?a) WHERE {{ ?a {{type: "Requirement"}} NOT {{ {pattern} }} }} LIMIT 3')
    assert find(view, SCHEMA, query, limits=KipLimits(time_s=_TIME_S)).result == []


@pytest.mark.parametrize("ending", ["limit 1", "limit 3 offset 2"])
def test_the_same_tables_joined_with_themselves_are_answered_below_a_limit(view: View, ending: str) -> None:
    assert rows(view, f"select a.id from node a join node b on a.id = b.id {ending}")
    assert rows(view, "select exists (select a.id from node a join node b on a.id = b.id)") == [(True,)]


def test_names_are_looked_for_in_a_large_branch(view: View) -> None:
    known = DataNames(lambda sql, params: rows(view, sql, params), is_edge=False)
    assert not known.is_empty()
    assert not known.has("attributes.nothing")


@pytest.mark.sliced
def test_no_statement_of_the_core_has_a_limit_over_a_join_without_an_order() -> None:
    unordered = set()
    of_sqlite = {CODE / "view/text_index.py", *CODE.glob("view/claim_*.py")}
    for path in {*CODE.rglob("*.py")} - of_sqlite:
        for text in _texts(ast.parse(path.read_text())):
            if re.search(r"\blimit [0-9?${]", text) and not re.search(r"\border by\b", text):
                unordered.add(text.strip())
    assert unordered == ONE_TABLE.keys()


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module, those with places as they are written, without what only documents."""
    documenting = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    inside = {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    for one in ast.walk(tree):
        if id(one) in documenting | inside:
            continue
        if isinstance(one, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                for part in one.values
                if isinstance(part, ast.Constant | ast.FormattedValue)
            )
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
