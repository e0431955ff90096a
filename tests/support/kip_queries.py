"""Random graphs and random queries over them, of a few names only, so that they meet."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from kbcore.concepts import Concept, extended
from kbcore.kip import syntax as s
from kbcore.kip.scoping import bound_by
from kbcore.model import Link, Node
from kbcore.schema import CORE
from tests.support.graph import link, node

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
ENDS = st.sampled_from([*PEOPLE, "Topic:t", "Domain:d", "REQ-1", "REQ-2"])
values = st.sampled_from(VALUES)
attributes = st.dictionaries(st.sampled_from([*KEYS[:2], "name", "title", "tags"]), values, max_size=3)


@st.composite
def nodes(draw: Any) -> list[Node]:
    """Draw the nodes of a graph; which of them there are is always the same."""
    found = []
    for id_ in [*PEOPLE, "Topic:t", "Domain:d"]:
        type_, _, name = id_.partition(":")
        given = {f"attributes.{key}": value for key, value in draw(attributes).items()}
        title = draw(st.sampled_from([name, "A title"]))
        status = draw(st.sampled_from([None, "open"]))
        one = node(id_, type_, name=name, title=title, status=status)
        found.append(msgspec.structs.replace(one, fields=one.fields | given))
    tags = draw(st.sampled_from([None, ["x"]]))
    name = draw(st.sampled_from([None, "a"]))
    found.append(node("REQ-1", tags=tags, name=name, metadata__source=draw(st.sampled_from([None, 1]))))
    return [*found, node("REQ-2", owner="a", metadata__confidence=0.5)]


@st.composite
def links(draw: Any) -> list[Link]:
    """Draw the links of a graph: cycles, links over links, some that do not stand."""
    found: dict[str, Link] = {}
    predicates = st.sampled_from(["knows", "knows", "likes", "relates_to", "belongs_to_domain", "depends_on"])
    for _ in range(draw(st.integers(2, 10))):
        predicate = draw(predicates)
        ends = ENDS if not found or predicate != "likes" else ENDS | st.sampled_from(sorted(found))
        two = ("REQ-1", "REQ-2") if predicate == "depends_on" else (draw(ends), draw(ends))
        one = link(
            two[0],
            predicate,
            two[1],
            kind=draw(st.sampled_from(["one", "two"])) if predicate == "relates_to" else "",
            fields={f"attributes.{key}": value for key, value in draw(attributes).items()}
            | draw(st.sampled_from([{}, {"confidence": 0.5}])),
            stands=draw(st.integers(0, 9)) > 0,
        )
        found[one.id] = one
    kept: dict[str, Link] = {}
    for key, one in found.items():  # each comes after the links that it is over
        if all(end[:5] != "link:" or (end in kept and kept[end].stands) for end in (one.from_id, one.to_id)):
            kept[key] = one
    return list(kept.values())


# What is drawn often is made once: making a strategy takes longer than drawing from it.
DICE = st.integers(0, 9)
"""Chances in tenths."""
COINS = st.booleans()
FEW = st.integers(0, 2)
NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["Person", "Person", "Topic", "Domain", "Requirement", "$ConceptType"])
LINKS = st.sampled_from(
    [s.Text(name) for name in ["knows", "knows", "likes", "likes", "relates_to", "belongs_to_domain", "depends_on"]]
)


def _matchers() -> Any:
    texts = {
        "id": ENDS,
        "type": TYPES,
        "name": st.sampled_from(["a", "b", "t", "d", "REQ-1", "CoreSchema", "Person"]),
    }
    fields = {key: one.map(s.Text) for key, one in texts.items()}
    return (
        fields["type"].map(lambda one: s.Matcher(type=one))
        | st.tuples(fields["type"], fields["name"]).map(lambda two: s.Matcher(type=two[0], name=two[1]))
        | fields["name"].map(lambda one: s.Matcher(name=one))
        | fields["id"].map(lambda one: s.Matcher(id=one))
    )


MATCHERS = _matchers()
VARIABLES = NAMES.map(s.Variable)
LINK_VARIABLES = st.sampled_from(["l", "l", "a"]).map(s.Variable)


@st.composite
def triples(draw: Any, depth: int = 0, *, hops: bool = True) -> s.Triple:
    """Draw a pattern of links."""
    ends = []
    for _ in range(2):
        what = draw(DICE)
        if what == 9 and depth < 2:
            ends.append(draw(triples(depth + 1, hops=False)))
        else:
            ends.append(draw(MATCHERS if what > 6 else VARIABLES))
    what = draw(DICE)
    name = draw(LINKS)
    predicate: Any = s.Names((name,))
    if what == 9:
        predicate = s.Variable("p")
    elif what == 8:
        predicate = s.Names((name, draw(LINKS)))
    elif what == 7 and hops:
        least, more = draw(FEW), draw(FEW)
        predicate = s.Hops(name, s.Count(least), s.Count(least + more) if draw(COINS) else None)
    return s.Triple(ends[0], predicate, ends[1])


@st.composite
def link_clauses(draw: Any) -> s.Link:
    """Draw a clause of links."""
    triple = draw(triples())
    named = not isinstance(triple.predicate, s.Hops) and draw(DICE) < 3
    return s.Link(draw(LINK_VARIABLES) if named else None, triple)


FIELDS = st.sampled_from(
    [
        *((), ("id",), ("type",), ("name",), ("subject",), ("predicate",)),
        *[("attributes", key) for key in KEYS * 2],
        *(("attributes", "tags"), ("attributes", "kind"), ("attributes", "age", "age")),
        *(("metadata", "source"), ("metadata", "confidence"), ("metadata", "_version"), ("metadata", "author")),
    ]
)


@st.composite
def paths(draw: Any, bound: list[str]) -> s.Path:
    """Draw a path on one of some variables."""
    name = draw(st.sampled_from(bound))
    return s.Path(name, () if name == "p" else draw(FIELDS))


SCALARS = st.sampled_from([value for value in VALUES if not isinstance(value, list | dict)])
LISTS = st.lists(SCALARS, min_size=1, max_size=3)
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
TESTS = st.sampled_from(["CONTAINS", "STARTS_WITH", "ENDS_WITH", "REGEX"])
PATTERNS = st.sampled_from(["a", "", "1", "e"])


@st.composite
def conditions(draw: Any, bound: list[str], depth: int = 0) -> Any:
    """Draw a condition on some variables."""
    what = draw(DICE)
    if what > 6 and depth < 2:
        inner = conditions(bound, depth + 1)
        if what == 7:
            return s.Negation(draw(inner))
        return (s.AllOf if what == 8 else s.AnyOf)((draw(inner), draw(inner)))
    one = draw(paths(bound))
    if what == 4:
        return s.IsNull(one, draw(COINS))
    if what == 5:
        return s.IsIn(one, s.Value(draw(LISTS)))
    if what == 6:
        return s.TextTest(draw(TESTS), one, s.Value(draw(PATTERNS)))
    other = draw(paths(bound)) if draw(DICE) < 3 else s.Value(draw(SCALARS))
    return s.Comparison(draw(SIGNS), *((one, other) if draw(COINS) else (other, one)))


CLAUSES = st.sampled_from([1, 1, 1, 2, 2, 3])


@st.composite
def groups(draw: Any, outer: frozenset[str] = frozenset(), depth: int = 0) -> s.Group:
    """Draw a group; ``outer`` are the variables that it sees."""
    clauses: list[Any] = []
    for _ in range(draw(CLAUSES)):
        seen = outer | bound_by(clauses)
        what = draw(DICE)
        if what > 6 and depth < 2 and (not depth or draw(COINS)):
            kind = (s.Not, s.Optional, s.Union)[what - 7]
            inner = draw(groups(frozenset() if kind is s.Union else frozenset(seen), depth + 1))
            clauses.append(kind(inner))
        else:
            clauses.append(s.Node(draw(VARIABLES), draw(MATCHERS)) if what < 2 else draw(link_clauses()))
    seen = sorted(outer | bound_by(clauses))
    if seen and draw(DICE) < 3:
        clauses.insert(draw(DICE) % (len(clauses) + 1), s.Filter(draw(conditions(seen))))
    return s.Group(tuple(clauses))


GROUPS = groups().filter(lambda one: bound_by(one.clauses))
SOME = st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1, 1, 2])
"""How many there are of what makes an answer dear: most queries are cheap."""
ORDERS = st.sampled_from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2])
WIDTHS = st.sampled_from([1, 1, 1, 2])
FUNCTIONS = st.sampled_from(["COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX"])
LIMITS = st.sampled_from([None, None, s.Count(1), s.Count(3)])


@st.composite
def queries(draw: Any) -> s.Query:
    """Draw a query that asks for what it binds."""
    where = draw(GROUPS)
    bound = sorted(bound_by(where.clauses))
    # A whole element is drawn rarely: it costs more than all else that is asked.
    found: list[Any] = [draw(paths(bound)) for _ in range(draw(WIDTHS))]
    is_grouped = draw(DICE) < 3
    if is_grouped:
        for _ in range(draw(SOME)):
            counted = s.Aggregate(draw(FUNCTIONS), draw(paths(bound)), draw(COINS))
            found.insert(draw(DICE) % (len(found) + 1), counted)
    elif draw(DICE) < 1 and bound != ["p"]:
        found.append(s.Path(next(one for one in bound if one != "p"), ("attributes",)))
    aggregates = [one for one in found if isinstance(one, s.Aggregate)]
    order = []
    for _ in range(draw(ORDERS)):
        key = aggregates[draw(DICE) % len(aggregates)] if aggregates and draw(COINS) else draw(paths(bound))
        order.append(s.Sort(key, draw(COINS)))
    return s.Query(tuple(found), where, tuple(order), draw(LIMITS))
