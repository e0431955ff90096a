"""`kb schema`: the types of the project and of a branch, and faults of their files."""

from __future__ import annotations

import pytest

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


@pytest.mark.sliced
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


@pytest.mark.sliced
def test_a_value_of_a_schema_or_rules_file_that_a_comment_cuts_is_a_warning_with_its_line(kb, ready):
    write(
        ready,
        {
            ".kb/schema/project.yaml": "entities:\n  fact:\n    description: See #12\n    statuses: [a]\n",
            ".kb/rules/own.yaml": "rules:\n- id: no-web\n  description:\n    As said in #7\n"
            "  sql: select id, 'x' as message from entity where false\n",
        },
    )
    places = {(".kb/schema/project.yaml", 3), (".kb/rules/own.yaml", 4)}
    said = [f"{file}:{line}: The value of `description` is" for file, line in places]
    for _ in range(2):  # the second sync has nothing to do
        found = [one for one in kb("sync", "--json").json["problems"] if one["code"] == "comment_in_value"]
        assert {(one["path"], one["line"]) for one in found} == places
        assert {one["severity"] for one in found} == {"warning"}
    for command in ("check", "status"):
        assert all(one in kb(command).err for one in said)
    found = [one for one in kb("doctor", "--json").json["findings"] if one["code"] == "comment_in_value"]
    assert {(one["file"], one["line"]) for one in found} == places
    write(
        ready, {".kb/schema/project.yaml": "entities: {fact: {description: 'See #12'}}\n", ".kb/rules/own.yaml": "{}\n"}
    )
    assert "comment_in_value" not in kb("sync", "--json").out
