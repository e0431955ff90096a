"""Ranks facts, and selects those that fit into a budget. Pure and deterministic.

Kinds alternate, so that a file with twenty requirements shows a test to run as well. Within a kind the nearest comes
first, then the latest, then the order of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from kbcore.query.context.facts import OF_FILE, Fact

T = TypeVar("T")

_TURNS: Final[Mapping[str, tuple[int, int]]] = {
    "adr": (0, 3),
    "req": (1, 3),
    "scenario": (2, 4),
    "test": (3, 3),
    "flag": (4, 2),
    "note": (5, 2),
    "task": (6, 2),
    "event": (7, 2),
    "component": (9, 1),
    "doc": (10, 1),
    "symbol": (11, 1),
}
"""By type: its place among the kinds, and how many of it come in one turn."""
_OTHER_TURN: Final = (8, 2)
_TURN_OF_FILE: Final = (-1, 2)
"""That of notes and tasks about the very file that was asked for: somebody left them there for whoever changes it."""
RETIRED_COUNT: Final = "retired fact"
"""The name under which facts are counted whose status takes them out of service."""


class Fitted(msgspec.Struct, frozen=True):
    """The indexes of the items that fit, in order, and how many of each kind do not."""

    taken: tuple[int, ...]
    omitted: dict[str, int]


def ranked(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts in the order in which a budget takes them; of two with one id, the nearer."""
    nearest: dict[str, Fact] = {}
    for fact in sorted(facts, key=_nearness):
        nearest.setdefault(fact.id, fact)
    turns = Counter[str]()
    placed = list[tuple[tuple[int, int, int], Fact]]()
    for at, fact in enumerate(nearest.values()):
        place, in_turn = _TURN_OF_FILE if fact.tie.edge == OF_FILE else _TURNS.get(fact.type, _OTHER_TURN)
        placed.append(((turns[fact.type] // in_turn, place, at), fact))
        turns[fact.type] += 1
    return [fact for _, fact in sorted(placed, key=lambda one: one[0])]


def _nearness(fact: Fact) -> tuple[int, int, str, str]:
    return fact.tie.steps, -fact.version, fact.statement, fact.id


def fit(
    items: Sequence[T],
    room: int,
    *,
    size: Callable[[T], int],
    kind: Callable[[T], str],
    omitted_size: Callable[[Mapping[str, int]], int],
    already_omitted: Mapping[str, int] | None = None,
) -> Fitted:
    """Return which items fit into ``room`` characters together with the count of those that do not.

    ``size`` is that of one item with what separates it, ``omitted_size`` that of the counts. The room for the counts is
    kept as if nothing fitted: they only become shorter.
    """
    before = dict(already_omitted or {})
    all_counts = Counter(before) + Counter(map(kind, items))
    sizes = [size(one) for one in items]
    if not before and sum(sizes) <= room:
        return Fitted(tuple(range(len(items))), {})
    left = room - omitted_size(dict(sorted(all_counts.items())))
    taken = list[int]()
    for at, length in enumerate(sizes):
        if length <= left:
            taken.append(at)
            left -= length
    for at in taken:
        all_counts[kind(items[at])] -= 1
    return Fitted(tuple(taken), {name: number for name, number in sorted(all_counts.items()) if number})
