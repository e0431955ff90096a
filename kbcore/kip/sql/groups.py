"""The steps of a group applied to a relation: plain ones within one SELECT, others by way of WITH. Pure.

A group within NOT or OPTIONAL that only matches nodes and links is joined where it is. Any other is evaluated for
all distinct values of the variables that it shares with the rows, and its solutions are joined to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kbcore.kip import algebra
from kbcore.kip import syntax as s
from kbcore.kip.sql.matching import match_link, match_node, walk
from kbcore.kip.sql.relation import Bound, SqlRelation, closed, read, wider
from kbcore.kip.sql.statement import SqlStatement
from kbcore.kip.sql.values import compared, constant, is_member, operand

Beginning = Callable[[], SqlRelation]
"""Makes the relation that a group begins with, each time a new one."""

_KEY = "="
"""Begins the name of a column that holds what a shared variable was when the group began."""
_SIGNS: Final = {"==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final = {
    "CONTAINS": "contains",
    "STARTS_WITH": "starts_with",
    "ENDS_WITH": "ends_with",
    "REGEX": "regexp_matches",
}


def solve(
    st: SqlStatement, steps: Sequence[algebra.Step], begin: Beginning = SqlRelation, *, is_inner: bool = False
) -> SqlRelation:
    """Return the relation of the solutions of steps; ``is_inner`` where it is part of the SELECT around it."""
    relation = begin()
    for step in steps:
        if isinstance(step, algebra.Also):
            relation = _also(st, relation, step, begin)
            continue
        open_ = [name for name in _touched(step) if name in relation.columns and relation.columns[name].is_open]
        relation = _split(st, relation, step, open_) if open_ and not is_inner else _applied(st, relation, step)
    return relation


def _touched(step: algebra.Step) -> tuple[str, ...]:
    """Return the variables whose values a step compares with others."""
    match step:
        case algebra.MatchNode(variable):
            return (variable,)
        case algebra.MatchLink(variable, subject, target):
            return variable, subject, target, step.predicate
        case algebra.WalkJoin(subject, _, target):
            return subject, target
        case algebra.Without(_, shared) | algebra.Perhaps(_, shared):
            return shared
        case _:
            return ()


def _applied(st: SqlStatement, relation: SqlRelation, step: algebra.Step) -> SqlRelation:
    match step:
        case algebra.MatchNode():
            match_node(st, relation, step)
        case algebra.MatchLink():
            match_link(st, relation, step)
        case algebra.WalkJoin():
            return walk(st, relation, step)
        case algebra.KeepRows(condition):
            relation.where(truth(st, relation.columns, condition))
        case algebra.Without():
            return _without(st, relation, step)
        case algebra.Perhaps():
            return _perhaps(st, relation, step)
    return relation


def _split(st: SqlStatement, relation: SqlRelation, step: algebra.Step, open_: Sequence[str]) -> SqlRelation:
    """Return a relation after a step, applied separately to the rows that have a null in one of these variables.

    A join that takes null for anything compares every row with every other one; so only those rows go that way.
    """
    cte, whole = closed(st, relation, keep=relation.columns)
    parts = []
    for has_null in (False, True):
        part = read(st, cte, whole.columns, is_distinct=False)
        columns = [part.columns[name] for name in open_]
        tests = [f"{one.sql} is {'' if has_null else 'not '}null" for one in columns]
        part.where(f"({' or '.join(tests)})" if has_null else " and ".join(tests))
        for one in columns:
            one.is_open = has_null
        parts.append(_applied(st, part, step))
    return _together(st, *parts, is_distinct=False)


def _is_plain(steps: Sequence[algebra.Step], *, in_not: bool) -> bool:
    return all(
        isinstance(one, algebra.MatchNode | algebra.MatchLink | algebra.KeepRows)
        or (in_not and isinstance(one, algebra.Without) and _is_plain(one.steps, in_not=True))
        for one in steps
    )


def _without(st: SqlStatement, relation: SqlRelation, step: algebra.Without) -> SqlRelation:
    if _is_plain(step.steps, in_not=True):
        inner = solve(st, step.steps, lambda: SqlRelation(dict(relation.columns)), is_inner=True)
        relation.where(f"not exists ({inner.select('1')})")
        return relation
    relation, solved, same = _seeded(st, relation, step)
    relation.where(f"not exists ({solved.select('1')}{' and ' if solved.conditions else ' where '}{same})")
    return relation


def _perhaps(st: SqlStatement, relation: SqlRelation, step: algebra.Perhaps) -> SqlRelation:
    if _is_plain(step.steps, in_not=False):
        inner = solve(st, step.steps, lambda: SqlRelation(dict(relation.columns)), is_inner=True)
        if not inner.sources:
            return relation
    else:
        relation, inner, same = _seeded(st, relation, step)
        inner.where(same)
    relation.left_join_all(inner)
    for name, found in inner.columns.items():
        if name[0] in "#=":
            continue
        old = relation.columns.get(name)
        if old is None:
            found.home, found.is_open = relation, True
            relation.columns[name] = found
        elif old.is_open and found is not old:
            sql, is_virtual = f"coalesce({found.sql}, {old.sql})", old.is_virtual or found.is_virtual
            kind = wider(old.kind, found.kind)
            relation.columns[name] = Bound(sql, kind, relation, is_open=True, is_virtual=is_virtual)
    return relation


def _seeded(
    st: SqlStatement, relation: SqlRelation, step: algebra.Without | algebra.Perhaps
) -> tuple[SqlRelation, SqlRelation, str]:
    """Return a relation in WITH, the solutions of a group for its rows, and the condition that joins the two."""
    cte, relation = closed(st, relation)
    shared = {name: relation.columns[name] for name in step.shared}
    seeds = ""
    if shared:
        listed = ", ".join(one.sql.partition(".")[2] for one in shared.values())
        columns = [f"c{at}" for at in range(len(shared))]
        seeds = st.define("s", columns, f"select distinct {listed} from {cte}")  # noqa: S608 - fixed names

    def begin() -> SqlRelation:
        if not seeds:
            return SqlRelation()
        found = read(st, seeds, shared, is_distinct=True)
        keys = {f"{_KEY}{name}": Bound(one.sql, "name", found, is_open=True) for name, one in found.columns.items()}
        found.columns |= keys
        return found

    _, solved = closed(st, solve(st, step.steps, begin), is_distinct=True)
    same = [
        f"{solved.columns[_KEY + name].sql} {'is not distinct from' if one.is_open else '='} {one.sql}"
        for name, one in shared.items()
    ]
    return relation, solved, " and ".join(same) or "true"


def _also(st: SqlStatement, relation: SqlRelation, step: algebra.Also, begin: Beginning) -> SqlRelation:
    """Return the rows of a relation and those of a group, which begins with nothing; what either lacks is null."""
    _, added = closed(st, solve(st, step.steps))
    whole = begin()
    if whole.sources:
        alone, added = added, whole
        added.sources += [("cross join", what) for _, what in alone.sources]
        added.rows += alone.rows
        for name, one in alone.columns.items():
            one.home = added
            added.bind(name, one)
    return added if step.is_first else _together(st, relation, added, is_distinct=True)


def _together(st: SqlStatement, one: SqlRelation, other: SqlRelation, *, is_distinct: bool) -> SqlRelation:
    """Return the rows of two relations; what either lacks is null. Equal rows are one only if ``is_distinct``."""
    sides = one, other
    names = [name for name in {**one.columns, **other.columns} if name[0] != "#" or not is_distinct]
    kept: dict[str, Bound] = {}
    for name in names:
        found = [side.columns[name] for side in sides if name in side.columns]
        kind = wider(found[0].kind, found[-1].kind)
        is_open = len(found) == 1 or any(column.is_open for column in found)
        is_virtual = any(column.is_virtual for column in found)
        kept[name] = Bound("", kind, one, is_open=is_open, is_virtual=is_virtual)
    columns = [f"c{at}" for at in range(len(names))] or ["nothing"]
    parts = [
        side.select(
            ", ".join(side.columns[name].sql if name in side.columns else "null::varchar" for name in names) or "1"
        )
        for side in sides
    ]
    word = " union " if is_distinct else " union all "
    return read(st, st.define("u", columns, word.join(parts)), kept, is_distinct=is_distinct)


def truth(st: SqlStatement, columns: dict[str, Bound], condition: s.Condition) -> str:
    """Return the condition over the columns of a relation, which is true exactly where KIP says so."""
    match condition:
        case s.AllOf(conditions) | s.AnyOf(conditions):
            word = " and " if isinstance(condition, s.AllOf) else " or "
            return f"({word.join(truth(st, columns, one) for one in conditions)})"
        case s.Negation(inner):
            return _not(truth(st, columns, inner))
        case s.Comparison(sign, left, right):
            one, other = operand(st, columns, left), operand(st, columns, right)
            return _not(compared(st, "=", one, other)) if sign == "!=" else compared(st, _SIGNS[sign], one, other)
        case s.IsIn(of, values):
            one = operand(st, columns, of)
            return f"({' or '.join(compared(st, '=', one, constant(st, value)) for value in values.json) or 'false'})"
        case s.IsNull(of, negated):
            is_null = operand(st, columns, of).is_null
            return f"(not {is_null})" if negated else is_null
        case s.TextTest(function, text, pattern):
            one, other = operand(st, columns, text), operand(st, columns, pattern)
            parts = [f"{_TESTS[function]}({one.text}, {other.text})"] if one.text and other.text else []
            parts += is_member(one, other) if function == "CONTAINS" else []
            return f"({' or '.join(parts)})" if parts else "false"


def _not(condition: str) -> str:
    return f"(not coalesce({condition}, false))"
