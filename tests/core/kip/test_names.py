"""The names of types and elements in KIP, and what it shows of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.ids import check_id
from kbcore.kip.elements import element_json
from kbcore.kip.names import camel_case, type_names
from kbcore.model.concepts import CORE_CONCEPTS, Concept, concept_id, extended
from kbcore.model.schema import CORE, EdgeType, EntityType, Schema
from tests.support.views.graph import AT, link, node

NAMES = type_names(extended(CORE))


def project(*types: str) -> Schema:
    """Return KB's schema with types of a project."""
    own = {name: EntityType(name, origin=".kb/schema/own.yaml") for name in types}
    return Schema({**CORE.entities, **own}, dict[str, EdgeType](CORE.edges))


def test_types_of_kb_have_names_of_their_own_and_those_of_kip_keep_theirs() -> None:
    assert (NAMES.of_kip["Requirement"], NAMES.of_kip["DomainEvent"], NAMES.of_kip["Event"]) == (
        "req",
        "event",
        "Event",
    )
    assert NAMES.is_named_by_id("req")
    assert not NAMES.is_named_by_id("Person")


def test_a_type_of_the_project_is_written_as_kip_writes_types_unless_that_is_taken() -> None:
    names = type_names(extended(project("user_story", "person", "Fact", "fact", "über")))
    assert {kb: names.of_kb[kb] for kb in ("user_story", "person", "Fact", "fact", "über")} == {
        "user_story": "UserStory",
        "person": "person",
        "Fact": "Fact",
        "fact": "fact",
        "über": "Ber",
    }


@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,6}", fullmatch=True), unique=True, max_size=8))
def test_every_type_has_one_name_and_every_name_one_type(own) -> None:
    schema = extended(project(*own), [Concept("$ConceptType", "Fact", {})])
    names = type_names(schema)
    assert set(names.of_kip.values()) >= schema.entities.keys() - {"Fact"}
    assert {kip: names.of_kb[kb] for kip, kb in names.of_kip.items()} == {kip: kip for kip in names.of_kip}


def test_a_concept_has_its_type_and_name_as_its_id_where_that_can_be_one() -> None:
    assert concept_id("Person", "$self") == "Person:$self"
    odd = ["", "a ", "a\n", "x" * 250, "~" + "0" * 32]
    ids = [concept_id("Person", name) for name in odd]
    assert all(one.startswith("Person:~") and len(one) == len("Person:~") + 32 for one in ids)
    assert len(set(ids)) == len(odd)


@given(st.text(), st.text())
def test_no_two_names_of_a_type_have_the_same_id(one, other) -> None:
    assert (concept_id("Topic", one) == concept_id("Topic", other)) == (one == other)
    assert check_id(concept_id("Topic", one)) is None


@pytest.mark.parametrize(("name", "shown"), [("user_story", "UserStory"), ("API", "API"), ("a-b c", "ABC"), ("_", "")])
def test_words_become_one(name, shown) -> None:
    assert camel_case(name) == shown


def test_the_vocabulary_is_named_in_the_schema() -> None:
    assert {one.name for one in CORE_CONCEPTS if one.type == "$ConceptType"} <= NAMES.of_kip.keys()


def test_a_concept_is_shown_with_fields_among_its_attributes_and_metadata() -> None:
    shown = element_json(
        node("Person:ann", "Person", name="ann", title="ann", attributes__age=3, attributes__status=7, metadata__x=0),
        NAMES,
    )
    assert shown == {
        "id": "Person:ann",
        "type": "Person",
        "name": "ann",
        "attributes": {"age": 3, "status": 7},
        "metadata": {"_version": 1, "created_at": AT, "source": "test", "updated_at": AT, "x": 0},
    }


def test_an_entity_of_kb_has_its_id_as_its_name_and_another_name_as_an_attribute() -> None:
    shown = element_json(node("REQ-1", title="Login", tags=["a"], name="login", status=None), NAMES)
    assert (shown["type"], shown["name"]) == ("Requirement", "REQ-1")
    assert shown["attributes"] == {"name": "login", "tags": ["a"], "title": "Login"}


def test_a_link_is_shown_with_its_ends_and_its_kind() -> None:
    shown = element_json(link("REQ-1", "relates_to", "REQ-2", kind="see", fields={"confidence": 0.0}), NAMES)
    assert (shown["subject"], shown["predicate"], shown["object"]) == ("REQ-1", "relates_to", "REQ-2")
    assert shown["attributes"] == {"kind": "see"}
    assert shown["metadata"] == {
        "_version": 1,
        "author": "tester",
        "confidence": 0.0,
        "created_at": AT,
        "source": "test",
    }


def test_a_type_note_of_the_project_keeps_the_name_that_it_had_before_kb_brought_one() -> None:
    assert (NAMES.of_kip["WorkNote"], "Note" in NAMES.of_kip) == ("note", False)
    assert type_names(extended(project("note"))).of_kip["Note"] == "note"
    defined = extended(CORE, [Concept("$ConceptType", "Note", {})])
    assert type_names(defined).of_kip["Note"] == "Note"
