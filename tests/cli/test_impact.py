"""``kb impact``: what it finds in every format, and how it speaks of limits and of ids that are not there."""

from __future__ import annotations

import json

import pytest

from kbcli.views.impact import cut_at
from kbcore.limits import MAX_PAGE_ROWS
from tests.support.processes.cli import write


def test_every_format_says_the_same(kb, synced):
    whole = kb("impact", "REQ-1", "--json").json
    assert [one["id"] for one in whole["direct"]] == ["REQ-2"]
    assert whole["tests"][0]["path"] == [{"from": "REQ-1", "type": "verified_by", "to": "TEST-1"}]
    assert whole["totals"] == {
        "direct": 1,
        "transitive": 0,
        "tests": 1,
        "related": 0,
        "decisions": 0,
        "failing": 0,
        "people": 0,
    }
    assert (whole["entity"]["id"], whole["goes_on"]) == ("REQ-1", False)
    assert kb("impact", "REQ-1", "--format", "json").json == whole
    text = kb("impact", "REQ-1", "--format", "table").out
    assert text.startswith(
        "REQ-1 (req) Log in\n  A change of it affects 1 entity; 1 test to run.\n\nAffected directly (1)\n"
    )
    assert "REQ-1 ← depends_on ← REQ-2" in text
    page = kb("impact", "REQ-1", "--format", "markdown").out
    assert page.startswith(
        "# REQ-1 (req) Log in\n\nA change of it affects 1 entity; 1 test to run.\n\n## Affected directly (1)\n\n"
    )
    assert "| TEST-1 | test | active | Login works | REQ-1 → verified\\_by → TEST-1 |" in page


def test_what_affects_nothing_says_where_to_look(kb, synced):
    ran = kb("impact", "TEST-1", "--format", "table")
    assert "affects nothing that KB knows" in ran.out
    assert "`kb show TEST-1`" in ran.err


def test_in_a_pipe_it_is_said_that_nothing_is_affected(kb, synced):
    ran = kb("impact", "TEST-1")
    assert ran.out.startswith("PART\t")
    assert ran.err.count("A change of TEST-1 affects nothing that KB knows.") == 1


def test_limits_are_reported(kb, synced):
    edges = [{"type": "depends_on", "from": f"REQ-{number}", "to": "REQ-2"} for number in (5, 6, 7)]
    nodes = [{"id": f"REQ-{number}", "type": "req", "title": "T", "status": "open"} for number in (5, 6, 7)]
    assert kb("apply", "-", stdin=json.dumps({"entities": nodes, "edges": edges})).status == 0
    ran = kb("impact", "REQ-2", "--limit", "2", "--format", "table")
    assert "Affected directly (3, 2 of them here)" in ran.out
    assert "Parts are cut at 2; for more: --limit 3" in ran.err
    assert "More is affected" in kb("impact", "REQ-1", "--depth", "1").err
    assert kb("impact", "REQ-2", "--limit", "2", "--json").json["totals"]["direct"] == 3
    assert kb("impact", "REQ-2", "--at", "1", "--json").json["totals"]["direct"] == 0


def test_a_way_to_more_is_one_that_is_open():
    assert cut_at(2, 3) == "Parts are cut at 2; for more: --limit 3"
    assert cut_at(2, MAX_PAGE_ROWS + 1) == f"Parts are cut at 2; for more: --limit {MAX_PAGE_ROWS}"
    assert cut_at(MAX_PAGE_ROWS, MAX_PAGE_ROWS + 1) == f"Parts are cut at {MAX_PAGE_ROWS}."


@pytest.mark.parametrize(
    ("words", "status", "reported"),
    [
        (["REQ-11"], 64, "Did you mean 'REQ-1'?"),
        (["REQ-1", "--at", "0"], 64, "There was no entity 'REQ-1' at seq 0."),
        (["REQ-1", "--depth", "51"], 2, "--depth must be from 1 to 50"),
        (["REQ-1", "--limit", "0"], 2, "--limit must be from 1"),
        ([""], 2, "The id is empty.\nhint: Name an entity or a file."),
        (["REQ-1", "--json", "--format", "markdown"], 2, "contradict"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_remedy(kb, synced, words, status, reported):
    ran = kb("impact", *words)
    assert ran.status == status
    assert reported in ran.out + ran.err


def test_people_to_ask_are_the_owners_of_files_where_an_entity_states_none(kb, synced):
    write(synced, {".github/CODEOWNERS": "* @all\n/docs/requirements/ @pay @sec\n!x @y\n"})
    people = kb("impact", "REQ-1", "--json").json["people"]
    assert people == [
        {"owner": "@all", "entities": 1, "ids": ["TEST-1"], "given_by": [".github/CODEOWNERS:1"]},
        {"owner": "@pay", "entities": 2, "ids": ["REQ-1", "REQ-2"], "given_by": [".github/CODEOWNERS:2"]},
        {"owner": "@sec", "entities": 2, "ids": ["REQ-1", "REQ-2"], "given_by": [".github/CODEOWNERS:2"]},
    ]
    ran = kb("impact", "REQ-1", "--format", "table")
    assert ["@pay", "REQ-1,", "REQ-2", ".github/CODEOWNERS:2"] in [line.split() for line in ran.out.splitlines()]
    assert ".github/CODEOWNERS:3: the line gives no owner: a pattern cannot begin with `!`" in ran.err
