"""Commands that write what WHERE finds: deletions, UPDATE, MERGE, and UPSERT for each row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import req

SETUP = """
UPSERT {
  CONCEPT ?a { {type: "Person", name: "A"} SET ATTRIBUTES { n: 1, tag: "x" } }
  CONCEPT ?b { {type: "Person", name: "B"} SET ATTRIBUTES { n: 2, only: "b" } SET PROPOSITIONS { ("mentions", ?a) } }
  CONCEPT ?c { {type: "Person", name: "C"} SET PROPOSITIONS { ("mentions", ?a) ("mentions", ?b) } }
  PROPOSITION ?l { (?b, "mentions", ?a) SET ATTRIBUTES { w: 1 } }
  PROPOSITION ?m { (?c, "derived_from", ?l) }
}
WITH METADATA { source: "talk", note: 1 }
"""
SIDES = (("kept", 2), ("other", 1))


@pytest.fixture
def known(kip: Kip) -> Kip:
    kip(SETUP)
    return kip


def names(kip: Kip) -> list[str]:
    return sorted(kip('FIND(?n.name) WHERE { ?n {type: "Person"} FILTER(?n.name != "$self" && ?n.name != "$system") }'))


def links(kip: Kip) -> set[tuple[str, str, str]]:
    view = kip.project.view()
    rows = view.rows("select from_id, type, to_id from link where is_resolved")
    return {(a.removeprefix("Person:"), b, c.removeprefix("Person:")) for a, b, c in rows}


def test_deleting_a_concept_takes_its_links_and_links_about_these_along(known: Kip) -> None:
    reported = known('DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Person", name: "A"} }')
    assert reported == {"deleted_concepts": 1, "deleted_propositions": 3}
    assert names(known) == ["B", "C"]
    assert links(known) == {("C", "mentions", "B")}
    assert known.seq() == 2


def test_deleting_propositions_takes_links_about_them_along(known: Kip) -> None:
    reported = known('DELETE PROPOSITIONS ?l WHERE { ?l (?s, "mentions", {type: "Person", name: "A"}) }')
    assert reported == {"deleted_propositions": 3}
    assert links(known) == {("C", "mentions", "B")}


def test_keys_are_dropped_where_there_are_any(known: Kip) -> None:
    reported = known('DELETE ATTRIBUTES {"n", "tag", "nothing"} FROM ?x WHERE { ?x {type: "Person"} }')
    assert reported == {"updated_concepts": 2, "updated_propositions": 0}
    assert known.attributes("Person:A") == {}
    assert known.attributes("Person:B") == {"only": "b"}
    reported = known('DELETE METADATA {"note"} FROM ?l WHERE { ?l (?s, "mentions", ?o) }')
    assert reported == {"updated_concepts": 0, "updated_propositions": 3}
    reported = known('DELETE METADATA {"note"} FROM ?l WHERE { ?l (?s, "mentions", ?o) }')
    assert reported == {"updated_concepts": 0, "updated_propositions": 0}
    assert known.seq() == 3


def test_a_title_that_is_dropped_becomes_the_name_again(known: Kip) -> None:
    known('UPSERT { CONCEPT { {type: "Person", name: "A"} SET ATTRIBUTES { title: "T", status: "s" } } }')
    known('DELETE ATTRIBUTES {"title", "status"} FROM ?x WHERE { ?x {type: "Person", name: "A"} }')
    node = known.project.node("Person:A")
    assert node is not None
    assert (node.fields["title"], node.fields.get("status")) == ("A", None)


@pytest.mark.parametrize(
    "text",
    [
        'DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Person", name: "Nobody"} }',
        'DELETE CONCEPT ?x DETACH WHERE { ?x {id: "Person:Nobody"} }',
        'DELETE PROPOSITIONS ?x WHERE { ?x (id: "link:0") }',
        'DELETE ATTRIBUTES {"a"} FROM ?x WHERE { ?x {type: "Person", name: "Nobody"} }',
        'UPDATE ?x SET ATTRIBUTES { a: 1 } WHERE { ?x {type: "Person", name: "Nobody"} }',
        'MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "Nobody"} ?y {type: "Person", name: "A"} }',
    ],
)
def test_an_element_that_is_named_and_missing_is_not_found(known: Kip, text: str) -> None:
    assert known.refusal(text)["code"] == "KIP_3002"


def test_a_pattern_that_finds_nothing_deletes_nothing(known: Kip) -> None:
    assert known('DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Domain"} FILTER(?x.name == "No") }') == {
        "deleted_concepts": 0,
        "deleted_propositions": 0,
    }
    text = 'DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Person", name: "A"} FILTER(?x.attributes.n == 7) }'
    assert known(text) == {"deleted_concepts": 0, "deleted_propositions": 0}
    assert known.seq() == 1


@pytest.mark.sliced(5)
@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            'DELETE CONCEPT §?x DETACH WHERE { ?x {type: "Person", name: "$self"} }',
            (
                "KIP_3004: Person '$self' is protected: it belongs to every store (PLACE). "
                "Choose other elements; nothing of the command was done."
            ),
        ),
        (
            'DELETE CONCEPT §?x DETACH WHERE { ?x {type: "$ConceptType"} FILTER(?x.name == "Requirement") }',
            "KIP_3004: $ConceptType 'Requirement' is protected: it belongs to every store (PLACE).",
        ),
        (
            'DELETE PROPOSITIONS §?l WHERE { ?l (?s, "belongs_to_domain", ?o) }',
            "KIP_3004: ($",
        ),
        (
            'DELETE CONCEPT §?l DETACH WHERE { ?l (?s, "mentions", ?o) }',
            "KIP_3001: ?l means propositions; DELETE CONCEPT takes concepts (PLACE). DELETE PROPOSITIONS takes",
        ),
        (
            'DELETE PROPOSITIONS §?x WHERE { ?x {type: "Person", name: "A"} }',
            "KIP_3001: ?x means concepts; DELETE PROPOSITIONS takes propositions (PLACE). Bind links to a",
        ),
        (
            'DELETE ATTRIBUTES {"a"} FROM §?p WHERE { ({type: "Person", name: "B"}, ?p, ?o) }',
            "KIP_3001: ?p means predicates, such as 'mentions' (PLACE). Use a variable of concepts",
        ),
        (
            '§DELETE METADATA {"created_at"} FROM ?x WHERE { ?x {type: "Person", name: "A"} }',
            (
                "KIP_2002: `created_at` is kept by KB for every element and cannot be deleted (PLACE). "
                "Write another value with SET METADATA or WITH METADATA."
            ),
        ),
        (
            'UPDATE ?x SET ATTRIBUTES { n: ADD(§?x.attributes.only, 1) } WHERE { ?x {type: "Person", name: "B"} }',
            "KIP_2003: ADD takes numbers; ?x.attributes.only of B is text (PLACE). Narrow WHERE down.",
        ),
        (
            'UPDATE ?x SET ATTRIBUTES { n: §CLAMP(1, 3, 2) } WHERE { ?x {type: "Person", name: "B"} }',
            "KIP_2003: The lower bound of CLAMP, 3, is above the upper one, 2 (PLACE). Write CLAMP(value",
        ),
        (
            'UPDATE ?x SET ATTRIBUTES { n: §MUL(9223372036854775807, 2) } WHERE { ?x {type: "Person", name: "B"} }',
            "KIP_2003: MUL(9223372036854775807, 2) is larger than a number may be (PLACE). Limit its",
        ),
        (
            'UPDATE ?x SET METADATA { §_version: 2 } WHERE { ?x {type: "Person", name: "B"} }',
            "KIP_2002: The metadata `_version` is kept by KB and cannot be written (PLACE).",
        ),
        (
            'MERGE CONCEPT §?x INTO ?y WHERE { ?x {type: "Person"} ?y {type: "Person", name: "A"} }',
            "KIP_3003: WHERE finds 5 elements for ?x; MERGE takes one (PLACE).",
        ),
        (
            '§MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "A"} ?y {type: "Domain", name: "Unsorted"} }',
            "KIP_2002: Person 'A' and Domain 'Unsorted' are of different types (PLACE). Only concepts of one type",
        ),
        (
            '§MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "A"} ?y {type: "Person", name: "A"} }',
            "KIP_2002: ?x and ?y are the same concept (PLACE). Name two different concepts.",
        ),
        (
            'MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "A"} ?y §{type: "Person", name: "Z"} }',
            "KIP_3002: There is no concept Person 'Z' (PLACE).",
        ),
        (
            'UPSERT { CONCEPT §?x { {type: "Person", name: "New"} } } WHERE { ?x {type: "Person"} }',
            (
                "KIP_3003: ?x is bound in WHERE, and a block takes it as its handle (PLACE). "
                "Give the block a handle of its own; to change what WHERE finds, use UPDATE."
            ),
        ),
        (
            'UPSERT { PROPOSITION { (§?a, "mentions", ?x) } } WHERE { ?x {type: "Person", name: "A"} }',
            "KIP_3001: ",
        ),
        (
            'UPSERT { PROPOSITION { (§?d, "mentions", ?d) } } WHERE { ?x {type: "Domain"} OPTIONAL { (?x, ?p, ?d) } }',
            "KIP_3001: ?d is open in a row that WHERE finds, and nothing can be linked to that (PLACE). Bind it",
        ),
        (
            'UPSERT { PROPOSITION { (?x, "mentions", §?p) } } WHERE { (?x, ?p, {type: "Person", name: "B"}) }',
            "KIP_3001: ?p is 'mentions', the name of a predicate; a link leads to elements (PLACE). Use a variable",
        ),
    ],
)
def test_a_refusal_says_what_where_and_how_to_go_on(known: Kip, text: str, reported: str) -> None:
    place = f"line 1, column {text.index('§') + 1}"
    assert known.refusal_text(text.replace("§", "")).startswith(reported.replace("PLACE", place))


def test_a_definition_in_use_stays(known: Kip) -> None:
    known('UPSERT { CONCEPT { {type: "$ConceptType", name: "Taste"} } CONCEPT { {type: "Taste", name: "dark"} } }')
    reported = known.refusal_text('DELETE CONCEPT ?t DETACH WHERE { ?t {type: "$ConceptType", name: "Taste"} }')
    assert reported.startswith("KIP_2002: The type 'Taste' is used by Taste:dark (line 1, column 16).")
    known('DELETE CONCEPT ?t DETACH WHERE { ?t {type: "Taste"} }')
    known('DELETE CONCEPT ?t DETACH WHERE { ?t {type: "$ConceptType", name: "Taste"} }')
    assert known.refusal('UPSERT { CONCEPT { {type: "Taste", name: "light"} } }')["code"] == "KIP_2001"


def test_a_concept_that_a_file_links_is_only_merged_into(known: Kip) -> None:
    known.project.sync({"docs/requirements/a.md": req("REQ-1", links="[{derived_from: 'Person:A'}]")})
    merge = "MERGE CONCEPT ?x INTO ?y WHERE { ?x {id: :gone} ?y {id: :kept} }"
    error = known.refusal(merge, {"gone": "Person:A", "kept": "Person:B"})
    assert error["code"] == "KIP_3004"
    said = "(REQ-1 derived_from Person:A) is stated by 'docs/requirements/a.md', and would lose an end"
    assert error["message"].startswith(said)
    assert error["hint"].startswith("Merge the other way round, or let 'docs/requirements/a.md' name the concept")
    assert known(merge, {"gone": "Person:B", "kept": "Person:A"})["merged"] == 1


def test_what_a_file_states_is_not_deleted(known: Kip) -> None:
    known.project.sync(
        {
            "docs/requirements/a.md": req("REQ-1", links="[{depends_on: REQ-2}]"),
            "docs/requirements/b.md": req("REQ-2"),
        }
    )
    error = known.refusal('DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Requirement", name: "REQ-1"} }')
    assert (error["code"], error["hint"]) == ("KIP_3004", "Delete it in 'docs/requirements/a.md' and run `kb sync`.")
    error = known.refusal('DELETE PROPOSITIONS ?l WHERE { ?l (?x, "depends_on", ?y) }')
    assert (error["code"], error["hint"]) == ("KIP_3004", "Remove it from 'docs/requirements/a.md' and run `kb sync`.")
    said = "The edge REQ-1 depends_on REQ-2 is stated by 'docs/requirements/a.md' (line 1, column 21)."
    assert error["message"] == said
    known('UPSERT { PROPOSITION { ({type: "Requirement", name: "REQ-1"}, "depends_on", {id: "REQ-2"}) } }')
    reported = known.refusal_text('DELETE PROPOSITIONS ?l WHERE { ?l (?x, "depends_on", ?y) }')
    assert "is stated by 'docs/requirements/a.md' as well, and would stay" in reported


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("ADD(?x.attributes.n, 1)", 3),
        ("MUL(?x.attributes.n, 0.5)", 1.0),
        ("COALESCE(?x.attributes.none, ADD(1, 1))", 2),
        ("CLAMP(MUL(?x.attributes.n, 100), 0, 10)", 10),
        ("?x.attributes.only", "b"),
        ("?x.name", "B"),
        ("[1, {a: null}]", [1, {"a": None}]),
        ("null", None),
    ],
)
def test_update_calculates_from_what_was(known: Kip, value: str, result: Any) -> None:
    reported = known(
        f'UPDATE ?x SET ATTRIBUTES {{ n: {value}, old: ?x.attributes.n }} WHERE {{ ?x {{type: "Person", name: "B"}} }}'
    )
    assert reported == {"updated": 1, "matched": 1}
    assert known.attributes("Person:B") == {"n": result, "only": "b", "old": 2}


def test_an_update_reaches_what_no_record_holds_yet(known: Kip) -> None:
    reported = known('UPDATE ?x SET ATTRIBUTES { seen: true } WHERE { ?x {type: "Person", name: "$system"} }')
    assert reported == {"updated": 1, "matched": 1}
    assert known.attributes("Person:$system")["seen"] is True
    assert known.attributes("Person:$system")["person_class"] == "System"
    reported = known(
        'DELETE ATTRIBUTES {"seen", "sleep_duties"} FROM ?x WHERE { ?x {type: "Person", name: "$system"} }'
    )
    assert reported == {"updated_concepts": 1, "updated_propositions": 0}
    assert "sleep_duties" not in known.attributes("Person:$system")
    reported = known.refusal_text(
        'DELETE ATTRIBUTES {"core_directives"} FROM ?x WHERE { ?x {type: "Person", name: "$self"} }'
    )
    assert reported.startswith("KIP_3004: `core_directives` of $self are protected")


def test_update_takes_so_many_as_its_limit_and_counts_what_changed(known: Kip) -> None:
    text = 'UPDATE ?l SET METADATA { confidence: 0.5, seen: true } WHERE { ?l (?s, "mentions", ?o) }'
    assert known(text + " LIMIT 2") == {"updated": 2, "matched": 2}
    assert known(text) == {"updated": 1, "matched": 3}
    assert known(text) == {"updated": 0, "matched": 3}
    assert known(text, dry_run=True) == {"dry_run": True, "updated": 0, "matched": 3}
    assert known.seq() == 3


def test_an_update_that_changes_nothing_of_a_link_does_not_confirm_it(kip: Kip) -> None:
    kip('UPSERT { CONCEPT ?a { {type: "Person", name: "A"} } CONCEPT ?b { {type: "Person", name: "B"} } }')
    kip('UPSERT { PROPOSITION ?l { ({type: "Person", name: "A"}, "knows", {type: "Person", name: "B"}) } }')
    kip('UPSERT { CONCEPT ?b { {type: "Person", name: "B"} SET ATTRIBUTES {y: 2} } }')
    kip('UPDATE ?l SET ATTRIBUTES { x: 1 } WHERE { ?l (?s, "knows", ?o) }')
    kip('UPSERT { CONCEPT ?b { {type: "Person", name: "B"} SET ATTRIBUTES {y: 3} } }')
    seq = kip.seq()
    everything = 'WHERE { ?l (?s, "knows", ?o) }'
    assert kip(f"UPDATE ?l SET ATTRIBUTES {{ x: 1 }} {everything}") == {"updated": 0, "matched": 1}
    assert kip.seq() == seq
    assert kip(f"UPDATE ?l SET ATTRIBUTES {{ x: 2 }} {everything}") == {"updated": 1, "matched": 1}


def test_a_merge_leads_all_links_to_the_one_that_stays(known: Kip) -> None:
    reported = known('MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "A"} ?y {type: "Person", name: "B"} }')
    # B mentions A leads to itself then and goes, and what was derived from it with it; C mentions B stood already.
    conflict = {"id": "Person:B", "key": "attributes.n", **{k: {"value": v, "source": "talk"} for k, v in SIDES}}
    counts = {"merged_concepts": 1, "links_repointed": 0, "links_deduplicated": 1, "attributes_filled": 1}
    assert reported == {"merged": True, **counts, "conflicts": [conflict]}
    assert names(known) == ["B", "C"]
    assert links(known) == {("C", "mentions", "B")}
    assert known.attributes("Person:B") == {"n": 2, "only": "b", "tag": "x", "aliases": ["A"]}
    assert known.element("Person:B")["metadata"]["_merged_from"] == ["Person:A"]
    assert known.seq() == 2


@pytest.mark.parametrize(
    ("gone", "kept", "left"),
    [
        ({"confidence": 0.9, "note": "x"}, {"confidence": 0.3, "decay_applied_at": "2026-01-08T00:00:00Z"}, 0.9),
        ({"confidence": 0.3, "decay_applied_at": "2026-01-08T00:00:00Z", "note": "x"}, {"confidence": 0.9}, 0.9),
        ({"confidence": 0.3, "note": "x"}, {}, 0.3),
        ({"note": "x"}, {"confidence": 0.3}, 0.3),
    ],
)
def test_of_two_links_that_a_merge_makes_one_the_surer_one_says_how_sure_it_is(known: Kip, gone, kept, left) -> None:
    write = 'UPSERT { PROPOSITION { ({type: "Person", name: :n}, "derived_from", {type: "Person", name: "C"}) } } '
    for name, metadata in (("A", gone), ("B", kept)):
        known(write + "WITH METADATA :m", {"n": name, "m": metadata})
    known('MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "A"} ?y {type: "Person", name: "B"} }')
    [link] = [one for one in known.elements() if one.get("object") == "Person:C" and one["subject"] == "Person:B"]
    said = link["metadata"]
    assert (said["confidence"], said["note"], said.get("decay_applied_at")) == (left, "x", None)


def test_a_merge_keeps_every_alias_once_and_none_is_taken_for_another(known: Kip) -> None:
    write = 'UPSERT { CONCEPT { {type: "Person", name: :n} SET ATTRIBUTES { aliases: :a } } }'
    known(write, {"n": "A", "a": ["x", True, {"a": 1, "b": 2}]})
    known(write, {"n": "B", "a": [1, "x", {"b": 2, "a": 1}, "x"]})
    known('MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "A"} ?y {type: "Person", name: "B"} }')
    said = known.attributes("Person:B")["aliases"]
    assert json.dumps(said) == '[1, "x", {"b": 2, "a": 1}, "A", true]'


def test_a_merge_keeps_links_about_links_with_all_they_say(known: Kip) -> None:
    reported = known('MERGE CONCEPT ?x INTO ?y WHERE { ?x {type: "Person", name: "B"} ?y {type: "Person", name: "C"} }')
    counts = {"merged_concepts": 1, "links_repointed": 1, "links_deduplicated": 1, "attributes_filled": 2}
    assert reported == {"merged": True, **counts, "conflicts": []}
    [moved] = [one for one in known.elements() if one.get("predicate") == "mentions"]
    assert (moved["subject"], moved["object"], moved["attributes"]) == ("Person:C", "Person:A", {"w": 1})
    [about] = [one for one in known.elements() if one.get("predicate") == "derived_from"]
    assert (about["subject"], about["object"], about["metadata"]["note"]) == ("Person:C", moved["id"], 1)


def test_an_upsert_is_applied_once_for_each_row_of_its_where(known: Kip) -> None:
    reported = known(
        'UPSERT { PROPOSITION ?new { (?to, "mentions", ?object) } } '
        'WHERE { ?to {type: "Domain", name: "Unsorted"} (?from, "mentions", ?object) } '
        'WITH METADATA { source: "merge" }'
    )
    assert reported["blocks"] == 1
    assert len(reported["upsert_proposition_links"]) == 2
    assert {("Domain:Unsorted", "mentions", "A"), ("Domain:Unsorted", "mentions", "B")} <= links(known)
    assert known.seq() == 2


def test_an_upsert_whose_where_finds_nothing_writes_nothing(known: Kip) -> None:
    text = 'UPSERT { CONCEPT { {type: "Domain", name: "New"} } } WHERE { ?x {type: "Person"} FILTER(?x.name == "%s") }'
    assert known(text % "No")["upsert_concept_nodes"] == []
    assert known.seq() == 1
    assert known(text % "A")["upsert_concept_nodes"] == ["Domain:New"]


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("where", "is_applied"),
    [
        ('({type: "Person", name: "B"}, "mentions", {type: "Person", name: "A"})', True),
        ('({type: "Person", name: "A"}, "mentions", {type: "Person", name: "B"})', False),
        ('NOT { ?x {type: "Event"} } ?y {type: "Person"}', True),
        ('NOT { ?x {type: "Person"} } ?y {type: "Person"}', False),
        ('?x {type: "Event"} UNION { ?x {type: "Person"} }', True),
    ],
)
def test_blocks_that_use_no_variable_are_applied_once_if_where_finds_anything(known: Kip, where, is_applied) -> None:
    reported = known(f'UPSERT {{ CONCEPT {{ {{type: "Domain", name: "New"}} }} }} WHERE {{ {where} }}')
    assert reported["upsert_concept_nodes"] == ["Domain:New"] * is_applied
    assert known.seq() == 1 + is_applied


def test_where_sees_what_the_command_before_wrote(known: Kip) -> None:
    known('UPDATE ?x SET ATTRIBUTES { n: ADD(?x.attributes.n, 1) } WHERE { ?x {type: "Person", name: "A"} }')
    known(
        "UPDATE ?x SET ATTRIBUTES { n: ADD(?x.attributes.n, 1) } "
        'WHERE { ?x {type: "Person"} FILTER(?x.attributes.n == 2) }'
    )
    assert (known.attributes("Person:A")["n"], known.attributes("Person:B")["n"]) == (3, 3)
