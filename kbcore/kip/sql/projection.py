"""The SELECT of a FIND: its columns, which rows are equal, and their order. Pure.

Rows that are equal in the variables that FIND shows are one; of those the first in the order counts. Beside aggregates
the values of the plain expressions make the groups.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from kbcore.kip import syntax as s
from kbcore.kip.sql.matching import link_of, node_of
from kbcore.kip.sql.relation import Bound, SqlRelation, read
from kbcore.kip.sql.statement import SqlStatement
from kbcore.kip.sql.values import HUGE, Operand, only_where, value
from kbcore.view import tables

_SHORT_LIST: Final = 64
"""A list of so many values is written out, because DuckDB then uses an index; a longer one is joined."""
Shape = Literal["text", "json", "node", "link", "end", "count", "sum", "average"]


class ProjectedCell(msgspec.Struct, frozen=True):
    """One expression of FIND in a row: where its columns begin, what they hold, and which member of it is asked for."""

    start: int
    shape: Shape
    member: str = ""


class Selected(msgspec.Struct, frozen=True):
    """A statement and how its rows are read; ``is_single`` where it is all aggregates, which have one row."""

    sql: str
    params: list[Any]
    cells: tuple[ProjectedCell, ...]
    is_single: bool


_UNREAD: Final = {"owners": "'{}'", "path": "null", "files": "null"}
"""Columns of a shown element that are not used, and what is read instead."""


def select(st: SqlStatement, relation: SqlRelation, query: s.FindCommand, page: tuple[int, int]) -> Selected:
    """Return the statement for the rows of a query; ``page`` is how many are left out, and how many asked for."""
    if any(isinstance(one, s.Aggregate) for one in query.find):
        return _grouped(st, relation, query, page)
    found = [one for one in query.find if isinstance(one, s.Path)]
    if query.limit and any(_is_elsewhere(relation.columns[one.variable], one.parts) for one in found):
        return _late(st, relation, query, page)
    made = _Projection(st, relation, query)
    sql = _distinct(relation, made.variables, made.columns) + _paged(st, made.order(made.variables), page)
    return Selected(*st.whole(sql), tuple(made.cells), is_single=False)


def _grouped(st: SqlStatement, relation: SqlRelation, query: s.FindCommand, page: tuple[int, int]) -> Selected:
    made = _Projection(st, relation, query)
    order = made.order(made.groups)
    sql = relation.select(", ".join(made.columns))
    if made.groups:
        sql += f" group by {', '.join(made.groups)}" + _paged(st, order, page)
    return Selected(*st.whole(sql), tuple(made.cells), is_single=not made.groups)


def _late(st: SqlStatement, relation: SqlRelation, query: s.FindCommand, page: tuple[int, int]) -> Selected:
    """Return the statement that looks the elements of a page up when it is known which they are."""
    names = list(dict.fromkeys(one.variable for one in query.find if isinstance(one, s.Path)))
    shown = {name: relation.columns[name] for name in names}
    first = _Projection(st, relation)
    keys = [first.key(one.key, descending=one.descending) for one in query.order]
    variables = [one.sql for one in shown.values()]
    columns = [f"c{at}" for at in range(len(variables))] + [f"k{at}" for at in range(len(keys))]
    ways = ["desc" if one.descending else "asc" for one in query.order]
    order = [f"{key} {way}" for key, way in zip(keys, ways, strict=True)] + variables
    cte = st.define("p", columns, _distinct(relation, variables, [*variables, *keys]) + _paged(st, order, page))
    found = read(st, cte, shown, is_distinct=True)
    made = _Projection(st, found, query, is_sorted=False)
    alias = found.rows[0][0]
    again = [f"{alias}.k{at} {way}" for at, way in enumerate(ways)] + [one.sql for one in found.columns.values()]
    sql = f"{found.select(', '.join(made.columns))} order by {', '.join(f'{one} nulls last' for one in again)}"
    return Selected(*st.whole(sql), tuple(made.cells), is_single=False)


def _is_elsewhere(bound: Bound, parts: tuple[str, ...]) -> bool:
    """Return whether what is shown of a variable is in none of the sources of its relation yet."""
    if bound.kind == "name" or parts == ("id",):
        return False
    return not (bound.node or bound.kind == "link") or not (bound.link or bound.kind == "node")


def _distinct(relation: SqlRelation, variables: list[str], columns: list[str]) -> str:
    """Return a SELECT of columns that has one row for each combination of variables, the first in its order."""
    listed = ", ".join(columns)
    if relation.is_determined_by(variables):
        return relation.select(listed)
    return relation.select(f"distinct on ({', '.join(variables)}) {listed}")


def _paged(st: SqlStatement, order: list[str], page: tuple[int, int]) -> str:
    ordered = ", ".join(f"{one} nulls last" for one in order)
    offset = f" offset {st.bind(page[0])}" if page[0] else ""
    return f" order by {ordered} limit {st.bind(page[1])}{offset}"


class ValueSlice(msgspec.Struct, frozen=True):
    """A part of the values of a variable, in their order.

    Only values greater than ``after`` ("" for all), up to ``until`` ("" for all), and, if given, among ``keys``; at
    most ``most`` of them, None for as many as a command may find.
    """

    after: str = ""
    until: str = ""
    keys: tuple[str, ...] | None = None
    most: int | None = None


def select_variables(
    st: SqlStatement, relation: SqlRelation, names: tuple[str, ...], limit: int, page: ValueSlice
) -> tuple[str, list[Any]]:
    """Return the statement for the distinct values of variables, ordered by them, and its parameters.

    ``page`` narrows the values of the first variable.
    """
    columns = [relation.columns[name].sql for name in names]
    if page.after:
        relation.where(f"{columns[0]} > {st.bind(page.after)}")
    if page.until:
        relation.where(f"{columns[0]} <= {st.bind(page.until)}")
    if page.keys is not None:
        relation.where(_is_among(st, columns[0], page.keys))
    order = ", ".join(f"{one} nulls last" for one in columns)
    listed = ", ".join(columns)
    return st.whole(f"{relation.select(f'distinct {listed}')} order by {order} limit {st.bind(limit)}")


def _is_among(st: SqlStatement, column: str, keys: tuple[str, ...]) -> str:
    """Return the condition that a column has one of these values; a short list is written out, for an index."""
    if len(keys) <= _SHORT_LIST:
        return f"{column} in ({', '.join(st.bind(key) for key in keys)})"
    return f"{column} in (select unnest({st.bind(keys)}))"


class _Projection:
    """The columns that a query asks of a relation, and how they are read."""

    def __init__(
        self, st: SqlStatement, relation: SqlRelation, query: s.FindCommand | None = None, *, is_sorted: bool = True
    ) -> None:
        self.st = st
        self.of = relation.columns
        self.columns: list[str] = []
        self.cells: list[ProjectedCell] = []
        self.groups: list[str] = []
        self.variables: list[str] = []
        self.sorts: list[str] = []
        self.is_grouped = query is not None and any(isinstance(one, s.Aggregate) for one in query.find)
        for expression in query.find if query else ():
            self.add(expression)
        for one in query.order if query and is_sorted else ():
            self.sorts.append(f"{self.key(one.key, descending=one.descending)} {'desc' if one.descending else 'asc'}")

    def order(self, last: list[str]) -> list[str]:
        """Return what the rows are ordered by; ``last`` is how they differ."""
        return [*self.sorts, *last]

    def add(self, expression: s.Expression) -> None:
        """Add the columns of an expression."""
        if isinstance(expression, s.Aggregate):
            self.aggregate(expression)
            return
        bound = self.of[expression.variable]
        if bound.sql not in self.variables:
            self.variables.append(bound.sql)
        if expression.parts in {("attributes",), ("metadata",)}:
            self.element(bound, expression.parts[0])
        elif not expression.parts and bound.kind != "name":
            self.element(bound, "")
        else:
            self.scalar(value(self.st, bound, expression.parts))

    def scalar(self, of: Operand) -> None:
        shown = of.json or of.text
        if self.is_grouped:
            self.groups.append(of.key)
            shown = f"min({shown}::varchar)" if of.json else shown
        self.cells.append(ProjectedCell(len(self.columns), "json" if of.json else "text"))
        self.columns.append(shown)

    def element(self, bound: Bound, member: str) -> None:
        """Add all columns of an element, or those that are read of it."""
        columns: list[str] = []
        if bound.kind != "link":
            columns += _columns(node_of(self.st, bound), tables.NODE)
        if bound.kind != "node":
            columns += _columns(link_of(self.st, bound), tables.LINK)
        if self.is_grouped:
            self.groups.append(bound.sql)
            columns = [f"any_value({one})" for one in columns]
        shape: Shape = "node" if bound.kind == "node" else "link" if bound.kind == "link" else "end"
        self.cells.append(ProjectedCell(len(self.columns), shape, member))
        self.columns += columns

    def aggregate(self, expression: s.Aggregate) -> None:
        """Add the columns of an aggregate over the distinct values of its variable."""
        bound = self.of[expression.path.variable]
        shape, columns = self.aggregated(expression, bound)
        self.cells.append(ProjectedCell(len(self.columns), shape))
        self.columns += columns

    def stored(self, bound: Bound) -> str:
        """Return the condition that a link is in a record; those of the vocabulary are not stored."""
        return f"coalesce({link_of(self.st, bound)}.version, 1) > 0"

    def aggregated(self, expression: s.Aggregate, bound: Bound) -> tuple[Shape, list[str]]:
        parts = expression.path.parts
        if parts in {("attributes",), ("metadata",)}:
            return "count", [f"count(distinct {bound.sql})"]
        of = value(self.st, bound, parts)
        is_of_links = bound.kind in {"link", "end"} and bound.is_virtual and len(parts) > 1
        if is_of_links and expression.function != "COUNT":
            of = only_where(of, self.stored(bound))
        if expression.function == "COUNT":
            if expression.distinct:
                return "count", [f"count(distinct {of.key})"]
            counted = f"case when not {of.is_null} then {bound.sql} end" if parts else bound.sql
            return "count", [f"count(distinct {counted})"]
        if expression.function in {"MIN", "MAX"}:
            word = expression.function.lower()
            if of.json:
                return "json", [f"arg_{word}({of.json}, {of.key})"]
            return "text", [f"{word}({of.text})"]
        shape: Shape = "sum" if expression.function == "SUM" else "average"
        if not of.number:
            return shape, ["min(null)", "min(null)", "0"]
        of_what = "''" if expression.distinct else bound.sql
        numbers = f"[x.n for x in list(distinct {{'i': {of_what}, 'n': {of.number}}}) if x.n is not null]"
        rest = f"case when abs(x.f) >= {HUGE!r} then x.f else x.w::double + x.f end"
        return shape, [
            f"list_sum([x.w for x in {numbers} if x.f = 0])",
            f"list_sum([{rest} for x in {numbers} if x.f <> 0])",
            f"len({numbers})",
        ]

    def key(self, of: s.Expression, *, descending: bool) -> str:
        """Return what orders by an expression; a group has the value that comes first in it."""
        if isinstance(of, s.Aggregate):
            return self.aggregate_key(of)
        sql = value(self.st, self.of[of.variable], of.parts).key
        if self.is_grouped and sql not in self.groups:
            return f"{'max' if descending else 'min'}({sql})"
        return sql

    def aggregate_key(self, of: s.Aggregate) -> str:
        """Return what orders by an aggregate."""
        shape, columns = self.aggregated(of, self.of[of.path.variable])
        if shape == "json":
            word = of.function.lower()
            return f"{word}({value(self.st, self.of[of.path.variable], of.path.parts).key})"
        if shape in {"sum", "average"}:
            whole, rest, count = columns
            total = f"coalesce({whole}, 0) + coalesce({rest}, 0)"
            return f"({total})" if shape == "sum" else f"({total}) / nullif({count}, 0)"
        return columns[0]


def _columns(alias: str, columns: tables.Columns) -> list[str]:
    return [_UNREAD.get(name) or f"{alias}.{name}" for name in columns]
