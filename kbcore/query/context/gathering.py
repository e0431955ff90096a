"""Gathers the facts that are tied to entities: one statement for each of two steps, however many entities there are.

The first step is every resolved edge at an entity, in both directions. The second goes on from requirements and
decisions alone: to the scenarios that say what they mean, the tests that show them, the flags that switch them; not to
other symbols, of which a requirement may have hundreds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.model.graph import CONTESTED, PROPOSED
from kbcore.model.proposals import OF_LINK, of_node
from kbcore.model.schema import MEMOS, ORDER
from kbcore.model.verdict import TEST
from kbcore.query import sql
from kbcore.query.context.facts import FAILING, OF_FILE, Fact, Tie, marks_of
from kbcore.query.verdicts import verdicts_of
from kbcore.view.tables import Rows

_SYMBOL: Final = "symbol"
_BINDING: Final = ("req", "adr")
_DAY_CHARS: Final = 10
_STATEMENTS: Final = ("statement", "description", "text")
"""Attributes that may say more than the title, the first of them that is there."""
_COLUMNS: Final = (
    "n.id, coalesce(n.type, ''), coalesce(n.title, ''), coalesce(n.status, ''), n.path, "
    "coalesce(r.source, n.source), n.updated_at, "
    f"n.version, n.contested <> '{{}}', {of_node('n')}, coalesce(r.actor, ''), coalesce("
    + ", ".join(f"json_extract_string(n.attributes, '$.{name}')" for name in _STATEMENTS)
    + ", '')"
)
_RECORD: Final = "left join record r on r.seq = n.version"


class Gathered(msgspec.Struct, frozen=True):
    """Facts, each as often as it is tied, without order. With ``goes_on`` there are more than are looked at."""

    facts: tuple[Fact, ...]
    goes_on: bool = False


def tied_to(rows: Rows, starts: Mapping[str, Tie], at: int | None = None, *, names_near: bool) -> Gathered:
    """Return the entities of these ids, tied as given, and the facts that edges tie to them, as of a seq (None: head).

    With ``names_near`` an edge from a start names it, as there are others.
    """
    own = _named(rows, starts, at)
    first, goes_on = _step(rows, [*starts], at, steps=1, is_named=names_near)
    bound = sorted({one.id for one in first if one.type in _BINDING} - starts.keys())
    second, more = _step(rows, bound, at, steps=2, is_named=True, leaves_out=_SYMBOL) if bound else ([], False)
    return Gathered(_judged(rows, at, [*own, *first, *second]), goes_on or more)


def of_type(rows: Rows, type_: str, tie: Tie, closed: Collection[str]) -> tuple[Fact, ...]:
    """Return the entities of a type, but those whose status begins with one of the words of ``closed``.

    Those that have an order come first, in it; then the latest.
    """
    bound = sql.statement(None)
    place = f"try_cast(json_extract_string(n.attributes, '$.{ORDER}') as double)"
    word = "regexp_extract(lower(coalesce(n.status, '')), '[a-z]+')"
    text = (
        f"select {_COLUMNS} from {bound.node} n {_RECORD} where n.type = {bound.bind(type_)} "  # noqa: S608 - fixed names
        f"and {word} not in (select unnest({bound.bind([*closed])}::varchar[])) "
        f"order by {place} nulls last, case when {place} is null then n.version end desc, n.id "
        f"limit {limits.MAX_CONTEXT_FACTS}"
    )
    return _judged(rows, None, [_fact(row, tie) for row in rows(text, bound.params)])


def about_files(rows: Rows, paths: Collection[str]) -> tuple[Fact, ...]:
    """Return the notes and tasks that name one of these files, the latest first."""
    bound = sql.statement(None)
    of_file = "json_extract_string(n.attributes, '$.file')"
    text = (
        f"select {_COLUMNS}, {of_file} from {bound.node} n {_RECORD} "  # noqa: S608 - fixed names
        f"where n.type in (select unnest({bound.bind(sorted(MEMOS))}::varchar[])) "
        f"and {of_file} in (select unnest({bound.bind(sorted(paths))}::varchar[])) "
        f"order by n.version desc, n.id limit {limits.MAX_CONTEXT_FACTS}"
    )
    return _judged(rows, None, [_fact(row, Tie(OF_FILE, near=row[-1])) for row in rows(text, bound.params)])


def changed_after(rows: Rows, seq: int) -> tuple[Fact, ...]:
    """Return the entities that were created or changed after a seq, the latest first; not the symbols of code."""
    bound = sql.statement(None)
    after = bound.bind(seq)
    text = (
        f"select {_COLUMNS}, n.created_seq > {after} from {bound.node} n {_RECORD} "  # noqa: S608 - fixed names
        f"where n.version > {after} and n.type <> {bound.bind(_SYMBOL)} "
        f"order by n.version desc, n.id limit {limits.MAX_CONTEXT_FACTS}"
    )
    found = rows(text, bound.params)
    return _judged(rows, None, [_fact(row, Tie("created" if row[-1] else "changed")) for row in found])


def _named(rows: Rows, ties: Mapping[str, Tie], at: int | None) -> list[Fact]:
    statement = sql.statement(at)
    ids = f"(select unnest({statement.bind(sorted(ties))}::varchar[]))"
    text = f"select {_COLUMNS} from {statement.node} n {_RECORD} where n.id in {ids} order by n.id"  # noqa: S608 - fixed names
    return [_fact(row, ties[row[0]]) for row in rows(text, statement.params)]


def _step(
    rows: Rows, ids: Sequence[str], at: int | None, *, steps: int, is_named: bool, leaves_out: str = ""
) -> tuple[list[Fact], bool]:
    """Return the facts one edge away from these entities, the latest first, and whether there are more."""
    statement = sql.statement(at)
    near = f"(select unnest({statement.bind(sorted(ids))}::varchar[]))"
    ends = (("from_id", "to_id", "false"), ("to_id", "from_id", "true"))
    edges = " union all ".join(
        f"select {one} near, {other} far, type, kind, {is_against} is_against, {OF_LINK} is_new "  # noqa: S608 - fixed names
        f"from {statement.link} where is_resolved and {one} in {near}"
        for one, other, is_against in ends
    )
    text = (
        f"select {_COLUMNS}, e.near, e.type, e.kind, e.is_against, e.is_new from ({edges}) e "  # noqa: S608 - fixed names
        f"join {statement.node} n on n.id = e.far {_RECORD} "
        f"where n.id not in {near} and n.type <> {statement.bind(leaves_out)} "
        f"order by n.version desc, n.id, e.near, e.type, e.kind, e.is_against limit {limits.MAX_CONTEXT_FACTS + 1}"
    )
    found = rows(text, statement.params)
    facts = [
        _fact(row, Tie(f"{type_}:{kind}" if kind else type_, is_against, one if is_named else "", steps, bool(is_new)))
        for *row, one, type_, kind, is_against, is_new in found[: limits.MAX_CONTEXT_FACTS]
    ]
    return facts, len(found) > limits.MAX_CONTEXT_FACTS


def _fact(row: Sequence[Any], tie: Tie) -> Fact:
    id_, type_, title, status, path, source, updated_at, version, is_contested, is_new, actor, detail = row[:12]
    return Fact(
        id=id_,
        type=type_,
        title=title,
        status=status,
        tie=tie,
        path=path,
        by="" if path else actor,  # the actor of a sync says nothing about who wrote the file
        source=path or source or "",
        at=(updated_at or "")[:_DAY_CHARS],
        version=version,
        marks=marks_of(is_proposed=bool(is_new), is_stale=False, is_contested=bool(is_contested)),
        detail=" ".join(detail.split()) if detail != title else "",
    )


def _judged(rows: Rows, at: int | None, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return facts with the marks that more than their own row decides: of files, and of runs of tests."""
    paths = sorted({one.path for one in facts} - {""})
    stale = {row[0] for row in rows(*sql.unread(paths, at))} if paths else set()
    verdicts = verdicts_of(rows, at, sorted({one.id for one in facts if one.type == TEST}))
    failing = {id_ for id_, one in verdicts.items() if one.is_failing}
    return tuple(
        msgspec.structs.replace(
            one,
            marks=marks_of(
                is_proposed=PROPOSED in one.marks,
                is_stale=one.path in stale,
                is_contested=CONTESTED in one.marks,
            )
            + ((FAILING,) if one.id in failing else ()),
        )
        for one in facts
    )
