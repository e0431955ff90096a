"""A compiled query answers exactly what a slow and obvious reading of it over plain values answers."""

from __future__ import annotations

import re
from operator import ge, gt, le, lt

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore import query
from kbcore.errors import InvalidQuery
from kbcore.model.schema import CORE
from kbcore.model.values import normal_time
from kbcore.query import Condition, Pattern, Query
from kbcore.query.conditions import ALLOWED, OPERATORS
from kbcore.query.where_values import number_of, span_of
from tests.support.effort.scale import tries
from tests.support.generators.histories import laws
from tests.support.oracles.ranking import Corpus, pieces
from tests.support.views.graph import Texts, graph_of, link, node

IDS = ["A", "a", "B-1", "C:2", "%", "_'", "\\", "é😀"]
EDGES = ["depends_on", "verified_by", "relates_to"]
KEYS = ["k", "a/b~", '"$.k']
WORDS = st.sampled_from(["a", "B", "Title", "100%", "_", "'", '"', "\\", "é", "É", "😀", "\u202e", "\x01", "ש", "1"])
TYPED = st.sampled_from(
    [
        *("2", "10", "010", "-3", "0.25", "1.10", "12e4", "v2", "v10", "REQ-2", "REQ-12", "7" * 45, "7" * 44 + "8"),
        *("2026-01-31", "2026-01-31T23:30Z", "2026-02-01T00:30:00+02:00", "2026-01-31 12:00", "2026-02-30"),
    ]
)
"""Text as people type it: numbers, times, and what only looks like one."""
PLAIN = (
    TYPED
    | st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.sampled_from([0.5, -2.25, 10.0])
    | WORDS
    | st.lists(WORDS, min_size=2, max_size=3).map(" ".join)
)

VALUES = PLAIN | st.lists(PLAIN, max_size=3) | st.dictionaries(st.sampled_from(["x", "y"]), PLAIN, max_size=2)
LAST_SEQ = 4


@st.composite
def _nodes(draw, id_):
    fields = {
        "title": draw(st.lists(WORDS, min_size=1, max_size=3).map(" ".join)),
        "status": draw(st.sampled_from(["open", "done"])),
        "tags": draw(st.none() | st.lists(WORDS, max_size=3)),
        "owner": draw(st.none() | WORDS),
    }
    members = draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
    fields |= {f"attributes.{name}": value for name, value in members.items()}
    return node(id_, draw(st.sampled_from(["req", "test"])), **fields)


@st.composite
def _links(draw, ends):
    from_id, type_, to_id = ends
    files = draw(st.lists(st.sampled_from(["docs/a.md", "docs/b.md"]), max_size=2, unique=True))
    fields = {"confidence": draw(st.sampled_from([0.25, 1.0]))} if draw(st.booleans()) else {}
    return link(from_id, type_, to_id, files=files, is_resolved=draw(st.booleans()), fields=fields)


@st.composite
def _lives(draw, one):
    """The history of one element at each seq from 1 on: a value, or None where it did not exist."""
    return [draw(st.none() | one) for _ in range(LAST_SEQ)]


@st.composite
def histories(draw):
    """All elements by kind: a list of lives."""
    nodes = [draw(_lives(_nodes(id_))) for id_ in draw(st.sets(st.sampled_from(IDS), min_size=2))]
    few = st.sampled_from(IDS[:5])
    ends = st.tuples(few, st.sampled_from(EDGES), few)
    links = [draw(_lives(_links(end))) for end in draw(st.sets(ends, max_size=10))]
    return nodes, links


def _rows(lives):
    """Return the current elements, and the superseded ones with the seq that ended them."""
    current, old = [], []
    for life in lives:
        began = None
        for seq, value in enumerate([*life, life[-1]], start=1):
            if began is not None and (seq > LAST_SEQ or value != began[1]):
                element = msgspec.structs.replace(began[1], version=began[0])
                (current.append(element) if seq > LAST_SEQ else old.append((element, seq)))
                began = None
            if began is None and value is not None and seq <= LAST_SEQ:
                began = (seq, value)
    return current, old


def _present(lives, seq):
    """Return the elements as of a seq, each with the version that it has: the seq at which it became what it is."""
    found = []
    for life in lives if seq else ():
        value, version = life[seq - 1], seq
        while version > 1 and life[version - 2] == value:
            version -= 1
        if value is not None:
            found.append(msgspec.structs.replace(value, version=version))
    return found


PATTERNS = st.builds(Pattern, st.sampled_from(EDGES), st.sampled_from(["", *IDS]), st.booleans())
SOME = {"max_size": 1}
MEMBERS = ["k", "attributes.a/b~", 'attributes."$.k']
WORDED = st.sampled_from(["=", "!=", "~", "^="])
CONDITION = (
    st.builds(Condition, st.sampled_from(["owner", "title", "id", *MEMBERS]), WORDS | TYPED, st.sampled_from(OPERATORS))
    | st.builds(Condition, st.just("tag"), WORDS, WORDED)
    | st.builds(
        Condition,
        st.just("k"),
        st.sampled_from(["true", "0.5", "10.0", "10", "[]", "{}", "null", "9007199254740991"]),
        st.sampled_from(OPERATORS),
    )
    | st.builds(Condition, st.just("version"), st.sampled_from(["1", "2", "2.5"]), st.sampled_from(ALLOWED["number"]))
    | st.just(Condition("k", ""))
)
CONDITIONS = st.lists(CONDITION, min_size=1, max_size=2).map(tuple)
ENTITY_QUERIES = st.builds(
    Query,
    type=st.sampled_from(["", "", "req"]),
    ids=st.just(()) | st.lists(st.sampled_from(IDS), max_size=5).map(tuple),
    tags=st.lists(WORDS, **SOME).map(tuple),
    status=st.sampled_from(["", "", "open"]),
    where=st.lists(CONDITIONS, **SOME).map(tuple),
    has=st.lists(PATTERNS, **SOME).map(tuple),
    lacks=st.lists(PATTERNS, **SOME).map(tuple),
    text=st.just("") | st.lists(WORDS, max_size=2).map("  ".join),
    at=st.none() | st.integers(0, LAST_SEQ),
    sort=st.sampled_from(["", "id", "-id", "owner", "-owner", "title", "k", "-k"]),
)
WALKS = st.builds(
    Query,
    from_id=st.sampled_from(IDS[:5]),
    follow=st.lists(st.sampled_from([*EDGES, "^depends_on", "^verified_by"]), max_size=3, unique=True).map(tuple),
    depth=st.integers(1, 4),
    reverse=st.booleans(),
    type=st.sampled_from(["", "req"]),
    at=st.none() | st.integers(0, LAST_SEQ),
)
EDGE_QUERIES = st.builds(
    Query,
    type=st.just("edge"),
    where=st.lists(
        st.sampled_from(
            [
                ("type", "depends_on"),
                ("from", "A"),
                ("to", "_'"),
                ("source", "docs/b.md"),
                ("source", "test"),
                ("resolved", "false"),
                ("stands", "true"),
                ("resolved", "true"),
                ("confidence", "1"),
            ]
        ).map(lambda pair: (Condition(*pair),)),
        max_size=2,
    ).map(tuple),
    sort=st.sampled_from(["", "-from", "type", "confidence", "-confidence"]),
    at=st.none() | st.integers(0, LAST_SEQ),
)


def _json(value):
    return msgspec.json.encode(value, order="sorted").decode()


def _holds(condition, entity):
    """Say whether an entity meets a condition, as the sentences of the documentation say it."""
    value, operator, wanted = _field(entity, condition.key), condition.operator, condition.value
    if operator == "!=":
        return not _holds(Condition(condition.key, wanted), entity)
    if not wanted and operator == "=":  # what has no such field
        return value in (None, "", [])
    values = value if isinstance(value, list) else [value]
    is_core = condition.key in {"owner", "title", "id", "tag"}
    return any(_compares(one, operator, wanted, is_core=is_core) for one in values)


def _compares(value, operator, wanted, *, is_core):
    if operator == "=":
        return _is_one(value, wanted, is_core=is_core)
    if value is None:
        return False
    if operator == "~":
        return wanted.lower() in _shown(value).lower()
    if operator == "^=":
        return _shown(value).lower().startswith(wanted.lower())
    order = {"<": lt, "<=": le, ">": gt, ">=": ge}[operator]
    number, span = (None, None) if is_core else (number_of(wanted), span_of(wanted))
    if number:
        mine = _number(value)
        return mine is not None and order(mine, int(number.whole) if number.whole else number.real)
    if span:
        moment = normal_time(value) if isinstance(value, str) else None
        bound = span[0] if operator in {"<", ">="} else span[1]
        return moment is not None and (moment < bound) == (operator in {"<", "<="})
    return isinstance(value, str) and order(("".join(_natural(value)), value), ("".join(_natural(wanted)), wanted))


def _number(value):
    """Return the number that a value is, or that its text spells as documents have them."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"[+-]?\d{1,15}([.]\d{1,15})?", value, re.ASCII) else None
    return value if isinstance(value, int | float) else None


def _natural(text):
    return [part if at % 2 == 0 else part.rjust(40, "0")[:40] for at, part in enumerate(re.split("([0-9]+)", text))]


def _is_one(value, text, *, is_core):
    if isinstance(value, bool):
        return _json(value) == text.lower()
    if isinstance(value, int | float) and (number := number_of(text)):
        return value == (int(number.whole) if number.whole and isinstance(value, int) else number.real)
    if isinstance(value, str) and not is_core and (span := span_of(text)) and (moment := normal_time(value)):
        return span[0] <= moment < span[1] or value == text
    return _shown(value) == text


def _shown(value):
    return value if isinstance(value, str) else None if value is None else _json(value)


def _field(entity, key):
    if key in {"id", "version"}:
        return getattr(entity, key)
    core = {"owner": "owner", "title": "title", "tag": "tags"}
    return entity.fields.get(core.get(key, "attributes." + key.removeprefix("attributes.")))


def _matches(pattern, entity, links):
    ends = [(edge.to_id, edge.from_id) if pattern.inverse else (edge.from_id, edge.to_id) for edge in links]
    return any(
        edge.is_resolved and edge.type == pattern.edge and near == entity.id and pattern.id in {"", far}
        for edge, (near, far) in zip(links, ends, strict=True)
    )


def _moves(asked, links):
    """Return every edge that the walk may go, as (near, far, edge, is_against)."""
    for edge in links:
        named = {name.startswith("^") for name in asked.follow if name.lstrip("^") == edge.type}
        ways = named if asked.follow else {False}
        for is_against in ways:
            turned = is_against != asked.reverse
            near, far = (edge.to_id, edge.from_id) if turned else (edge.from_id, edge.to_id)
            if edge.is_resolved:
                yield near, far, edge, turned


def _paths(asked, links):
    """Return the path to each id that the walk meets: of the shortest ones, the first from its end backwards."""
    moves = list(_moves(asked, links))
    found = {asked.from_id: ()}
    for _ in range(asked.depth):
        steps = [move for move in moves if move[0] in found and move[1] not in found]
        steps.sort(key=lambda move: (move[0].encode(), move[2].type, move[2].kind, move[3]), reverse=True)
        found |= {far: (*found[near], (edge.type, edge.from_id, edge.to_id)) for near, far, edge, _ in steps}
    return found


def _reached(asked, links):
    return _paths(asked, links).keys() - {asked.from_id}


def _fits(asked, entity, links):
    return (
        asked.type in {"", entity.type}
        and (not asked.ids or entity.id in asked.ids)
        and all(tag in entity.fields.get("tags", []) for tag in asked.tags)
        and asked.status in {"", entity.fields["status"]}
        and all(any(_holds(one, entity) for one in any_of) for any_of in asked.where)
        and all(_matches(pattern, entity, links) for pattern in asked.has)
        and not any(_matches(pattern, entity, links) for pattern in asked.lacks)
        and (not asked.from_id or entity.id in _reached(asked, links))
    )


def _ordered(found, terms, *, is_descending):
    """Order by each term, missing values last, ties by the order that the list has."""
    for term in reversed(terms):
        present = [one for one in found if term(one) is not None]
        absent = [one for one in found if term(one) is None]
        # a stable sort keeps equal values in order even when it is reversed
        found = [*sorted(present, key=term, reverse=is_descending), *absent]
    return found


def _terms(asked):
    key = asked.sort.removeprefix("-")
    if key == "k":

        def value(entity):
            found = _field(entity, "k")
            return _shown(found) if found is not None else None

        def number(entity):
            found = _number(_field(entity, "k"))
            return None if found is None else float(found)

        def moment(entity):
            found = _field(entity, "k")
            return normal_time(found) if isinstance(found, str) else None

        return [number, moment, _naturally(value), value]
    if asked.is_edge and key:
        names = {"from": lambda edge: edge.from_id, "type": lambda edge: edge.type}
        if key in names:
            return [_naturally(names[key]), names[key]]
        return [lambda edge: edge.fields.get("confidence")]
    if not key:
        return []

    def field(entity):
        return _field(entity, key)

    return [_naturally(field), field]


def _naturally(term):
    return lambda one: None if term(one) is None else "".join(_natural(term(one)))


def expected(asked, nodes, links):
    """Return the keys of the whole answer, in order."""
    seq = LAST_SEQ if asked.at is None else asked.at
    edges = _present(links, seq)
    if asked.is_edge:
        found = [edge for edge in edges if _edge_fits(asked, edge)]
        found.sort(key=lambda edge: edge.id if asked.sort else (edge.from_id, edge.type, edge.to_id))
    else:
        entities_then = _present(nodes, seq)
        found = [entity for entity in entities_then if _fits(asked, entity, edges)]
        found.sort(key=lambda entity: entity.id)
        if asked.text:
            ranked = Corpus(entities_then).ranked(asked.text, [entity.id for entity in found])
            by_id = {entity.id: entity for entity in found}
            found = [by_id[id_] for id_ in (sorted(ranked) if asked.sort else ranked)]
    ordered = _ordered(found, _terms(asked), is_descending=asked.sort.startswith("-"))
    return [one.id for one in ordered]


def _edge_fits(asked, edge):
    if not any(one.key in {"resolved", "stands"} for any_of in asked.where for one in any_of) and not edge.is_resolved:
        return False
    facts = {
        "type": {edge.type},
        "from": {edge.from_id},
        "to": {edge.to_id},
        "source": {statement.source for statement in edge.statements},
        "stands": {"true" if edge.is_resolved else "false"},
        "confidence": {"1"} if edge.fields.get("confidence") == 1 else set(),
    }
    facts["resolved"] = facts["stands"]
    return all(one.value in facts[one.key] for any_of in asked.where for one in any_of)


def answered(asked, graph, limit):
    """Return the keys of all pages one after another, and the total that every page must name."""
    found, cursor, totals, texts = [], "", set(), Texts(graph)
    while True:
        page = query.page(msgspec.structs.replace(asked, limit=limit, cursor=cursor), graph.rows, LAST_SEQ, texts=texts)
        shown = page.edges if asked.is_edge else page.entities
        assert len(shown) <= limit
        found += [one.id for one in shown]
        totals.add(page.total)
        cursor = page.next_cursor
        if not cursor:
            return found, totals
        assert shown


@pytest.mark.sliced
@settings(laws(60), suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.lists(ENTITY_QUERIES | WALKS | EDGE_QUERIES, min_size=4, max_size=8), st.integers(1, 3))
def test_a_compiled_query_answers_what_its_words_say(history, queries, limit):
    nodes, links = history
    current_nodes, old_nodes = _rows(nodes)
    current_links, old_links = _rows(links)
    graph = graph_of(current_nodes, current_links, old_nodes=old_nodes, old_links=old_links)
    for asked in queries:
        checked = query.check(asked, CORE)
        if checked.text and not any(pieces(checked.text)):
            with pytest.raises(InvalidQuery, match="no word"):
                answered(checked, graph, limit)
            continue
        wanted = expected(checked, nodes, links)
        if checked.from_id and not wanted:
            compiled = query.compile(checked)
            assert graph.rows(compiled.sql, compiled.params) == []
            continue
        found, totals = answered(checked, graph, limit)
        assert found == wanted, checked
        assert totals == {len(wanted)}


@settings(laws(20), suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.integers(1, LAST_SEQ), st.lists(st.sampled_from(IDS), min_size=1, unique=True))
def test_the_edges_of_a_page_are_those_that_stood_at_its_seq(history, at, ids):
    nodes, links = history
    current_nodes, old_nodes = _rows(nodes)
    current_links, old_links = _rows(links)
    graph = graph_of(current_nodes, current_links, old_nodes=old_nodes, old_links=old_links)
    page = query.page(query.check(Query(ids=tuple(ids), at=at, edges=True), CORE), graph.rows, LAST_SEQ)
    there = {entity.id for entity in _present(nodes, at)} & set(ids)
    touching = {edge.id for edge in _present(links, at) if edge.is_resolved and {edge.from_id, edge.to_id} & there}
    assert {entity.id for entity in page.entities} == there
    assert sorted(edge.id for edge in page.edges) == sorted(touching)


@pytest.mark.sliced
@settings(max_examples=tries(14, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.lists(WALKS, min_size=2, max_size=4))
def test_a_walk_shows_the_same_shortest_path_to_each_entity(history, walks):
    nodes, links = history
    current_nodes, old_nodes = _rows(nodes)
    current_links, old_links = _rows(links)
    graph = graph_of(current_nodes, current_links, old_nodes=old_nodes, old_links=old_links)
    for asked in walks:
        seq = LAST_SEQ if asked.at is None else asked.at
        wanted = _paths(asked, _present(links, seq))
        compiled = query.compile(query.check(asked, CORE))
        if not graph.rows(compiled.sql, compiled.params):
            continue
        page = query.page(query.check(asked, CORE), graph.rows, LAST_SEQ)
        shown = {id_: tuple((one.type, one.from_id, one.to_id) for one in path) for id_, path in page.paths.items()}
        assert shown == {entity.id: wanted[entity.id] for entity in page.entities}
