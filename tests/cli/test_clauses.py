"""Commands on clauses of the Prolog workspace: left out unless they are named, and shown and undone like all facts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.logic.clauses import ClauseChange
from tests.support.repository.clauses import change, clause_store, new
from tests.support.repository.project import Project

LEFT_OUT = [
    ("query",),
    ("query", "--count"),
    ("query", "--text", "wine"),
    ("query", "--tag", "x"),
    ("query", "edge"),
    ("check",),
    ("coverage",),
    ("export", "-"),
    ("graph",),
    ("schema",),
    ("kip", 'FIND(?a) WHERE { ?a {type: "req"} }'),
    ("kip", "DESCRIBE PRIMER"),
    ("kip", "DESCRIBE CONCEPT TYPES"),
    ("kip", 'SEARCH CONCEPT "wine"'),
]


@pytest.fixture
def project(synced: Path) -> Iterator[Project]:
    made = Project(synced, is_new=False)
    yield made
    made.close()


def imported(project: Project) -> str:
    """Import two clauses that rules would find something wrong with if they were entities like others; return an id."""
    same = [new("likes(ann, wine).", file="rules/a.pl", line=4), new("likes(ann, wine).", file="gone.pl", line=1)]
    return clause_store(project).change(lambda _: ClauseChange(same), message="import rules/a.pl").ids[0]


@pytest.mark.sliced(4)
@pytest.mark.parametrize("words", LEFT_OUT, ids=" ".join)
def test_clauses_change_no_answer_that_does_not_name_them(kb, project, words):
    before = kb(*words)
    imported(project)
    after = kb(*words)
    assert (after.status, after.out.replace("seq 2", "seq 1")) == (before.status, before.out)
    assert "clause" not in after.out + after.err


def test_status_counts_no_clauses(kb, project):
    before = kb("status", "--json").json
    imported(project)
    after = kb("status", "--json").json
    assert {key for key in after if after[key] != before[key]} <= {"seq", "head", "store"}


def test_the_next_id_does_not_count_clauses(kb, project):
    imported(project)
    assert kb("id", "next", "req").out == "REQ-3\n"
    assert "There is no entity type 'clause'" in kb("id", "next", "clause").err


def test_completions_have_no_clauses(kb, project):
    from kbcore.query import completion

    imported(project)
    found = completion.entity_ids(project.view(), "", most=100)
    assert [one for one in found.values if one.startswith("clause:")] == []


def test_a_query_that_names_the_type_finds_clauses(kb, project):
    key = imported(project)
    found = kb("query", "clause", "--json").json
    assert [one["type"] for one in found["entities"]] == ["clause", "clause"]
    assert found["total"] == 2
    assert key in [one["id"] for one in found["entities"]]
    assert len(kb("query", "--where", "type=clause", "--json").json["entities"]) == 2
    by_file = kb("query", "clause", "--where", "file=rules/a.pl", "--fields", "id,text,line", "--json").json
    assert by_file["entities"] == [{"id": key, "attributes": {"text": "likes(ann, wine).", "line": 4}}]
    assert [one["id"] for one in kb("query", "--id", key, "--json").json["entities"]] == [key]
    assert kb("query", "clause", "--count").out.split() == ["2"]
    assert kb("query", "clause", "--at", "1", "--json").json["entities"] == []


def test_a_search_by_words_in_clauses_is_refused_with_what_to_use(kb, project):
    key = imported(project)
    refused = kb("query", "clause", "--text", "wine")
    assert (refused.status, refused.out) == (2, "")
    assert "`--where` with `text~`" in refused.err
    assert key in kb("query", "clause", "--where", "text~wine").out


def test_show_has_text_file_line_and_author(kb, project):
    key = imported(project)
    page = kb("show", key)
    assert page.status == 0
    for said in ("likes(ann, wine).", "rules/a.pl", "4", "tester", key):
        assert said in page.out
    entity = kb("show", key, "--json").json["entity"]
    assert entity["attributes"]["text"] == "likes(ann, wine)."
    assert (entity["attributes"]["file"], entity["attributes"]["line"], entity["type"]) == ("rules/a.pl", 4, "clause")


def test_show_as_it_was_finds_a_clause_that_is_gone(kb, project):
    key = imported(project)
    seq = project.view().seq
    change(clause_store(project), removed=[key])
    gone = kb("show", key)
    assert gone.status != 0
    assert f"removed at seq {seq + 1}" in gone.err
    assert "likes(ann, wine)." in kb("show", key, "--at", str(seq)).out


def test_log_names_the_records_of_a_clause(kb, project):
    key = imported(project)
    seq = project.view().seq
    change(clause_store(project), removed=[key], message="retract")
    records = kb("log", key, "--json").json["records"]
    assert [(one["seq"], one["message"]) for one in records] == [(seq + 1, "retract"), (seq, "import rules/a.pl")]


def test_diff_shows_what_changed(kb, project):
    before = project.view().seq
    key = imported(project)
    found = kb("diff", str(before), str(before + 1), "--json").json
    assert key in json.dumps(found)
    assert key in kb("diff", str(before), str(before + 1)).out


def test_revert_of_an_import_removes_it_and_of_that_brings_it_back(kb, project):
    imported(project)
    seq = project.view().seq
    before = clause_store(project).read().clauses
    assert kb("revert", str(seq)).status == 0
    assert clause_store(project).read().clauses == ()
    undone = kb("revert", str(seq + 1))
    assert undone.status == 0
    assert undone.err == ""
    assert clause_store(project).read().clauses == before


def test_a_sync_leaves_clauses_alone(kb, project, synced):
    imported(project)
    before = clause_store(project).read().clauses
    assert kb("sync", "--rebuild").status == 0
    assert clause_store(project).read().clauses == before


def test_no_client_changes_a_clause(kb, project):
    key = imported(project)
    asked = {"entities": [{"id": key, "attributes": {"text": "p."}}]}
    refused = kb("apply", "-", stdin=json.dumps(asked))
    assert refused.status != 0
    assert "is a clause of the Prolog workspace, which is never changed" in refused.err
    refused = kb(
        "apply", "-", stdin=json.dumps({"entities": [{"id": key, "type": "req", "title": "t", "status": "x"}]})
    )
    assert refused.status != 0


def test_kip_neither_finds_nor_changes_a_clause(kb, project):
    key = imported(project)
    assert key not in kb("kip", f'FIND(?a) WHERE {{ ?a {{id: "{key}"}} }}').out
    assert "KIP_3002" in kb("kip", f'DELETE CONCEPT ?a DETACH WHERE {{ ?a {{id: "{key}"}} }}').err
    assert len(clause_store(project).read().clauses) == 2
    assert kb("kip", f'UPSERT {{ CONCEPT ?a {{ {{id: "{key}"}} SET ATTRIBUTES {{text: "p."}} }} }}').status != 0


@pytest.mark.sliced
def test_an_edge_to_a_clause_breaks_no_rule_until_the_clause_is_gone(kb, project):
    key = imported(project)
    edge = {"type": "relates_to", "kind": "rule", "from": "REQ-1", "to": key}
    assert kb("apply", "-", stdin=json.dumps({"edges": [edge]})).status == 0
    assert kb("check").status == 0
    assert key in kb("show", "REQ-1").out
    change(clause_store(project), removed=[key])
    assert f"REQ-1 relates_to:rule {key}" in kb("check").out


def test_what_another_branch_lacks_includes_clauses(kb, project, synced):
    project.switch("topic", create=True)
    key = imported(project)
    exported = kb("export", "-", "--not-on", "main")
    assert key in exported.out
    assert kb("apply", "--branch", "main", "-", stdin=exported.out).status == 0
    assert clause_store(project, branch="main").read().clauses[0].text == "likes(ann, wine)."


def test_rules_of_the_project_see_no_clauses(kb, project, synced):
    imported(project)
    rules = synced / ".kb/rules/own.yaml"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text(
        "rules:\n- {id: any-clause, severity: error, description: d, "
        "sql: \"select id, 'x' as message from entity where type = 'clause'\"}\n"
        "- {id: any-past-clause, severity: error, description: d, "
        "sql: \"select id, 'x' as message from entity_history where type = 'clause'\"}\n"
    )
    found = kb("check", "--rule", "any-clause", "--rule", "any-past-clause")
    assert (found.status, "not run" in found.out) == (0, False)


def test_verify_and_doctor_find_nothing_wrong_with_clauses(kb, project):
    imported(project)
    assert kb("verify").status == 0
    assert kb("doctor").status == 0
