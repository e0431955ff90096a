"""The vocabulary of KIP beside the schema of a project."""

from __future__ import annotations

from kbcore.model.concepts import CORE_CONCEPTS, DEFINING, PREDICATE, TYPE, Concept, extended
from kbcore.model.schema import CORE


def test_every_core_concept_is_of_a_type_that_is_defined() -> None:
    schema = extended(CORE)
    assert {one.type for one in CORE_CONCEPTS} <= schema.entities.keys()
    assert len({(one.type, one.name) for one in CORE_CONCEPTS}) == len(CORE_CONCEPTS)
    assert all(one.attributes["description"] for one in CORE_CONCEPTS if one.type in DEFINING)


def test_a_schema_keeps_what_it_has_and_knows_the_vocabulary_besides() -> None:
    schema = extended(CORE)
    assert all(schema.entities[name] is one for name, one in CORE.entities.items())
    assert all(schema.edges[name] is one for name, one in CORE.edges.items())
    assert schema.fits("belongs_to_domain", "req", "Domain")
    assert schema.fits("mentions", "Event", "link")


def test_definitions_of_a_branch_extend_it_and_take_nobodys_place() -> None:
    reported = [
        Concept(TYPE, "Preference", {"description": "What somebody likes."}),
        Concept(PREDICATE, "prefers", {"acyclic": True}),
        Concept(TYPE, "req", {"description": "Something else."}),
    ]
    schema = extended(CORE, reported)
    assert schema.entities["Preference"].description == "What somebody likes."
    assert schema.edges["prefers"].acyclic
    assert schema.entities["req"] is CORE.entities["req"]
