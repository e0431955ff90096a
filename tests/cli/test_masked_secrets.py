"""A secret in a document is found where it stands, and no command prints it or writes it into a tracked file."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import write

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
