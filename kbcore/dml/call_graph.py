"""The predicates of a program that can be reached from `agent_main` and the tools. Pure.

Invariant: a predicate that a clause within reach calls, or names in data with no more arguments than it has, is within
reach. So what is not within reach is not called, unless the program puts its name together at run time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

Predicate = tuple[str, int]
"""A name and the number of arguments."""

MAIN: Final = "agent_main"
TOOL: Final = "tool"


class Uses(msgspec.Struct, frozen=True):
    """A clause: its predicate, those that it calls, and those names with arguments that it has as data."""

    predicate: Predicate
    calls: Sequence[Predicate]
    mentions: Sequence[Predicate]


def unreachable(clauses: Iterable[Uses], others: Iterable[Predicate]) -> set[Predicate]:
    """Return the predicates that nothing within reach names. ``others`` are within reach in any case."""
    by_predicate: defaultdict[Predicate, list[Uses]] = defaultdict(list)
    for clause in clauses:
        by_predicate[clause.predicate].append(clause)
    arities: defaultdict[str, list[int]] = defaultdict(list)
    for name, arity in by_predicate:
        arities[name].append(arity)
    left = [one for one in by_predicate if one[0] in {MAIN, TOOL}] + [*others]
    reached = set(left)
    while left:
        for clause in by_predicate.get(left.pop(), ()):
            named = [(name, arity) for name, given in clause.mentions for arity in arities[name] if arity >= given]
            new = {*clause.calls, *named} - reached
            reached |= new
            left += new
    return by_predicate.keys() - reached
