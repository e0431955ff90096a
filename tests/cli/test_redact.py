"""``kb redact``: the preview, what needs consent, and what is said and kept to itself."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import duckdb
import pytest

from kbcli.invocation import prime_note
from tests.cli.redacting import SECRET, leak, left
from tests.support.disk.secrets import files_with
from tests.support.processes.cli import run_kb
from tests.support.repository.places import stores_at
from tests.support.repository.repos import add_worktree


@pytest.fixture
def leaked(grown) -> Path:
    """The store with a secret in a title and in a message, and a branch that has it too."""
    return grown(leak)


def test_the_kept_answers_of_prime_go_in_every_worktree(kb, synced, tmp_path):
    task = {"id": "TASK-1", "type": "task", "title": f"Use {SECRET}", "status": "open"}
    kb("apply", "-", stdin=json.dumps({"entities": [task]}))
    other = add_worktree(synced, tmp_path / "other", "topic")
    assert run_kb(other, "sync").status == 0
    time.sleep(3 * prime_note._SETTLED_NS / 1e9)  # no answer is kept of what has just changed
    for place in (synced, other):
        assert SECRET in run_kb(place, "prime").out
    kept = [path.parent for path in map(Path, files_with(SECRET, synced / ".git")) if path.parent.name == "kb-prime"]
    assert len({*kept}) == 2
    assert kb("redact", "-", "--yes", stdin=SECRET).status == 0
    assert files_with(SECRET, synced / ".git") == []


def test_without_consent_it_shows_what_would_change_and_changes_nothing(kb, leaked):
    before = {path: path.read_bytes() for path in stores_at(leaked).rglob("*.json*")}
    ran = kb("redact", "-", stdin=SECRET + "\n")
    assert ran.status == 2
    assert "main: 1 record would be changed." in ran.out
    assert "topic: 1 record would be changed." in ran.out
    assert "2: message, REQ-7 title" in ran.out
    assert "needs --yes" in ran.err
    assert SECRET not in ran.out + ran.err
    assert {path: path.read_bytes() for path in stores_at(leaked).rglob("*.json*")} == before


def test_the_place_of_a_fleet_is_named_where_the_settings_have_one(kb, leaked):
    said = "Earlier parts in the place of the fleet"
    assert said not in kb("redact", "-", stdin=SECRET).err
    kb("fleet", "init", "../place")
    assert kb("export", "--fleet").status == 0
    assert left_in_place(leaked)
    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert said in ran.err
    for folder in (leaked.parent / "place").iterdir():
        shutil.rmtree(folder / f"repo={leaked.name}")
    assert kb("export", "--fleet").status == 0
    assert not left_in_place(leaked)


def left_in_place(root):
    """Return the parts of the fleet that hold the secret, as DuckDB reads them."""
    parts = sorted((root.parent / "place").glob("kind=*/*/*/*.parquet"))
    assert parts
    found = [(one, duckdb.sql(f"select * from read_parquet('{one}', hive_partitioning = false)")) for one in parts]
    return [one for one, rows in found if "hunter2" in repr(rows.fetchall())]


def test_the_same_as_json(kb, leaked):
    ran = kb("redact", "-", "--json", stdin=SECRET)
    assert ran.status == 2
    assert ran.json["applied"] is False
    assert [one["branch"] for one in ran.json["stores"]] == ["main", "topic"]
    assert SECRET not in ran.out


def test_with_consent_it_is_taken_out_everywhere_and_the_rest_is_named(kb, leaked):
    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0
    assert "main: 1 record redacted, as record 3 documents." in ran.out
    assert "topic: 1 record redacted, as record 3 documents." in ran.out
    assert "Revoke the secret" in ran.err
    assert SECRET not in ran.out + ran.err
    assert left(leaked) == []
    assert kb("show", "REQ-7").out.startswith("REQ-7\n  Use [redacted]\n")
    assert kb("verify").status == 0
    assert kb("verify", "--branch", "topic").status == 0
    assert kb("query", "--search", "hunter2").out == ""
    assert left(leaked) == []


def test_history_and_points_answer_and_an_undo_is_refused(kb, leaked):
    kb("redact", "-", "--yes", stdin=SECRET)
    for words in (
        ("log",),
        ("show", "2"),
        ("show", "REQ-7"),
        ("diff", "1"),
        ("show", "REQ-7", "--at", "2"),
    ):
        ran = kb(*words)
        assert ran.status == 0, (words, ran.err)
        assert SECRET not in ran.out
    assert "redacted: message, ops.0.set.title, digest" in kb("show", "2").out
    assert kb("show", "2", "--json").json["redacted"] == ["message", "ops.0.set.title", "digest"]
    assert kb("show", "3", "--json").json["redaction"]["records"][0]["seq"] == 2
    ran = kb("revert", "2")
    assert ran.status == 33
    assert "was redacted: it cannot be undone" in ran.err
    asked = {"entities": [{"id": "REQ-7", "title": f"Use {SECRET}"}], "changeset_id": "leak"}
    ran = kb("apply", "-", "--json", stdin=json.dumps(asked))
    assert (ran.status, ran.json["error"]["code"]) == (33, "redacted")
    assert left(leaked) == []


def test_an_id_and_a_record_name_what_goes(kb, leaked):
    ran = kb("redact", "REQ-7", "--field", "title")
    assert "2: REQ-7 title" in ran.out
    assert kb("redact", "REQ-7", "--field", "title", "--yes").status == 0
    assert left(leaked) != []  # the message has it
    assert kb("redact", "2", "--yes").status == 0
    assert left(leaked) == []


def test_a_pattern_on_the_command_line_works_and_is_warned_of(kb, leaked):
    ran = kb("redact", SECRET, "--yes")
    assert ran.status == 0
    assert "history of the shell" in ran.err
    assert left(leaked) == []


def test_what_nothing_holds_is_not_found(kb, leaked):
    ran = kb("redact", "-", stdin="nowhere-to-be-found")
    assert ran.status == 64
    assert "Nothing in the stores" in ran.err
    assert "Where it was taken out before, nothing is left to redact." in ran.err
    ran = kb("redact", "99")
    assert (ran.status, "`kb redact -`" in ran.err) == (64, True)


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_what_is_no_id_and_no_text_is_named_as_both_and_not_as_a_pattern(kb, leaked, words):
    ran = kb("redact", "REQ-77", *words)
    assert ran.status == 64
    assert "No entity and no change has this id" in ran.err
    assert "`kb query` lists the ids" in ran.err
    assert "pattern" not in ran.err
    ran = kb("redact", "REQ-77", "--field", "title", *words)
    assert (ran.status, "main has no such id" in ran.err) == (2, True)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_an_empty_text_is_refused_without_a_word_on_the_shell(kb, leaked, text):
    for words, stdin in ((text, ""), ("-", text)):
        ran = kb("redact", words, stdin=stdin)
        assert (ran.status, "An empty text names nothing" in ran.err, "shell" in ran.err) == (2, True, False)


TARGETS = [("REQ-7",), ("REQ-7", "--field", "title"), ("2",), ("2", "--field", "message"), ("2", "--field", "title")]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_left_to_redact_the_second_time_and_that_is_said(kb, leaked, target):
    assert kb("redact", *target, "--yes", "--json").json["applied"] is True
    records = len(kb("log", "--json").json["records"])
    for words in ((), ("--yes",)):
        ran = kb("redact", *target, *words)
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.startswith(
            "Nothing is left to redact: no store and no change file of this clone holds values of"
        )
        ran = kb("redact", *target, *words, "--json")
        assert (ran.status, ran.json["applied"], ran.json["stores"]) == (0, False, [])
    assert len(kb("log", "--json").json["records"]) == records


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_field_that_a_record_does_not_have_is_named_with_those_that_it_has(kb, leaked, words):
    ran = kb("redact", "2", "--field", "ttle", *words)
    assert ran.status == 64
    assert "holds values of 'ttle' of record 2" in ran.err
    assert "Did you mean 'title'?" in ran.err
    before = left(leaked)
    ran = kb("redact", "2", "--field", "title", "--field", "ttle", *words)
    assert (ran.status, left(leaked)) == (64, before), "one of the two may be misspelled, so neither is redacted"
    assert "holds values of 'ttle' of record 2." in ran.err
    assert "Did you mean 'title'?" in ran.err


@pytest.mark.parametrize("given", ["x", "status"])
def test_a_pattern_that_is_no_secret_is_refused(kb, leaked, given):
    ran = kb("redact", "-", "--yes", stdin=given)
    assert ran.status == 2
    assert left(leaked) != []


def test_a_field_of_a_pattern_is_refused(kb, leaked):
    ran = kb("redact", "-", "--field", "title", stdin=SECRET)
    assert ran.status == 2
    assert "--field needs" in ran.err


def test_a_process_of_its_own_does_the_same(leaked):
    ran = run_kb(leaked, "redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0, ran.err
    assert left(leaked) == []


def test_the_doctor_says_nothing_of_it_afterwards(kb, leaked):
    kb("redact", "-", "--yes", stdin=SECRET)
    ran = kb("doctor", "--json")
    assert not [
        one for one in ran.json["findings"] if one["severity"] in {"error", "warning"} and "redact" in one["code"]
    ]
    assert not [one for one in ran.json["findings"] if one["code"] == "store_went_back"]


def test_a_pattern_in_the_name_of_a_field_is_refused_with_what_can_be_done(kb, leaked):
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    assert kb("set", "REQ-7", f"{token}=1").status == 0
    ran = kb("redact", "-", "--yes", stdin=token)
    assert ran.status != 0
    assert "part of the name of a field (ops.0 of record 3)" in ran.err
    assert "With --names, each field whose name has it is removed" in ran.err
    assert token not in ran.out + ran.err
    ran = kb("redact", "REQ-7", "--names", "--yes")
    assert (ran.status, "--names needs a PATTERN" in ran.err) == (2, True)


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_field_that_an_entity_does_not_have_is_named_with_the_nearest_one(kb, synced, words):
    kb("set", "REQ-1", "note=a secret")
    ran = kb("redact", "REQ-1", "--field", "attributes.nto", *words)
    assert ran.status == 64
    assert "Nothing in the stores and change files of this clone holds values of 'attributes.nto' of REQ-1." in ran.err
    assert "Did you mean 'attributes.note'?" in ran.err
    assert kb("redact", "REQ-1", "--field", "attributes.note", *words).status == (0 if words else 2)
