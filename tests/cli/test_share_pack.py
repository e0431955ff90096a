"""``kb share pack``: what is packed by age, what is refused, and what ``kb doctor`` and ``kb share --list`` say."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import write
from tests.support.repository.repos import git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}
SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def share(root, kb, key, **fields):
    kb("apply", "-", stdin=json.dumps({"entities": [{"id": key, **SYMBOL, **fields}]}))
    kb("share")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", key)
    kb("sync")


def share_three(root, kb):
    kb("config", "set", "share.mode", "ask")
    for number in range(3):
        share(root, kb, f"S-{number}")
    kb("query")


@pytest.fixture
def shared(grown):
    """Three changes are in a committed file each."""
    return grown(share_three)


def names(root):
    return sorted(str(path.relative_to(root)) for path in (root / ".kb/changes").rglob("*.jsonl"))


def doubled(kb):
    return [one for one in kb("doctor", "--json").json["findings"] if one["code"] == "changes_doubled"]


def test_a_dry_run_shows_what_a_pack_does_and_nothing_but_the_files_changes(kb, shared):
    was, before = names(shared), kb("query", "symbol", "--json").json["entities"]
    dry = kb("share", "pack", "--before", "now", "--dry-run").out
    assert names(shared) == was
    done = kb("share", "pack", "--before", "now").out
    assert done == dry.replace("Would write", "Wrote").replace("Would remove", "Removed")
    [pack] = names(shared)
    assert done == f"Wrote {pack}: 3 changes.\nRemoved 3 change files whose changes are in packs.\n"
    assert kb("share", "--list").out == "Every change is shared, or there is none.\n"
    assert kb("status", "--json").json["sharing"]["withdrawn"] == 0
    git(shared, "commit", "-q", "-m", "packed")
    assert kb("sync").status == 0
    assert "S-2" in kb("show", "S-2").out
    assert kb("query", "symbol", "--json").json["entities"] == before
    assert kb("share", "--list").out == "Every change is shared, or there is none.\n"
    assert kb("share", "pack", "--before", "now", "--json").json == {
        "dry_run": False,
        "packs": [],
        "removed": [],
        "left": [],
    }


@pytest.mark.parametrize("before", ["90d", "12w", "2020-01-31", "yesterday", "2 months ago"])
def test_what_is_not_as_old_is_not_packed(kb, shared, before):
    was = names(shared)
    assert kb("share", "pack", "--before", before).out == "No change file is to be packed.\n"
    assert names(shared) == was


@pytest.mark.parametrize("before", ["90x", "12", "HEAD", ""])
def test_what_is_no_time_is_refused_with_examples(kb, shared, before):
    ran = kb("share", "pack", "--before", before)
    assert ran.status == 2
    assert ran.err.startswith("error: ")
    assert names(shared)
    assert kb("share", "--dry-run", "pack").status == 2


def test_a_file_that_is_staged_for_deletion_is_named_and_nothing_is_packed(kb, shared):
    file = names(shared)[0]
    git(shared, "rm", "-q", file)
    ran = kb("share", "pack", "--before", "now")
    assert ran.status == 2
    assert f"{file} is not as HEAD has it, so nothing was packed." in ran.err
    assert len(names(shared)) == 2


def test_another_branch_and_a_merge_that_is_not_finished_are_refused(kb, shared):
    git(shared, "branch", "other")
    assert "other is not checked out" in kb("share", "pack", "--before", "now", "--branch", "other").err
    (shared / ".git/MERGE_HEAD").write_text(git(shared, "rev-parse", "HEAD"))
    assert "A merge of git is not finished here" in kb("share", "pack", "--before", "now").err
    assert len(names(shared)) == 3


def test_doctor_names_a_file_whose_changes_a_pack_has_and_its_remedy_removes_it(kb, shared):
    file = names(shared)[0]
    content = (shared / file).read_text()
    kb("share", "pack", "--before", "now")
    assert doubled(kb) == [], "the pack is not committed yet"
    git(shared, "commit", "-q", "-m", "packed")
    kb("sync")
    assert doubled(kb) == []
    write(shared, {file: content})
    git(shared, "add", "-A")
    git(shared, "commit", "-q", "-m", "it comes back")
    [one] = doubled(kb)
    assert (one["severity"], file in one["message"]) == ("note", True)
    assert "`kb share pack`" in one["remedy"]
    seq = kb("sync", "--json").json["seq"]
    assert kb("share", "pack").out == "Removed 1 change file whose changes are in packs.\n"
    git(shared, "commit", "-q", "-m", "removed")
    assert kb("sync", "--json").json["seq"] <= seq + 1
    assert doubled(kb) == []
    assert len(names(shared)) == 1
    assert "S-0" in kb("query", "symbol").out


@pytest.mark.parametrize("is_staged", [False, True])
def test_the_remedy_removes_a_file_that_is_back_and_not_committed_and_no_file_that_was_edited(kb, shared, is_staged):
    file, edited, _ = names(shared)
    content = {one: (shared / one).read_text() for one in (file, edited)}
    kb("share", "pack", "--before", "now")
    git(shared, "commit", "-q", "-m", "packed")
    write(shared, {file: content[file], edited: content[edited].replace("One", "Two")})
    if is_staged:
        git(shared, "add", "-A")
    assert file in doubled(kb)[0]["message"]
    assert [one["file"] for one in kb("share", "--list", "--json").json["unshared"]] == []
    assert kb("share", "pack").out == "Removed 1 change file whose changes are in packs.\n"
    assert doubled(kb) == []
    assert edited in names(shared)
    assert file not in names(shared)
    assert file not in git(shared, "ls-files")


def test_the_record_of_a_sync_after_packing_says_where_the_changes_are_and_copies_none(kb, shared):
    kb("share", "pack", "--before", "now")
    git(shared, "commit", "-q", "-m", "packed")
    seq = kb("sync", "--json").json["seq"]
    shown = kb("show", str(seq), "--json").json
    [pack] = names(shared)
    assert {one["file"] for one in shown["changes"] if "own" in one} == {pack}
    assert sum("gone" in one for one in shown["changes"]) == 3
    assert not any("actor" in one for one in shown["changes"])
    assert not shown.get("entities")


def test_a_value_that_is_redacted_is_taken_out_of_a_pack_under_a_new_name(kb, shared):
    share(shared, kb, "S-9", owner="keep-this-private")
    kb("share", "pack", "--before", "now")
    [pack] = names(shared)
    git(shared, "commit", "-q", "-m", "packed")
    kb("sync")
    assert "keep-this-private" in (shared / pack).read_text()
    assert kb("redact", "keep-this-private", "--yes").status == 0
    [new] = names(shared)
    assert new != pack
    assert "keep-this-private" not in (shared / new).read_text()
    assert kb("doctor").status == 0
    git(shared, "add", "-A")
    git(shared, "commit", "-q", "-m", "redacted")
    assert kb("sync").status == 0
    assert "S-9" in kb("query", "symbol").out


def test_an_entity_of_a_packed_file_is_shown_with_the_pack_as_well(kb, shared, tmp_path):
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", shared, other)
    kb("sync", cwd=other)
    before = kb("show", "S-0", "--json", cwd=other).json["entity"]
    assert (before["source"] in names(other), "source_now" in before) == (True, False)
    kb("share", "pack", "--before", "now", cwd=other)
    git(other, "commit", "-q", "-m", "pack")
    kb("sync", cwd=other)
    after = kb("show", "S-0", "--json", cwd=other).json["entity"]
    assert (after["source"], after["source_now"]) == (before["source"], names(other))
    assert f"source_now  {names(other)[0]}" in kb("show", "S-0", cwd=other).out
