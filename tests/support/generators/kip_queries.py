"""Random graphs and random queries over them, of a few names only, so that they meet.

All that is drawn is one of some options. Hypothesis picks it where an example should be made simpler
(``nodes``, ``links``, ``queries``), a plain generator where many are asked: that takes a twentieth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from kbcore.kip import syntax as s
from kbcore.kip.scoping import bound_by
from kbcore.model.concepts import Concept, extended
from kbcore.model.graph import Link, Node
from kbcore.model.schema import CORE
from tests.support.views.graph import link, node

T = TypeVar("T")

DEFINED = [Concept("$ConceptType", "Topic", {})]
DEFINED += [Concept("$PropositionType", name, {}) for name in ("knows", "likes")]
SCHEMA = extended(CORE, DEFINED)

PEOPLE = [f"Person:{name}" for name in "abc"]
KEYS = ["age", "status", "name", "title", "owner"]
VALUES = [
    *(1, 1.0, -1.5, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, 0.1, -(2**63) + 1, 1e300, 5e-324, 0),
    *("1", "a", "", "é", "2025-01-01T01:00:00+01:00", "2025-01-01T00:00:00Z", "2025-01-01T00:00:00.000001Z"),
    *(True, False, None, ["a"], [], {"age": 1}),
]
ENDS = [*PEOPLE, "Topic:t", "Domain:d", "REQ-1", "REQ-2"]
LINKED = ["knows", "knows", "likes", "relates_to", "belongs_to_domain", "depends_on"]

DICE = range(10)
"""Chances in tenths."""
COIN = (False, True)
NAMES = ["a", "b", "c"]
TYPES = ["Person", "Person", "Topic", "Domain", "Requirement", "$ConceptType"]
NAMED = ["a", "b", "t", "d", "REQ-1", "CoreSchema", "Person"]
PREDICATES = ["knows", "knows", "likes", "likes", "relates_to", "belongs_to_domain", "depends_on"]
FIELDS = [
    *((), ("id",), ("type",), ("name",), ("subject",), ("predicate",)),
    *[("attributes", key) for key in KEYS * 2],
    *(("attributes", "tags"), ("attributes", "kind"), ("attributes", "age", "age")),
    *(("metadata", "source"), ("metadata", "confidence"), ("metadata", "_version"), ("metadata", "author")),
]
SCALARS = [value for value in VALUES if not isinstance(value, list | dict)]
SIGNS = ["==", "!=", "<", "<=", ">", ">="]
TESTS = ["CONTAINS", "STARTS_WITH", "ENDS_WITH", "REGEX"]
PATTERNS = ["a", "", "1", "e"]
FUNCTIONS = ["COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX"]
LIMITS = [None, None, s.Count(1), s.Count(3)]
CLAUSES = [1, 1, 1, 2, 2, 3]
WIDTHS = [1, 1, 1, 2]
SOME = [0] * 7 + [1, 1, 2]
"""The numbers of what makes an answer expensive: most queries are cheap."""
ORDERS = [0] * 10 + [1, 1, 2]


class Drawing:
    """Draws graphs and queries; ``pick`` chooses one of some options."""

    def __init__(self, pick: Callable[[Sequence[Any]], Any]) -> None:
        self.pick = pick

    def attributes(self) -> dict[str, Any]:
        keys = [*KEYS[:2], "name", "title", "tags"]
        return {f"attributes.{self.pick(keys)}": self.pick(VALUES) for _ in range(self.pick(range(4)))}

    def nodes(self) -> list[Node]:
        """Draw the nodes of a graph; which of them there are is always the same."""
        found = []
        for id_ in [*PEOPLE, "Topic:t", "Domain:d"]:
            type_, _, name = id_.partition(":")
            given, title = self.attributes(), self.pick([name, "A title"])
            one = node(id_, type_, name=name, title=title, status=self.pick([None, "open"]))
            found.append(msgspec.structs.replace(one, fields=one.fields | given))
        tags, name = self.pick([None, ["x"]]), self.pick([None, "a"])
        found.append(node("REQ-1", tags=tags, name=name, metadata__source=self.pick([None, 1])))
        return [*found, node("REQ-2", owner="a", metadata__confidence=0.5)]

    def links(self) -> list[Link]:
        """Draw the links of a graph: cycles, links over links, some that do not stand."""
        found: dict[str, Link] = {}
        for _ in range(self.pick(range(2, 11))):
            predicate = self.pick(LINKED)
            is_over = bool(found) and predicate == "likes"
            ends = [self.pick(sorted(found) if is_over and self.pick(COIN) else ENDS) for _ in range(2)]
            if predicate == "depends_on":
                ends = ["REQ-1", "REQ-2"]
            one = link(
                ends[0],
                predicate,
                ends[1],
                kind=self.pick(["one", "two"]) if predicate == "relates_to" else "",
                fields=self.attributes() | self.pick([{}, {"confidence": 0.5}]),
                stands=self.pick(DICE) > 0,
            )
            found[one.id] = one
        kept: dict[str, Link] = {}
        for key, one in found.items():  # each comes after the links that it is over
            if all(end[:5] != "link:" or (end in kept and kept[end].is_resolved) for end in (one.from_id, one.to_id)):
                kept[key] = one
        return list(kept.values())

    def query(self) -> s.FindCommand:
        """Draw a query that asks for what it binds."""
        where = self.group()
        while not bound_by(where.clauses):
            where = self.group()
        bound = sorted(bound_by(where.clauses))
        # A whole element is drawn rarely: it costs more than all else that is asked.
        found: list[Any] = [self.path(bound) for _ in range(self.pick(WIDTHS))]
        is_grouped = self.pick(DICE) < 3
        if is_grouped:
            for _ in range(self.pick(SOME)):
                counted = s.Aggregate(self.pick(FUNCTIONS), self.path(bound), self.pick(COIN))
                found.insert(self.pick(DICE) % (len(found) + 1), counted)
        elif self.pick(DICE) < 1 and bound != ["p"]:
            found.append(s.Path(next(one for one in bound if one != "p"), ("attributes",)))
        aggregates = [one for one in found if isinstance(one, s.Aggregate)]
        order = []
        for _ in range(self.pick(ORDERS)):
            key = self.pick(aggregates) if aggregates and self.pick(COIN) else self.path(bound)
            order.append(s.Sort(key, self.pick(COIN)))
        return s.FindCommand(tuple(found), where, tuple(order), self.pick(LIMITS))

    def group(self, outer: frozenset[str] = frozenset(), depth: int = 0) -> s.ClauseGroup:
        """Draw a group; ``outer`` are the variables that it sees."""
        clauses: list[Any] = []
        for _ in range(self.pick(CLAUSES)):
            seen = outer | bound_by(clauses)
            what = self.pick(DICE)
            if what > 6 and depth < 2 and (not depth or self.pick(COIN)):
                kind = (s.Not, s.Optional, s.Union)[what - 7]
                clauses.append(kind(self.group(frozenset() if kind is s.Union else frozenset(seen), depth + 1)))
            else:
                clauses.append(s.ConceptPattern(self.variable(), self.matcher()) if what < 2 else self.link_clause())
        seen = sorted(outer | bound_by(clauses))
        if seen and self.pick(DICE) < 3:
            clauses.insert(self.pick(DICE) % (len(clauses) + 1), s.FilterClause(self.condition(seen)))
        return s.ClauseGroup(tuple(clauses))

    def variable(self) -> s.Variable:
        return s.Variable(self.pick(NAMES))

    def matcher(self) -> s.Matcher:
        what = self.pick(["type", "type and name", "name", "id"])
        if what == "id":
            return s.Matcher(id=s.Text(self.pick(ENDS)))
        type_ = s.Text(self.pick(TYPES)) if "type" in what else None
        return s.Matcher(type=type_, name=s.Text(self.pick(NAMED)) if "name" in what else None)

    def link_clause(self) -> s.LinkPattern:
        triple = self.triple()
        is_named = not isinstance(triple.predicate, s.Hops) and self.pick(DICE) < 3
        return s.LinkPattern(s.Variable(self.pick(["l", "l", "a"])) if is_named else None, triple)

    def triple(self, depth: int = 0) -> s.Triple:
        """Draw a pattern of links; one inside another has no hops."""
        ends = [self._end(depth), self._end(depth)]
        what, name = self.pick(DICE), s.Text(self.pick(PREDICATES))
        predicate: Any = s.PredicateNames((name,))
        if what == 9:
            predicate = s.Variable("p")
        elif what == 8:
            predicate = s.PredicateNames((name, s.Text(self.pick(PREDICATES))))
        elif what == 7 and not depth:
            least, more = self.pick(range(3)), self.pick(range(3))
            predicate = s.Hops(name, s.Count(least), s.Count(least + more) if self.pick(COIN) else None)
        return s.Triple(ends[0], predicate, ends[1])

    def _end(self, depth: int) -> Any:
        what = self.pick(DICE)
        if what == 9 and depth < 2:
            return self.triple(depth + 1)
        return self.matcher() if what > 6 else self.variable()

    def path(self, bound: Sequence[str]) -> s.Path:
        """Draw a path on one of some variables."""
        name = self.pick(bound)
        return s.Path(name, () if name == "p" else self.pick(FIELDS))

    def condition(self, bound: Sequence[str], depth: int = 0) -> Any:
        """Draw a condition on some variables."""
        what = self.pick(DICE)
        if what > 6 and depth < 2:
            inner = self.condition(bound, depth + 1)
            if what == 7:
                return s.Negation(inner)
            return (s.AllOf if what == 8 else s.AnyOf)((inner, self.condition(bound, depth + 1)))
        one = self.path(bound)
        if what == 4:
            return s.IsNull(one, self.pick(COIN))
        if what == 5:
            return s.IsIn(one, s.JsonValue([self.pick(SCALARS) for _ in range(self.pick(range(1, 4)))]))
        if what == 6:
            return s.TextTest(self.pick(TESTS), one, s.JsonValue(self.pick(PATTERNS)))
        other = self.path(bound) if self.pick(DICE) < 3 else s.JsonValue(self.pick(SCALARS))
        return s.Comparison(self.pick(SIGNS), *((one, other) if self.pick(COIN) else (other, one)))


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


def _drawn(part: Callable[[Drawing], T]) -> Callable[[], st.SearchStrategy[T]]:
    """Return what makes the strategy for a part of a drawing."""
    return st.composite(lambda draw: part(Drawing(lambda options: options[draw(_below(len(options)))])))


nodes, links, queries = _drawn(Drawing.nodes), _drawn(Drawing.links), _drawn(Drawing.query)
