"""The elements that the variables of a WHERE can mean, found by look-ups from those that it names.

DuckDB joins two tables by reading one of them whole, so that a hop takes longer in a larger store. A condition on one
column with a few constants is a look-up in an index. So before a statement is compiled, the ends that are named are
followed link by link, and each step is given the ids among which it finds all that it can.

Invariant: a step finds with these ids what it finds without them. They are never fewer than those that count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.kip import algebra
from kbcore.kip.sql.matching import name_of
from kbcore.kip.sql.statement import MOST_KEYS, CompileContext, SqlStatement
from kbcore.kip.vocabulary import PREDICATES

Ids = tuple[str, ...]
Ask = Callable[[tuple[str, list[Any]]], list[tuple[Any, ...]]]
"""Answers a statement with its parameters over the tables of a view and the vocabulary."""

LEAST_LINKS: Final = 10_000
"""With fewer links in a store, reading all of them takes no longer than the look-ups."""
_MOST_ROWS: Final = 2000
"""More links than this are not followed one by one: reading the whole table takes no longer then."""
_COLUMNS: Final = ("id", "from_id", "to_id")
Row = tuple[str, str, str, str]
"""Id, both ends and predicate of a link."""


def narrowed(known: CompileContext, steps: Sequence[algebra.Step], ask: Ask) -> tuple[algebra.Step, ...]:
    """Return the steps of a group with the ids among which each finds what it can, where look-ups find them."""
    return _Group(known, ask, {}).narrowed(steps)


class _Group:
    """One group: what its variables can mean, as far as that is known."""

    def __init__(self, known: CompileContext, ask: Ask, outer: Mapping[str, Ids]) -> None:
        self._known = known
        self._ask = ask
        self._ids: dict[str, Ids] = dict(outer)
        self._outer = frozenset(outer)
        self._exact: set[str] = set()
        """The variables of which it is known that all their ids match their pattern."""

    def narrowed(self, steps: Sequence[algebra.Step]) -> tuple[algebra.Step, ...]:
        """Return the steps with their ids. What comes after a UNION stays as it is: its rows may have nulls."""
        if not _has_links(steps):
            return tuple(steps)
        ends = next((at for at, step in enumerate(steps) if isinstance(step, algebra.Also)), len(steps))
        before = [*steps[:ends]]
        firm, maybe_null = self._bound(before)
        found: dict[int, algebra.Step] = {}
        is_new = True
        while is_new:
            is_new = False
            for at, step in enumerate(before):
                if at not in found and (made := self._followed(step, firm[at], maybe_null)):
                    found[at], is_new = made, True
        kept = [
            (at, found.get(at, step)) for at, step in enumerate(before) if not self._is_decided(step, found.values())
        ]
        made_steps = [self._finished(step, firm[at], maybe_null) for at, step in kept]
        return (*made_steps, *(self._narrowed_branch(step) for step in steps[ends:]))

    def _bound(self, steps: Sequence[algebra.Step]) -> tuple[list[frozenset[str]], frozenset[str]]:
        """Return the variables that are bound before each step, and those that an OPTIONAL may leave open."""
        firm, maybe_null = set(self._outer), set[str]()
        before = []
        for step in steps:
            before.append(frozenset(firm))
            if isinstance(step, algebra.Perhaps):
                maybe_null |= _mentioned(step.steps) - firm
            elif not isinstance(step, algebra.Without | algebra.KeepRows):
                firm |= _mentioned([step])
        return before, frozenset(maybe_null)

    def _followed(self, step: algebra.Step, firm: frozenset[str], maybe_null: frozenset[str]) -> algebra.Step | None:
        """Return a step with its ids, if what is known leads to them, and note what its variables can be."""
        match step:
            case algebra.MatchNode(variable) if variable not in maybe_null:
                return self._node(step)
            case algebra.MatchLink() if maybe_null.isdisjoint((step.variable, step.subject, step.object)):
                return self._link(step)
            case algebra.WalkJoin(subject, _, target) if maybe_null.isdisjoint((subject, target)):
                return self._walk(step, firm)
            case _:
                return None

    def _finished(self, step: algebra.Step, firm: frozenset[str], maybe_null: frozenset[str]) -> algebra.Step:
        """Return a step with all that is known of its variables, and the steps within it narrowed."""
        match step:
            case algebra.MatchNode(variable) if variable not in maybe_null:
                return msgspec.structs.replace(step, ids=self._ids.get(variable))
            case algebra.MatchLink(variable, subject, target) if maybe_null.isdisjoint((variable, subject, target)):
                ids, of_subject, of_object = (self._ids.get(name) for name in (variable, subject, target))
                return msgspec.structs.replace(step, ids=ids, subject_ids=of_subject, object_ids=of_object)
            case algebra.WalkJoin(subject, _, target) if step.rows is not None:
                return msgspec.structs.replace(
                    step, subject_ids=self._ids.get(subject), object_ids=self._ids.get(target)
                )
            case algebra.Without(inner, shared) | algebra.Perhaps(inner, shared):
                known = {name: self._ids[name] for name in shared if name in self._ids and name in firm}
                group = _Group(self._known, self._ask, known)
                return msgspec.structs.replace(step, steps=group.narrowed(inner))
            case _:
                return step

    def _is_decided(self, step: algebra.Step, found: Iterable[algebra.Step]) -> bool:
        """Return whether the links that were looked up decide already what an end without a name must be."""
        return (
            isinstance(step, algebra.MatchNode)
            and step.variable.startswith("#")
            and step.variable in self._exact
            and any(isinstance(one, algebra.MatchLink) and step.variable in {one.subject, one.object} for one in found)
        )

    def _narrowed_branch(self, step: algebra.Step) -> algebra.Step:
        if not isinstance(step, algebra.Also):
            return step
        return msgspec.structs.replace(step, steps=_Group(self._known, self._ask, {}).narrowed(step.steps))

    def _node(self, step: algebra.MatchNode) -> algebra.MatchNode | None:
        if step.id is None and step.name is None:
            return None
        ids: list[str]
        if step.id is not None:
            ids = [step.id]
        elif step.type is not None and self._known.names.is_named_by_id(step.type):
            ids = [step.name or ""]
        else:
            st = SqlStatement(self._known)
            of_type = f" and n.type = {st.bind(step.type)}" if step.type is not None else ""
            named = f"{name_of(st, 'n', step.type)} = {st.bind(step.name)}{of_type}"
            table = st.nodes(with_vocabulary=st.may_be_virtual(step))
            sql = f"select n.id from {table} n where {named} limit {_MOST_ROWS}"  # noqa: S608 - fixed names
            ids = [key for (key,) in self._ask(st.whole(sql))]
            self._exact |= {step.variable} if len(ids) <= MOST_KEYS else set()
        self._note(step.variable, ids)
        return step

    def _note(self, variable: str, ids: Iterable[str]) -> None:
        """Note what a variable can mean, if that is not too much."""
        found = set(ids)
        if variable in self._ids:
            found &= set(self._ids[variable])
        if len(found) <= MOST_KEYS:
            self._ids[variable] = tuple(sorted(found))

    def _link(self, step: algebra.MatchLink) -> algebra.MatchLink | None:
        variables = (step.variable, step.subject, step.object)
        if step.id is not None:
            self._note(step.variable, [step.id])
        by = [
            (len(self._ids[name]), column)
            for name, column in zip(variables, _COLUMNS, strict=True)
            if name in self._ids
        ]
        for _, column in sorted(by):
            ids = self._ids[variables[_COLUMNS.index(column)]]
            links = self._links(column, ids, step.predicates)
            if links is None:
                continue
            for at, (name, other) in enumerate(zip(variables, _COLUMNS, strict=True)):
                if name in self._ids and other != column:
                    allowed = set(self._ids[name])
                    links = [link for link in links if link[at] in allowed]
            for at, name in enumerate(variables):
                self._note(name, (link[at] for link in links))
            return msgspec.structs.replace(step, rows=tuple(links))
        return None

    def _links(self, column: str, ids: Ids, predicates: Sequence[str]) -> list[Row] | None:
        """Return the links of some predicates (none: any) at these ids; None for too many."""
        st = SqlStatement(self._known)
        table = st.links(with_vocabulary=not predicates or not PREDICATES.isdisjoint(predicates))
        parts = st.looked_up(table, column, ids, "id, from_id, to_id, type, is_resolved")
        rows = self._ask(st.whole(f"{' union all '.join(parts)} limit {_MOST_ROWS + 1}"))
        if len(rows) > _MOST_ROWS:
            return None
        return [row[:4] for row in rows if row[4] and (not predicates or row[3] in predicates)]

    def _walk(self, step: algebra.WalkJoin, firm: frozenset[str]) -> algebra.WalkJoin | None:
        """Follow a walk from the end that is bound before it, as far as it goes."""
        is_reversed = step.subject not in firm and step.object in firm
        start, end = (step.object, step.subject) if is_reversed else (step.subject, step.object)
        if start not in self._ids or start not in firm:
            return None
        near, far = ("to_id", "from_id") if is_reversed else ("from_id", "to_id")
        reached, frontier, steps = set(self._ids[start]), set(self._ids[start]), 0
        taken: list[tuple[str, str]] = []
        while frontier and (step.most is None or steps < step.most):
            is_few = len(reached) <= MOST_KEYS and len(taken) <= _MOST_ROWS
            links = self._links(near, tuple(sorted(frontier)), (step.predicate,)) if is_few else None
            if links is None:
                return None
            taken += [(link[_COLUMNS.index(near)], link[_COLUMNS.index(far)]) for link in links]
            frontier = {end for _, end in taken} - reached
            reached |= frontier
            steps += 1
        self._note(end, reached)
        return msgspec.structs.replace(step, rows=tuple(taken))


def _has_links(steps: Iterable[algebra.Step]) -> bool:
    """Return whether steps follow a link, for which alone look-ups are of use."""
    return any(
        isinstance(step, algebra.MatchLink | algebra.WalkJoin) or _has_links(getattr(step, "steps", ()))
        for step in steps
    )


def _mentioned(steps: Iterable[algebra.Step]) -> set[str]:
    """Return the variables of steps that mean elements."""
    found: set[str] = set()
    for step in steps:
        match step:
            case algebra.MatchNode(variable):
                found.add(variable)
            case algebra.MatchLink(variable, subject, target):
                found |= {variable, subject, target}
            case algebra.WalkJoin(subject, _, target):
                found |= {subject, target}
            case algebra.Without(inner) | algebra.Perhaps(inner) | algebra.Also(inner):
                found |= _mentioned(inner)
            case _:
                pass
    return found
