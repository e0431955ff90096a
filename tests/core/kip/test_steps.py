"""A WHERE as steps of the algebra: what is named, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.errors import KipRefused
from kbcore.kip.algebra import Also, KeepRows, MatchLink, MatchNode, Perhaps, WalkJoin, Without
from kbcore.kip.binding import read
from kbcore.kip.names import type_names
from kbcore.kip.steps import Translation
from tests.support.generators.kip_queries import SCHEMA

NAMES = type_names(SCHEMA)
FIELDS = (
    "An element has id, type, name, subject, predicate, object, attributes, metadata; "
    "did you mean ?a.attributes.status?"
)


def steps_of(where: str) -> Any:
    query: Any = read(f"FIND(?a) WHERE {{ {where} }}")
    return Translation(SCHEMA, NAMES).steps(query.where)[0]


def refusal(where: str) -> KipRefused:
    with pytest.raises(KipRefused) as caught:
        steps_of(where)
    return caught.value


def test_ends_that_are_not_named_become_variables() -> None:
    assert steps_of('?l ({type: "Requirement"}, "knows", (?a, "likes"|"knows", ?b))') == (
        MatchNode("#1", type="req"),
        MatchLink("#2", "?a"[1:], "b", ("likes", "knows")),
        MatchLink("l", "#1", "#2", ("knows",)),
    )


def test_a_path_becomes_a_walk_and_an_id_a_link_of_any_ends() -> None:
    walk, link = steps_of('(?a, "knows"{1,}, ?b) ?l (id: "x")')
    assert walk == WalkJoin("a", "knows", "b", 1, None)
    assert (link.variable, link.id, link.predicates) == ("l", "x", ())


def test_not_waits_for_what_it_mentions_and_a_filter_that_is_early_comes_last() -> None:
    found = steps_of(
        'NOT { (?a, "knows", ?b) (?b, "likes", ?x) } FILTER(?b.name == "x") ?a {type: "Person"} FILTER(?a.name == "y")'
        ' (?a, "likes", ?b) ?c {type: "Topic"}'
    )
    assert [type(one) for one in found] == [MatchNode, KeepRows, MatchLink, Without, MatchNode, KeepRows]
    assert found[3].shared == ("a", "b")


def test_a_union_that_is_first_has_nothing_in_front_of_it() -> None:
    first, second = steps_of('UNION { ?a {type: "Person"} } UNION { ?a {type: "Topic"} }')
    assert (first.is_first, second.is_first) == (True, False)


def test_optional_says_what_it_shares() -> None:
    *_, found = steps_of(
        '?a {type: "Person"} ?b {name: "x"} OPTIONAL { (?a, "knows", ?c) UNION { ?b {type: "Topic"} } }'
    )
    assert isinstance(found, Perhaps)
    assert found.shared == ("a", "b")
    assert isinstance(found.steps[1], Also)


@pytest.mark.parametrize(
    ("where", "code", "message", "hint"),
    [
        ('?a {type: "Persn"}', "KIP_2001", "There is no concept type 'Persn'.", "Did you mean 'Person'?"),
        ('?a {type: "req"}', "KIP_2001", "There is no concept type 'req'.", "KIP calls it Requirement."),
        ('NOT { (?a, "knew", ?b) }', "KIP_2001", "There is no predicate 'knew'.", "Did you mean 'knows'?"),
        ('OPTIONAL { (?a, "knew"{1,2}, ?b) }', "KIP_2001", "There is no predicate 'knew'.", "Did you mean 'knows'?"),
        (
            '?a {type: "Person"} FILTER(?task.name == "x")',
            "KIP_3001",
            "?task is used here, and no pattern of WHERE binds it.",
            "Bind ?task by a pattern in WHERE, or use one of ?a.",
        ),
        (
            '?a {type: "Person"} NOT { (?a, "knows", ?b) } FILTER(?b.name == "x")',
            "KIP_3001",
            "?b is bound inside NOT only, and ends with it.",
            "Ask for what is left, or bind ?b by a pattern outside of NOT.",
        ),
        (
            '?a {type: "Person"} FILTER(?a.status == "x")',
            "KIP_1001",
            "An element has no field 'status'.",
            FIELDS,
        ),
        (
            '?a {type: "Person"} FILTER(?a.name.first == "x")',
            "KIP_1001",
            "?a.name is a text and has no fields.",
            "Use ?a.name itself.",
        ),
        (
            '(?a, ?p, ?b) FILTER(?p.name == "x")',
            "KIP_1001",
            "?p is the name of a predicate and has no fields.",
            "Use ?p itself.",
        ),
        (
            '?a {type: "Person"} FILTER(?a.attributes == "x")',
            "KIP_1001",
            "A condition compares single values, and ?a.attributes is a map.",
            "Name a key of it, such as ?a.attributes.status.",
        ),
        (
            '?l (?a, "knows"{1,2}, ?b)',
            "KIP_1001",
            "?l cannot mean a path, which is several links.",
            "Leave ?l out, or ask for links one by one.",
        ),
        (
            '(?a, "knows", (?b, "knows"{2}, ?c))',
            "KIP_1001",
            "A path of several links cannot be the end of a link.",
            "Name one link.",
        ),
        (
            '(?a, ?p, ?b) UNION { ?p {type: "Person"} }',
            "KIP_1001",
            "?p means the name of a predicate in one place and an element in another.",
            'Use two variables; the definition of a predicate is {type: "$PropositionType"} with that name.',
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place_and_a_remedy(where, code, message, hint) -> None:
    error = refusal(where)
    assert (error.data["kip_code"], error.message, error.hint) == (code, message, hint)
    assert error.data["offset"] > 0
