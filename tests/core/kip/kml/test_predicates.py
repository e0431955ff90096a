"""KB's own predicates in the memory of agents: common words stay usable, and what KB says of its own types holds."""

from __future__ import annotations

import pytest

from kbcore.checks import run_checks

VOCABULARY = """
UPSERT {
  CONCEPT { {type: "$ConceptType", name: "Project"} SET ATTRIBUTES { description: "What people work on." } }
  CONCEPT { {type: "$PropositionType", name: "prefers"} SET ATTRIBUTES { description: "Likes better." } }
  CONCEPT { {type: "$PropositionType", name: "precedes"} SET ATTRIBUTES { description: "Is earlier.", acyclic: true } }
}
"""
PROJECTS = """
UPSERT {
  CONCEPT ?web { {type: "Project", name: "web"} }
  CONCEPT ?api { {type: "Project", name: "api"} }
  CONCEPT ?ann { {type: "Person", name: "Ann"} SET PROPOSITIONS { ("prefers", ?web), ("prefers", ?api) } }
}
"""


def end(kind, name):
    return f'{{type: "{kind}", name: "{name}"}}'


def link(subject, predicate, target):
    return f'UPSERT {{ PROPOSITION {{ ({subject}, "{predicate}", {target}) }} }}'


WEB, API = end("Project", "web"), end("Project", "api")
LIKES = [f'({end("Person", "Ann")}, "prefers", {one})' for one in (WEB, API)]


@pytest.fixture
def memory(kip):
    kip.project.apply(
        entities=[
            {"id": key, "type": kind, "title": f"Title {key}", "status": "active"}
            for key, kind in (("R1", "req"), ("R2", "req"), ("A1", "adr"), ("A2", "adr"), ("T1", "test"))
        ]
    )
    kip(VOCABULARY)
    kip(PROJECTS)
    return kip


def circles(memory, ids=()):
    found = run_checks(memory.project.workspace(), memory.project.view(), branch="main", only=["acyclic"], ids=ids)
    return [one.id for one in found.violations]


def test_a_predicate_of_kb_joins_concepts_of_the_memory_both_ways(memory):
    memory(link(WEB, "depends_on", API))
    memory(link(API, "depends_on", WEB))
    assert memory(f'FIND(?x.name) WHERE {{ ({WEB}, "depends_on", ?x) }}') == ["api"]
    assert circles(memory) == circles(memory, ["Project:web"]) == []


@pytest.mark.parametrize(
    ("subject", "target"),
    [(WEB, end("Requirement", "R1")), (end("Requirement", "R1"), WEB), (end("Test", "T1"), end("Decision", "A1"))],
)
def test_a_predicate_of_kb_keeps_to_the_types_that_it_names(memory, subject, target):
    assert "`depends_on` leads from Requirement to Requirement" in memory.refusal_text(
        link(subject, "depends_on", target)
    )


def test_the_types_that_fit_are_those_that_a_definition_names(memory):
    error = memory.refusal(link(WEB, "implements", end("Requirement", "R1")))
    assert error["code"] == "KIP_2002"
    assert "depends_on" not in error["hint"]


def test_a_belief_that_replaces_a_belief_may_be_replaced_by_it_again(memory):
    memory(link(LIKES[0], "supersedes", LIKES[1]))
    memory(link(LIKES[1], "supersedes", LIKES[0]))
    found = memory('FIND(?new.object, ?old.object) WHERE { (?new, "supersedes", ?old) }')
    assert sorted(zip(*found, strict=True)) == [("Project:api", "Project:web"), ("Project:web", "Project:api")]
    assert circles(memory) == []


def test_concepts_of_the_memory_may_replace_each_other_in_turn(memory):
    memory(link(WEB, "supersedes", API))
    memory(link(API, "supersedes", WEB))
    assert circles(memory) == []


@pytest.mark.parametrize(("predicate", "kind", "names"), [
    ("depends_on", "Requirement", ("R1", "R2")),
    ("supersedes", "Decision", ("A1", "A2")),
    ("precedes", "Project", ("web", "api")),
])  # fmt: skip
def test_what_must_form_no_cycle_is_still_found(memory, predicate, kind, names):
    one, two = (end(kind, name) for name in names)
    memory(link(one, predicate, two))
    memory(link(two, predicate, one))
    [found] = circles(memory)
    assert circles(memory, [found]) == [found]


def test_a_link_to_itself_is_refused_where_a_cycle_is(memory):
    assert "must not form a cycle" in memory.refusal_text(link(WEB, "depends_on", WEB))
