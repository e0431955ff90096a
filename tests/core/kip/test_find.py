"""FIND over a small graph: its shapes, what the text of KIP leaves open, pages, limits, and what an agent reads."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.config.settings import KipLimits
from kbcore.errors import HistoryPruned, InvalidQuery, KipRefused
from kbcore.kip import syntax as s
from kbcore.kip.binding import bind, placeholders, read
from kbcore.kip.errors import placing
from kbcore.kip.find import FindAnswer, find, solutions
from kbcore.kip.parsing import parse
from kbcore.kip.syntax import Variable
from kbcore.model.record import PutNode, StateLink
from kbcore.view.base_stamp import BaseStamp
from tests.support.generators.kip_queries import SCHEMA
from tests.support.oracles.kip_seed import STATEMENTS
from tests.support.repository.stores import Stored
from tests.support.views.graph import Graph, graph_of, link, node

KNOWS = link("Person:ann", "knows", "Person:ben")


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Three people in a circle, two in a domain, a link over a link, and two requirements."""
    people = [("ann", 3), ("ben", 2**53 + 1), ("cy", 1.5)]
    found = [node(f"Person:{name}", "Person", name=name, title=name, attributes__age=age) for name, age in people]
    found += [node("Domain:d", "Domain", name="d"), node("Domain:e", "Domain", name="e")]
    found += [node("REQ-1", title="Login", tags=["a", "b"], priority="must"), node("REQ-2", title="Log out")]
    links = [KNOWS, link("Person:ben", "knows", "Person:cy"), link("Person:cy", "knows", "Person:ann")]
    links += [link(f"Person:{name}", "belongs_to_domain", "Domain:d") for name in ("ann", "ben")]
    links += [link(KNOWS.id, "likes", "Person:cy", fields={"confidence": 0.5}), link("REQ-1", "depends_on", "REQ-2")]
    return graph_of(found, [*links, link("REQ-2", "depends_on", "REQ-9", is_resolved=False)])


def ask(graph: Any, text: str, **given: Any) -> FindAnswer:
    query: Any = read(text)
    with placing(text):
        return find(graph, SCHEMA, query, **given)


def refusal(graph: Any, text: str, **given: Any) -> KipRefused:
    with pytest.raises(KipRefused) as caught:
        ask(graph, text, **given)
    return caught.value


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('FIND(?n.name) WHERE { ?n {type: "Person"} (?n, "knows", ?x) }', ["ann", "ben", "cy"]),
        (
            'FIND(?n.name, ?n.attributes.age) WHERE { ?n {type: "Person"} (?n, "knows", ?x) }',
            [["ann", "ben", "cy"], [3, 2**53 + 1, 1.5]],
        ),
        ('FIND(COUNT(?n)) WHERE { (?n, "knows", ?x) }', 3),
        ('FIND(COUNT(?n), MAX(?n.name)) WHERE { (?n, "knows", ?x) }', [3, "cy"]),
        ('FIND(?n) WHERE { ?n {type: "Topic"} }', []),
        ('FIND(?n, ?n.name) WHERE { ?n {type: "Topic"} }', [[], []]),
        ('FIND(COUNT(?n), SUM(?n.attributes.age), AVG(?n.attributes.age)) WHERE { ?n {type: "Topic"} }', [0, 0, None]),
        ('FIND(?n.type, COUNT(?n)) WHERE { ?n {type: "Topic"} }', [[], []]),
        ('FIND(?n.name, COUNT(?n)) WHERE { ?n {name: "d"} }', [["d"], [1]]),
        ('FIND(?p) WHERE { (?s, ?p, ?o) ?s {type: "Requirement"} }', ["depends_on"]),
        ('FIND(?r.attributes.tags) WHERE { ?r {type: "Requirement"} }', [["a", "b"], None]),
        ('FIND(?r.type, ?r.name) WHERE { ?r {id: "REQ-1"} }', [["Requirement"], ["REQ-1"]]),
        ('FIND(?n.name) WHERE { ?n {type: "Person", name: "nobody"} }', []),
        ('FIND(?n.name) WHERE { ?n {id: "nothing"} }', []),
        ('FIND(?l.predicate, ?l.metadata.confidence) WHERE { ?l (?x, "likes", ?y) }', [["likes"], [0.5]]),
        ('FIND(?a.name) WHERE { ((?a, "knows", ?b), "likes", ?c) }', ["ann"]),
        (f'FIND(?l.object) WHERE {{ ?l (id: "{KNOWS.id}") }}', ["Person:ben"]),
        ('FIND(?b.name) WHERE { ({type: "Person", name: "ann"}, "knows"{2}, ?b) }', ["cy"]),
        ('FIND(?b.name) WHERE { ({type: "Person", name: "ann"}, "knows"{0,1}, ?b) }', ["ann", "ben"]),
        ('FIND(?b.name) WHERE { (?b, "knows"{2,}, {type: "Person", name: "ann"}) }', ["ann", "ben", "cy"]),
        ('FIND(SUM(?n.attributes.age)) WHERE { ?n {type: "Person"} FILTER(?n.name != "cy") }', 2**53 + 4),
    ],
)
def test_a_result_has_the_shape_that_the_text_of_kip_gives_it(graph, text, result) -> None:
    assert ask(graph, text).result == result


def test_rows_that_are_one_in_what_is_shown_are_one_row_and_equal_values_are_not() -> None:
    graph = graph_of([node(f"Topic:{name}", "Topic", name=name, attributes__tier=1) for name in "ab"])
    assert ask(graph, 'FIND(?n.attributes.tier) WHERE { ?n {type: "Topic"} }').result == [1, 1]
    assert ask(graph, 'FIND(?n.attributes.tier, COUNT(?n)) WHERE { ?n {type: "Topic"} }').result == [[1], [2]]


def test_a_variable_that_stays_open_is_shown_as_one_null(graph) -> None:
    text = 'FIND(?d.name) WHERE { ?n {type: "Person"} (?n, "knows", ?x) OPTIONAL { (?n, "belongs_to_domain", ?d) } }'
    assert ask(graph, text).result == ["d", None]


@pytest.mark.parametrize("found", ['?a {type: "$ConceptType"}', 'OPTIONAL { ?a {type: "$ConceptType"} }'])
def test_a_filter_within_not_takes_no_row_of_the_vocabulary_away(graph, found) -> None:
    every = ask(graph, f"FIND(COUNT(?a)) WHERE {{ {found} }}").result
    never = 'NOT { ?a (?c, "knows", ?b) FILTER(?a.metadata.confidence > 0.5) }'
    assert ask(graph, f"FIND(COUNT(?a)) WHERE {{ {found} {never} }}").result == every > 0


def test_each_domain_counts_its_members_those_without_any_too(graph) -> None:
    text = """FIND(?d.name, COUNT(?n)) WHERE { ?d {type: "Domain"} OPTIONAL { (?n, "belongs_to_domain", ?d) }
        FILTER(!STARTS_WITH(?d.name, "C")) } ORDER BY COUNT(?n) DESC"""
    assert ask(graph, text).result == [["d", "Archived", "Unsorted", "e"], [2, 0, 0, 0]]


def test_what_is_missing_is_null_and_every_comparison_is_true_or_false(graph) -> None:
    def names(condition: str) -> Any:
        return ask(graph, f'FIND(?r.name) WHERE {{ ?r {{type: "Requirement"}} FILTER({condition}) }}').result

    assert names("?r.attributes.priority == null") == ["REQ-2"]
    assert names('?r.attributes.priority != "could"') == ["REQ-1", "REQ-2"]
    assert names('!(?r.attributes.priority < "z")') == ["REQ-2"]
    assert names("?r.attributes.priority < 5") == []
    assert names("IN(?r.attributes.priority, [null, 3])") == ["REQ-2"]
    assert names('?r.metadata.created_at == "2026-11-20T10:30:00+01:00"') == ["REQ-1", "REQ-2"]


def test_a_filter_in_front_of_a_union_is_none_of_its_business(graph) -> None:
    text = """FIND(?n.name) WHERE { ?n {type: "Person"} FILTER(?n.attributes.age > 2)
        UNION { ?n {type: "Requirement"} } }"""
    assert ask(graph, text).result == ["ann", "ben", "REQ-1", "REQ-2"]


def test_definitions_are_found_like_all_else_until_somebody_stores_them() -> None:
    text = 'FIND(?t.attributes.description) WHERE { ?t {type: "$ConceptType", name: "Person"} }'
    assert "acts" in ask(graph_of(), text).result[0]
    own = node("$ConceptType:Person", "$ConceptType", name="Person", attributes__description="Ours.")
    changed = graph_of([own])
    assert ask(changed, text).result == ["Ours."]
    domain = '(?t, "belongs_to_domain", {type: "Domain", name: "CoreSchema"})'
    both = f'FIND(?t.attributes.description) WHERE {{ {domain} ?t {{name: "Person"}} }}'
    assert ask(changed, both).result == ["Ours."]


def test_what_not_asks_of_a_definition_nobody_stored_leaves_the_rows_around_it_alone(graph) -> None:
    text = """FIND(COUNT(?t)) WHERE { OPTIONAL { ?t {type: "$ConceptType"} }
        NOT { (?t, "depends_on", ?x) FILTER(IS_NULL(?t.attributes.status)) } }"""
    assert ask(graph, text).result == ask(graph, text.partition("NOT")[0] + "}").result > 9


def test_pages_fit_together_and_the_last_one_says_so(graph) -> None:
    text = 'FIND(?n.name) WHERE { ?n {type: "Person"} } ORDER BY ?n.attributes.age ASC LIMIT 2'
    first = ask(graph, text)
    second = ask(graph, f'{text} CURSOR "{first.next_cursor}"')
    third = ask(graph, f'{text} CURSOR "{second.next_cursor}"')
    assert [*first.result, *second.result, *third.result] == ["cy", "ann", "ben", "$self", "$system"]
    assert third.next_cursor == ""
    assert ask(graph, text.replace("LIMIT 2", "LIMIT 5")).next_cursor == ""


def test_a_cursor_fits_the_same_query_alone(graph) -> None:
    text = 'FIND(?n.name) WHERE { ?n {type: "Person"} } LIMIT 1'
    cursor = ask(graph, text).next_cursor
    other = refusal(graph, f'FIND(?n.name) WHERE {{ ?n {{type: "Topic"}} }} LIMIT 1 CURSOR "{cursor}"')
    broken = refusal(graph, f'{text} CURSOR "{cursor[:-2]}"')
    assert [one.data["kip_code"] for one in (other, broken)] == ["KIP_1001", "KIP_1001"]
    assert other.message.startswith("The cursor belongs to another request (line 1, column")
    spaced = text.replace(" WHERE", "\nWHERE")
    assert ask(graph, f'{spaced.replace("LIMIT 1", "LIMIT 2")} CURSOR "{cursor}"').result == ["$system", "ann"]


def test_pages_speak_of_the_seq_that_the_first_one_spoke_of(tmp_path) -> None:
    with_knows = Stored(tmp_path)

    def put(name: str) -> PutNode:
        return PutNode(id=f"Topic:{name}", base=0, set={"type": "Topic", "name": name, "title": name, "status": "open"})

    with_knows.commit([put("a"), put("b"), StateLink("knows", "Topic:a", "Topic:b", 0)])
    text = 'FIND(?n.name) WHERE { ?n {type: "Topic"} } LIMIT 1'
    first = ask(with_knows.view(), text)
    with_knows.commit([put("aa"), put("c")])
    second = ask(with_knows.view(), f'{text} CURSOR "{first.next_cursor}"')
    assert (first.result, second.result, second.next_cursor, second.seq) == (["a"], ["b"], "", 1)
    everything = 'FIND(?n.name) WHERE { ?n {type: "Topic"} }'
    assert ask(with_knows.view(), everything).result == ["a", "aa", "b", "c"]
    assert ask(with_knows.view(), everything, at=1).result == ["a", "b"]
    with pytest.raises(InvalidQuery):
        ask(with_knows.view(), everything, at=3)
    with_knows.close()


def test_a_page_of_what_was_pruned_is_refused(graph) -> None:
    old = graph_of()
    old.basis = BaseStamp("store", "", 9, "", "", "", 0, 5)
    old.seq = 9
    with pytest.raises(HistoryPruned):
        ask(old, 'FIND(?n) WHERE { ?n {type: "Topic"} }', at=3)


VALUES: dict[str, list[Any]] = {
    "number": [1, 1.0],
    "big": [2**53 + 1],
    "near": [2**53],
    "text": ["1"],
    "zero": [0, -0.0],
    "moment": ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"],
    "no moment": ["2026-02-30T00:00:00Z"],
    "flag": [True],
    "word": ["true"],
    "list": [["a"], ["a"]],
    "list in a text": ['["a"]'],
    "nothing": [None, None],
}


def test_two_fields_are_equal_where_their_values_are() -> None:
    found = [(f"{kind}/{at}", value) for kind, values in VALUES.items() for at, value in enumerate(values)]
    given = [(name, {} if value is None else {"attributes__v": value}) for name, value in found]
    nodes = [node(f"Topic:{name}", "Topic", name=name, title=name, **more) for name, more in given]
    both = '?x {type: "Topic"} ?y {type: "Topic"}'
    for condition, is_same in (
        ("?x.attributes.v == ?y.attributes.v", True),
        ("?x.attributes.v != ?y.attributes.v", False),
    ):
        rows = ask(graph_of(nodes, []), f"FIND(?x.name, ?y.name) WHERE {{ {both} FILTER({condition}) }}").result
        pairs = {(one, other) for one, other in zip(*rows, strict=True)}
        names = [name for name, _ in found]
        expected = {(x, y) for x in names for y in names if (x.split("/")[0] == y.split("/")[0]) is is_same}
        assert pairs == expected


@pytest.mark.parametrize("field", ["name", "attributes.v"])
def test_equal_fields_are_found_without_comparing_each_pair(field: str) -> None:
    names = [f"p{at}" for at in range(8000)]
    many = graph_of([node(f"Topic:{one}", "Topic", name=one, title=one, attributes__v=one) for one in names], [])
    text = f'FIND(COUNT(?x)) WHERE {{ ?x {{type: "Topic"}} ?y {{type: "Topic"}} FILTER(?x.{field} == ?y.{field}) }}'
    assert ask(many, text, limits=KipLimits(time_s=3)).result == 8000


def test_more_rows_than_the_limit_are_refused_and_a_page_of_them_is_not(graph) -> None:
    text = 'FIND(?n.name) WHERE { ?n {type: "Person"} }'
    error = refusal(graph, text, limits=KipLimits(rows=3))
    assert (error.data["kip_code"], error.message) == (
        "KIP_4002",
        "There are more than 3 rows; `kip.rowLimit` is the limit (line 1, column 1).",
    )
    assert refusal(graph, f"{text} LIMIT 4", limits=KipLimits(rows=3)).data["kip_code"] == "KIP_4002"
    assert len(ask(graph, f"{text} LIMIT 3", limits=KipLimits(rows=3)).result) == 3
    assert len(ask(graph, text, limits=KipLimits(rows=5)).result) == 5


def test_a_command_that_takes_too_long_is_ended_and_the_next_one_is_answered(graph) -> None:
    many = " ".join(f'?x{at} {{type: "$PropositionType"}}' for at in range(12))
    error = refusal(graph, f"FIND(COUNT(?x0), COUNT(?x11)) WHERE {{ {many} }}", limits=KipLimits(time_s=0.05))
    assert error.data["kip_code"] == "KIP_4001"
    assert "longer than 0.05 s" in error.message
    assert ask(graph, 'FIND(COUNT(?n)) WHERE { (?n, "knows", ?x) }').result == 3


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            'FIND(?m.name) WHERE { ?n {type: "Person"} }',
            "KIP_3001",
            "?m is used here, and no pattern of WHERE binds it (line 1, column 6).",
        ),
        (
            'FIND(?n) WHERE { ?n {type: "Person"} FILTER(REGEX(?n.name, "(")) }',
            "KIP_1001",
            "REGEX cannot use this pattern: missing ): ( (line 1, column 60).",
        ),
        (
            'FIND(?n) WHERE { ?n {type: "Person"} FILTER(REGEX("a", ?n.attributes.pattern)) }',
            "KIP_1001",
            "REGEX cannot use this pattern: missing ): ( (line 1, column 56).",
        ),
        (
            'FIND(?n.name) WHERE { ?n {type: "Person"} } ORDER BY COUNT(?n)',
            "KIP_1001",
            "ORDER BY names COUNT(…), which FIND does not ask for (line 1, column 54).",
        ),
        (
            'FIND(?n.name) WHERE { ?n {type: "Person"} } ORDER BY ?n.attributes',
            "KIP_1001",
            "ORDER BY takes single values, and ?n.attributes is a map (line 1, column 54).",
        ),
        (
            'FIND(MAX(?n.metadata)) WHERE { ?n {type: "Person"} }',
            "KIP_1001",
            "MAX takes single values, and ?n.metadata is a map (line 1, column 10).",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_place(text, code, message) -> None:
    graph = graph_of([node("Person:x", "Person", name="x", attributes__pattern="(")])
    error = refusal(graph, text)
    assert (error.data["kip_code"], error.message) == (code, message)
    assert error.hint


@pytest.mark.parametrize("statement", [one for one in STATEMENTS if "FIND" in one.text], ids=lambda one: one.place)
def test_every_query_that_the_seed_prints_is_answered(graph, statement) -> None:
    words = {"type": "Person", "predicate": "mentions"}
    for text in statement.instead or [statement.text]:
        query: Any = parse(text.replace('"T"', '"Person"'))
        if isinstance(query, s.FindCommand) and "CURSOR" not in text:
            bound: Any = bind(query, {name: words.get(name, "x") for name in placeholders(query)})
            assert find(graph, SCHEMA, bound).result is not None


def test_solutions_are_the_distinct_values_of_the_variables_of_a_where(graph) -> None:
    query: Any = read('FIND(?d) WHERE { (?n, "knows", ?x) OPTIONAL { (?n, ?p, ?d) ?d {type: "Domain"} } }')
    found = solutions(graph, SCHEMA, query.where, (Variable("d"), Variable("p")))
    assert found == [{"d": "Domain:d", "p": "belongs_to_domain"}, {"d": None, "p": None}]
    with pytest.raises(KipRefused, match="is used here"):
        solutions(graph, SCHEMA, query.where, (Variable("nothing"),))
    with pytest.raises(KipRefused, match="more than 1 rows"):
        solutions(graph, SCHEMA, query.where, (Variable("d"),), limits=KipLimits(rows=1))
