"""DESCRIBE, on a branch with requirements, and with a memory that defines types of its own."""

from __future__ import annotations

import pytest

from kbcore.errors import KipRefused
from kbcore.kip.binding import read
from kbcore.kip.meta.describe import describe
from tests.core.kip.test_run import asked
from tests.support.repository.project import Project

MEMORY = """
UPSERT {
  CONCEPT ?t { {type: "$ConceptType", name: "Leaning"} SET ATTRIBUTES {description: "What somebody likes."}
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "CoreSchema"}) } }
  CONCEPT ?p { {type: "$PropositionType", name: "leans_to"}
    SET ATTRIBUTES {description: "Likes it.", subject_types: ["Person"], object_types: ["*"]} }
  CONCEPT ?d { {type: "Domain", name: "Food"} SET ATTRIBUTES {description: "What one eats."} }
  CONCEPT ?c { {type: "Leaning", name: "dark chocolate"} SET PROPOSITIONS { ("belongs_to_domain", ?d) } }
  CONCEPT { {type: "Person", name: "Alice"} SET ATTRIBUTES {person_class: "Human"}
    SET PROPOSITIONS { ("leans_to", ?c) ("belongs_to_domain", ?d) } }
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("describe") / "repo")
    made.write({".kb/schema/own.yaml": "entities: {user_story: {description: A story.}}\n"})
    made.apply(entities=[{"id": "REQ-1", "type": "req", "title": "One", "status": "open"}])
    assert not asked(made, MEMORY).is_error
    yield made
    made.close()


def described(project, text, **parameters):
    view = project.view()
    return describe(view, view.schema(project.workspace().schema), read(text, parameters))


def test_the_primer_says_who_the_agent_is_and_maps_what_it_knows(project):
    primer, _ = described(project, "DESCRIBE PRIMER")
    assert (primer["identity"]["type"], primer["identity"]["name"]) == ("Person", "$self")
    assert primer["identity"]["attributes"]["person_class"] == "AI"
    mapped = {one["name"]: one for one in primer["domain_map"]}
    assert list(mapped) == ["Archived", "CoreSchema", "Food", "Unsorted"]
    assert mapped["Food"] == {
        "id": "Domain:Food",
        "type": "Domain",
        "name": "Food",
        "description": "What one eats.",
        "members": 2,
        "key_concept_types": ["Leaning", "Person"],
        "key_proposition_types": ["leans_to"],
    }
    assert primer["outside_domains"] == {"$PropositionType": 1, "Requirement": 1}


def test_a_definition_that_no_record_holds_belongs_to_its_domain_too(project):
    domains, _ = described(project, "DESCRIBE DOMAINS")
    members = {one["name"]: one["members"] for one in domains}
    types = described(project, "DESCRIBE CONCEPT TYPES")[0], described(project, "DESCRIBE PROPOSITION TYPES")[0]
    assert members["CoreSchema"] == len(types[0]) + len(types[1]) - 1  # nobody has linked `leans_to` to it
    assert members["Unsorted"] == members["Archived"] == 0


def test_types_of_kb_the_project_kip_and_the_branch_are_listed_by_their_kip_names(project):
    types, cursor = described(project, "DESCRIBE CONCEPT TYPES")
    assert types == sorted(types)
    assert not cursor
    assert {"Requirement", "DomainEvent", "UserStory", "Event", "Leaning", "$ConceptType"} <= set(types)
    assert not {"req", "user_story"} & set(types)
    assert {"verified_by", "leans_to", "belongs_to_domain"} <= set(described(project, "DESCRIBE PROPOSITION TYPES")[0])


def test_pages_of_types_hold_each_name_once(project):
    whole, _ = described(project, "DESCRIBE CONCEPT TYPES")
    found, cursor = described(project, "DESCRIBE CONCEPT TYPES LIMIT 4")
    assert len(found) == 4
    while cursor:
        page, cursor = described(project, "DESCRIBE CONCEPT TYPES LIMIT 4 CURSOR :c", c=cursor)
        found += page
    assert found == whole


@pytest.mark.parametrize("kind", ["nonsense", "other"])
def test_a_cursor_that_does_not_fit_is_refused_at_its_place(project, kind):
    cursor = described(project, "DESCRIBE PROPOSITION TYPES LIMIT 1")[1] if kind == "other" else "abc"
    with pytest.raises(KipRefused) as caught:
        described(project, f'DESCRIBE CONCEPT TYPES CURSOR "{cursor}"')
    assert (caught.value.data["kip_code"], caught.value.data["offset"]) == ("KIP_1001", 30)


def test_a_type_comes_with_its_validation_and_its_relationships(project):
    requirement, _ = described(project, 'DESCRIBE CONCEPT TYPE "Requirement"')
    assert (requirement["type"], requirement["name"]) == ("$ConceptType", "Requirement")
    assert requirement["attributes"]["instance_schema"]["status"]["required"] is True
    assert "verified_by" in requirement["relationships"]["outgoing"]
    assert "implements" in requirement["relationships"]["incoming"]
    person, _ = described(project, 'DESCRIBE CONCEPT TYPE "Person"')
    assert "leans_to" in person["relationships"]["outgoing"]


def test_what_the_branch_defines_is_described_as_it_was_written(project):
    assert described(project, 'DESCRIBE CONCEPT TYPE "Leaning"')[0]["attributes"] == {
        "description": "What somebody likes."
    }
    predicate, _ = described(project, 'DESCRIBE PROPOSITION TYPE "leans_to"')
    assert predicate["attributes"]["subject_types"] == ["Person"]
    assert predicate["metadata"]["_version"] == 2


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('DESCRIBE CONCEPT TYPE "Persn"', "Person"),
        ('DESCRIBE CONCEPT TYPE "req"', "KIP calls it Requirement."),
        ('DESCRIBE CONCEPT TYPE "leans_to"', ""),
        ('DESCRIBE PROPOSITION TYPE "leans_t"', "leans_to"),
    ],
)
def test_an_unknown_definition_names_the_nearest(project, text, hint):
    with pytest.raises(KipRefused) as caught:
        described(project, text)
    assert caught.value.data["kip_code"] == "KIP_3002"
    assert hint in caught.value.hint
