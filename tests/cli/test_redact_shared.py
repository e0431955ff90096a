"""``kb redact`` of changes that are shared: in change files, packs, and the stores that took them over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.redacting import SECRET, leak, left
from tests.support.disk.secrets import files_with
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git

PLAIN = "hunter2zebra"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def changes(kb, root: Path) -> dict[str, str]:
    """Return the file of each change of the worktree, by its id."""
    return {
        json.loads(line)["change"]: str(path)
        for path in sorted((root / ".kb/changes").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    }


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
