"""The meaning of FIND, in a slow and simple way.

Rows are dictionaries, elements the JSON that KIP shows, and every loop is written out. It shares no
code with the engine but the tree and the names.

A row maps variables to ids, names of predicates, or None; a variable that is not bound is not in the row.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kbcore.kip import syntax as s
from kbcore.kip.elements import element_json
from kbcore.kip.names import TypeNames
from kbcore.model.graph import Link, Node

Row = dict[str, Any]
Element = dict[str, Any]


class World:
    """All elements by their ids; links that do not stand are not there."""

    def __init__(self, nodes: Iterable[Node], links: Iterable[Link], names: TypeNames) -> None:
        self.nodes = {one.id: element_json(one, names) for one in nodes}
        self.links = {one.id: element_json(one, names) for one in links if one.is_resolved}
        self.elements = self.nodes | self.links


def variables_in(tree: Any) -> set[str]:
    """Return every variable that is written somewhere in a part of a tree."""
    if isinstance(tree, tuple):
        return set().union(*map(variables_in, tree))
    if isinstance(tree, s.Variable):
        return {tree.name}
    if isinstance(tree, s.Path):
        return {tree.variable}
    if isinstance(tree, msgspec.Struct):
        return set().union(*(variables_in(getattr(tree, field)) for field in tree.__struct_fields__))
    return set()


def bound_by(clause: Any) -> set[str]:
    """Return the variables that a clause binds."""
    if isinstance(clause, s.FilterClause | s.Not):
        return set()
    if isinstance(clause, s.Optional | s.Union):
        return set().union(*map(bound_by, clause.group.clauses))
    return variables_in(clause)


def moved(clauses: tuple[Any, ...], outer: set[str]) -> list[Any]:
    """Return the clauses in the order in which they take effect."""
    result = [one for one in clauses if not isinstance(one, s.FilterClause | s.Not)]
    here = set().union(*map(bound_by, clauses))

    def bound_before(place: int) -> set[str]:
        return outer.union(*map(bound_by, result[:place]))

    late = []
    for at, clause in enumerate(clauses):
        if not isinstance(clause, s.FilterClause | s.Not):
            continue
        before = [one for one in clauses[:at] if not isinstance(one, s.FilterClause | s.Not)]
        place = result.index(before[-1]) + 1 if before else 0
        needed = variables_in(clause)
        if isinstance(clause, s.FilterClause):
            if not needed <= bound_before(place):
                late.append(clause)
                continue
        else:
            while not needed & here <= bound_before(place):
                place += 1
        while place < len(result) and isinstance(result[place], s.FilterClause | s.Not):
            place += 1
        result.insert(place, clause)
    return result + late


def solve(world: World, group: s.ClauseGroup, seed: Row) -> list[Row]:
    """Return the solutions of a group that begins with one row."""
    rows, bound, is_started = [dict(seed)], set(seed), False
    for clause in moved(group.clauses, set(seed)):
        if isinstance(clause, s.FilterClause):
            rows = [row for row in rows if holds(world, row, clause.condition)]
            continue
        if isinstance(clause, s.Not):
            rows = [row for row in rows if not solve(world, clause.group, row)]
            continue
        bound |= bound_by(clause)
        if isinstance(clause, s.ConceptPattern):
            rows = [
                new
                for row in rows
                for key, node in world.nodes.items()
                if is_matched(node, clause.matcher)
                for new in unified(row, clause.variable.name, key)
            ]
        elif isinstance(clause, s.LinkPattern):
            rows = [new for row in rows for new in linked(world, row, clause)]
        elif isinstance(clause, s.Optional):
            rows = [new for row in rows for new in solve(world, clause.group, row) or [row]]
        else:
            added = solve(world, clause.group, {})
            both = [one for row in added for one in merged(seed, row)]
            rows = (rows if is_started else []) + both
        is_started = True
        rows = distinct([{name: row.get(name) for name in bound} for row in rows])
    return rows


def distinct(rows: list[Row]) -> list[Row]:
    """Return rows, each once."""
    return list({tuple(sorted((name, value or "") for name, value in row.items())): row for row in rows}.values())


def unified(row: Row, name: str, value: str) -> list[Row]:
    """Return the row with a variable bound, or nothing where it is bound to another value."""
    return [{**row, name: value}] if row.get(name) in {None, value} else []


def merged(one: Row, other: Row) -> list[Row]:
    """Return two rows as one, or nothing where they contradict."""
    result = dict(one)
    for name, value in other.items():
        if value is None:
            result.setdefault(name, None)
        elif result.get(name) in {None, value}:
            result[name] = value
        else:
            return []
    return [result]


def is_matched(node: Element, matcher: s.Matcher) -> bool:
    """Tell whether a node is what a matcher says."""
    return all(
        one is None or node[field] == one.value
        for field, one in (("id", matcher.id), ("type", matcher.type), ("name", matcher.name))
    )


def linked(world: World, row: Row, clause: s.LinkPattern) -> Iterator[Row]:
    """Yield the row with each link, or walk, of a pattern."""
    triple = clause.triple
    if isinstance(triple, s.Triple) and isinstance(triple.predicate, s.Hops):
        for start in world.elements:
            for end in reached(world, start, triple.predicate):
                for one in at_end(world, row, triple.subject, start):
                    yield from at_end(world, one, triple.object, end)
        return
    for key in world.links:
        for one in at_end(world, row, triple, key):
            yield from unified(one, clause.variable.name, key) if clause.variable else [one]


def at_end(world: World, row: Row, term: Any, key: str) -> Iterator[Row]:
    """Yield the row with an element in the place of a term."""
    if isinstance(term, s.Variable):
        yield from unified(row, term.name, key)
    elif isinstance(term, s.Matcher):
        if key in world.nodes and is_matched(world.nodes[key], term):
            yield row
    elif key in world.links:
        yield from _as_link(world, row, term, key)


def _as_link(world: World, row: Row, term: s.Triple | s.LinkId, key: str) -> Iterator[Row]:
    link = world.links[key]
    if isinstance(term, s.LinkId):
        if key == term.id.value:
            yield row
        return
    for one in at_end(world, row, term.subject, link["subject"]):
        for two in at_end(world, one, term.object, link["object"]):
            if isinstance(term.predicate, s.Variable):
                yield from unified(two, term.predicate.name, link["predicate"])
            elif link["predicate"] in {name.value for name in term.predicate.names}:
                yield two


def reached(world: World, start: str, hops: s.Hops) -> set[str]:
    """Return where walks of so many links lead."""
    at, found, steps = {start}, set(), 0
    least = hops.least.value
    most = least + len(world.elements) if hops.most is None else hops.most.value
    links = [one for one in world.links.values() if one["predicate"] == hops.name.value]
    while True:
        if steps >= least:
            found |= at
        if steps == most:
            return found
        steps += 1
        at = {link["object"] for link in links if link["subject"] in at}


def value_of(world: World, row: Row, of: Any) -> Any:
    """Return the value of a path or a constant; None is null."""
    if isinstance(of, s.JsonValue):
        return of.json
    value = row[of.variable]
    if not of.parts or value is None:
        return value
    found: Any = world.elements[value]
    for part in of.parts:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def kind(value: Any) -> str:
    """Return the kind of a value."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "text", type(None): "null"}.get(type(value), "other")


_TIME = re.compile(r"[1-9]\d{3}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII)


def moment(text: str) -> dt.datetime | None:
    """Return the moment that an RFC 3339 time means."""
    if not _TIME.fullmatch(text):
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def is_equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal."""
    if kind(one) != kind(other):
        return False
    if kind(one) == "text" and moment(one) and moment(other):
        return moment(one) == moment(other)
    return as_json(one) == as_json(other) if kind(one) == "other" else one == other


def is_less(one: Any, other: Any) -> bool | None:
    """Tell whether a value comes before another; None where they have no order."""
    if kind(one) != kind(other) or kind(one) not in {"number", "text"}:
        return None
    if kind(one) == "text" and moment(one) and moment(other):
        return moment(one) < moment(other)
    return one < other


def as_json(value: Any) -> bytes:
    """Return a value as text, keys in order."""
    return msgspec.json.encode(value, order="sorted")


def holds(world: World, row: Row, condition: Any) -> bool:
    """Tell whether a condition is true of a row."""
    match condition:
        case s.AllOf(conditions):
            return all(holds(world, row, one) for one in conditions)
        case s.AnyOf(conditions):
            return any(holds(world, row, one) for one in conditions)
        case s.Negation(inner):
            return not holds(world, row, inner)
        case s.IsNull(operand, negated):
            return (value_of(world, row, operand) is None) != negated
        case s.IsIn(operand, values):
            return any(is_equal(value_of(world, row, operand), one) for one in values.json)
        case s.TextTest(function, text, pattern):
            return _tested(function, value_of(world, row, text), value_of(world, row, pattern))
    return _compared(condition.operator, value_of(world, row, condition.left), value_of(world, row, condition.right))


def _compared(sign: str, left: Any, right: Any) -> bool:
    if sign in {"==", "!="}:
        return is_equal(left, right) == (sign == "==")
    one, other = (left, right) if sign[0] == "<" else (right, left)
    less = is_less(one, other)
    return less is not None and (less or (sign[1:] == "=" and is_equal(one, other)))


def _tested(function: str, text: Any, pattern: Any) -> bool:
    if isinstance(text, list) and function == "CONTAINS":
        return any(kind(one) == kind(pattern) and one == pattern for one in text)
    if not isinstance(text, str) or not isinstance(pattern, str):
        return False
    tests = {"CONTAINS": text.__contains__, "STARTS_WITH": text.startswith, "ENDS_WITH": text.endswith}
    return tests[function](pattern) if function in tests else re.search(pattern, text) is not None
