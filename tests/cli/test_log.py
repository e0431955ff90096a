"""``kb log``: what changed, who, when, through what."""

from __future__ import annotations

import json

import pytest

from tests.support.repository.places import stores_at
from tests.support.repository.repos import git


def test_a_document_that_moved_shows_once_who_states_the_fields_that_stay(kb, synced):
    (synced / "docs/requirements/login.md").rename(synced / "docs/requirements/moved.md")
    assert kb("sync").status == 0
    shown = kb("log", "-p", "-n", "1").out
    assert "text_ref: docs/requirements/login.md -> docs/requirements/moved.md (now stated by" in shown
    assert "tags, title, type\n\n- file docs/requirements/login.md" in shown, shown
    assert [line for line in shown.splitlines() if " -> " in line and "login.md" not in line] == []
    [operation, *_] = kb("log", "-p", "-n", "1", "--json").json["records"][0]["operations"]
    assert operation["fields"]["title"]["stated_by"]["after"] == "docs/requirements/moved.md"


def seqs(ran) -> list[int]:
    assert set(ran.json) - {"points"} == {"branch", "records"}
    return [record["seq"] for record in ran.json["records"]]


def test_the_log_is_newest_first_in_the_fixed_shape(kb, recorded):
    ran = kb("log", "--json")
    assert seqs(ran) == [3, 2, 1]
    record = ran.json["records"][1]
    assert set(record) == {"seq", "changeset_id", "at", "actor", "source", "message", "summary", "commit"}
    assert (record["actor"], record["source"], record["message"]) == ("tester", "cli", "a \x1b[31mscenario")
    assert record["summary"] == {"created": 1, "updated": 0, "deleted": 0, "edges": 1}


@pytest.mark.sliced(5)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["SCN-1"], [2]),
        (["REQ-1"], [3, 2, 1]),
        (["--limit", "1"], [3]),
        (["--actor", "tester"], [3, 2, 1]),
        (["--actor", "nobody"], []),
        (["--source", "cli"], [2]),
        (["--source", "sync"], [3, 1]),
        (["--source", "mcp"], []),
        (["--since", "2001-01-01"], [3, 2, 1]),
        (["--since", "1"], [3, 2]),
        (["--until", "2"], [2, 1]),
        (["--since", "1 hour ago", "--until", "now"], [3, 2, 1]),
        (["--since", "yesterday", "--actor", "tester", "-n", "1"], [3]),
        (["--session", "s-1"], []),
        (["1..2"], [2]),
        (["..HEAD"], [3, 2, 1]),
        (["--before", "3", "--limit", "1"], [2]),
        (["--before", "1"], []),
    ],
)
def test_the_log_can_be_narrowed(kb, recorded, words, found):
    assert seqs(kb("log", *words, "--json")) == found


def test_the_log_for_people_has_a_page_for_each_record_that_says_what_it_changed(kb, recorded):
    ran = kb("log", "--limit", "2")
    newest, older = ran.out.split("\n\nrecord 2\n")
    assert newest.startswith("record 3 (head)\nActor:  tester through sync\nDate:   2")
    assert newest.endswith("\n\n    sync\n\n    ~ REQ-1\n    1 updated")
    assert " ago)" not in ran.out
    assert "\n\n    a \\x1b[31mscenario\n\n    + SCN-1, REQ-1 specified_by SCN-1\n    1 created, 1 edge\n" in older


def test_a_log_names_some_of_what_a_large_record_changed(kb, synced):
    entities = [{"id": f"REQ-1{number}", "type": "req", "title": "T", "status": "open"} for number in range(9)]
    kb("apply", "-", stdin=json.dumps({"entities": entities}))
    shown = kb("log", "--limit", "1").out
    assert "    + REQ-10, REQ-11, REQ-12, REQ-13, REQ-14, REQ-15\n" in shown
    assert "    9 created; 3 not named here: kb show 2\n" in shown
    assert "    + REQ-18\n    9 created; 8 not named here: kb show 2\n" in kb("log", "REQ-18").out


def test_the_log_on_one_line_each_is_a_safe_table_that_says_when_there_is_more(kb, recorded):
    ran = kb("log", "--limit", "2", "--oneline")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["SEQ", "3", "2"]
    assert "1 created, 1 edge" in ran.out
    assert r"a \x1b[31mscenario" in ran.out
    assert ran.err == "There are more: --before 2, or --limit 20.\n"
    assert "There are more" not in kb("log", "--limit", "3").err


def test_an_empty_log_and_unknown_names_are_reported(kb, ready):
    assert kb("log") == (
        *(0, ""),
        "Nothing was written yet: `kb sync` reads the documents, and `kb apply` a changeset.\n",
    )
    assert kb("log", "--limit", "0").status == 2
    assert kb("log", "REQ-77").status == 64
    assert kb("log", "--since", "soon").status == 2


def test_the_log_shows_what_was_found_and_repaired(kb, recorded):
    (journal,) = (stores_at(recorded) / "main").glob("journal-*")
    with journal.open("ab") as file:
        file.write(b"half a rec")
    entity = {"id": "REQ-9", "type": "req", "title": "T", "status": "open"}
    kb("apply", "-", stdin=json.dumps({"message": "why", "entities": [entity]}))
    repair = kb("log", "--limit", "1", "--json").json["records"][0]["repair"]
    assert "10 bytes of an unfinished write were cut from" in repair
    assert f"why [{repair}]" in kb("log", "--oneline").out
    assert f"    repair: {repair}\n" in kb("log").out
    assert f"why [{repair}]" in kb("show", "REQ-9").out
    assert f"  repair: {repair}" in kb("show", "4").out


def test_a_log_names_what_was_typed_where_nothing_matches(kb, synced):
    assert "No record matches 1..1;" in kb("log", "1..1").err
    [actor] = {one["actor"] for one in kb("log", "--json").json["records"]}
    for command in (["log"], ["diff", "0"]):
        assert f"Did you mean '{actor}'?" in kb(*command, "--actor", actor.upper()).err


def test_a_point_in_the_place_of_an_id_is_answered_with_the_ranges_to_write(kb, synced):
    git(synced, "tag", "v1")
    assert "`kb log v1..`" in kb("log", "v1").err
    assert "`kb log nope..`" not in kb("log", "nope").err


def test_a_log_with_a_patch_takes_stat_as_well(kb, synced):
    assert kb("log", "-n", "1", "-p", "--stat").out == kb("log", "-n", "1", "-p").out != ""


def test_a_log_says_the_session(kb, synced, user):
    user.setenv("KB_SESSION", "s1")
    kb("set", "REQ-1", "owner=ann")
    assert "Session: s1" in kb("log", "-n", "1").out
