"""The tree of a WHERE to the steps of the algebra: names checked and mapped, clauses in order, ends named. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kbcore.errors import KipRefused
from kbcore.kip import algebra, scoping
from kbcore.kip import syntax as s
from kbcore.kip.errors import SYNTAX, refused
from kbcore.kip.names import TypeNames
from kbcore.kip.undefined_names import no_predicate, no_type
from kbcore.model.schema import Schema
from kbcore.text.escaping import in_quotes

ELEMENT: Final = "element"
NAME: Final = "name"
Kinds = dict[str, str]
"""The bound variables: whether each means an element or the name of a predicate."""

FIELDS: Final = ("id", "type", "name", "subject", "predicate", "object", "attributes", "metadata")
MAPS: Final = ("attributes", "metadata")


class Translation:
    """One command: its schema, and the ends that were named so far."""

    def __init__(self, schema: Schema, names: TypeNames) -> None:
        self._schema = schema
        self._names = names
        self._unnamed = 0

    def steps(self, group: s.ClauseGroup, outer: Kinds | None = None) -> tuple[tuple[algebra.Step, ...], Kinds]:
        """Return the steps of a group and the variables that are bound after it, those of ``outer`` among them.

        Raises: ``KipRefused`` with KIP_2001 for a type or predicate that is not defined, KIP_3001 for a variable that
        nothing binds, KIP_1001 for one that is used as what it is not.
        """
        bound = dict(outer or {})
        found: list[algebra.Step] = []
        has_rows = False
        for clause in scoping.in_order(group.clauses, bound):
            if isinstance(clause, s.FilterClause):
                self._check(clause.condition, bound, group.clauses)
            found += self._clause(clause, bound, has_rows=has_rows)
            has_rows = has_rows or not isinstance(clause, s.FilterClause | s.Not)
        return tuple(found), bound

    def check_path(self, path: s.Path, bound: Kinds, clauses: Sequence[s.Clause]) -> None:
        """Refuse a path that leads nowhere, or begins at a variable that is not bound."""
        if path.variable not in bound:
            raise scoping.unbound(path.variable, path.at, bound, clauses)
        if not path.parts:
            return
        first, shown = path.parts[0], f"?{path.variable}"
        if bound[path.variable] == NAME:
            raise _misused(path.at, f"{shown} is the name of a predicate and has no fields.", f"Use {shown} itself.")
        if first not in FIELDS:
            hint = f"An element has {', '.join(FIELDS)}; did you mean {shown}.attributes.{'.'.join(path.parts)}?"
            raise _misused(path.at, f"An element has no field {in_quotes(first)}.", hint)
        if len(path.parts) > 1 and first not in MAPS:
            raise _misused(path.at, f"{shown}.{first} is a text and has no fields.", f"Use {shown}.{first} itself.")

    def _clause(self, clause: s.Clause, bound: Kinds, *, has_rows: bool) -> Iterator[algebra.Step]:
        match clause:
            case s.ConceptPattern(variable, matcher):
                yield self._node(matcher, variable.name)
                self._bind(variable, ELEMENT, bound)
            case s.LinkPattern(variable, triple):
                yield from self._link(variable, triple, bound)
            case s.FilterClause(condition):
                yield algebra.KeepRows(condition)
            case s.Not(group) | s.Optional(group):
                shared = tuple(sorted(scoping.mentions(group) & bound.keys()))
                steps, inner = self.steps(group, bound)
                if isinstance(clause, s.Not):
                    yield algebra.Without(steps, shared)
                else:
                    bound |= inner
                    yield algebra.Perhaps(steps, shared)
            case s.Union(group):
                steps, inner = self.steps(group)
                for name in inner.keys() & bound.keys():
                    if inner[name] != bound[name]:
                        raise _two_kinds(name, group.at)
                bound |= inner
                yield algebra.Also(steps, is_first=not has_rows)

    def _link(self, variable: s.Variable | None, triple: s.Triple | s.LinkId, bound: Kinds) -> Iterator[algebra.Step]:
        is_walk = isinstance(triple, s.Triple) and isinstance(triple.predicate, s.Hops)
        if is_walk and variable:
            hint = f"Leave ?{variable.name} out, or ask for links one by one."
            message = f"?{variable.name} cannot mean a path, which is several links."
            raise _misused(variable.at, message, hint)
        yield from self._triple(triple, variable.name if variable else self._fresh(), bound)
        if variable:
            self._bind(variable, ELEMENT, bound)

    def _triple(self, triple: s.Triple | s.LinkId, variable: str, bound: Kinds) -> Iterator[algebra.Step]:
        if isinstance(triple, s.LinkId):
            ends = self._fresh(), self._fresh()
            yield algebra.MatchLink(variable, *ends, id=triple.id.value)
            return
        subject = yield from self._end(triple.subject, bound)
        target = yield from self._end(triple.object, bound)
        match triple.predicate:
            case s.PredicateNames(names):
                known = tuple(dict.fromkeys(self._predicate(name) for name in names))
                yield algebra.MatchLink(variable, subject, target, known)
            case s.Hops(name, least, most):
                yield algebra.WalkJoin(
                    subject, self._predicate(name), target, least.value, None if most is None else most.value
                )
            case s.Variable(name) as named:
                yield algebra.MatchLink(variable, subject, target, predicate=name)
                self._bind(named, NAME, bound)

    def _end(self, term: s.Term, bound: Kinds) -> Any:
        """Yield the steps that an end needs and return its variable."""
        match term:
            case s.Variable(name):
                self._bind(term, ELEMENT, bound)
                return name
            case s.Matcher():
                name = self._fresh()
                yield self._node(term, name)
                return name
            case s.Triple(_, s.Hops()):
                raise _misused(term.at, "A path of several links cannot be the end of a link.", "Name one link.")
            case _:
                name = self._fresh()
                yield from self._triple(term, name, bound)
                return name

    def _node(self, matcher: s.Matcher, variable: str) -> algebra.MatchNode:
        id_, name = (one.value if one else None for one in (matcher.id, matcher.name))
        return algebra.MatchNode(variable, id_, self._type(matcher.type) if matcher.type else None, name)

    def _fresh(self) -> str:
        self._unnamed += 1
        return f"#{self._unnamed}"

    def _bind(self, variable: s.Variable, kind: str, bound: Kinds) -> None:
        if bound.setdefault(variable.name, kind) != kind:
            raise _two_kinds(variable.name, variable.at)

    def _type(self, name: s.Text) -> str:
        """Return what KB calls a type of KIP's."""
        known = self._names.of_kip.get(name.value)
        if known is None:
            raise no_type(self._names, name)
        return known

    def _predicate(self, name: s.Text) -> str:
        if name.value not in self._schema.edges:
            raise no_predicate(self._schema.edges, name)
        return name.value

    def _check(self, condition: Any, bound: Kinds, clauses: Sequence[s.Clause]) -> None:
        for path in scoping.paths_of(condition):
            self.check_path(path, bound, clauses)
            if path.parts in {("attributes",), ("metadata",)}:
                shown = "?" + ".".join([path.variable, *path.parts])
                hint = f"Name a key of it, such as {shown}.status."
                raise _misused(path.at, f"A condition compares single values, and {shown} is a map.", hint)


def _misused(at: int, message: str, hint: str) -> KipRefused:
    return refused(SYNTAX, message, at=at, hint=hint)


def _two_kinds(name: str, at: int) -> KipRefused:
    message = f"?{name} means the name of a predicate in one place and an element in another."
    hint = 'Use two variables; the definition of a predicate is {type: "$PropositionType"} with that name.'
    return refused(SYNTAX, message, at=at, hint=hint, data={"variable": name})
