"""Turn a checked query into SQL over the tables of the view. Pure.

Text of a user enters a statement only as a bound parameter; names of tables and columns are fixed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from kbcore.query import condition_sql, walk
from kbcore.query.keys import RESOLVED, key_of
from kbcore.query.request import Pattern, Query
from kbcore.view.as_of import as_of
from kbcore.view.tables import IS_TEXT_OF, LINK, NODE, SMALL_LIST, SOURCE, WHOLE, Columns

_FEW: Final = 8
"""Up to so many ids an edge look-up by index beats one scan."""


class PageStatements(msgspec.Struct, frozen=True):
    """The statement of a page and the one that counts all rows.

    A row of ``sql`` has the id alone: to sort all columns of a large branch takes far longer than to look up those of
    one page. It asks for one row more than the limit, so that the count is needed only where that row comes.
    """

    sql: str
    params: list[Any]
    count_sql: str
    count_params: list[Any]


class Narrowed(msgspec.Struct, frozen=True):
    """The result of a query's other filters, for a statement that finds entities by words.

    ``conditions`` and the expressions of ``order`` refer to a row ``n`` of ``node``; the order is that which was asked
    for, none if none was. ``params`` are what all of it is given, and may grow.
    """

    ctes: str
    node: str
    conditions: list[str]
    order: list[Term]
    params: list[Any]


class Term(msgspec.Struct, frozen=True):
    """One expression to order by; nulls come last either way."""

    expression: str
    is_descending: bool = False


class _Statement:
    """The parameters of one statement, numbered as they are bound, and the tables as of its seq."""

    def __init__(self, at: int | None, *, is_whole: bool = False) -> None:
        """``is_whole`` adds the hidden entities."""
        self.params: list[Any] = []
        self._at = None if at is None else self.bind(at)
        self.node = self._table(WHOLE["node"] if is_whole else "node", NODE)
        self.link = self._table("link", LINK)
        self.source = self._table("source", SOURCE)

    def bind(self, value: Any) -> str:
        """Return the placeholder of a value."""
        self.params.append(value)
        return f"${len(self.params)}"

    def among(self, values: Collection[str]) -> str:
        """Return ``in (…)`` with every value written out, as DuckDB then uses an index; many are a list."""
        if len(values) > SMALL_LIST:
            return f"in (select unnest({self.bind([*values])}::varchar[]))"
        return f"in ({', '.join(self.bind(value) for value in values)})"

    def _table(self, name: str, columns: Columns) -> str:
        if self._at is None:
            return name
        return as_of(name, columns, self._at)


def statement(at: int | None, *, is_whole: bool = False) -> walk.WalkStatement:
    """Return the beginning of a statement over the graph as of a seq, None is the head; as ``_Statement``."""
    return _Statement(at, is_whole=is_whole)


def compile(query: Query, after: str = "") -> PageStatements:  # noqa: A001 - the verb, as in ``re.compile``
    """Return the statements that answer a checked query; ``after`` is the key of the row before the page."""
    sql, params = _select(query, after)
    count_sql, count_params = _count(query)
    return PageStatements(sql, params, count_sql, count_params)


def narrow(query: Query) -> Narrowed:
    """Return everything of a checked query but its text."""
    statement = _Statement(query.at, is_whole=query.names_hidden)
    ctes, conditions = walk.beginning(statement, query), filters(statement, query)
    order = _order(statement, query) if query.sort else []
    return Narrowed(ctes, statement.node, conditions, order, statement.params)


def links_touching(ids: Sequence[str], at: int | None) -> tuple[str, list[Any]]:
    """Return the statement for the links, as of a seq, that have one of these ids as an end, resolved or not.

    A link between two of them may come twice: a further condition would keep DuckDB from using its indexes.
    """
    statement = _Statement(at)
    columns = ", ".join(f"e.{name}" for name in LINK)
    few = len(ids) <= _FEW
    ends = statement.among(ids) if few else f"in (select unnest({statement.bind(list(ids))}::varchar[]))"
    select = f"select {columns} from {statement.link} e where"  # noqa: S608 - fixed names
    if few:
        return f"{select} e.from_id {ends} union all {select} e.to_id {ends}", statement.params
    return f"{select} e.from_id {ends} or e.to_id {ends}", statement.params


def trails(query: Query, ids: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the statement for the steps of the walk of a checked query that lead to these ids."""
    statement = _Statement(query.at, is_whole=query.names_hidden)
    return walk.trails(statement, query, ids), statement.params


def exists(key: str, at: int | None) -> tuple[str, list[Any]]:
    """Return the statement that answers a row when an entity or a link of that id existed as of a seq."""
    statement = _Statement(at)
    bound = statement.bind(key)
    return (
        f"select 1 from {statement.node} n where n.id = {bound} "  # noqa: S608 - fixed names
        f"union all select 1 from {statement.link} e where e.id = {bound}"
    ), statement.params


def elements(query: Query, ids: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the statement for the elements of a query with these ids, with the columns of ``NODE`` or ``LINK``."""
    statement = _Statement(query.at, is_whole=query.names_hidden)
    table, columns = (statement.link, LINK) if query.is_edge else (statement.node, NODE)
    listed = ", ".join(f"n.{name}" for name in columns)
    return f"select {listed} from {table} n where n.id {statement.among(ids)}", statement.params  # noqa: S608 - fixed names


def unread(paths: Sequence[str], at: int | None) -> tuple[str, list[Any]]:
    """Return the statement for those of these files that could not be read whole, as of a seq."""
    statement = _Statement(at)
    bound = statement.bind(list(paths))
    return (
        f"select {', '.join(SOURCE)} from {statement.source} s where not s.is_ok "  # noqa: S608 - fixed names
        f"and s.path in (select unnest({bound}::varchar[]))"
    ), statement.params


def _select(query: Query, after: str) -> tuple[str, list[Any]]:
    statement = _Statement(query.at, is_whole=query.names_hidden)
    table = statement.link if query.is_edge else statement.node
    ctes, conditions = walk.beginning(statement, query), filters(statement, query)
    order = _order(statement, query)
    source = f"{table} n"
    if after and len(order) == 1 and not order[0].is_descending:
        conditions.append(f"n.id > {statement.bind(after)}")
    elif after:
        keys = ", ".join(f"{term.expression} as k{at}" for at, term in enumerate(order))
        source += f", (select {keys} from {table} n where n.id = {statement.bind(after)}) last"  # noqa: S608
        conditions.append(comes_after(order, 0))
    ordered = ", ".join(f"{term.expression} {'desc' if term.is_descending else 'asc'} nulls last" for term in order)
    return (
        f"{ctes}select n.id from {source} where {' and '.join(conditions) or 'true'} "  # noqa: S608 - fixed names
        f"order by {ordered} limit {statement.bind(query.limit + 1)}"
    ), statement.params


def _count(query: Query) -> tuple[str, list[Any]]:
    statement = _Statement(query.at, is_whole=query.names_hidden)
    table = statement.link if query.is_edge else statement.node
    ctes, conditions = walk.beginning(statement, query), filters(statement, query)
    where = " and ".join(conditions) or "true"
    return f"{ctes}select count(*) from {table} n where {where}", statement.params  # noqa: S608 - fixed names


def filters(statement: walk.WalkStatement, query: Query) -> list[str]:
    """Return what a checked query asks of a row ``n``, its text and ``limit`` left out."""
    found: list[str] = []
    if query.ids:
        found.append(
            f"n.id {statement.among(query.ids)}" if len(query.ids) > 1 else f"n.id = {statement.bind(query.ids[0])}"
        )
    if query.is_edge:
        if all(key_of(one.key, is_edge=True) is not RESOLVED for any_of in query.where for one in any_of):
            found.append("n.is_resolved")
    elif query.type:
        found.append(f"n.type = {statement.bind(query.type)}")
    if query.status:
        found.append(f"n.status = {statement.bind(query.status)}")
    found += [f"list_contains(n.tags, {statement.bind(tag)})" for tag in query.tags]
    owned = _owned(statement, query)
    found += [condition_sql.holds(statement, any_of, is_edge=query.is_edge, owned=owned) for any_of in query.where]
    if query.path:
        bound = f"{statement.bind(list(query.paths))}::varchar[]"
        found.append(f"list_has_any(n.files, {bound})" if query.is_edge else is_of_files(bound))
    found += [_has(statement, pattern) for pattern in query.has]
    found += [f"not {_has(statement, pattern)}" for pattern in query.lacks]
    if query.from_id:
        found.append("n.id in (select reach.id from reach where reach.steps > 0)")
    return found


def _owned(statement: walk.WalkStatement, query: Query) -> str:
    """Return the relation of the files and their owners, "" where a query has none."""
    if not (query.owned.paths and query.names_owner):
        return ""
    path, owner = (f"unnest({statement.bind(list(of))}::varchar[])" for of in (query.owned.paths, query.owned.owners))
    return f"(select {path} as path, {owner} as owner)"


def is_of_files(bound: str) -> str:
    """Return the condition that an entity ``n`` is of one of some files, or a symbol that is said to be in one.

    ``bound`` is SQL for the list of their paths.
    """
    return (
        f"(n.path in (select unnest({bound})) or {IS_TEXT_OF} in (select unnest({bound})) or n.type = 'symbol' "
        f"and json_extract_string(n.attributes, '$.file') in (select unnest({bound})))"
    )


def _has(statement: walk.WalkStatement, pattern: Pattern) -> str:
    near, far = ("to_id", "from_id") if pattern.inverse else ("from_id", "to_id")
    end = f" and e.{far} = {statement.bind(pattern.id)}" if pattern.id else ""
    return (
        f"exists (select 1 from {statement.link} e where e.is_resolved "  # noqa: S608 - fixed names
        f"and e.type = {statement.bind(pattern.edge)} and e.{near} = n.id{end})"
    )


def _order(statement: _Statement, query: Query) -> list[Term]:
    """Return what the rows are ordered by; the last term is unique."""
    tie = Term("n.id")
    if query.sort:
        key = key_of(query.sort.removeprefix("-"), is_edge=query.is_edge)
        assert key is not None, "the query was not checked"  # noqa: S101
        is_descending = query.sort.startswith("-")
        terms = [Term(expression, is_descending) for expression in condition_sql.sortable(statement, key)]
        return terms if key.column == "id" else [*terms, tie]
    if query.is_edge:
        return [Term("n.from_id"), Term("n.type"), Term("n.to_id"), tie]
    return [tie]


def comes_after(order: Sequence[Term], at: int = 0) -> str:
    """Return the condition that a row comes after ``last`` in the order, from its term ``at`` on."""
    expression, last = order[at].expression, f"last.k{at}"
    sign = "<" if order[at].is_descending else ">"
    after = f"{expression} {sign} {last} or ({expression} is null and {last} is not null)"
    if at + 1 < len(order):
        after += f" or ({expression} is not distinct from {last} and {comes_after(order, at + 1)})"
    return f"({after})"
