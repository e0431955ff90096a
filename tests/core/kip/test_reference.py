"""The syntax reference: short, complete, and every example in it can be carried out, as is the guide's own advice."""

from __future__ import annotations

import re

import pytest

from kbcore.checks import run_checks
from kbcore.errors import KipRefused
from kbcore.kip.errors import SYNTAX as INVALID
from kbcore.kip.grammar import KEYWORDS
from kbcore.kip.parsing import parse
from kbcore.kip.reference import EXAMPLES, REPLACE, SIMPLE_FIND, SIMPLE_UPSERT, SYNTAX, nearest_form
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE
from tests.core.kip.test_run import asked

MOST_TOKENS = 950
PROMPT_TOKENS = 1_500
CHARS_A_TOKEN = 4
LEFT_OUT = {"DOMAINS", "SYNTAX", "ASC", "WITH", "MODE", "THRESHOLD", "MAX", "MIN", "AVG", "SUM", "true", "false", "BY"}
"""Words of the grammar that the reference need not show."""


EVENT = """
UPSERT { CONCEPT ?e { {type: "Event", name: "chat-15:3"}
  SET ATTRIBUTES { event_class: "Conversation", start_time: :now, content_summary: :text }
  SET PROPOSITIONS { ("mentions", {type: "Service", name: "web"})
                     ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } } }
"""
SURE = 'FIND(?l.id, ?l.metadata.confidence) WHERE { ?l ({type: "Person", name: "Ann"}, "owns", ?s) }'
NEW, OLD = (
    f'({{type: "Person", name: "Ann"}}, "owns", {{type: "Service", name: "{name}"}})' for name in ("web", "pay")
)
DERIVED = f'UPSERT {{ PROPOSITION {{ ({NEW}, "derived_from", {{type: "Event", name: "chat-15:3"}}) }} }}'
BACK = f'UPSERT {{ PROPOSITION {{ ({OLD}, "supersedes", {NEW}) }} }}'
LOWER = 'UPDATE ?l SET METADATA { confidence: 0.2 } WHERE { ?l (?p, "owns", {type: "Service", name: "web"}) }'
TASK = """
UPSERT { CONCEPT { {type: "SleepTask", name: "look at web"}
  SET ATTRIBUTES { target_type: "Service", target_name: "web", requested_action: "review", reason: "Two owners." }
  SET PROPOSITIONS { ("assigned_to", {type: "Person", name: "$system"}) } } }
"""
GUIDED = (EVENT, SURE, REPLACE.text, DERIVED, BACK, LOWER, TASK)
"""The advice of the guide, as commands: an event, a look, a correction, where it comes from, and back again, a task."""


def answered(project, example):
    answer = asked(project, {"command": example.text, "parameters": example.parameters})
    assert not answer.is_error, (example.text, answer.response)
    return answer.response["result"]


def test_describe_syntax_answers_the_reference(project):
    assert asked(project, "DESCRIBE SYNTAX").response == {"result": SYNTAX}
    assert REFERENCE.text == SYNTAX


def test_the_reference_is_short():
    assert len(SYNTAX) / CHARS_A_TOKEN < MOST_TOKENS


@pytest.mark.parametrize("name", MEMORY_GUIDES)
def test_a_guide_and_the_reference_fit_into_a_prompt(name):
    assert len(MEMORY_GUIDES[name].text + SYNTAX) / CHARS_A_TOKEN < PROMPT_TOKENS


def test_the_reference_shows_every_word_of_the_grammar():
    shown = set(re.findall(r"\b\w+\b", SYNTAX))
    assert KEYWORDS - shown <= LEFT_OUT


def test_every_example_of_the_reference_is_carried_out_in_its_order(project):
    finds = 0
    for example in EXAMPLES:
        assert example.text in SYNTAX
        result = answered(project, example)
        finds += example.command == "FIND" and any(result)
        if example.command in {"UPDATE", "DELETE"}:
            assert any(result.values()), example.text
    assert finds == sum(one.command == "FIND" for one in EXAMPLES), "each FIND finds something"
    assert [one.id for one in run_checks(
        project.workspace(), project.view(), branch="main", only=["acyclic", "endpoint-types"]
    ).violations] == []  # fmt: skip


def test_an_example_can_be_sent_with_its_comment():
    for example in EXAMPLES:
        assert parse(f"{example.text}  // {example.comment}\n")


def test_what_is_short_for_an_example_is_carried_out_too(project):
    for example in EXAMPLES:
        answered(project, example)
        if example.short:
            assert not asked(project, example.short).is_error, example.short


def test_the_examples_of_the_tools_are_carried_out_in_an_empty_store(project):
    assert answered(project, SIMPLE_UPSERT)["upsert_concept_nodes"] == ["Person:Ann"]
    names, handles = answered(project, SIMPLE_FIND)
    assert dict(zip(names, handles, strict=True))["Ann"] == "@ann"


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("HELLO", "FIND(?s.name"),
        ('FIND(?x) WHERE { FILTER(?x.name "a") }', "FILTER(?s.attributes.tier"),
        ("FIND(?x) WHERE { NOT ?x }", "NOT { (?d"),
        ("FIND(?x) WHERE { UNION ?x }", "UNION { ?n"),
        ('FIND(?x) WHERE { ?x {type: "A"} } ORDER ?x', "ORDER BY ?s.name"),
        ('UPSERT { CONCEPT ?a { {type: "A", name: "B"} SET {a: 1} } }', "SET ATTRIBUTES { tier: 2 }"),
        ("UPDATE ?x SET ATTRIBUTES a WHERE { }", "UPDATE ?s SET ATTRIBUTES"),
        ("MERGE ?x INTO ?y", "MERGE CONCEPT ?gone INTO ?kept"),
        ("DELETE CONCEPT WHERE", "DELETE CONCEPT ?s DETACH"),
        ("DELETE PROPOSITIONS WHERE", "DELETE PROPOSITIONS ?l"),
        ("DELETE METADATA", "DELETE ATTRIBUTES {"),
        ("EXPORT WHERE", "EXPORT ?p WHERE"),
        ('SEARCH CONCEPT "x" LIMIT "y"', 'SEARCH CONCEPT "pay" LIMIT 5'),
    ],
)
def test_a_hint_that_knows_nothing_better_shows_the_nearest_form(text, near):
    with pytest.raises(KipRefused) as caught:
        parse(text)
    assert near in caught.value.hint
    assert "DESCRIBE SYNTAX" in caught.value.hint
    assert caught.value.hint != INVALID.hint


def test_every_form_that_a_hint_shows_is_a_command():
    for word in sorted(KEYWORDS):
        for example in EXAMPLES:
            shown = nearest_form([example.command, word])
            command = re.sub(r"^.*?: |\. DESCRIBE SYNTAX shows all forms\.$", "", shown)
            assert parse(command)


def test_the_guides_own_advice_is_carried_out(project):
    """Steps 5 to 10 of the waking mind, in the order in which an agent would follow them."""
    about = {"text": "Ann owns the web now.", "now": "2026-11-20T10:00:00Z"}
    for example in EXAMPLES[: EXAMPLES.index(REPLACE)]:
        answered(project, example)
    for step in GUIDED:
        answer = asked(project, {"command": step, "parameters": about})
        assert not answer.is_error, (step, answer.response)
    surest = 'FIND(?s.name) WHERE { ?l (?p, "owns", ?s) FILTER(?l.metadata.confidence <= 0.2) } ORDER BY ?s.name'
    assert asked(project, surest).response["result"] == ["pay", "web"]
    found = run_checks(project.workspace(), project.view(), branch="main", only=["acyclic", "endpoint-types"])
    assert found.violations == []
