"""A secret in a document is found in its line, and no command prints it or writes it into a tracked file."""

from __future__ import annotations

import json

import pytest

from tests.mcp.agents import direct
from tests.support.processes.cli import write
from tests.support.repository.repos import commit_files, git

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
KEY = "AKIA" + "IOSFODNN7EXAMPLQ"
DOCUMENT = f"""---
id: LEAK-1
title: One
status: open
created_at: {TOKEN}
tags: [a, {KEY}]
links: [{KEY}]
depends_on: [NOPE-{TOKEN}]
note: "@{TOKEN}"
odd: @{TOKEN}
effort: {TOKEN}
---
"""
LINES = {
    "created_at": 5,
    "tags[1]": 6,
    "attributes.note": 9,
    "attributes.odd": 10,
    "effort": 11,
}


@pytest.fixture
def leaking(kb, synced):
    schema = "entities:\n  req:\n    attributes:\n      effort: {values: [small, large]}\n"
    write(synced, {"docs/requirements/leak.md": DOCUMENT, ".kb/schema/own.yaml": schema})
    return synced


def test_no_command_shows_the_secret(kb, leaking):
    said = []
    for words in (
        ("check",),
        ("sync", "--dry-run"),
        ("sync",),
        ("status",),
        *(("check", "--format", one) for one in ("text", "short", "json", "sarif", "junit", "github")),
        ("sync", "--rebuild", "--strict"),
        ("sync", "--rebuild", "--json"),
        ("status", "--json"),
        ("check", "--write-baseline"),
    ):
        ran = kb(*words)
        said.append(ran.out + ran.err)
    said.append((leaking / ".kb/baseline.json").read_text())
    assert not [one for one in said if TOKEN in one or KEY in one or TOKEN[:30] in one]
    assert "`effort` must be one of" in said[2] or "`attributes.effort`" in said[2]


def test_the_rule_names_the_line_of_each_secret_also_where_the_value_is_not_recorded(kb, leaking):
    kb("sync")
    found = json.loads(kb("check", "--rule", "secret", "--json").out)["violations"]
    lines = {one["message"].split("`")[1]: one["line"] for one in found if one["message"].startswith("`")}
    targets = {(one["values"][-1], one["line"]) for one in found if one.get("field") == "to_id"}
    assert {name.removeprefix("attributes."): line for name, line in lines.items()} == {
        name.removeprefix("attributes."): line for name, line in LINES.items()
    }
    assert targets == {("AKIA…", 7), ("NOPE-ghp_…", 8)}


def test_the_baseline_matches_what_it_masks(kb, leaking):
    kb("sync")
    kb("check", "--write-baseline")
    ran = kb("check", "--json")
    assert json.loads(ran.out)["violations"] == []
    again = kb("sync", "--rebuild")
    assert "unresolved" not in again.out + again.err


def test_values_that_both_sides_changed_are_masked_also_where_only_the_name_of_the_field_tells(kb, synced):
    text = "---\nid: REQ-1\ntitle: {}\nstatus: open\ndb_password: {}\n---\n"
    path = "docs/requirements/login.md"
    git(synced, "add", ".")
    git(synced, "commit", "-q", "-m", "all")
    git(synced, "switch", "-q", "-c", "other")
    commit_files(synced, {path: text.format(f"other {TOKEN}", "kX9-vR2_pL7qW4zN")})
    git(synced, "switch", "-q", "-")
    commit_files(synced, {path: text.format(f"main {TOKEN}", "mX9-vR2_pL7qW4zN")})
    ran = kb("check", "--against", "other", "--json")
    fields = {one["field"]: one["values"] for one in ran.json["violations"] if one["rule"] == "against-field"}
    assert fields["title"] == ["main ghp_…", "other ghp_…"]
    assert fields["attributes.db_password"] == ["mX9-…", "kX9-…"]
    assert (TOKEN in ran.out, "vR2_pL7" in ran.out) == (False, False)


def test_an_agent_sees_no_secret_in_checks_and_refusals(kb, leaking):
    kb("sync")
    edge = {"type": "relates_to", "kind": TOKEN, "from": "REQ-2", "to": "REQ-1"}
    with direct(leaking) as agent:
        said = [agent.answer("kb_upsert", edges=[edge])]
        said.append(agent.answer("kb_upsert", entities=[{"id": "REQ-1", "title": "Changed"}]))
        said += [agent.answer("kb_check"), agent.answer("kb_check", rules=["unresolved-reference"], limit=5)]
        said.append(agent.answer("kb_upsert", edges=[edge | {"to": f"NOPE-{TOKEN}"}]))
    assert TOKEN not in json.dumps(said)
    assert "NOPE-ghp_…" in json.dumps(said, ensure_ascii=False)


def test_the_kind_of_a_suspect_edge_is_masked(kb, synced):
    entities = [{"id": key, "type": "req", "title": key, "status": "open"} for key in ("A-1", "A-2")]
    edge = {"type": "relates_to", "kind": TOKEN, "from": "A-1", "to": "A-2"}
    kb("apply", "-", stdin=json.dumps({"entities": entities, "edges": [edge]}))
    warned = kb("apply", "-", stdin=json.dumps({"entities": [{"id": "A-2", "title": "Changed"}]}))
    ran = kb("check", "--rule", "suspect-edge", "--json")
    assert [one["values"] for one in ran.json["violations"]] == [["relates_to:ghp_…", "A-2"]]
    assert TOKEN not in ran.out + warned.out + warned.err
