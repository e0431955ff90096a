"""Random trees of KIP for Hypothesis: everything that the grammar can say, with placeholders or without.

``commands()`` are whole commands; the smaller strategies serve who tests a part. Trees are as a parser makes them, but
for the places, which are all 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from kbcore.kip import syntax as s

NAMES = st.sampled_from(["n", "d", "task", "_x1", "FIND", "type", "é".encode().hex()])
KEYS = st.sampled_from(["status", "tier", "type", "FILTER", "true", "two words", "", 'a"b', "ключ", "_v"])
WORDS = st.sampled_from(
    ["Person", "$self", "knows", "", "12:30", "a\nb\t", '"', "\\", "é", "😀", "\u202e", "\x7f", "x: y"]
)
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | WORDS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
variables = NAMES.map(s.Variable)
paths = st.builds(s.Path, NAMES, st.lists(NAMES, max_size=3).map(tuple))
aggregates = st.builds(s.Aggregate, st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"]), paths, st.booleans())
expressions = paths | aggregates


def several(one: Any, least: int = 1, most: int = 3) -> Any:
    """Return a strategy for tuples of some."""
    return st.lists(one, min_size=least, max_size=most).map(tuple)


class Trees:
    """The strategies that depend on whether there are placeholders in the trees."""

    def __init__(self, *, with_placeholders: bool) -> None:
        names = NAMES if with_placeholders else st.nothing()
        self.with_placeholders = with_placeholders
        self.texts = WORDS.map(s.Text) | names.map(lambda name: s.Text("", 0, name))
        self.counts = st.integers(0, 2**63 - 1).map(s.Count) | names.map(lambda name: s.Count(0, 0, name))
        self.limits = st.integers(1, 2**63 - 1).map(s.Count) | names.map(lambda name: s.Count(0, 0, name))
        whole = names.map(lambda name: s.JsonValue(None, 0, (s.ValuePlaceholder((), name),)))
        self.values = JSON.map(s.JsonValue) | whole | self._with_holes(names)
        self.scalars = SCALARS.map(s.JsonValue) | whole
        self.numbers = NUMBERS.map(s.JsonValue) | whole
        self.lists = st.lists(SCALARS, min_size=1, max_size=3).map(s.JsonValue) | names.map(
            lambda name: s.JsonValue([], 0, (s.ValuePlaceholder((), name),))
        )
        members = st.dictionaries(KEYS, self.values, max_size=4).map(_members)
        self.objects = members | names.map(lambda name: s.Object((), 0, name))
        self.identities = st.builds(s.Matcher, id=self.texts) | st.builds(s.Matcher, type=self.texts, name=self.texts)
        self.matchers = self.identities | st.builds(s.Matcher, type=self.texts) | st.builds(s.Matcher, name=self.texts)
        self.link_ids = st.builds(s.LinkId, self.texts)
        self.predicates = variables | st.builds(s.PredicateNames, several(self.texts)) | self._hops(names)
        self.triples = self._triples(variables | self.matchers)
        self.facts = self._facts(variables | self.identities)
        self.conditions = self._conditions()
        self.groups = self._groups()

    def _with_holes(self, names: Any) -> Any:
        """Return lists and maps with placeholders inside."""
        deep = names.map(lambda name: s.JsonValue({"k": [1, None]}, 0, (s.ValuePlaceholder(("k", 1), name),)))
        return deep | st.tuples(names, names).map(
            lambda two: s.JsonValue(
                [None, "x", None], 0, (s.ValuePlaceholder((0,), two[0]), s.ValuePlaceholder((2,), two[1]))
            )
        )

    def _hops(self, names: Any) -> Any:
        bounds = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(sorted)
        exact = st.builds(lambda name, n: s.Hops(name, s.Count(n), s.Count(n)), self.texts, st.integers(0, 10))
        open_ = st.builds(lambda name, n: s.Hops(name, s.Count(n), None), self.texts, st.integers(0, 10))
        both = st.builds(lambda name, two: s.Hops(name, s.Count(two[0]), s.Count(two[1])), self.texts, bounds)
        held = st.builds(lambda name, p: s.Hops(name, s.Count(0, 0, p), s.Count(2)), self.texts, names)
        return exact | open_ | both | held

    def _triples(self, ends: Any) -> Any:
        return st.recursive(
            ends | self.link_ids, lambda inner: st.builds(s.Triple, inner, self.predicates, inner), max_leaves=4
        ).filter(lambda one: isinstance(one, s.Triple | s.LinkId))

    def _facts(self, ends: Any) -> Any:
        return st.recursive(
            ends | self.link_ids, lambda inner: st.builds(s.WrittenLink, inner, self.texts, inner), max_leaves=4
        ).filter(lambda one: isinstance(one, s.WrittenLink | s.LinkId))

    def _conditions(self) -> Any:
        operands = paths | self.scalars
        texts = st.sampled_from(["CONTAINS", "STARTS_WITH", "ENDS_WITH", "REGEX"])
        simple = (
            st.builds(s.Comparison, OPERATORS, operands, operands)
            | st.builds(s.TextTest, texts, operands, operands)
            | st.builds(s.IsIn, operands, self.lists)
            | st.builds(s.IsNull, operands, st.booleans())
        )
        return st.recursive(
            simple,
            lambda inner: (
                st.builds(s.Negation, inner)
                | st.builds(s.AllOf, several(inner, 2))
                | st.builds(s.AnyOf, several(inner, 2))
            ),
            max_leaves=5,
        )

    def _groups(self) -> Any:
        simple = (
            st.builds(s.ConceptPattern, variables, self.matchers)
            | st.builds(s.LinkPattern, st.none() | variables, self.triples)
            | st.builds(s.FilterClause, self.conditions)
        )
        clauses = st.recursive(
            simple,
            lambda inner: st.sampled_from([s.Not, s.Optional, s.Union]).flatmap(
                lambda kind: several(inner).map(lambda clauses: kind(s.ClauseGroup(clauses)))
            ),
            max_leaves=5,
        )
        return several(clauses).map(s.ClauseGroup)

    def queries(self) -> Any:
        """Return a strategy for FIND."""
        sorts = several(st.builds(s.Sort, expressions, st.booleans()), 0)
        return st.builds(
            s.FindCommand, several(expressions), self.groups, sorts, st.none() | self.limits, st.none() | self.texts
        )

    def upserts(self) -> Any:
        """Return a strategy for runs of UPSERT."""
        handle, version, map_ = (st.none() | one for one in (variables, self.counts, self.objects))
        targets = variables | self.identities | self.facts
        entries = several(st.builds(s.SetProposition, self.texts, targets, map_), 0)
        concepts = st.builds(s.ConceptBlock, handle, self.identities, version, map_, entries, map_)
        links = st.builds(s.Proposition, handle, self.facts, version, map_, map_)
        one = st.builds(s.Upsert, several(concepts | links), st.none() | self.groups, map_)
        return several(one, 1, 2).map(s.Upserts)

    def deletes(self) -> Any:
        """Return a strategy for the four DELETEs."""
        parts = st.sampled_from(["ATTRIBUTES", "METADATA"])
        return (
            st.builds(s.DeleteConcepts, variables, self.groups)
            | st.builds(s.DeletePropositions, variables, self.groups)
            | st.builds(s.DeleteKeys, parts, several(self.texts), variables, self.groups)
        )

    def updates(self) -> Any:
        """Return a strategy for UPDATE."""

        def of(name: str) -> Any:
            own = st.lists(NAMES, max_size=2).map(lambda parts: s.Path(name, tuple(parts)))
            part = st.recursive(self.numbers | own, _calculations, max_leaves=4)
            changed = part.filter(lambda one: not isinstance(one, s.JsonValue)) | self.values
            written = st.dictionaries(KEYS, changed, max_size=3).map(_assignments)
            if self.with_placeholders:
                written |= NAMES.map(lambda parameter: s.Assignments((), 0, parameter))
            maps = st.tuples(st.none() | written, st.none() | written).filter(any)
            return st.builds(
                lambda two, where, limit: s.Update(s.Variable(name), two[0], two[1], where, limit),
                maps,
                self.groups,
                st.none() | self.limits,
            )

        return NAMES.flatmap(of)

    def others(self) -> Any:
        """Return a strategy for MERGE, DESCRIBE, SEARCH and EXPORT."""
        kinds = st.sampled_from(["CONCEPT", "PROPOSITION"])
        limit, text = st.none() | self.limits, st.none() | self.texts
        return (
            st.builds(s.Merge, variables, variables, self.groups)
            | st.just(s.DescribePrimer())
            | st.just(s.DescribeDomains())
            | st.just(s.DescribeSyntax())
            | st.builds(s.DescribeTypes, kinds, limit, text)
            | st.builds(s.DescribeType, kinds, self.texts)
            | st.builds(s.DescribeNeighbourhood, self.identities, limit, limit)
            | st.builds(
                s.SearchCommand, kinds, self.texts, text, st.booleans(), text, st.none() | self.numbers, limit, text
            )
            | st.builds(s.ExportCommand, variables, self.groups, limit, text)
        )


@cache
def commands(*, with_placeholders: bool = False) -> Any:
    """Return a strategy for whole commands, the same one each time: making it takes longer than a draw."""
    trees = Trees(with_placeholders=with_placeholders)
    return trees.queries() | trees.upserts() | trees.deletes() | trees.updates() | trees.others()


def without_places(tree: Any) -> Any:
    """Return a tree as JSON text without its places: two trees that say the same give the same, 1 and 1.0 do not."""
    return msgspec.json.encode(_without_places(tree))


def _without_places(node: Any) -> Any:
    if isinstance(node, msgspec.Struct):
        fields = {name: _without_places(getattr(node, name)) for name in node.__struct_fields__ if name != "at"}
        return {"node": type(node).__name__, **fields}
    return [_without_places(one) for one in node] if isinstance(node, tuple) else node


def _members(values: dict[str, s.JsonValue]) -> s.Object:
    return s.Object(tuple(s.MapMember(key, value) for key, value in values.items()))


def _assignments(values: dict[str, Any]) -> s.Assignments:
    return s.Assignments(tuple(s.AttributeChange(key, value) for key, value in values.items()))


def _calculations(inner: Any) -> Any:
    two = st.builds(s.Calculation, st.sampled_from(["ADD", "MUL", "COALESCE"]), several(inner, 2, 2))
    return two | st.builds(s.Calculation, st.just("CLAMP"), several(inner, 3, 3))
