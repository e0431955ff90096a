"""Findings of ``kb doctor`` about sharing: each state with its remedy, and nothing where nothing is shared."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.processes.cli import write
from tests.support.repository.places import caches_at
from tests.support.repository.repos import git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}
SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"
LINE = "changes/** -text -filter -merge\n"


def apply(kb, *entities):
    assert kb("apply", "-", stdin=json.dumps({"entities": list(entities)})).status == 0


def share_one(root, kb):
    kb("config", "set", "share.mode", "ask")
    kb("apply", "-", stdin=json.dumps({"entities": [{"id": "S-1", **SYMBOL}]}))
    kb("share")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "shared")
    kb("sync")


@pytest.fixture
def shared(grown):
    """A repository with one change in a committed file, which is known as such."""
    return grown(share_one)


def found_in(kb, check="sharing"):
    return {one["code"]: one for one in kb("doctor", "--json").json["findings"] if one["check"] == check}


def change_file(root):
    [path] = (root / ".kb/changes").rglob("*.jsonl")
    return path


def test_where_nothing_is_shared_nothing_is_found_and_no_index_is_made(kb, synced):
    apply(kb, {"id": "S-1", **SYMBOL})
    assert found_in(kb) == {}
    assert not list(caches_at(synced).rglob("claims.db"))


def test_where_sharing_begins_nothing_is_wrong_with_attributes_that_the_first_file_comes_with(kb, synced):
    kb("config", "set", "share.mode", "auto")
    assert {code: one["severity"] for code, one in found_in(kb).items()} == {"changes_shared": "ok"}


def test_where_all_is_shared_all_is_well(kb, shared):
    found = found_in(kb)
    assert {one["severity"] for one in found.values()} == {"ok"}
    assert set(found) == {"change_files", "changes_shared"}


def test_what_is_not_shared_or_taken_back_is_counted(kb, shared):
    kb("config", "set", "share.actors", '["tester"]')
    apply(kb, {"id": "S-2", **SYMBOL})
    apply(kb, {"id": "S-3", **SYMBOL, "owner": SECRET})
    git(shared, "rm", "-q", str(change_file(shared)))
    kb("sync")
    found = found_in(kb)
    said = {code: (one["severity"], one["message"]) for code, one in found.items()}
    assert said == {
        "changes_unshared": ("note", "1 change is not shared."),
        "changes_refused": ("warning", "1 change is not shared, because no file may hold it."),
        "changes_withdrawn": ("note", "1 change is in no file any more that held them once."),
    }
    assert "`kb share --list`" in found["changes_withdrawn"]["remedy"]
    kb("config", "set", "share.mode", "off")
    (shared / ".kb/changes").mkdir(exist_ok=True)
    assert not {"changes_unshared", "changes_refused"} & found_in(kb).keys()


@pytest.mark.parametrize(
    ("files", "config", "code", "words"),
    [
        ({".kb/.gitattributes": ""}, (), "attributes_missing", "text is unspecified"),
        ({".kb/.gitattributes": "", ".gitattributes": "* text=auto\n"}, (), "attributes_missing", "text is auto"),
        (
            {".kb/.gitattributes": "", ".gitattributes": "*.jsonl filter=lfs diff=lfs merge=lfs -text\n"},
            (),
            "attributes_missing",
            "The filter lfs keeps",
        ),
        ({".kb/.gitattributes": "changes/** -text -filter\n"}, (), "attributes_missing", "merge is unspecified"),
        ({".kb/changes/.gitattributes": "* merge=union\n"}, (), "attributes_overridden", "merge is union"),
        ({".kb/changes/.gitattributes": "* text=auto\n"}, (), "attributes_overridden", "text is auto"),
        (
            {".git/info/attributes": "*.jsonl filter=git-crypt\n"},
            (),
            "attributes_overridden",
            "The filter git-crypt keeps",
        ),
    ],
)
def test_attributes_that_change_files_do_not_have_are_named(kb, shared, files, config, code, words):
    write(shared, files)
    found = found_in(kb)[code]
    assert (found["severity"], words in found["message"]) == ("warning", True)
    assert LINE.strip() in found["remedy"] or "info/attributes" in found["remedy"]


@pytest.mark.parametrize("pattern", ["*.jsonl", ".kb/", "changes/"])
def test_an_ignored_folder_is_named_with_the_line(kb, shared, pattern):
    write(shared, {".gitignore": f"# more\n{pattern}\n"})
    found = found_in(kb)["changes_ignored"]
    assert (found["file"], found["line"], pattern in found["message"]) == (".gitignore", 2, True)


@pytest.mark.parametrize("how", ["sparse", "skip-worktree"])
def test_files_that_are_not_checked_out_are_named(kb, shared, how):
    name = str(change_file(shared).relative_to(shared))
    git(shared, "status")  # git removes only files that it knows to be unchanged
    if how == "sparse":
        git(shared, "sparse-checkout", "set", "--no-cone", "/*", "!/.kb/changes/")
    else:
        git(shared, "update-index", "--skip-worktree", name)
        (shared / name).unlink()
    found = found_in(kb)["changes_not_checked_out"]
    assert name in found["message"]


def test_files_that_are_refused_are_named_with_the_reason(kb, shared):
    path = change_file(shared)
    text = path.read_text()
    for content, code in (
        (text[:-20], "truncated"),
        (text.replace('"kb":1', '"kb":9'), "newer_format"),
        (text.replace("One", "Two"), "wrong_id"),
        (f"<<<<<<< ours\n{text}", "merge_conflict"),
    ):
        path.write_text(content)
        found = found_in(kb)
        assert code in found, (code, found)
        assert (found[code]["severity"], found[code]["file"]) == ("error", str(path.relative_to(shared)))
    assert found["merge_conflict"]["line"] == 1


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_in_the_place_of_a_change_file_has_the_remedy_of_change_files(kb, shared, kind):
    path = change_file(shared)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/etc/hostname")
    found = found_in(kb)["unreadable"]
    assert "KB writes no such file" in found["remedy"]
    assert not found["message"].endswith("..")


def test_with_auto_a_missing_hook_is_a_warning(kb, shared):
    def state():
        [found] = [one for one in kb("doctor", "--json").json["findings"] if one["message"].startswith("pre-commit: ")]
        return found["severity"], "although `share.mode` is auto" in found["message"]

    assert state() == ("note", False)
    kb("config", "set", "share.mode", "auto")
    assert state() == ("warning", True)
    kb("hooks", "install")
    assert state() == ("ok", False)


def test_a_damaged_index_of_changes_is_named_and_made_again_by_the_next_use(kb, shared):
    [index] = caches_at(shared).rglob("claims.db")
    assert found_in(kb, "cache")["claims"]["message"] == "The index of changes has 1 change."
    index.write_bytes(index.read_bytes()[:3000])
    found = found_in(kb, "cache")["claims_damaged"]
    assert (found["severity"], found["file"]) == ("warning", str(index))
    apply(kb, {"id": "S-2", **SYMBOL})
    kb("share")
    assert found_in(kb, "cache")["claims"]["message"] == "The index of changes has 2 changes."


def test_contested_fields_are_counted(kb, shared):
    git(shared, "switch", "-q", "-c", "topic")
    kb("branch", "ensure")
    apply(kb, {"id": "S-1", "title": "Theirs"})
    git(shared, "switch", "-q", "main")
    apply(kb, {"id": "S-1", "title": "Ours"})
    kb("merge", "topic")
    found = found_in(kb)["fields_contested"]
    assert (found["severity"], found["message"]) == ("warning", "1 field is contested.")
