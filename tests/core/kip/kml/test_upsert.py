"""UPSERT: what it writes, in which order, and what a repetition does."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.ids import link_id
from kbcore.model.concepts import CORE_CONCEPTS
from tests.support.repository.kip_writing import Kip

ALICE = '{type: "Person", name: "Alice"}'
UNSORTED = '{type: "Domain", name: "Unsorted"}'
PREFERENCE = 'CONCEPT ?t { {type: "$ConceptType", name: "Preference"} SET ATTRIBUTES { description: "A taste." } }'
PREFERS = 'CONCEPT ?p { {type: "$PropositionType", name: "prefers"} SET ATTRIBUTES { description: "Likes." } }'


def test_an_upsert_makes_concepts_and_links_as_one_record(kip: Kip) -> None:
    reported = kip(
        f'UPSERT {{ CONCEPT ?d {{ {{type: "Domain", name: "Work"}} }} CONCEPT ?a {{ {ALICE} '
        'SET ATTRIBUTES { person_class: "Human" } SET PROPOSITIONS { ("belongs_to_domain", ?d) } } }'
    )
    assert reported == {
        "blocks": 1,
        "upsert_concept_nodes": ["Domain:Work", "Person:Alice"],
        "upsert_proposition_links": [link_id("belongs_to_domain", "", "Person:Alice", "Domain:Work")],
    }
    assert kip.seq() == 1
    assert kip.attributes("Person:Alice") == {"person_class": "Human"}
    assert kip.project.edges("Person:Alice") == {("Person:Alice", "belongs_to_domain", "Domain:Work", True)}
    [row] = kip.project.view().rows("select actor, source, message from record")
    assert row == ("tester", "kip", "UPSERT Domain Work and 1 more")


def test_the_same_command_again_writes_no_record_and_gives_the_same_ids(kip: Kip) -> None:
    links = f'SET PROPOSITIONS {{ ("mentions", {UNSORTED}) }}'
    text = f'UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ id: "a", n: 1 }} {links} }} }}'
    first = kip(text + ' WITH METADATA { source: "talk", confidence: 0.8, created_at: "2026-01-01" }')
    again = kip(text + ' WITH METADATA { source: "talk", confidence: 0.8, created_at: "2026-01-01" }')
    assert first == again
    assert kip.seq() == 1


def test_attributes_replace_key_by_key_and_null_is_kept(kip: Kip) -> None:
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ a: 1, b: [1, 2], c: {{x: 1, y: 2}} }} }} }}")
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ b: null, c: {{x: 3}}, d: true }} }} }}")
    assert kip.attributes("Person:Alice") == {"a": 1, "b": None, "c": {"x": 3}, "d": True}


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("key", "fitting", "other"),
    [
        ("status", "open", 3),
        ("priority", "must", 0.5),
        ("tags", ["a", "b"], {"a": 1}),
        ("title", "The title", None),
        ("title", "The title", "Alice"),
        ("owner", "bob", ""),
        ("links", ["https://example.org"], ["no url"]),
    ],
)
def test_an_attribute_named_like_a_field_keeps_any_value(kip: Kip, key: str, fitting: Any, other: Any) -> None:
    for value in (fitting, other, fitting):
        kip(f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ {key}: :v }} }} }}", {"v": value})
        assert kip.attributes("Person:Alice") == {key: value}
    node = kip.project.node("Person:Alice")
    assert node is not None
    assert node.fields[key] == fitting


def test_metadata_is_inherited_key_by_key_and_merged_into_what_is_stored(kip: Kip) -> None:
    kip(
        f'UPSERT {{ CONCEPT {{ {ALICE} SET PROPOSITIONS {{ ("mentions", {UNSORTED}) WITH METADATA {{ c: 3, d: 3 }} }}'
        " } WITH METADATA { b: 2, c: 2 } } WITH METADATA { a: 1, b: 1, c: 1 }"
    )
    [link] = kip.project.view().touching(["Person:Alice"])
    kept = {"_version", "created_at", "updated_at", "source", "author"}
    assert {k: v for k, v in kip.element("Person:Alice")["metadata"].items() if k not in kept} == {
        "a": 1,
        "b": 2,
        "c": 2,
    }
    of_link = {k: v for k, v in kip.element(link.id)["metadata"].items() if k not in kept}
    assert of_link == {"a": 1, "b": 2, "c": 3, "d": 3}
    kip(f'UPSERT {{ PROPOSITION {{ ({ALICE}, "mentions", {UNSORTED}) }} WITH METADATA {{ d: null, e: 5 }} }}')
    of_link = {k: v for k, v in kip.element(link.id)["metadata"].items() if k not in kept}
    assert of_link == {"a": 1, "b": 2, "c": 3, "d": None, "e": 5}


def test_confidence_becomes_a_field_and_kb_keeps_who_wrote_and_when(kip: Kip) -> None:
    metadata = '{ source: "talk", author: "bob", confidence: 0.25, created_at: "2026-01-02T03:04:05Z" }'
    kip(f'UPSERT {{ CONCEPT {{ {ALICE} SET PROPOSITIONS {{ ("mentions", {UNSORTED}) }} }} }} WITH METADATA {metadata}')
    [link] = kip.project.view().touching(["Person:Alice"])
    [(written_at,)] = kip.project.view().rows("select written_at from record order by seq desc limit 1")
    said = {"metadata.author": "bob", "metadata.created_at": "2026-01-02T03:04:05.000000Z", "metadata.source": "talk"}
    assert (link.created_by, link.created_at, link.fields) == ("tester", written_at, {"confidence": 0.25, **said})
    shown = kip.element(link.id)["metadata"]
    assert (shown["created_at"], shown["_created_at"]) == ("2026-01-02T03:04:05.000000Z", written_at)
    assert [one.source for one in link.statements] == ["kip"]
    kip(f'UPSERT {{ PROPOSITION {{ (id: "{link.id}") }} }} WITH METADATA {{ confidence: null, author: null }}')
    shown = kip.element(link.id)["metadata"]
    assert (shown["confidence"], shown["author"]) == (None, None)
    kip(f'UPSERT {{ PROPOSITION {{ (id: "{link.id}") }} }} WITH METADATA {{ confidence: 1 }}')
    assert kip.element(link.id)["metadata"]["confidence"] == 1


def test_when_a_concept_was_changed_is_noted_by_kb_alone(kip: Kip) -> None:
    text = 'UPSERT { CONCEPT { {type: "Person", name: "Eve"} } } WITH METADATA { updated_at: "2020-01-01T00:00:00Z" }'
    kip(text)
    assert [warning for warning in kip.written.outcome.warnings if "`updated_at`" in warning]
    assert kip.element("Person:Eve")["metadata"]["updated_at"] == kip.project.node("Person:Eve").updated_at
    assert kip.project.node("Person:Eve").updated_at > "2026"


def test_a_concept_that_a_client_wrote_under_the_id_that_kip_gives_is_found_by_its_name(kip: Kip) -> None:
    people = [("Person:Eve", None), ("Person:Mia", "Maria"), ("p-1", None), ("Person:", None)]
    kip.project.apply(
        entities=[
            {"id": key, "type": "Person", "title": "A person", **({"name": name} if name else {})}
            for key, name in people
        ]
    )
    for name, key in (("Eve", "Person:Eve"), ("Maria", "Person:Mia"), ("p-1", "p-1"), ("Person:", "Person:")):
        assert kip('FIND(?p.id) WHERE { ?p {type: "Person", name: :name} }', {"name": name}) == [key]
    assert kip('UPSERT { CONCEPT { {type: "Person", name: "Eve"} } }')["upsert_concept_nodes"] == ["Person:Eve"]


def test_links_about_links_have_ids_of_their_own(kip: Kip) -> None:
    reported = kip(
        f'UPSERT {{ CONCEPT ?a {{ {ALICE} }} PROPOSITION ?l {{ (?a, "mentions", {UNSORTED}) }} '
        f'PROPOSITION {{ ({{type: "Person", name: "$self"}}, "mentions", (?a, "mentions", {UNSORTED})) '
        "SET ATTRIBUTES { sure: true } } }"
    )
    first, second = reported["upsert_proposition_links"]
    shown = kip.element(second)
    assert (shown["subject"], shown["object"], shown["attributes"]) == ("Person:$self", first, {"sure": True})


def test_the_receipt_lists_the_links_of_a_block_with_its_own_and_as_often_as_they_are_stated(kip: Kip) -> None:
    reported = kip(
        f'UPSERT {{ CONCEPT ?a {{ {ALICE} SET PROPOSITIONS {{ ("mentions", {UNSORTED}) ("mentions", {UNSORTED}) }} }} '
        f'PROPOSITION {{ ({UNSORTED}, "mentions", ?a) }} }}'
    )
    first, again, last = reported["upsert_proposition_links"]
    assert first == again
    assert kip.element(first)["subject"] == kip.element(last)["object"] == "Person:Alice"


def test_blocks_see_what_those_before_them_wrote(kip: Kip) -> None:
    kip(
        f"UPSERT {{ CONCEPT ?a {{ {ALICE} SET ATTRIBUTES {{ n: 1, m: 1 }} }} "
        f"CONCEPT {{ {ALICE} SET ATTRIBUTES {{ n: 2 }} }} }} "
        f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ o: 3 }} }} }}"
    )
    assert kip.attributes("Person:Alice") == {"n": 2, "m": 1, "o": 3}
    assert kip.seq() == 1


def test_an_element_of_the_vocabulary_is_written_down_whole_when_it_is_needed(kip: Kip) -> None:
    kip('UPSERT { CONCEPT { {type: "Person", name: "$self"} } CONCEPT { {type: "Domain", name: "Unsorted"} } }')
    assert kip.seq() == 0  # nothing of them changes
    kip(
        'UPSERT { CONCEPT { {type: "Person", name: "$system"} '
        'SET ATTRIBUTES { last_sleep_cycle: "2026-01-01T00:00:00Z" } } }'
    )
    [reported] = [one for one in CORE_CONCEPTS if one.name == "$system"]
    assert kip.attributes("Person:$system") == {**reported.attributes, "last_sleep_cycle": "2026-01-01T00:00:00Z"}
    assert kip.element("Person:$system")["metadata"]["source"] == "SystemBootstrap"


def test_types_and_predicates_are_usable_in_the_statement_that_defines_them(kip: Kip) -> None:
    kip(
        f'UPSERT {{ {PREFERENCE} {PREFERS} CONCEPT ?d {{ {{type: "Preference", name: "dark"}} }} '
        f'CONCEPT {{ {ALICE} SET PROPOSITIONS {{ ("prefers", ?d) }} }} }}'
    )
    assert kip.seq() == 1
    assert ("Person:Alice", "prefers", "Preference:dark", True) in kip.project.edges("Person:Alice")


def test_a_dry_run_checks_everything_and_writes_nothing(kip: Kip) -> None:
    reported = kip(f"UPSERT {{ CONCEPT {{ {ALICE} }} }}", dry_run=True)
    ids = ["Person:Alice"]
    assert reported == {"dry_run": True, "blocks": 1, "upsert_concept_nodes": ids, "upsert_proposition_links": []}
    assert kip.seq() == 0
    error = kip.refusal('UPSERT { CONCEPT { {type: "Requirement", name: "R"} } }', dry_run=True)
    assert error["code"] == "KIP_2002"


def test_a_concept_that_others_made_is_found_by_its_type_and_name(kip: Kip) -> None:
    kip.project.apply(
        entities=[
            {"id": "P-1", "type": "Person", "name": "Carol", "title": "Carol"},
            {"id": "Dave", "type": "Person", "title": "Dave"},
            {"id": "Person:Eve", "type": "Person", "title": "Eve"},
        ]
    )
    for name, key in (("Carol", "P-1"), ("Dave", "Dave"), ("Eve", "Person:Eve")):
        text = 'UPSERT { CONCEPT { {type: "Person", name: :name} SET ATTRIBUTES { seen: true } } }'
        assert kip(text, {"name": name})["upsert_concept_nodes"] == [key]
        assert kip.element(key)["name"] == name

    kip.project.close()
    assert kip('UPSERT { CONCEPT { {type: "Person", name: "Carol"} } }')["upsert_concept_nodes"] == ["P-1"]


def test_requirements_are_written_with_the_validation_of_kb(kip: Kip) -> None:
    kip(
        'UPSERT { CONCEPT { {type: "Requirement", name: "REQ-1"} '
        'SET ATTRIBUTES { status: "open", tags: ["a"], x: 1 } } }'
    )
    node = kip.project.node("REQ-1")
    assert node is not None
    assert node.fields == {"type": "req", "title": "REQ-1", "status": "open", "tags": ["a"], "attributes.x": 1}


def test_a_link_with_kinds_is_one_for_each_kind(kip: Kip) -> None:
    link = f'({ALICE}, "relates_to", {UNSORTED})'
    kip(f'UPSERT {{ CONCEPT {{ {ALICE} }} PROPOSITION {{ {link} SET ATTRIBUTES {{ kind: "likes", since: 1 }} }} }}')
    kip(f"UPSERT {{ PROPOSITION {{ {link} SET ATTRIBUTES {{ since: 2 }} }} }}")
    kip(f'UPSERT {{ PROPOSITION {{ {link} SET ATTRIBUTES {{ kind: "knows" }} }} }}')
    links = kip.project.view().touching(["Person:Alice"])
    assert {one.kind: one.fields.get("attributes.since") for one in links} == {"likes": 2, "knows": None}
    reported = kip.refusal_text(f"UPSERT {{ PROPOSITION {{ {link} SET ATTRIBUTES {{ since: 3 }} }} }}")
    assert reported.startswith("KIP_3003: Several links 'relates_to' lead there: knows, likes (line 1, column 10).")


def test_an_element_leads_to_itself_where_its_predicate_allows_cycles(kip: Kip) -> None:
    kip(f'UPSERT {{ CONCEPT ?a {{ {ALICE} }} PROPOSITION {{ (?a, "mentions", ?a) }} }}')
    reported = kip.refusal_text(f'UPSERT {{ PROPOSITION {{ ({ALICE}, "supersedes", {ALICE}) }} }}')
    assert reported.startswith("KIP_2002: 'supersedes' must not form a cycle, and this link ends where it begins")
