"""EXPORT: a capsule that writes what was exported into an empty store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbcore.config.settings import KipLimits
from kbcore.errors import KipRefused
from kbcore.kip.binding import read
from kbcore.kip.kml.export import export
from tests.core.editing.renamed import renamed
from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import req

SETUP = """
UPSERT {
  CONCEPT { {type: "$ConceptType", name: "Taste"} SET ATTRIBUTES { description: "What one likes." }
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "CoreSchema"}) } }
  CONCEPT { {type: "$PropositionType", name: "prefers"} SET ATTRIBUTES { description: "Likes.", acyclic: true } }
  CONCEPT ?t { {type: "Taste", name: "dark\\u200b \\"mode\\""}
    SET ATTRIBUTES { status: 3, tags: ["a"], deep: {x: [null, 1.5]} } }
  CONCEPT ?a { {type: "Person", name: "A"}
    SET PROPOSITIONS { ("prefers", ?t) ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } }
  CONCEPT ?d { {type: "Domain", name: "Other"} }
  PROPOSITION ?l { (?a, "prefers", ?t) SET ATTRIBUTES { since: "2020" } }
  PROPOSITION ?m { ({type: "Person", name: "$self"}, "mentions", ?l) }
  PROPOSITION { (?m, "derived_from", ?l) SET ATTRIBUTES { x: 1 } }
  PROPOSITION { (?a, "relates_to", ?t) SET ATTRIBUTES { kind: "is about" } }
  CONCEPT { {type: "Requirement", name: "REQ-1"} SET ATTRIBUTES { status: "open", title: "T", note: null } }
}
WITH METADATA { source: "talk", author: "A", confidence: 0.25, seen: "2026-01-01" }
"""
EVERYWHERE = {"Domain:CoreSchema", "Domain:Unsorted", "Person:$self"}
"""The vocabulary that SETUP writes, as it is in every store."""
ALL = (
    'EXPORT ?n WHERE { ?n {type: "Person"} UNION { ?n {type: "Taste"} } UNION { ?n {type: "Requirement"} } '
    'UNION { ?n {type: "Domain", name: "Other"} } }'
)


@pytest.fixture
def empty(tmp_path: Path) -> Any:
    made = Kip(tmp_path / "other")
    yield made
    made.project.close()


def without_times(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for one in elements:
        one["metadata"] = {key: value for key, value in one["metadata"].items() if key != "created_at"}
    return elements


def test_a_capsule_writes_the_same_elements_into_an_empty_store(kip: Kip, empty: Kip) -> None:
    kip(SETUP)
    reported = kip(ALL)
    assert (reported["concepts"], reported["propositions"]) == (6, 6)
    empty(reported["capsule"])
    exported = {one["id"] for one in kip.elements()} - EVERYWHERE
    same = [one for one in empty.elements() if one["id"] in exported]
    assert same == [one for one in kip.elements() if one["id"] in exported]
    assert len(same) == 12
    assert empty(ALL) == reported
    assert empty.seq() == 1
    empty(reported["capsule"])
    assert empty.seq() == 1


def test_pages_of_a_capsule_make_the_whole(kip: Kip, empty: Kip) -> None:
    kip(SETUP)
    cursor, pages = "", 0
    while True:
        text = f"{ALL} LIMIT 2" + (f' CURSOR "{cursor}"' if cursor else "")
        command: Any = read(text)
        found = export(kip.project.view(), kip.schema(), command, KipLimits())
        empty(found.result["capsule"])
        cursor, pages = found.next_cursor, pages + 1
        if not cursor:
            break
    assert pages == 2
    assert empty(ALL)["capsule"] == kip(ALL)["capsule"]


def test_a_page_is_refused_when_something_was_written_since_the_one_before(kip: Kip) -> None:
    kip(SETUP)
    command: Any = read(f"{ALL} LIMIT 2")
    cursor = export(kip.project.view(), kip.schema(), command, KipLimits()).next_cursor
    kip('UPSERT { CONCEPT { {type: "Person", name: "AA"} } }')
    error = kip.refusal(f'{ALL} LIMIT 2 CURSOR "{cursor}"')
    assert (error["code"], error["name"]) == ("KIP_3005", "VersionConflict")
    assert "The page before spoke of seq 1, and the branch is at 2 (line 1, column" in error["message"]
    assert error["hint"].startswith("EXPORT again from the first page, without CURSOR")


def test_a_cursor_belongs_to_its_store_and_its_command(kip: Kip, empty: Kip) -> None:
    for one in (kip, empty):
        one(SETUP)
    command: Any = read(f"{ALL} LIMIT 2")
    cursor = export(kip.project.view(), kip.schema(), command, KipLimits()).next_cursor
    assert kip(f'{ALL} LIMIT 3 CURSOR "{cursor}"')["concepts"]
    for other, text in ((empty, ALL), (kip, 'EXPORT ?n WHERE { ?n {type: "Person"} }')):
        error = other.refusal(f'{text} CURSOR "{cursor}"')
        assert error["code"] == "KIP_1001"
        assert "another request" in error["message"]


def test_links_are_exported_with_what_they_lead_to(kip: Kip, empty: Kip) -> None:
    kip(SETUP)
    reported = kip('EXPORT ?l WHERE { ?l (?s, "mentions", ?o) }')
    assert (reported["concepts"], reported["propositions"]) == (4, 3)
    empty(reported["capsule"])
    assert any(one.get("predicate") == "mentions" for one in empty.elements())


EVERYTHING = (
    'EXPORT ?x WHERE { ?x {type: "$ConceptType"} UNION { ?x {type: "$PropositionType"} } UNION { ?x {type: "Domain"} } '
    'UNION { ?x {type: "Person"} } UNION { ?x {type: "Taste"} } UNION { ?x {type: "Requirement"} } '
    "UNION { ?x (?s, ?p, ?o) } }"
)


def pages_of(kip: Kip, command: str, limit: int) -> list[str]:
    """Return the capsules of all pages of an EXPORT."""
    capsules, cursor = [], ""
    while True:
        tree: Any = read(f"{command} LIMIT {limit}" + (f' CURSOR "{cursor}"' if cursor else ""))
        found = export(kip.project.view(), kip.schema(), tree, KipLimits())
        capsules.append(found.result["capsule"])
        cursor = found.next_cursor
        if not cursor:
            return capsules


def test_everything_imports_into_an_empty_store_without_the_untouched_vocabulary(kip: Kip, empty: Kip) -> None:
    kip(SETUP)
    capsule = kip(EVERYTHING)["capsule"]
    assert '{type: "Domain", name: "CoreSchema"}\n    SET' not in capsule
    assert 'name: "$self"}\n    SET' not in capsule
    assert capsule.count("CONCEPT") == 6
    empty(capsule)
    assert shown_beside(empty, EVERYWHERE) == shown_beside(kip, EVERYWHERE)


def test_what_a_branch_changed_of_the_vocabulary_is_exported_where_it_is_selected(kip: Kip, empty: Kip) -> None:
    kip(
        'UPSERT { CONCEPT ?s { {type: "Person", name: "$self"} SET ATTRIBUTES { mood: "good" } } '
        'CONCEPT { {type: "Event", name: "E"} SET PROPOSITIONS { ("mentions", ?s) } } }'
    )
    reported = kip('EXPORT ?x WHERE { ?x {type: "Event"} }')
    assert (reported["concepts"], reported["propositions"]) == (1, 1)
    assert "mood" not in reported["capsule"]
    reported = kip('EXPORT ?x WHERE { ?x {type: "Person"} }')
    assert (reported["concepts"], reported["propositions"]) == (1, 0)
    empty(reported["capsule"])
    assert empty.attributes("Person:$self")["mood"] == "good"


@pytest.mark.sliced(1)
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_of_everything_make_the_whole(kip: Kip, empty: Kip, limit: int) -> None:
    kip(SETUP)
    kip(
        'UPSERT { PROPOSITION ?k { ({type: "Person", name: "A"}, "relates_to", {type: "Domain", name: "Other"}) '
        'SET ATTRIBUTES { kind: "one" } } '
        'PROPOSITION { ({type: "Person", name: "A"}, "relates_to", {type: "Domain", name: "Other"}) '
        'SET ATTRIBUTES { kind: "two" } } PROPOSITION { (?k, "prefers", {type: "Requirement", name: "REQ-1"}) } }'
    )
    for capsule in pages_of(kip, EVERYTHING, limit):
        empty(capsule)
    assert shown_beside(empty, EVERYWHERE) == shown_beside(kip, EVERYWHERE)


def shown_beside(kip: Kip, keys: set[str]) -> list[dict[str, Any]]:
    return [one for one in kip.elements() if one["id"] not in keys]


def test_an_equal_restatement_of_the_foundation_passes_and_writes_nothing(kip: Kip) -> None:
    kip('UPSERT { CONCEPT { {type: "Person", name: "A"} SET PROPOSITIONS {("mentions", ' + CORE_SCHEMA + ")} } }")
    for times in ("", 'created_at: "2020-01-01T00:00:00Z", updated_at: "2020-01-01T00:00:00Z", '):
        kip(
            f"UPSERT {{ CONCEPT {{ {CORE_SCHEMA} "
            'SET ATTRIBUTES { description: "The definitions of types and predicates." } } '
            f'WITH METADATA {{ {times}author: "$system", confidence: 1.0 }} '
            'CONCEPT { {type: "$ConceptType", name: "Requirement"} } }'
        )
        assert kip.seq() == 1
    error = kip.refusal(f'UPSERT {{ CONCEPT {{ {CORE_SCHEMA} SET ATTRIBUTES {{ description: "Other." }} }} }}')
    assert error["code"] == "KIP_3004"
    other = (
        'UPSERT { CONCEPT { {type: "$ConceptType", name: "Requirement"} SET ATTRIBUTES { description: "Other." } } }'
    )
    assert kip.refusal(other)["code"] == "KIP_3004"


CORE_SCHEMA = '{type: "Domain", name: "CoreSchema"}'


def test_a_limit_counts_before_the_limit_of_rows(kip: Kip) -> None:
    kip(SETUP)
    few = KipLimits(rows=3)
    for text, most in (
        ("EXPORT ?x WHERE { ?x (?s, ?p, ?o) }", 3),
        ('EXPORT ?x WHERE { ?x {type: "$ConceptType"} }', 1),
    ):
        tree: Any = read(f"{text} LIMIT {most}")
        assert export(kip.project.view(), kip.schema(), tree, few).result["concepts"]
        for whole in (text, f"{text} LIMIT 4"):
            with pytest.raises(KipRefused, match="more than 3 rows"):
                export(kip.project.view(), kip.schema(), read(whole), few)


def test_no_page_is_spent_on_what_every_store_has(kip: Kip) -> None:
    kip(SETUP)
    reported = kip("EXPORT ?l WHERE { ?l (?s, ?p, ?o) } LIMIT 1")
    assert reported["propositions"] > 0


def test_a_foreign_cursor_and_too_large_a_capsule_are_refused(kip: Kip) -> None:
    kip(SETUP)
    assert kip.refusal(f'{ALL} CURSOR "abc"')["code"] == "KIP_1001"
    for number in range(8):
        kip(
            'UPSERT { CONCEPT { {type: "Person", name: :n} SET ATTRIBUTES { x: :x } } }',
            {"n": f"P{number}", "x": "y" * 40_000},
        )
    error = kip.refusal('EXPORT ?n WHERE { ?n {type: "Person"} }')
    assert error["code"] == "KIP_4002"
    assert error["hint"].startswith("Export fewer elements at a time with LIMIT")


def test_what_is_named_and_missing_is_not_found(kip: Kip) -> None:
    with pytest.raises(KipRefused) as refused:
        kip('EXPORT ?n WHERE { ?n {type: "Person", name: "Nobody"} }')
    assert refused.value.data["kip_code"] == "KIP_3002"


@pytest.mark.parametrize("is_document", [False, True], ids=["of a client", "of a document"])
def test_a_capsule_of_what_was_renamed_can_be_written_and_says_what_it_leaves_out(
    kip: Kip, empty: Kip, is_document: bool
) -> None:
    if is_document:
        kip.project.sync({"docs/requirements/1.md": req("REQ-7", former_ids="[REQ-1]")})
    else:
        kip.project.apply(entities=[{"id": "REQ-1", "type": "req", "title": "T", "status": "open"}])
        renamed(kip.project)
    answer = kip('EXPORT ?n WHERE { ?n {type: "Requirement"} }')
    assert (answer["concepts"], answer["former_ids_left_out"]) == (1, 1)
    empty(answer["capsule"])
    assert "attributes.former_ids" not in empty.project.node("REQ-7").fields
    if not is_document:
        kip(answer["capsule"])
        assert kip.project.node("REQ-7").fields["attributes.former_ids"] == ["REQ-1"]
