"""``kb show``: an entity with its edges, history and document, and a record with its changes."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import LOGIN, write
from tests.support.repository.repos import git


def test_an_entity_is_shown_with_its_edges_both_ways_and_its_history(kb, recorded):
    found = kb("show", "REQ-1", "--json").json
    assert (found["branch"], found["seq"], found["entity"]["id"], found["entity"]["version"]) == ("main", 3, "REQ-1", 3)
    assert {(edge["type"], edge["from"], edge["to"]) for edge in found["edges"]} == {
        ("specified_by", "REQ-1", "SCN-1"),
        ("verified_by", "REQ-1", "TEST-1"),
        ("depends_on", "REQ-2", "REQ-1"),
    }
    assert [record["seq"] for record in found["history"]] == [3, 2, 1]
    text = kb("show", "REQ-1").out
    assert text.startswith("REQ-1\n  Log in\n  req · done · version 3\n")
    assert "  tags        auth, web\n" in text
    assert (
        "\nEdges from it (2)\n"
        "  EDGE          ID      STATUS  TITLE         CONFIDENCE  STATED IN\n"
        "  specified_by  SCN-1   open    Known device              cli\n"
        "  verified_by   TEST-1  active  Login works               docs/tests/login.md\n"
        "\nEdges to it (1)\n"
    ) in text
    history = text.partition("History (3)\n")[2]
    assert "tester through sync  sync\n      status: open -> done\n  2  " in history
    assert "\n      + REQ-1 specified_by SCN-1\n  1  " in history
    assert "attributes.kind  e2e" in kb("show", "TEST-1").out


@pytest.mark.sliced
def test_the_page_of_an_entity_has_what_the_rules_found_and_marks_what_is_missing(kb, synced):
    write(
        synced,
        {
            "docs/requirements/more.md": LOGIN.replace("REQ-1", "REQ-5")
            .replace("title: Log in", "title: Another way")
            .replace("[auth, web]", "[]\nlinks: [X]")
        },
    )
    kb("sync")
    page = kb("show", "REQ-5").out
    assert "  (a bare link)  X   unresolved" in page
    assert "\nViolations (1)\n  error REQ-5 links to X" in page
    assert "[unresolved-reference]\n" in page
    assert "Violations" not in kb("show", "REQ-1").out
    assert "violations" not in kb("show", "REQ-5", "--json").json


def test_the_page_of_an_entity_waits_for_no_rule_of_the_project(kb, synced):
    own = "rules:\n- id: own\n  sql: select id, 'is judged' as message from entity\n"
    write(synced, {".kb/rules/own.yaml": own})
    assert "is judged" in kb("check").out
    page = kb("show", "REQ-1")
    assert "is judged" not in page.out
    assert page.err == "The project's own rules are run by `kb check` only.\n"


def test_a_number_is_a_seq_unless_an_entity_has_it(kb, recorded):
    assert kb("show", "2", "--json").json["message"].endswith("scenario")
    request = {"entities": [{"id": "2", "type": "req", "title": "Two", "status": "open"}]}
    kb("apply", "-", stdin=json.dumps(request))
    assert kb("show", "2", "--json").json["entity"]["title"] == "Two"
    assert kb("show", "1", "--json").json["seq"] == 1
    assert kb("show", "99").status == 64


def test_a_record_is_shown_with_each_change_before_and_after(kb, recorded):
    record = kb("show", "3", "--json").json
    (change,) = [one for one in record["operations"] if one["element"] == "entity"]
    assert (change["id"], change["change"]) == ("REQ-1", "updated")
    assert (change["before"]["status"], change["after"]["status"]) == ("open", "done")
    text = kb("show", "3").out
    assert "~ REQ-1 (req) Log in\n    status: open -> done\n" in text
    assert "~ file docs/requirements/login.md\n" in text
    text = kb("show", "2").out
    assert "+ REQ-1 specified_by SCN-1" in text
    assert "tester through cli" in text
    assert r"\x1b[31m" in text


def test_a_removed_entity_names_the_record_that_removed_it(kb, recorded):
    kb("delete", "SCN-1", "--cascade")
    ran = kb("show", "SCN-1")
    assert ran.status == 64
    assert "was removed at seq 4" in ran.err
    assert "kb show 4" in ran.err
    assert "- SCN-1 (scenario) Known device" in kb("show", "4").out


@pytest.mark.sliced
def test_facts_that_a_bad_file_kept_are_reported_on_the_page_of_the_entity(kb, recorded):
    write(recorded, {"docs/requirements/login.md": LOGIN.replace("title: Log in", "title: [Log in")})
    kb("sync")
    stale = "\n  stale: may be older than docs/requirements/login.md, which could not be read completely\n"
    assert stale in kb("show", "REQ-1").out
    assert kb("show", "REQ-1", "--json").json["entity"]["stale"] is True
    assert "kept from" not in kb("show", "REQ-2").out
    assert "stale" not in kb("show", "REQ-2", "--json").json["entity"]


@pytest.mark.sliced
def test_an_entity_with_a_long_history_names_the_command_that_lists_the_rest(kb, recorded):
    for number in range(6):
        kb("apply", "-", stdin=json.dumps({"entities": [{"id": "SCN-1", "title": str(number)}]}))
    assert "      title: 4 -> 5\n" in kb("show", "SCN-1").out
    assert "  … 2 more: kb log SCN-1\n" in kb("show", "SCN-1").out


DOCUMENT = "---\nid: REQ-7\ntype: req\ntitle: T\nstatus: open\n---\n# T\n\n  a \x1b[31m\n"


@pytest.mark.sliced
def test_show_prints_the_text_of_the_document(kb, synced):
    write(synced, {"docs/requirements/REQ-7.md": DOCUMENT})
    assert kb("show", "REQ-7").out.endswith("\nDocument\n  # T\n\n    a \\x1b[31m\n")
    assert kb("show", "REQ-7", "--json").json["body"] == "# T\n\n  a \x1b[31m\n"
    assert "Document" not in kb("show", "REQ-7", "--no-body").out
    assert "body" not in kb("show", "REQ-7", "--no-body", "--json").json


def test_show_says_where_the_document_is_not_available(kb, synced):
    write(synced, {"docs/requirements/REQ-7.md": DOCUMENT})
    kb("sync")
    git(synced, "checkout", "-q", "-b", "other")
    write(synced, {"docs/requirements/REQ-7.md": None})
    assert "Document\n  not available: neither" in kb("show", "REQ-7", "--branch", "main").out
    assert kb("show", "REQ-7", "--branch", "main", "--json").json["body"] is None


def test_what_no_document_states_has_no_text(kb, synced):
    kb("apply", "-", stdin=json.dumps({"entities": [{"id": "X", "type": "req", "title": "T", "status": "open"}]}))
    assert "Document" not in kb("show", "X").out
    assert "body" not in kb("show", "X", "--json").json


def test_an_entity_that_is_in_no_record_yet_has_no_times_and_no_history(kb, synced):
    text = "---\nid: NEW-1\ntitle: New\nstatus: open\n{}---\n"
    write(synced, {"docs/requirements/new.md": text.format("")})
    page, shown = kb("show", "NEW-1").out, kb("show", "NEW-1", "--json").json
    assert "none: no record has it yet" in page
    assert "created_at" not in page
    assert {"created_at", "updated_at"}.isdisjoint(shown["entity"])
    assert shown["entity"]["source"] == "docs/requirements/new.md"
    write(synced, {"docs/requirements/new.md": text.format("created_at: 2020-02-03\n")})
    assert kb("show", "NEW-1", "--json").json["entity"]["created_at"].startswith("2020-02-03")
    kb("sync")
    assert "updated_at" in kb("show", "NEW-1", "--json").json["entity"]
