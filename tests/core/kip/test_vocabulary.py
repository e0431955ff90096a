"""The vocabulary that every store has without a record."""

from __future__ import annotations

from kbcore.kip.vocabulary import vocabulary
from kbcore.model.concepts import CORE_CONCEPTS, DEFINING, Concept, extended
from kbcore.model.schema import CORE

VOCABULARY = vocabulary(extended(CORE))
NODES = {(one.type, one.fields["name"]): one for one in VOCABULARY.nodes}


def test_all_core_concepts_and_all_types_and_edges_of_kb_are_nodes() -> None:
    assert {(one.type, one.name) for one in CORE_CONCEPTS} <= NODES.keys()
    assert {("$ConceptType", "Requirement"), ("$PropositionType", "depends_on")} <= NODES.keys()
    assert NODES["$PropositionType", "depends_on"].fields["attributes.subject_types"] == ["Requirement"]
    assert NODES["$PropositionType", "relates_to"].fields["attributes.subject_types"] == ["*"]
    assert NODES["$ConceptType", "Test"].fields["attributes.instance_schema"]["kind"]["enum"] == [
        "unit",
        "integration",
        "e2e",
    ]


def test_every_definition_belongs_to_the_schema_domain_and_nothing_else_does() -> None:
    definitions = {one.id for one in VOCABULARY.nodes if one.type in DEFINING}
    assert {one.from_id for one in VOCABULARY.links} == definitions
    assert {one.to_id for one in VOCABULARY.links} == {"Domain:CoreSchema"}


def test_it_is_the_same_for_the_same_schema_and_holds_no_definition_of_a_branch() -> None:
    again = vocabulary(extended(CORE, [Concept("$ConceptType", "Topic", {"description": "x"})]))
    assert (again.nodes, again.links) == (VOCABULARY.nodes, VOCABULARY.links)
