"""Commands as SQL: one SELECT where that can be, and nothing that the answer does not need."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.kip.binding import read
from kbcore.kip.find import compiled
from tests.support.generators.kip_queries import SCHEMA
from tests.support.views.graph import Graph, graph_of

PERSON = '?n {type: "Person"}'


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of()


def sql_of(graph: Graph, text: str) -> str:
    query: Any = read(text)
    return compiled(graph, SCHEMA, query).sql


@pytest.mark.parametrize(
    ("text", "is_distinct"),
    [
        (f"FIND(?n.name) WHERE {{ {PERSON} }}", False),
        ('FIND(?a, ?b) WHERE { (?a, "knows", ?b) }', False),
        ('FIND(?a) WHERE { (?a, "knows", ?b) }', True),
        ('FIND(?l) WHERE { ?l (?a, "knows", ?b) }', False),
        ('FIND(?a, ?b) WHERE { (?a, "knows"|"likes", ?b) }', True),
        ('FIND(?a, ?b) WHERE { (?a, "relates_to", ?b) }', True),
        (f'FIND(?n, ?b) WHERE {{ {PERSON} OPTIONAL {{ (?n, "knows", ?b) }} }}', False),
        (f'FIND(?n) WHERE {{ {PERSON} OPTIONAL {{ (?n, "knows", ?b) }} }}', True),
        (f'FIND(?b) WHERE {{ {PERSON} OPTIONAL {{ (?n, "knows", ?b) }} }}', True),
        (f'FIND(?n) WHERE {{ {PERSON} NOT {{ (?n, "knows", ?b) }} }}', False),
        ('FIND(?b) WHERE { ({id: "Person:x"}, "knows", ?b) }', False),
        ('FIND(?b) WHERE { ({type: "Person", name: "x"}, "knows", ?b) }', True),
    ],
)
def test_rows_are_made_one_only_where_nothing_says_that_they_are(graph, text, is_distinct) -> None:
    assert ("distinct on" in sql_of(graph, text)) is is_distinct


@pytest.mark.parametrize(
    ("text", "is_looked_at"),
    [
        (f"FIND(?n.name) WHERE {{ {PERSON} }}", True),
        ('FIND(?n.name) WHERE { ?n {type: "Topic"} }', False),
        ('FIND(?n.name) WHERE { ?n {type: "Person", name: "x"} }', False),
        ('FIND(?n.name) WHERE { ?n {name: "$self"} }', True),
        (f'FIND(?n.name) WHERE {{ {PERSON} (?n, "knows", ?b) }}', False),
        (f'FIND(?n.name) WHERE {{ (?n, "knows", ?b) {PERSON} }}', False),
        ('FIND(?n.name) WHERE { (?n, "belongs_to_domain", ?d) }', True),
        ('FIND(?n.name) WHERE { ?n {type: "Topic"} (?n, "belongs_to_domain", ?d) }', False),
        ('FIND(?n.name) WHERE { (?n, "belongs_to_domain", {type: "Domain", name: "CoreSchema"}) }', True),
    ],
)
def test_the_vocabulary_is_looked_at_only_where_it_can_match(graph, text, is_looked_at) -> None:
    assert ("kip_" in sql_of(graph, text)) is is_looked_at


def test_patterns_conditions_not_and_optional_are_one_select(graph) -> None:
    text = """FIND(?n.name, ?d.name) WHERE { ?n {type: "Topic"} (?n, "knows", ?b) FILTER(?b.name == "x")
        NOT { (?b, "likes", ?n) } OPTIONAL { (?n, "likes", ?d) ?d {type: "Topic"} } }"""
    sql = sql_of(graph, text)
    assert "with" not in sql.split()
    assert sql.count("select") == 2


def test_words_of_the_command_are_parameters(graph) -> None:
    query: Any = read('FIND(?n.name) WHERE { ?n {type: "Person", name: "x\'; drop"} FILTER(?n.attributes.y == "\'") }')
    made = compiled(graph, SCHEMA, query)
    assert "drop" not in made.sql
    assert made.params.count("x'; drop") == 1
    assert "/y" in made.params
