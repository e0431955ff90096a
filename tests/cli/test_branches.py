"""Stores of branches: made by the first write, listed, exported and renamed."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support.processes.cli import LOGIN, write
from tests.support.repository.places import stores_at
from tests.support.repository.repos import git, git_env

_UPSERT = 'UPSERT { CONCEPT ?c { {type: "Preference", name: "coffee"} } }'


def test_the_list_shows_every_store_and_where_it_comes_from(kb, synced):
    git(synced, "switch", "-q", "-c", "feature/x")
    kb("branch", "ensure")
    listed = kb("branch", "list", "--json").json["branches"]
    assert [(one["name"], one["seq"], one["current"], one["exists_in_git"]) for one in listed] == [
        ("feature/x", 1, True, True),
        ("main", 1, False, True),
    ]
    assert listed[0]["origin"]["branch"] == "main"
    rows = [line.split("\t") for line in kb("branch", "list").out.splitlines()]
    assert rows == [
        ["BRANCH", "SEQ", "CURRENT", "GIT", "COPIED"],
        ["feature/x", "1", "*", "", "from main at 1"],
        ["main", "1", "", "", ""],
    ]


@pytest.mark.sliced
def test_a_dry_run_in_a_new_branch_makes_no_store(kb, synced):
    git(synced, "branch", "topic")
    git(synced, "symbolic-ref", "HEAD", "refs/heads/topic")
    write(synced, {"docs/requirements/new.md": "---\nid: REQ-NEW\ntitle: New\nstatus: open\n---\n"})
    change = {"entities": [{"id": "S", "type": "symbol", "title": "S", "status": "active"}]}
    write(synced, {"change.json": json.dumps(change)})
    commands = [
        ("sync",),
        ("sync", "--rebuild"),
        ("apply", "change.json"),
        ("new", "symbol", "--title", "x", "--id", "SYM-1", "--store"),
        ("revert", "1"),
        ("sleep",),
        ("kip", 'UPSERT { CONCEPT ?a { {type: "Person", name: "ann"} } }'),
    ]
    for command in commands:
        ran = kb(*command, "--dry-run")
        assert ran.status == 0, (command, ran.err)
        assert "topic has no store yet: this is main" in ran.err
        assert "Would change main" not in ran.out
        assert not (stores_at(synced) / "topic").exists(), command
    assert "Would change topic at seq 1: 1 created" in kb("sync", "--dry-run").out
    for command in (
        ("query",),
        ("check",),
        ("log",),
        ("diff", "0"),
        ("show", "REQ-1"),
        commands[2],
    ):
        found = kb(*command, "--json", *(["--dry-run"] if command[0] == "apply" else []))
        assert (found.json["branch"], found.json["answered_from"]) == ("topic", "main"), command
    assert not (stores_at(synced) / "topic").exists()


@pytest.mark.sliced(4)
@pytest.mark.parametrize(
    "command",
    [
        ("rename", "REQ-9", "REQ-10"),
        ("set", "REQ-9", "owner=ann"),
        ("set", "REQ-1", "status:=1"),
        ("link", "REQ-1", "depends_on", "REQ-9"),
        ("delete", "REQ-9", "--yes"),
        ("new", "symbol", "--title", "x", "--id", "REQ-1", "--store"),
        ("apply", "change.json"),
        ("sync", "nowhere.md"),
        ("revert", "99"),
        ("rollback", "--to", "99"),
        ("kip", 'UPSERT { CONCEPT ?c { {type: "Nope", name: "x"} } }'),
        ("kip", 'DELETE CONCEPT ?c DETACH WHERE { ?c {type: "Nope"} }'),
        ("sleep", "--phase", "99"),
        ("compact", "--prune-before", "99"),
        ("id", "next", "nope"),
    ],
    ids=" ".join,
)
def test_a_write_that_is_refused_in_a_new_branch_makes_no_store(kb, synced, command):
    write(synced, {"change.json": '{"entities": [{"id": "X", "type": "nope", "title": "X"}]}'})
    git(synced, "switch", "-q", "-c", "topic")
    ran = kb(*command)
    assert ran.status != 0
    assert command[0] == "kip" or "Nothing was written." in ran.err
    assert not (stores_at(synced) / "topic").exists()


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "command", [("sleep",), ("id", "next", "req"), ("kip", _UPSERT), ("apply", "same.json")], ids=" ".join
)
def test_what_writes_no_record_in_a_new_branch_makes_no_store(kb, synced, command):
    write(synced, {"same.json": '{"entities": [{"id": "S-1", "type": "symbol", "title": "S", "status": "active"}]}'})
    for first in (("kip", _UPSERT), ("apply", "same.json"), ("sleep",)):
        assert kb(*first).status == 0
    git(synced, "switch", "-q", "-c", "topic")
    assert kb(*command).status == 0
    assert not (stores_at(synced) / "topic").exists()


@pytest.mark.parametrize("command", [("sync",), ("compact",)], ids=" ".join)
def test_a_command_on_the_store_itself_makes_that_of_a_new_branch(kb, synced, command):
    git(synced, "switch", "-q", "-c", "topic")
    ran = kb(*command)
    assert (ran.status, "topic has a store now, copied from main." in ran.err) == (0, True), ran
    assert ran.out.startswith("topic at seq 1: ")


@pytest.mark.sliced
def test_a_record_in_a_new_branch_is_of_that_branch_alone(kb, synced):
    kb("kip", 'UPSERT { CONCEPT ?c { {type: "Preference", name: "tea"} } }')
    before = {one["name"]: one["seq"] for one in kb("branch", "list", "--json").json["branches"]}["main"]
    for command in (("revert", str(before)), ("rollback", "--to", "0"), ("kip", _UPSERT), ("sleep",)):
        git(synced, "switch", "-q", "-c", command[0], "main")
        ran = kb(*command)
        assert ran.status == 0, ran
        assert f"{command[0]} has a store now, copied from main." in ran.err
    listed = {one["name"]: one["seq"] for one in kb("branch", "list", "--json").json["branches"]}
    assert listed.pop("sleep") > before + 1
    assert listed == {"main": before, "revert": before + 1, "rollback": before + 1, "kip": before + 1}


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "command",
    [
        ("rename", "REQ-1", "REQ-10"),
        ("set", "REQ-1", "status=done"),
        ("new", "req", "--title", "New"),
        ("new", "symbol", "--title", "x"),
    ],
    ids=" ".join,
)
def test_a_write_in_a_new_branch_makes_its_store_for_its_record(kb, synced, command):
    git(synced, "switch", "-q", "-c", "topic")
    ran = kb(*command)
    assert (ran.status, "topic has a store now, copied from main." in ran.err) == (0, True), ran
    listed = {one["name"]: one["seq"] for one in kb("branch", "list", "--json").json["branches"]}
    assert listed == {"main": 1, "topic": 2}
    assert kb("sync").out.startswith("topic at seq 2: up to date")


def test_ensure_makes_a_store_once(kb, synced):
    git(synced, "branch", "other")
    assert kb("branch", "ensure", "other", "--json").json | {"notice": ""} == {
        "branch": "other", "is_new": True, "copied_from": "main", "notice": "", "is_warning": False,
        "is_doubted": False, "seq": 1,
    }  # fmt: skip
    assert kb("branch", "ensure", "other").out == "other: was there, at seq 1\n"
    assert kb("branch", "ensure", "nope").status == 62


def test_status_says_first_what_the_next_command_does_with_the_store_of_a_deleted_branch(kb, synced):
    early, late = (git_env({"GIT_COMMITTER_DATE": f"2026-01-0{day} 10:00:00 +0000"}) for day in (1, 2))
    git(synced, "branch", "other", env=early)
    kb("branch", "ensure", "other")
    git(synced, "branch", "-D", "other")
    git(synced, "branch", "other", env=late)
    (warning,) = kb("status", "--branch", "other", "--json").json["warnings"]
    assert warning.startswith("git deleted other and made it again")
    for _ in range(2):  # a command that only reads leaves the store where it is
        assert kb("query", "--branch", "other", "-q").err.startswith("warning: git deleted other and made it again")
    assert not (stores_at(synced) / ".trash").exists()
    assert kb("branch", "ensure", "other").err.startswith("warning: git deleted other and made it again")
    assert kb("query", "--branch", "other").err == (
        "note: The answer is only of the records of other, not of the files. "
        "main is checked out: its files do not belong to other.\n"
    )
    assert kb("branch", "ensure", "other", "--keep").out == "other: was there, at seq 1\n"
    assert kb("branch", "ensure", "other", "--keep", "--from", "main").status == 2


@pytest.mark.sliced
def test_what_a_branch_has_that_another_lacks_is_exported_for_that_one(kb, synced):
    git(synced, "switch", "-q", "-c", "topic")
    entity = {"id": "NEW", "type": "req", "title": "New", "status": "open"}
    kb("apply", "-", stdin=json.dumps({"entities": [entity, {"id": "REQ-1", "owner": "ines"}]}))
    git(synced, "switch", "-q", "main")
    found = kb("export", "--branch", "topic", "--not-on", "main")
    expected = {"entities": [entity, {"id": "REQ-1", "owner": "ines"}], "edges": []}
    assert json.loads(found.out) == {"message": "what clients wrote on topic, for main"} | expected
    assert kb("export", "--not-on", "main").status == 2
    assert kb("export", "--not-on", "topic", "--at", "1").status == 2
    write(synced, {"docs/requirements/login.md": LOGIN.replace("status: open", "status: open\nowner: ada")})
    kb("sync")
    found = kb("export", "--branch", "topic", "--not-on", "main")
    assert json.loads(found.out)["entities"] == [entity]
    assert (
        "1 fact left out. What main lacks the entity for, or has changed by itself, is left out: `kb branch"
        in found.err
    )


@pytest.mark.sliced
def test_an_export_says_what_is_renamed_on_its_branch_alone_and_brings_what_was_written_since(kb, synced):
    entities = [{"id": key, "type": "flag", "title": key, "status": "active"} for key in ("F-1", "F-2")]
    edges = [{"type": "relates_to", "kind": "see", "from": "F-2", "to": "F-1"}]
    assert kb("apply", "-", stdin=json.dumps({"entities": entities, "edges": edges})).status == 0
    git(synced, "switch", "-q", "-c", "topic")
    kb("rename", "F-1", "F-10")
    kb("apply", "-", stdin='{"entities": [{"id": "F-10", "owner": "ines"}]}')
    git(synced, "commit", "-q", "--allow-empty", "-m", "topic")
    git(synced, "switch", "-q", "main")
    found = kb("export", "--branch", "topic", "--not-on", "main")
    renames = "F-10 is called F-1 on main: `kb rename F-1 F-10 --branch main` renames it there too."
    assert f"warning: {renames}\n" in found.err
    assert found.json["entities"] == [{"id": "F-1", "owner": "ines"}]
    kb("apply", "--branch", "main", "-", stdin=found.out)
    differs = kb("branch", "diff", "main", "topic").out
    assert differs.startswith("> F-1 -> F-10 (flag) F-1\n")
    assert "+" not in differs
    git(synced, "switch", "-q", "-c", "other")
    git(synced, "branch", "-q", "-D", "topic")
    assert "Clients wrote 1 fact on topic that main has not" in kb("gc", "--dry-run").err
    assert kb("rename", "F-1", "F-10", "--branch", "main").status == 0
    assert "Clients wrote" not in kb("gc", "--dry-run").err


def test_without_a_store_of_the_default_branch_the_new_one_starts_empty_and_says_so(kb, root):
    git(root, "switch", "-q", "-c", "feature")
    (root / ".kb").mkdir()
    write(root, {".kb/config.json": '{"defaultBranch": "trunk"}'})
    stores_at(root).mkdir(parents=True)
    ran = kb("query")
    assert ran.status == 0
    assert "starts empty" in ran.err


def test_a_renamed_branch_takes_its_store_along_and_says_so(kb, synced):
    git(synced, "switch", "-q", "-c", "old")
    kb("branch", "ensure")
    git(synced, "branch", "-m", "new")
    assert "git renamed it from old: the first write takes over the store of that name." in kb("status").out
    assert kb("status", "--json").json["is_renamed"] is True
    ran = kb("query")
    assert "git renamed old to new" in ran.err
    kb("branch", "ensure")
    assert kb("status", "--json").json["is_renamed"] is False
    assert [one["name"] for one in kb("branch", "list", "--json").json["branches"]] == ["main", "new"]


def test_a_branch_without_a_name_is_refused(kb, synced):
    assert kb("branch", "ensure", "").status == 62
    assert kb("branch", "diff", "", "main").status == 62
    assert "Did you mean 'main'?" in kb("query", "--branch", "mian").err


def test_a_bare_repository_holds_the_stores_and_its_worktrees_the_files(kb, root, tmp_path):
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    git(tmp_path, "clone", "-q", "--bare", root, bare)
    made = kb("init", cwd=bare)
    assert made.status == 0
    assert "this repository is bare" in made.out
    assert "git add" not in made.out
    assert kb("sync", cwd=bare).status == 2
    git(bare, "worktree", "add", "-q", "-b", "topic", tree)
    write(tree, {"docs/requirements/a.md": "---\nid: A\ntitle: A\nstatus: open\n---\n"})
    assert kb("sync", cwd=tree).status == 0
    assert kb("branch", "diff", "main", "topic", "--json", cwd=bare).json["entities"][0]["id"] == "A"
    assert not (tree / ".kb").exists()


def test_hooks_are_installed_looked_at_and_removed(kb, ready):
    states = [hook["state"] for hook in kb("hooks", "status", "--json").json["hooks"]]
    assert states == ["absent"] * 5
    assert kb("hooks", "status").err == "Run `kb hooks install`.\n", "once, not for each hook"
    assert [hook["action"] for hook in kb("hooks", "install", "--json").json["hooks"]] == ["created"] * 5
    assert kb("hooks", "status").out.startswith("Hook post-checkout: active (")
    assert [hook["action"] for hook in kb("hooks", "uninstall", "--json").json["hooks"]] == ["deleted"] * 5
    answer = kb("hooks", "install", "--hooks-path", "hooks", "--json", cwd=ready).json
    assert answer["hooks"][0]["path"] == str(ready / "hooks/post-checkout")


def test_a_new_entity_is_shown_equally_between_branches_and_between_seqs(kb, synced):
    git(synced, "branch", "topic")
    kb("branch", "ensure", "topic")
    kb("apply", "-", "--branch", "topic", stdin='{"entities":[{"id":"A","type":"req","title":"T","status":"open"}]}')
    assert kb("branch", "diff", "main", "topic").out == kb("diff", "1", "2", "--branch", "topic").out


def test_the_list_says_where_to_learn_of_a_store_that_cannot_be_read(kb, synced):
    store = stores_at(synced) / "main"
    shutil.rmtree(store)
    store.mkdir()
    ran = kb("branch", "list")
    assert "head_damaged" in ran.out
    assert "`kb doctor`" in ran.err


def test_the_list_and_gc_name_a_branch_that_was_made_again_and_the_next_writer_puts_its_store_away(kb, synced):
    git(synced, "config", "core.logAllRefUpdates", "false")
    git(synced, "branch", "topic")
    kb("branch", "ensure", "topic")
    shutil.rmtree(synced / ".git/logs")
    (stores_at(synced) / "topic/git-ref.json").unlink()
    kb("branch", "ensure", "topic")
    git(synced, "branch", "-D", "topic")
    assert ["topic", "1", "", "not in git", "from main at 1"] in [
        line.split("\t") for line in kb("branch").out.splitlines()
    ]
    git(synced, "branch", "topic")
    listed = kb("branch")
    assert "topic\t1\t\tmade again\tfrom main at 1\n" in listed.out
    assert "`kb doctor` says what to do about stores" in listed.err
    kept = "a branch of git, which git made again since: the store is that of an earlier branch of this name"
    assert f"  topic: {kept}\n" in kb("gc").out
    warned = kb("status", "--branch", "topic", "--json").json["warnings"]
    assert any(one.startswith("git deleted topic and made it again") for one in warned)
    assert "that store is in the trash" in kb("branch", "ensure", "topic").err
    assert "\tmade again\t" not in kb("branch").out


def test_a_branch_without_its_reflog_is_in_doubt(kb, synced):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "one")
    git(synced, "switch", "-q", "-c", "topic")
    assert kb("branch", "ensure").status == 0
    assert "doubtful" not in kb("branch").out
    git(synced, "switch", "-q", "main")
    git(synced, "branch", "-q", "-D", "topic")
    git(synced, "-c", "core.logAllRefUpdates=false", "branch", "topic")
    git(synced, "switch", "-q", "topic")
    assert "git may have made topic again since its store was last used" in kb("query").err
    assert "\tdoubtful\t" in kb("branch").out
    assert kb("branch", "ensure", "topic", "--keep").status == 0
    assert "git may have made" not in kb("query").err
