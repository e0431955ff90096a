"""The rows that FIND shows of its solutions, computed simply: rows that are one, groups, aggregates and order."""

from __future__ import annotations

from typing import Any

from kbcore.kip import syntax as s
from tests.support.oracles.kip_reference import Row, World, as_json, kind, solve, value_of

_RANKS = {"number": 0, "text": 1, "boolean": 2, "other": 3}


class Key:
    """Return the place of a value in the total order; null is after all others, in both directions."""

    def __init__(self, value: Any, *, descending: bool = False) -> None:
        self.value = value
        self.descending = descending

    def __lt__(self, other: Key) -> bool:
        if self.value is None or other.value is None:
            return self.value is not None
        one, two = order(self.value), order(other.value)
        return two < one if self.descending else one < two

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and (
            order(self.value) == order(other.value)
            if self.value is not None and other.value is not None
            else self.value is other.value
        )

    __hash__ = None  # type: ignore[assignment]


def order(value: Any) -> tuple[int, Any]:
    """Return what orders values that are not null."""
    of = kind(value)
    return _RANKS[of], as_json(value) if of == "other" else value


def hashable(value: Any) -> Any:
    """Return what is the same for equal values."""
    return None if value is None else order(value)


def answer(world: World, query: s.FindCommand) -> Any:
    """Return the result of a query in the shape of KIP."""
    rows = solve(world, query.where, {})
    if any(isinstance(one, s.Aggregate) for one in query.find):
        return _grouped(world, query, rows)
    names = list(dict.fromkeys(one.variable for one in query.find))

    def key(row: Row) -> list[Key]:
        sorts = [Key(value_of(world, row, one.key), descending=one.descending) for one in query.order]
        return sorts + [Key(row[name]) for name in names]

    seen: dict[tuple[Any, ...], Row] = {}
    for row in sorted(rows, key=key):
        seen.setdefault(tuple(row[name] for name in names), row)
    shown = list(seen.values())
    if query.limit:
        shown = shown[: query.limit.value]
    return _columns([[_shown(world, row, one) for row in shown] for one in query.find])


def _shown(world: World, row: Row, path: s.Path) -> Any:
    value = value_of(world, row, path)
    return world.elements.get(value, value) if not path.parts else value


def _columns(columns: list[Any]) -> Any:
    return columns[0] if len(columns) == 1 else columns


def _grouped(world: World, query: s.FindCommand, rows: list[Row]) -> Any:
    plain = [one for one in query.find if isinstance(one, s.Path)]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(hashable(value_of(world, row, one)) for one in plain), []).append(row)
    if not plain:
        return _columns([aggregate(world, rows, one) for one in query.find])

    def key(members: list[Row]) -> list[Key]:
        found = [_sort_key(world, members, sort) for sort in query.order]
        return found + [Key(value_of(world, members[0], one)) for one in plain]

    shown = sorted(groups.values(), key=key)
    if query.limit:
        shown = shown[: query.limit.value]
    return _columns(
        [
            [
                aggregate(world, members, one) if isinstance(one, s.Aggregate) else _shown(world, members[0], one)
                for members in shown
            ]
            for one in query.find
        ]
    )


def _sort_key(world: World, members: list[Row], sort: s.Sort) -> Key:
    if isinstance(sort.key, s.Aggregate):
        return Key(aggregate(world, members, sort.key), descending=sort.descending)
    return min(Key(value_of(world, row, sort.key), descending=sort.descending) for row in members)


def is_link_of_vocabulary(world: World, name: Any) -> bool:
    """Tell whether a binding is a link that no record holds."""
    found = world.elements.get(name)
    return found is not None and "predicate" in found and "_version" not in found["metadata"]


def aggregate(world: World, rows: list[Row], of: s.Aggregate) -> Any:
    """Return an aggregate over the distinct bindings of its variable."""
    by_binding = {row[of.path.variable]: value_of(world, row, of.path) for row in rows}
    if of.function != "COUNT" and len(of.path.parts) > 1:
        by_binding = {name: value for name, value in by_binding.items() if not is_link_of_vocabulary(world, name)}
    values = [value for value in by_binding.values() if value is not None]
    if of.distinct:
        values = list({hashable(value): value for value in values}.values())
    if of.function == "COUNT":
        return len(values)
    if of.function in {"MIN", "MAX"}:
        return (min if of.function == "MIN" else max)(values, key=order, default=None)
    numbers = [value for value in values if kind(value) == "number"]
    if of.function == "SUM":
        return sum(numbers)
    return sum(numbers) / len(numbers) if numbers else None
