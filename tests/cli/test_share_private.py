"""What is private stays so where the settings that say it are not checked out, and where they came later."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.support.repository.repos import commit_files, git, make_repository

MARKER = "for-eve-alone"
SYMBOL = {"type": "symbol", "title": "One", "status": "active"}


@pytest.fixture
def apply(kb, user):
    def by(actor, *entities, **more):
        user.setenv("KB_ACTOR", actor)
        ran = kb("apply", "-", stdin=json.dumps({"entities": list(entities), **more}))
        assert ran.status == 0, ran
        user.setenv("KB_ACTOR", "ann")

    return by


@pytest.fixture
def up(synced):
    """A remote of the repository, whose settings are committed: only what ann writes is shared."""
    where = make_repository(synced.parent / "up", commits=0)
    git(synced, "remote", "add", "origin", where)
    return where


def restrict(root, kb):
    kb("config", "set", "share.mode", "ask")
    kb("config", "set", "share.actors", '["ann"]')
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Only what ann writes is shared")


def reasons(kb):
    return {one["seq"]: one["reason"] for one in kb("share", "--list", "--json").json["unshared"]}


def marked_files(root):
    return [path for path in (root / ".kb" / "changes").rglob("*.jsonl") if MARKER in path.read_text()]


def is_in_objects(root):
    words = ["git", "-C", str(root), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    return MARKER.encode() in subprocess.run(words, capture_output=True, check=True).stdout


@pytest.mark.parametrize("how", ["sparse checkout", "skip-worktree", "deleted"])
def test_settings_that_are_not_checked_out_are_in_force(kb, synced, up, apply, how):
    restrict(synced, kb)
    apply("eve", {"id": "NOTE-1", **SYMBOL, "title": MARKER})
    if how == "sparse checkout":
        git(synced, "sparse-checkout", "set", "docs")
    else:
        if how == "skip-worktree":
            git(synced, "update-index", "--skip-worktree", ".kb/config.json")
        (synced / ".kb/config.json").unlink()
    apply("ann", {"id": "S-1", **SYMBOL})
    assert kb("status", "--json").json["sharing"]["mode"] == "ask"
    assert list(reasons(kb).values()) == ["private_actor", ""]
    assert kb("push").status == 0
    assert kb("share").status == 0
    git(synced, "commit", "--quiet", "-m", "shared")
    assert "S-1" in git(synced, "show", "HEAD")
    assert not marked_files(synced)
    assert not is_in_objects(up)
    assert not is_in_objects(synced)
    [found] = [one for one in kb("doctor", "--json").json["findings"] if one["code"] == "settings_not_checked_out"]
    assert (found["severity"], found["file"]) == ("warning", ".kb/config.json")


def test_schema_and_rules_that_are_not_checked_out_are_in_force(kb, synced):
    commit_files(
        synced, {".kb/schema/own.yaml": "entities:\n  gadget: {}\n", ".kb/config.json": '{"share": {"mode": "ask"}}'}
    )
    git(synced, "sparse-checkout", "set", "docs")
    assert not (synced / ".kb/schema/own.yaml").exists()
    thing = {"id": "G-1", "type": "gadget", "title": "A gadget", "status": "active"}
    assert kb("apply", "-", stdin=json.dumps({"entities": [thing]})).status == 0


def test_init_brings_back_settings_that_are_not_checked_out(kb, synced):
    restrict(synced, kb)
    text = (synced / ".kb/config.json").read_text()
    git(synced, "sparse-checkout", "set", "docs")
    shutil.rmtree(synced / ".kb", ignore_errors=True)
    assert kb("init", "--no-hooks").status == 0
    assert (synced / ".kb/config.json").read_text() == text


def test_a_worktree_uses_the_settings_of_its_own_index_before_those_of_the_main_one(kb, synced, apply):
    restrict(synced, kb)
    other = synced.parent / "other"
    git(synced, "worktree", "add", "--quiet", "-b", "other", other)
    (other / ".kb/config.json").unlink()
    kb("config", "unset", "share.actors")
    assert json.loads(kb("config", "get", "share.actors", "--json", cwd=other).out)["value"] == ["ann"]
    assert json.loads(kb("config", "get", "share.actors", "--json").out)["value"] != ["ann"]
