"""The variables that a clause binds and mentions, and its place in its group. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kbcore.errors import KipRefused
from kbcore.kip import syntax as s
from kbcore.kip.errors import REFERENCE, refused
from kbcore.text.suggest import nearest


def binds(clause: s.Clause) -> set[str]:
    """Return the variables that a clause binds for the clauses after it."""
    match clause:
        case s.ConceptPattern(variable):
            return {variable.name}
        case s.LinkPattern(variable, triple):
            return {one.name for one in ([variable] if variable else [])} | _ends(triple)
        case s.Optional(group) | s.Union(group):
            return bound_by(group.clauses)
        case _:
            return set()


def bound_by(clauses: Iterable[s.Clause]) -> set[str]:
    """Return the variables that clauses bind together."""
    return {name for clause in clauses for name in binds(clause)}


def _ends(term: s.Term) -> set[str]:
    match term:
        case s.Variable(name):
            return {name}
        case s.Triple(subject, predicate, target):
            named = {predicate.name} if isinstance(predicate, s.Variable) else set[str]()
            return named | _ends(subject) | _ends(target)
        case _:
            return set()


def parts_of(tree: Any) -> Iterator[Any]:
    """Yield a part of a tree and everything in it, in the order of the text."""
    if isinstance(tree, tuple):
        for one in tree:
            yield from parts_of(one)
    elif isinstance(tree, msgspec.Struct):
        yield tree
        if not isinstance(tree, s.JsonValue | s.Text | s.Count):
            for field in tree.__struct_fields__:
                yield from parts_of(getattr(tree, field))


def mentions(tree: Any) -> set[str]:
    """Return all variables in a part of a tree, however deep."""
    uses = (one for one in parts_of(tree) if isinstance(one, s.Variable | s.Path))
    return {one.name if isinstance(one, s.Variable) else one.variable for one in uses}


def paths_of(tree: Any) -> list[s.Path]:
    """Return the paths in a part of a tree."""
    return [one for one in parts_of(tree) if isinstance(one, s.Path)]


def in_order(clauses: Sequence[s.Clause], outer: Collection[str]) -> list[s.Clause]:
    """Return the clauses of a group in the order in which they take effect; ``outer`` is bound already.

    FILTER stays where it is if all that it mentions is bound there, else it comes at the end. NOT stays where it is, or
    comes directly after the clause from which on everything is bound that it mentions and this group binds.
    """
    ordered: list[s.Clause] = []
    late: list[s.Clause] = []
    bound = set(outer)
    binding = bound_by(clauses)
    waiting: list[tuple[s.Not, set[str]]] = []
    for clause in clauses:
        if isinstance(clause, s.FilterClause):
            (ordered if mentions(clause) <= bound else late).append(clause)
            continue
        if isinstance(clause, s.Not):
            waiting.append((clause, mentions(clause) & binding))
        else:
            ordered.append(clause)
            bound |= binds(clause)
        ordered += [one for one, needed in waiting if needed <= bound]
        waiting = [(one, needed) for one, needed in waiting if not needed <= bound]
    return [*ordered, *late]


def unbound(name: str, at: int, bound: Collection[str], clauses: Sequence[s.Clause]) -> KipRefused:
    """Return the error for a variable that nothing binds; ``clauses`` are those that might have."""
    known = sorted(one for one in bound if one[0] != "#")
    message = f"?{name} is used here, and no pattern of WHERE binds it."
    near = nearest(name, known)
    hint = (
        f"Bind ?{name} by a pattern in WHERE, or use one of {', '.join(f'?{one}' for one in known)}." if known else ""
    )
    if any(isinstance(one, s.Not) and name in bound_by(one.group.clauses) for one in clauses):
        message = f"?{name} is bound inside NOT only, and ends with it."
        hint = f"Ask for what is left, or bind ?{name} by a pattern outside of NOT."
    elif near:
        hint = f"Did you mean ?{near}?"
    return refused(REFERENCE, message, at=at, hint=hint, data={"variable": name, "bound": known})
