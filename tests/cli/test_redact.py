"""``kb redact``: the preview, what needs consent, and what is said and kept to itself."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import duckdb
import pytest

from kbcli.invocation import prime_note
from tests.support.disk.secrets import files_with
from tests.support.processes.cli import run_kb
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import add_worktree, git

SECRET = "hunter2 \"pa$$\" 'w0rd'"


def leak(root, kb):
    entity = {"id": "REQ-7", "type": "req", "title": f"Use {SECRET}", "status": "open"}
    asked = {"entities": [entity], "message": f"as {SECRET}", "changeset_id": "leak"}
    kb("apply", "-", stdin=json.dumps(asked))
    git(root, "branch", "topic")
    kb("branch", "ensure", "topic")
    kb("query", "req")


@pytest.fixture
def leaked(grown) -> Path:
    """The store with a secret in a title and in a message, and a branch that has it too."""
    return grown(leak)


def left(root: Path, secret: str = SECRET) -> list[str]:
    return files_with(secret, stores_at(root), caches_at(root))


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


@pytest.mark.parametrize("target", [("-",), ("2",), (SECRET,)])
def test_what_the_last_commit_of_another_branch_holds_is_named_the_second_time_too(kb, synced, target):
    leak(synced, kb)
    shared_and_synced(kb, synced)
    git(synced, "branch", "other")
    assert kb("redact", *target, "--yes", stdin=SECRET).status == 0
    for words in ((), ("--yes",)):
        ran = kb("redact", *target, *words, stdin=SECRET)
        assert (ran.status, "The last commit of other" in ran.err) == (0, True)
        assert "Nothing is left to redact" in ran.out
        ran = kb("redact", *target, *words, "--json", stdin=SECRET)
        assert (ran.status, ran.json["applied"]) == (0, False)


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


# Changes that are shared


def changes(kb, root: Path) -> dict[str, str]:
    """Return the file of each change of the worktree, by its id."""
    return {
        json.loads(line)["change"]: str(path)
        for path in sorted((root / ".kb/changes").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    }


def test_shared_changes_keep_their_ids_and_nothing_is_contested_or_shared_twice(kb, synced):
    for number, title in enumerate((f"Use {SECRET}", "Plain"), 7):
        entity = {"id": f"REQ-{number}", "type": "req", "title": title, "status": "open"}
        kb("apply", "-", stdin=json.dumps({"entities": [entity], "message": f"made {number}"}))
    kb("set", "REQ-8", "owner=ann")
    assert kb("share").status == 0
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "share")
    assert kb("sync").status == 0
    kb("set", "REQ-7", "owner=bob")  # after what is redacted, and not shared yet
    before, known = changes(kb, synced), kb("query", "req", "--json").json["entities"]
    assert files_with(SECRET, synced / ".kb") != []

    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0, ran.err
    assert ".kb/changes" in ran.out
    assert changes(kb, synced).keys() == before.keys()
    assert files_with(SECRET, synced / ".kb", stores_at(synced), caches_at(synced)) == []
    assert kb("verify").status == 0

    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "redact")
    assert kb("sync").status == 0
    now = {one["id"]: one for one in kb("query", "req", "--json").json["entities"]}
    assert {one["id"] for one in known} == now.keys()
    assert (now["REQ-8"]["title"], now["REQ-8"]["owner"], now["REQ-7"]["owner"]) == ("Plain", "ann", "bob")
    assert "contested" not in json.dumps(now)
    ran = kb("share", "--json")
    assert [len(one["changes"]) for one in ran.json["files"]] == [1]  # that of bob
    assert kb("sync").status == 0
    assert kb("verify").status == 0
    assert files_with(SECRET, synced / ".kb", stores_at(synced), caches_at(synced)) == []


def test_changes_that_a_merge_took_over_lose_it_too(kb, synced):
    git(synced, "branch", "topic")
    assert kb("branch", "ensure", "topic").status == 0
    git(synced, "switch", "-q", "topic")
    entity = {"id": "REQ-7", "type": "req", "title": f"Use {SECRET}", "status": "open"}
    assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    git(synced, "switch", "-q", "main")
    assert kb("merge", "topic").status == 0
    assert kb("show", "REQ-7").status == 0
    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0, ran.err
    assert left(synced) == []
    assert kb("merge", "topic").status == 0
    for branch in ("main", "topic"):
        assert kb("verify", "--branch", branch).status == 0
    assert kb("show", "REQ-7").out.startswith("REQ-7\n  [redacted]\n")  # a change loses a value as a whole
    assert left(synced) == []


PLAIN = "hunter2zebra"


def shared_and_synced(kb, root: Path) -> None:
    assert kb("share").status == 0
    git(root, "add", "-A")
    git(root, "commit", "-qm", "share")
    assert kb("sync").status == 0


def apply(kb, **asked) -> None:
    ran = kb("apply", "-", stdin=json.dumps(asked))
    assert ran.status == 0, ran.err


def make(kb, **fields) -> None:
    apply(kb, entities=[{"id": "REQ-7", "type": "req", "title": "Seven", "status": "open", **fields}])


def change(kb, *words: str) -> None:
    assert kb("set", "REQ-7", *words).status == 0


def nothing_holds(root: Path) -> bool:
    assert files_with(PLAIN, root / ".git/kb", root / ".kb", stores_at(root), caches_at(root)) == []
    return True


def is_still_sound(kb, root: Path) -> bool:
    """Tell that nothing comes back with the redacted files, that they mean the same, and that all is proven."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "redact")
    assert kb("sync").status == 0
    assert "contested" not in kb("query", "req", "--json").out
    assert kb("share", "--json").json["files"] == []
    assert kb("verify").status == 0
    return nothing_holds(root)


def test_a_record_loses_its_values_in_change_files_and_later_claims(kb, synced):
    make(kb)
    change(kb, f"note={PLAIN}", "--message", f"as {PLAIN}")  # record 3
    change(kb, "note=fine")
    change(kb, "note=better", "owner=ann")
    shared_and_synced(kb, synced)
    change(kb, "note=best")  # after what is redacted, and not shared yet
    before = changes(kb, synced)
    assert files_with(PLAIN, synced / ".kb") != []

    dry = kb("redact", "3", "--json")
    assert sorted(dry.json["change_files"]) == sorted({*before.values()})
    ran = kb("redact", "3", "--yes")
    assert ran.status == 0, ran.err
    assert ".kb/changes" in ran.out
    assert changes(kb, synced).keys() == before.keys()
    assert nothing_holds(synced)
    text = "".join(Path(path).read_text() for path in {*changes(kb, synced).values()})
    assert '"better"' in text
    assert '"ann"' in text
    kb("share")
    assert is_still_sound(kb, synced)
    (one,) = [one for one in kb("query", "req", "--json").json["entities"] if one["id"] == "REQ-7"]
    assert (one["attributes"]["note"], one["owner"]) == ("best", "ann")


def test_a_record_loses_one_field_in_change_files_and_keeps_the_others(kb, synced):
    make(kb)
    change(kb, f"note={PLAIN}", "owner=bob")  # record 3
    change(kb, "note=fine", "owner=ann")
    shared_and_synced(kb, synced)
    assert kb("redact", "3", "--field", "note", "--yes").status == 0
    assert nothing_holds(synced)
    text = "".join(Path(path).read_text() for path in {*changes(kb, synced).values()})
    assert '"now":"bob"' in text
    assert '"was":"bob"' in text
    assert is_still_sound(kb, synced)


def test_a_record_loses_its_values_in_packs(kb, synced):
    kb("config", "set", "share.mode", "ask")
    make(kb)
    change(kb, f"note={PLAIN}")  # record 3
    change(kb, "note=fine")
    shared_and_synced(kb, synced)
    assert kb("share", "pack", "--before", "now").status == 0
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "pack")
    assert kb("sync").status == 0
    (pack,) = (synced / ".kb/changes").rglob("*.jsonl")
    assert pack.parent == synced / ".kb/changes"
    assert PLAIN in pack.read_text()
    assert kb("redact", "3", "--yes").status == 0
    assert nothing_holds(synced)
    assert is_still_sound(kb, synced)


def test_a_member_that_a_later_record_removes_goes_with_its_record(kb, synced):
    make(kb, tags=["a"])
    apply(kb, entities=[{"id": "REQ-7", "tags": ["a", PLAIN]}])  # record 3
    apply(kb, entities=[{"id": "REQ-7", "tags": ["a"]}])
    shared_and_synced(kb, synced)
    assert files_with(PLAIN, synced / ".kb") != []
    assert kb("redact", "3", "--yes").status == 0
    assert nothing_holds(synced)
    assert is_still_sound(kb, synced)


def test_a_record_that_took_changes_out_of_files_loses_them_there_too(kb, synced, tmp_path):
    make(kb, attributes={"note": PLAIN})
    assert kb("share").status == 0
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "share")
    git(tmp_path, "clone", "-q", str(synced), "clone")
    other = tmp_path / "clone"
    assert kb("sync", cwd=other).status == 0  # record 1 of this clone
    assert files_with(PLAIN, stores_at(other)) != []
    ran = kb("redact", "1", "--field", "note", "--yes", cwd=other)
    assert ran.status == 0, ran.err
    assert nothing_holds(other)
    assert kb("verify", cwd=other).status == 0
    assert kb("sync", cwd=other).status == 0
    assert nothing_holds(other)


def test_a_renamed_entity_loses_its_values_in_change_files_by_all_its_ids(kb, synced):
    old = {"id": "OLD-1", "type": "req", "title": "One", "status": "open", "attributes": {"note": PLAIN}}
    apply(kb, entities=[old])
    assert kb("rename", "OLD-1", "NEW-1").status == 0
    shared_and_synced(kb, synced)
    before = changes(kb, synced)
    assert files_with(PLAIN, synced / ".kb") != []
    assert kb("redact", "NEW-1", "--field", "note", "--json").json["change_files"] != []
    ran = kb("redact", "NEW-1", "--field", "note", "--yes")
    assert ran.status == 0, ran.err
    assert ".kb/changes" in ran.out
    assert changes(kb, synced).keys() == before.keys()
    assert nothing_holds(synced)
    assert is_still_sound(kb, synced)


def test_a_record_goes_in_the_stores_of_branches_that_took_its_change(kb, synced):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "documents")
    git(synced, "branch", "topic")
    assert kb("branch", "ensure", "topic").status == 0
    make(kb, attributes={"note": PLAIN}, tags=["a", PLAIN])  # record 2 of main
    shared_and_synced(kb, synced)
    git(synced, "switch", "-q", "topic")
    apply(kb, entities=[{"id": "REQ-9", "type": "req", "title": "Nine", "status": "open"}])  # record 2 of topic
    git(synced, "merge", "-q", "main")
    assert kb("sync").status == 0  # record 3 of topic
    assert files_with(PLAIN, stores_at(synced) / "topic") != []
    git(synced, "switch", "-q", "main")
    ran = kb("redact", "2", "--yes")
    assert ran.status == 0, ran.err
    assert nothing_holds(synced)
    assert kb("verify", "--branch", "topic").status == 0
    assert "Nine" in kb("show", "REQ-9", "--branch", "topic").out
    assert is_still_sound(kb, synced)


def test_a_merge_names_the_changes_that_it_took_over(kb, synced):
    git(synced, "branch", "topic")
    assert kb("branch", "ensure", "topic").status == 0
    git(synced, "switch", "-q", "topic")
    make(kb, attributes={"note": PLAIN})  # record 2 of topic
    git(synced, "switch", "-q", "main")
    apply(kb, entities=[{"id": "REQ-8", "type": "req", "title": "Eight", "status": "open"}])  # record 2 of main
    assert kb("merge", "topic").status == 0  # record 3 of main
    ran = kb("redact", "3", "--yes")
    assert ran.status == 0, ran.err
    assert nothing_holds(synced)
    for branch in ("main", "topic"):
        assert kb("verify", "--branch", branch).status == 0


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


@pytest.mark.parametrize("is_in_file", [False, True])
def test_a_secret_in_an_id_of_a_shared_change_is_refused_before_anything_is_written(kb, synced, is_in_file):
    made = {"type": "req", "title": f"Use {SECRET}", "status": "open"}
    apply(kb, entities=[{"id": "REQ-8", **made}])
    if not is_in_file:
        shared_and_synced(kb, synced)
    apply(kb, entities=[{"id": f"REQ-{SECRET}", **made}])
    if is_in_file:
        shared_and_synced(kb, synced)
    before, records = changes(kb, synced), len(kb("log", "--json").json["records"])
    for options in ((), ("--yes",)):
        ran = kb("redact", "-", *options, stdin=SECRET)
        assert ran.status != 0
        assert "The pattern is part of an id or a name in the change" in ran.err
        assert "Give the id of the entity or the seq of a record" in ran.err
        assert "would be written" not in ran.out
    assert changes(kb, synced) == before
    assert len(kb("log", "--json").json["records"]) == records
    assert "not finished" not in kb("doctor").out
    assert git(synced, "status", "--short") == ""
    ran = kb("redact", f"REQ-{SECRET}", "--yes")
    assert ran.status == 0, ran.err
    assert kb("redact", "REQ-8", "--yes").status == 0
    assert "not finished" not in kb("doctor").out
    assert kb("query", "req", "--where", "title~Use", "--json").json["entities"] == []
    assert kb("verify").status == 0


TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_field_goes_with_its_name_and_what_else_was_said_is_shared(kb, synced, is_shared):
    if is_shared:  # the ids of changes stay, so the change is stated without the name
        apply(kb, entities=[{"id": "REQ-8", "type": "req", "title": "Eight", "status": "open"}])
        shared_and_synced(kb, synced)
    make(kb, attributes={f"key-{TOKEN}": "x", "note": "kept"})
    assert kb("set", "REQ-7", f"key-{TOKEN}=y").status == 0
    apply(kb, entities=[{"id": "REQ-7", "attributes": {f"key-{TOKEN}": None}}])
    assert kb("set", "REQ-7", "owner=ann").status == 0
    ran = kb("share")
    assert (ran.status, "`kb redact - --names`" in ran.err, TOKEN in ran.out + ran.err) == (1, True, False)
    shown = kb("redact", "-", "--names", stdin=TOKEN)
    assert "REQ-7 the name of a field" in shown.out
    assert TOKEN not in shown.out + shown.err
    ran = kb("redact", "-", "--names", "--yes", stdin=TOKEN)
    assert ran.status == 0, ran.err
    assert TOKEN not in ran.out + ran.err
    ran = kb("share")
    assert (ran.status, ran.err) == (0, "")
    shared_and_synced(kb, synced)
    assert files_with(TOKEN, synced / ".kb", stores_at(synced), caches_at(synced)) == []
    assert kb("share", "--list").out == "Every change is shared, or there is none.\n"
    assert kb("verify").status == 0
    shown = kb("show", "REQ-7", "--json").json["entity"]
    assert (shown["owner"], shown["attributes"]) == ("ann", {"note": "kept"})
    assert "contested" not in json.dumps(shown)


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_field_that_an_entity_does_not_have_is_named_with_the_nearest_one(kb, synced, words):
    kb("set", "REQ-1", "note=a secret")
    ran = kb("redact", "REQ-1", "--field", "attributes.nto", *words)
    assert ran.status == 64
    assert "Nothing in the stores and change files of this clone holds values of 'attributes.nto' of REQ-1." in ran.err
    assert "Did you mean 'attributes.note'?" in ran.err
    assert kb("redact", "REQ-1", "--field", "attributes.note", *words).status == (0 if words else 2)
