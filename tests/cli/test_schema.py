"""`kb schema`: the types of the project and of a branch, and faults of their files."""

from __future__ import annotations

from tests.support.processes.cli import write
from tests.support.repository.repos import git


def test_the_schema_is_shown_with_the_types_of_the_project(kb, ready):
    write(
        ready,
        {
            ".kb/schema/project.yaml": "entities:\n  fact:\n    description: What is so.\n    attributes:\n"
            "      origin: {type: text, required: true, values: [a, b], description: Where from.}\n"
            "    statuses: [new, old]\nedges:\n  shows: {from: [test], to: [fact], kind: true, acyclic: true}\n"
        },
    )
    whole = kb("schema", "--json").json
    assert list(whole) == ["entities", "edges"]
    assert whole["entities"]["fact"]["origin"] == ".kb/schema/project.yaml"
    assert "What is so." in kb("schema").out
    text = kb("schema", "fact").out
    assert "attributes.origin: text; required; one of a, b. Where from." in text
    assert "statuses: new, old" in text
    assert "from test to fact" in kb("schema", "shows").out
    assert kb("schema", "shows", "--json").json["acyclic"] is True
    ran = kb("schema", "fakt")
    assert ran.status == 64
    assert "'fact'" in ran.err


def test_types_that_a_branch_defines_are_shown_and_asked_for_there(kb, ready):
    write(
        ready,
        {
            "c.json": '{"entities": [{"id": "$ConceptType:Taste", "type": "$ConceptType", "name": "Taste",'
            ' "title": "Taste", "attributes": {"description": "What one likes."}},'
            ' {"id": "T-1", "type": "Taste", "title": "dark"}]}'
        },
    )
    assert kb("apply", "c.json").status == 0
    assert kb("schema", "--json").json["entities"]["Taste"]["origin"] == "KIP"
    assert "Taste (entity, defined by KIP)\n  What one likes." in kb("schema", "Taste").out
    assert kb("query", "Taste", "--json").json["entities"][0]["id"] == "T-1"
    ran = kb("query", "Tast")
    assert "'Taste'" in ran.err
    git(ready, "switch", "-qc", "before", "HEAD")
    assert kb("delete", "T-1", "$ConceptType:Taste", "--yes").status == 0
    assert "There is no entity type 'Taste'" in kb("query", "Taste").err
    assert kb("query", "Taste", "--at", "1", "--json").json["total"] == 1


def test_a_broken_schema_names_file_and_line(kb, ready):
    write(ready, {".kb/schema/project.yaml": "entities:\n  fact: {colour: red}\n"})
    ran = kb("query")
    assert ran.status == 63
    assert ".kb/schema/project.yaml:2" in ran.err
