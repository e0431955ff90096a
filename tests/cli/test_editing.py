"""``kb set``, ``kb link``, ``kb unlink`` and ``kb id``: writes in one line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.cli import LOGIN, environment, write

DOCUMENT = "docs/requirements/login.md"


def shown(kb, key):
    return kb("query", "--id", key, "--json").json["entities"][0]


def records(kb):
    return kb("log", "--json").json["records"]


def client(kb, key="REQ-9", **fields):
    entity = {"id": key, "type": "req", "title": "T", "status": "open", **fields}
    kb("apply", "-", stdin=json.dumps({"entities": [entity]}))


def test_a_field_that_a_document_states_is_set_in_it_as_one_record(kb, synced):
    ran = kb("set", "REQ-1", "status=done", "owner=ann", "-m", "why")
    assert (ran.status, ran.out) == (0, f"main at seq 2: 1 updated.\nWritten: {DOCUMENT}\n")
    wanted = LOGIN.replace("open", "done").replace("[auth, web]\n", "[auth, web]\nowner: ann\n")
    assert (synced / DOCUMENT).read_text() == wanted
    assert records(kb)[0]["message"] == "why"
    assert shown(kb, "REQ-1")["status"] == "done"
    assert kb("sync", "--json").json["seq"] == 2  # nothing is left to take in


def test_a_dry_run_shows_the_difference_and_writes_nothing(kb, synced):
    ran = kb("set", "REQ-1", "status=done", "--dry-run")
    assert "-status: open\n+status: done\n" in ran.out
    assert ran.out.endswith("Would change main at seq 1: 1 updated.\n")
    assert (synced / DOCUMENT).read_text() == LOGIN
    assert len(records(kb)) == 1
    assert kb("set", "REQ-1", "status=done", "--dry-run", "--json").json["files"][0]["path"] == DOCUMENT


def test_a_field_of_a_client_is_set_in_the_store_beside_its_other_attributes(kb, synced):
    client(kb, attributes={"size": 3, "team": "a"})
    assert kb("set", "REQ-9", "attributes.size:=4", "team=", "risk=low").status == 0
    assert shown(kb, "REQ-9")["attributes"] == {"size": 4, "risk": "low"}


def test_a_list_is_changed_by_its_items(kb, synced):
    kb("set", "REQ-1", "tags+=x,auth")
    assert shown(kb, "REQ-1")["tags"] == ["auth", "web", "x"]
    kb("set", "REQ-1", "tags-=auth,web")
    assert shown(kb, "REQ-1")["tags"] == ["x"]
    assert kb("set", "REQ-1", "tags-=no").status != 0


@pytest.mark.parametrize("words", ["title=", "id=REQ-5", "depends_on=REQ-2", "created_at=now", "status"])
def test_what_cannot_be_set_is_refused_with_a_hint_and_nothing_is_written(kb, synced, words):
    ran = kb("set", "REQ-1", words)
    assert ran.status not in {0, 70}
    assert "hint: " in ran.err
    assert "Nothing was written" in ran.err
    assert (synced / DOCUMENT).read_text() == LOGIN
    assert len(records(kb)) == 1


def test_a_field_in_a_file_of_another_kind_is_refused_with_its_line(kb, synced):
    write(synced, {"docs/symbols.yaml": "symbols:\n- id: S-1\n  title: T\n  kind: function\n"})
    kb("sync")
    ran = kb("set", "S-1", "title=New")
    assert "docs/symbols.yaml:3: KB does not change this kind of file." in ran.err


def test_an_edge_is_stated_confirmed_and_removed(kb, synced):
    assert kb("link", "REQ-1", "depends_on", "REQ-2", "--confidence", "0.5").out.endswith("edges: 1 created.\n")
    assert kb("query", "edge", "--where", "from=REQ-1", "--json").json["edges"][0]["confidence"] == 0.5
    assert kb("link", "REQ-1", "depends_on", "REQ-2", "--confidence", "0.5").out.endswith("nothing to change.\n")
    assert kb("unlink", "REQ-1", "depends_on", "REQ-2", "--dry-run").out.startswith("Would change")
    assert kb("unlink", "REQ-1", "depends_on", "REQ-2").out.endswith("edges: 1 deleted.\n")
    assert [one["message"] for one in records(kb)][:2] == [
        "unlink REQ-1 depends_on REQ-2",
        "link REQ-1 depends_on REQ-2",
    ]


def test_an_edge_of_a_file_is_removed_in_the_file_that_the_refusal_names(kb, synced):
    ran = kb("unlink", "REQ-1", "verified_by", "TEST-1")
    assert "docs/tests/login.md" in ran.err
    assert "EDGE" in kb("link", "REQ-1", "verified_bi", "TEST-1").err


def test_the_next_id_is_reserved_and_follows_what_files_and_history_have_used(kb, synced):
    assert kb("id", "next", "req", "--dry-run").out == "REQ-3\n"
    assert [kb("id", "next", "req").out for _ in range(2)] == ["REQ-3\n", "REQ-4\n"]
    assert kb("id", "next", "req", "--prefix", "REQ-AUTH-").out == "REQ-AUTH-1\n"
    write(synced, {"docs/requirements/new.md": "---\nid: REQ-0017\ntitle: T\n---\n"})
    assert kb("id", "next", "req", "--json").json == {"branch": "main", "id": "REQ-0018", "reserved": True}
    client(kb, "REQ-40")
    kb("delete", "REQ-40", "--yes")
    assert kb("id", "next", "req").out == "REQ-41\n"
    assert "Known: " in kb("id", "next", "nope").err


def test_a_changeset_gets_the_next_number_wherever_it_names_it_and_the_same_when_it_is_sent_again(kb, synced):
    entity = {"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}
    edge = {"type": "depends_on", "from": "REQ-{n}", "to": "REQ-{n2}"}
    request = {"changeset_id": "c", "entities": [entity, {**entity, "id": "REQ-{n2}"}], "edges": [edge]}
    first, again = (kb("apply", "-", "--json", stdin=json.dumps(request)).json for _ in range(2))
    assert first["ids"] == {"REQ-{n}": "REQ-3", "REQ-{n2}": "REQ-4"}
    assert again["duplicate"]
    assert again["created"] == first["created"] == ["REQ-3", "REQ-4"]
    assert kb("query", "edge", "--where", "from=REQ-3", "--json").json["edges"][0]["to"] == "REQ-4"


TAKER = """
import io, json, sys
from kbcli import app
for number in range(5):
    asked = {"entities": [{"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}]}
    sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(asked).encode()))
    assert app.main(["apply", "-", "--json"]) == 0
    assert app.main(["id", "next", "req", "--json"]) == 0
"""


def test_several_processes_never_get_the_same_id(kb, synced):
    command = [sys.executable, "-c", TAKER]
    running = [
        subprocess.Popen(command, cwd=synced, env=environment(), stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    lines = [line for one in running for line in one.communicate(timeout=120)[0].splitlines()]
    assert [one.returncode for one in running] == [0, 0, 0, 0]
    answers = [json.loads(line) for line in lines]
    taken = [one["ids"]["REQ-{n}"] if "ids" in one else one["id"] for one in answers]
    assert len(taken) == len(set(taken)) == 40
    assert sum("ids" in one for one in answers) == 20
