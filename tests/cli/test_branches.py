"""``kb branch``, ``kb gc``, ``kb schema`` and ``kb hooks``."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.support.processes.cli import LOGIN, write
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import add_worktree, commit_files, git, git_env

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
        "note: The answer is of the records of other alone, not of the files. "
        "main is checked out: its files say nothing of other.\n"
    )
    assert kb("branch", "ensure", "other", "--keep").out == "other: was there, at seq 1\n"
    assert kb("branch", "ensure", "other", "--keep", "--from", "main").status == 2


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
    git(synced, "merge", "-q", "topic")
    said = kb("hook", "post-merge", "0").err
    brings = "`kb export --branch topic --not-on main | kb apply --branch main -` brings 1 of them"
    assert said == f"kb: 2 facts that clients wrote on topic are not on main: {brings}. {renames}\n"
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


def test_gc_removes_what_exists_nowhere_any_more(kb, synced):
    commit_files(synced, {"x": "1"})
    git(synced, "switch", "-q", "-c", "gone")
    kb("branch", "ensure")
    git(synced, "switch", "-q", "main")
    git(synced, "branch", "-q", "-D", "gone")
    assert kb("gc", "--dry-run").out == "would move gone to the trash\n1 store kept.\n  main: the default branch\n"
    dry = {"removed": ["gone"], "kept": ["main"], "dry_run": True}
    trash = [{"name": "gone", "records": 0, "facts": 0, "place": "", "renamed_to": ""}]
    reasons = {"main": "the default branch"}
    nothing = {"documents": 0, "unfinished": 0, "reports": 0, "notes": [], "warnings": []}
    expected = dry | {"trash": trash, "reasons": reasons} | nothing
    assert kb("gc", "--dry-run", "--json").json == expected
    done = kb("gc", "--json").json
    assert (done["removed"], done["kept"], done["dry_run"]) == (["gone"], ["main"], False)
    assert done["trash"][0]["place"].startswith(str(stores_at(synced) / ".trash/gone~"))
    assert kb("gc").out == "Nothing to remove; 1 store kept.\n  main: the default branch\n"


def test_commands_to_copy_quote_the_names_of_branches(kb, synced):
    git(synced, "branch", "a&b")
    kb("branch", "ensure", "a&b")
    git(synced, "branch", "-q", "-D", "a&b")
    kb("gc")
    assert "`kb branch ensure NAME --from 'a&b'`" in kb("branch", "restore", "a&b").err
    git(synced, "switch", "-q", "-c", "old&one")
    entities = [{"id": "ONLY", "type": "req", "title": "T", "status": "open"}]
    kb("apply", "-", stdin=json.dumps({"entities": entities}))
    git(synced, "branch", "new&one")
    kb("branch", "ensure", "new&one")
    git(synced, "branch", "-M", "old&one", "new&one")
    command = "`kb branch ensure 'new&one' --from 'old&one' --replace`"
    assert command in kb("gc").err


def test_gc_says_why_it_keeps_a_store(kb, synced, tmp_path):
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    for name in ("idle", "spare", "old"):
        git(synced, "branch", name)
        kb("branch", "ensure", name)
    kb("branch", "ensure", cwd=linked)
    git(synced, "switch", "-q", "-c", "here")
    kb("branch", "ensure")
    git(synced, "branch", "-m", "old", "new")
    assert kb("gc").out == (
        "Nothing to remove; 6 stores kept.\n"
        f"  feature: checked out in {linked}\n"
        "  here: checked out here\n"
        "  idle, spare: a branch of git\n"
        "  main: the default branch\n"
        "  old: git renamed it to new\n"
    )


def test_gc_drops_the_text_of_documents_that_no_branch_has_any_more(kb, synced):
    gone, other = "docs/requirements/gone.md", "docs/requirements/other.md"
    head = "---\nid: {}\ntitle: T\nstatus: open\n---\n"
    write(synced, {gone: head.format("REQ-8") + "Sesame.\n", other: head.format("REQ-9") + "Almond.\n"})
    commit_files(synced, {"x": "1"})
    kb("sync")
    assert "REQ-8" in kb("query", "--text", "sesame").out
    git(synced, "switch", "-q", "-c", "side")
    (synced / gone).unlink()
    kb("sync")
    assert kb("gc", "--json").json["documents"] == 0
    git(synced, "switch", "-q", "main")
    git(synced, "rm", "-q", "--cached", "--ignore-unmatch", gone)
    kb("sync")
    stores = "2 stores kept.\n  main: the default branch\n  side: a branch of git\n"
    said = f"the text of 1 document from the cache of searches\n{stores}"
    assert kb("gc", "--dry-run").out == f"would remove {said}"
    kept = caches_at(synced) / ".bodies.duckdb"
    assert b"Sesame" in kept.read_bytes()
    assert kb("gc").out == f"removed {said}"
    assert b"Sesame" not in kept.read_bytes()
    assert b"Almond" in kept.read_bytes()
    assert kb("gc").out == f"Nothing to remove; {stores}"
    (synced / other).unlink()
    at = ["--at", str(kb("status", "--json").json["seq"])]
    assert "REQ-9" in kb("query", "--text", "almond", *at).out
    assert "REQ-8" not in kb("query", "--text", "sesame", *at).out


def test_gc_names_what_is_lost_sight_of_and_the_command_that_brings_it_back(kb, synced):
    git(synced, "branch", "gone")
    write(synced, {"change.json": '{"entities": [{"id": "X", "type": "req", "title": "X", "status": "open"}]}'})
    assert kb("apply", "change.json", "--branch", "gone").status == 0
    git(synced, "branch", "-q", "-D", "gone")
    dry = kb("gc", "--dry-run")
    assert dry.out == "would move gone to the trash\n1 store kept.\n  main: the default branch\n"
    said = "Clients wrote 1 fact on gone that main has not; "
    brings = "`kb export --branch gone --not-on main | kb apply --branch main -`"
    assert dry.err == f"warning: {said}{brings} brings what main can take.\n"
    ran = kb("gc")
    assert ran.status == 0
    assert f"{said}the store is kept in " in ran.err
    assert "`kb branch restore gone` brings it back." in ran.err
    back = kb("branch", "restore", "gone")
    assert back.out == "gone: is back, at seq 2\n"
    assert "git has no branch gone" in back.err
    assert kb("show", "X", "--branch", "gone").status == 0
    found = kb("gc", "--json").json["trash"][0]
    assert (found["records"], found["facts"]) == (1, 1)
    git(synced, "branch", "other")
    assert kb("branch", "ensure", "other", "--from", "gone").out == "other: made, at seq 2\n"
    refused = kb("branch", "ensure", "other", "--from", "main")
    assert refused.status == 2
    assert "--replace" in refused.err
    assert kb("branch", "ensure", "other", "--from", "main", "--replace").out == "other: made, at seq 1\n"
    assert kb("branch", "restore", "other", "--json").json["seq"] == 2
    assert kb("branch", "ensure", "other", "--replace").status == 2
    assert kb("branch", "restore", "nope").status == 62


def test_gc_says_nothing_of_a_branch_of_which_the_default_branch_has_what_clients_wrote(kb, synced):
    git(synced, "switch", "-q", "-c", "gone")
    write(synced, {"change.json": '{"entities": [{"id": "X", "type": "req", "title": "X", "status": "open"}]}'})
    kb("apply", "change.json")
    commit_files(synced, {"docs/requirements/9.md": LOGIN.replace("REQ-1", "REQ-9")})
    kb("sync")
    git(synced, "switch", "-q", "main")
    kb("apply", "change.json")
    git(synced, "branch", "-q", "-D", "gone")
    ran = kb("gc")
    assert (ran.out, ran.err) == ("moved gone to the trash\n1 store kept.\n  main: the default branch\n", "")
    assert kb("gc", "--json").json["trash"] == []


def test_the_trash_is_listed_proven_and_emptied(kb, synced):
    assert kb("branch", "trash") == (0, "", "The trash is empty.\n")
    git(synced, "branch", "gone")
    kb("branch", "ensure", "gone")
    git(synced, "branch", "-q", "-D", "gone")
    kb("gc")
    listed = kb("branch", "trash")
    assert listed.out.splitlines()[0].split("\t") == ["BRANCH", "SEQ", "SIZE", "MOVED", "KEPT UNTIL"]
    assert "--verify does" in listed.err
    (row,) = kb("branch", "trash", "--json").json["trash"]
    moved = date.fromisoformat(row["moved_at"][:10])
    assert date.fromisoformat(row["kept_until"]) == moved + timedelta(days=90)
    gone = kb("query", "--branch", "gone")
    assert "The trash holds a store of 'gone'; `kb branch restore gone` brings it back." in gone.err
    assert (row["branch"], row["seq"], row["is_restored_next"], row["damage"]) == ("gone", 1, True, None)
    assert kb("branch", "trash", "--verify").out.splitlines()[1].endswith("sound")
    head = Path(row["place"], "head.json")
    whole = head.read_bytes()
    head.write_bytes(whole[:-20])
    damaged = kb("branch", "trash", "--verify")
    assert (damaged.status, "does not prove" in damaged.err) == (40, True)
    told = kb("verify")
    assert (told.status, told.err) == (
        0,
        "note: 1 store in the trash is not proven; `kb branch trash --verify` does it.\n",
    )
    assert kb("verify", "--json").json["trash_not_proven"] == 1
    head.write_bytes(whole)
    assert kb("gc", "--empty-trash").out.startswith("1 store left in the trash.\n")
    assert "would delete the store of gone" in kb("gc", "--empty-trash", "--older-than", "0", "--dry-run").out
    assert kb("gc", "--older-than", "0").status == 2
    done = kb("gc", "--empty-trash", "--older-than", "0", "--json").json["emptied"]
    assert ([one["branch"] for one in done["deleted"]], done["left"]) == (["gone"], 0)
    assert kb("branch", "restore", "gone").status == 62


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


def test_a_store_left_behind_by_a_forced_rename_is_named_on_use_and_by_gc(kb, synced):
    commit_files(synced, {"x": "1"})
    git(synced, "switch", "-q", "-c", "feat")
    write(synced, {"change.json": '{"entities": [{"id": "X", "type": "req", "title": "X", "status": "open"}]}'})
    assert kb("apply", "change.json").status == 0
    git(synced, "branch", "-M", "feat", "main")
    assert "note: git renamed feat to main, which had a store already" in kb("query").err
    assert "`kb branch ensure main --from feat --replace` takes this one instead." in kb("gc").err
    assert kb("query").err == ""
    assert kb("branch", "ensure", "main", "--from", "feat", "--replace").status == 0
    assert kb("show", "X").status == 0


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


def test_the_schema_is_shown_with_the_types_of_the_project(kb, ready):
    write(
        ready,
        {
            ".kb/schema/project.yaml": "entities:\n  fact:\n    description: What is so.\n    attributes:\n"
            "      origin: {type: text, required: true, values: [a, b], description: Where from.}\n"
            "    statuses: [new, old]\nedges:\n  shows: {from: [test], to: [fact], kind: true, acyclic: true}\n"
        },
    )
    whole = kb("schema", "--json").json
    assert list(whole) == ["entities", "edges"]
    assert whole["entities"]["fact"]["origin"] == ".kb/schema/project.yaml"
    assert "What is so." in kb("schema").out
    text = kb("schema", "fact").out
    assert "attributes.origin: text; required; one of a, b. Where from." in text
    assert "statuses: new, old" in text
    assert "from test to fact" in kb("schema", "shows").out
    assert kb("schema", "shows", "--json").json["acyclic"] is True
    ran = kb("schema", "fakt")
    assert ran.status == 64
    assert "'fact'" in ran.err


def test_types_that_a_branch_defines_are_shown_and_asked_for_there(kb, ready):
    write(
        ready,
        {
            "c.json": '{"entities": [{"id": "$ConceptType:Taste", "type": "$ConceptType", "name": "Taste",'
            ' "title": "Taste", "attributes": {"description": "What one likes."}},'
            ' {"id": "T-1", "type": "Taste", "title": "dark"}]}'
        },
    )
    assert kb("apply", "c.json").status == 0
    assert kb("schema", "--json").json["entities"]["Taste"]["origin"] == "KIP"
    assert "Taste (entity, defined by KIP)\n  What one likes." in kb("schema", "Taste").out
    assert kb("query", "Taste", "--json").json["entities"][0]["id"] == "T-1"
    ran = kb("query", "Tast")
    assert "'Taste'" in ran.err
    git(ready, "switch", "-qc", "before", "HEAD")
    assert kb("delete", "T-1", "$ConceptType:Taste", "--yes").status == 0
    assert "There is no entity type 'Taste'" in kb("query", "Taste").err
    assert kb("query", "Taste", "--at", "1", "--json").json["total"] == 1


def test_a_broken_schema_names_file_and_line(kb, ready):
    write(ready, {".kb/schema/project.yaml": "entities:\n  fact: {colour: red}\n"})
    ran = kb("query")
    assert ran.status == 63
    assert ".kb/schema/project.yaml:2" in ran.err


def test_hooks_are_installed_looked_at_and_removed(kb, ready):
    states = [hook["state"] for hook in kb("hooks", "status", "--json").json["hooks"]]
    assert states == ["absent"] * 4
    assert kb("hooks", "status").err == "Run `kb hooks install`.\n", "once, not for each hook"
    assert [hook["action"] for hook in kb("hooks", "install", "--json").json["hooks"]] == ["created"] * 4
    assert kb("hooks", "status").out.startswith("Hook post-checkout: active (")
    assert [hook["action"] for hook in kb("hooks", "uninstall", "--json").json["hooks"]] == ["deleted"] * 4
    answer = kb("hooks", "install", "--hooks-path", "hooks", "--json", cwd=ready).json
    assert answer["hooks"][0]["path"] == str(ready / "hooks/post-checkout")


def test_a_new_entity_is_told_alike_between_branches_and_between_seqs(kb, synced):
    git(synced, "branch", "topic")
    kb("branch", "ensure", "topic")
    kb("apply", "-", "--branch", "topic", stdin='{"entities":[{"id":"A","type":"req","title":"T","status":"open"}]}')
    assert kb("branch", "diff", "main", "topic").out == kb("diff", "1", "2", "--branch", "topic").out


def test_a_store_that_is_gone_is_named_by_every_command_until_a_person_accepts_it(kb, synced):
    kb("query")
    shutil.rmtree(stores_at(synced) / "main")
    said = "The store of main is gone. seen: 1, now: no store; record 1 is missing."
    ran = kb("status")
    assert (ran.status, said in ran.err, "Next:" in ran.out) == (0, True, False)
    assert kb("status", "--json").json["missing"][0]["seen"] == 1
    for command in (("query",), ("sync",), ("verify",), ("doctor",), ("apply", "-")):
        ran = kb(*command, stdin="{}")
        assert (ran.status, said in ran.out + ran.err) == (45, True), command
    for command in (("branch", "list"), ("hooks", "status"), ("schema",), ("gc", "--dry-run")):
        assert said in kb(*command, "-q").err, command
    shutil.rmtree(synced / ".kb")
    ran = kb("init", "--no-hooks")
    assert (ran.status, said in ran.err) == (45, True)
    refused = kb("doctor", "--new-epoch")
    assert (refused.status, said in refused.err, "--yes" in refused.err) == (2, True, True)
    accepted = kb("doctor", "--new-epoch", "--yes")
    assert (accepted.status, "changeset that is sent again is applied again" in accepted.out) == (0, True)
    assert kb("query", "-q").err == ""
    assert "New epoch of the store" in kb("log").out


def test_a_store_that_went_back_is_read_with_a_warning_and_not_written_to(kb, synced):
    changeset = '{"entities":[{"id":"%s","type":"req","title":"T","status":"open"}]}'
    shutil.copytree(stores_at(synced) / "main", synced / "older")
    kb("apply", "-", stdin=changeset % "A")
    shutil.rmtree(stores_at(synced) / "main")
    (synced / "older").rename(stores_at(synced) / "main")
    said = "The store of main went back to an earlier state. seen: 2, now: 1; record 2 is missing."
    for command in (("query",), ("status",), ("log",), ("show", "1"), ("check", "--fail-on", "never"), ("schema",)):
        ran = kb(*command, "-q")
        assert (ran.status, said in ran.err) == (0, True), command
    ran = kb("apply", "-", "--json", stdin=changeset % "B")
    assert (ran.status, ran.error["code"], ran.error["applied"]) == (45, "store_went_back", "no")
    assert (kb("verify").status, kb("doctor").status, kb("compact").status) == (45, 45, 45)
    hook = kb("hook", "post-checkout", "0", "1", "1")
    assert (hook.status, said in hook.err) == (0, True)
    assert kb("doctor", "--new-epoch", "--yes").status == 0
    assert kb("apply", "-", "-q", stdin=changeset % "A").err == ""


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_refusal_names_a_loss_and_its_remedy_once(kb, synced, tmp_path, is_gone):
    went_back(kb, synced, tmp_path / "kb.backup")
    if is_gone:
        shutil.rmtree(stores_at(synced) / "main")
    changeset = '{"entities":[{"id":"B","type":"req","title":"T","status":"open"}]}'
    upsert = 'UPSERT { CONCEPT {{type: "Person", name: "Ann"} SET ATTRIBUTES {person_class: "Human"}} }'
    refused = [kb("apply", "-", stdin=changeset), kb("compact"), kb("delete", "REQ-1"), kb("rollback", "--to", "1")]
    if is_gone:
        refused += [kb("query"), kb("check"), kb("log"), kb("export"), kb("kip", upsert)]
    for ran in refused:
        assert ran.status == 45, ran
        said = (ran.err.count("The store of main"), ran.err.count("kb doctor --new-epoch"))
        assert said == (1, 1), ran


def went_back(kb, root: Path, backup: Path) -> None:
    """Back up a store, write one record more, and put the store back to the state of the backup."""
    changeset = '{"entities":[{"id":"%s","type":"req","title":"T","status":"open"}]}'
    assert kb("backup", str(backup)).status == 0
    shutil.copytree(stores_at(root) / "main", root / "older")
    kb("apply", "-", stdin=changeset % "A")
    shutil.rmtree(stores_at(root) / "main")
    (root / "older").rename(stores_at(root) / "main")


def test_the_advice_for_a_store_that_went_back_leads_to_a_working_store_wherever_the_backup_ends(kb, synced, tmp_path):
    changeset = '{"entities":[{"id":"B","type":"req","title":"T","status":"open"}]}'
    backup = tmp_path / "kb.backup"
    went_back(kb, synced, backup)
    said = kb("apply", "-", "--json", stdin=changeset).error
    assert said["message"].count("Nothing w") == 1
    [advice] = re.findall(r"`kb (restore FILE [^`]*)`", said["hint"])
    words = [str(backup) if word == "FILE" else word for word in advice.split()]
    dry = kb(*words, "--dry-run")
    assert "main: the store would get a new id; the changeset id of record 2 would be forgotten." in dry.err
    assert "has a new id" not in dry.err
    done = kb(*words)
    assert (done.status, "the changeset id of record 2 is forgotten." in done.err) == (0, True)
    ran = kb("apply", "-", stdin=changeset)
    assert (ran.status, "went back" in ran.err) == (0, False)
    assert kb("doctor").status == 0
    log = " ".join(kb("log").out.split())
    assert "Record 2 is lost. Its changeset id is forgotten" in log


ADVICE = r"`kb ((?:restore|branch restore|doctor) [^`]*)`"
WRITE = '{"entities":[{"id":"B","type":"req","title":"T","status":"open"}]}'


def emptied(root: Path, what: str) -> None:
    """Delete what is in the folder of all stores, or in that of one, and keep the folder."""
    folder = stores_at(root) if what == "all" else stores_at(root) / "main"
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.mark.parametrize("what", ["all", "one"])
@pytest.mark.parametrize("command", [("apply", "-", "--json"), ("query", "--json")])
def test_each_advice_for_an_emptied_folder_leads_to_a_working_store(kb, synced, tmp_path, what, command):
    backup = tmp_path / "kb.backup"
    assert kb("backup", str(backup)).status == 0
    emptied(synced, what)
    hint = kb(*command, stdin=WRITE).error["hint"]
    # The salvage is for a journal that is damaged as well.
    advices = [one for one in re.findall(ADVICE, hint) if "--salvage" not in one]
    assert sorted(one.split()[0] for one in advices) == ["doctor", "restore"], hint
    for advice in advices:
        if what == "one" and advice.startswith("doctor"):
            assert "or remove it" in hint
            shutil.rmtree(stores_at(synced) / "main")
        words = [str(backup) if word == "FILE" else word for word in shlex.split(advice)]
        done = kb(*words, *(["--yes"] if "--new-epoch" in words else []))
        assert done.status == 0, (advice, done.err)
        ran = kb("apply", "-", stdin=WRITE)
        assert (ran.status, "is gone" in ran.err) == (0, False), (advice, ran.err)
        assert kb("doctor").status == 0
        emptied(synced, what)
        shutil.rmtree(stores_at(synced) / ".trash", ignore_errors=True)


def test_the_advice_for_a_lost_branch_means_that_branch_and_not_the_one_that_is_checked_out(kb, synced):
    git(synced, "branch", "topic")
    kb("query")
    kb("apply", "-", "--branch", "topic", stdin=WRITE)
    emptied(synced, "all")
    for branch in ("topic", "main"):
        [advice, _] = re.findall(r"`kb (doctor [^`]*)`", kb("query", "--branch", branch, "--json").error["hint"])
        assert kb(*shlex.split(advice), "--yes").status == 0
    assert kb("doctor").status == 0


@pytest.mark.parametrize("command", ["status", "branch list", "gc"])
def test_each_command_that_names_a_loss_says_what_to_do(kb, synced, command):
    kb("query")
    emptied(synced, "all")
    ran = kb(*command.split())
    said = " ".join(ran.err.split())
    assert "The store of main is gone" in said
    assert said.count("`kb doctor --new-epoch --branch main`") == 1
    assert "kb sync" not in ran.out + ran.err


@pytest.mark.parametrize("option", ["--rebuild-head", "--rebuild-snapshots", "--salvage"])
def test_a_repair_of_a_store_that_is_gone_says_that_it_is_and_what_to_do(kb, synced, option):
    kb("query")
    emptied(synced, "all")
    refused = kb("doctor", option, "--json").error
    assert (refused["code"], "`kb doctor --new-epoch --branch main`" in refused["hint"]) == ("store_went_back", True)


def test_a_store_that_vanishes_after_a_restore_comes_back_from_the_trash_by_the_advice(kb, synced, tmp_path):
    kb("apply", "-", stdin=WRITE)
    kb("backup", str(tmp_path / "kb.backup"))
    kb("restore", str(tmp_path / "kb.backup"), "--replace")
    shutil.rmtree(stores_at(synced) / "main")
    refused = kb("apply", "-", "--json", stdin=WRITE).error
    assert refused["code"] == "store_went_back"
    [advice, *_] = re.findall(r"`kb (branch restore [^`]*)`", refused["hint"])
    assert kb(*shlex.split(advice)).status == 0
    assert kb("apply", "-", "--json", stdin=WRITE).json["seq"] == 2


def test_a_damaged_store_in_the_trash_comes_back_only_by_the_option_and_is_named(kb, synced, tmp_path):
    kb("backup", str(tmp_path / "kb.backup"))
    kb("restore", str(tmp_path / "kb.backup"), "--replace")
    [trashed] = (stores_at(synced) / ".trash").iterdir()
    (trashed / "head.json").write_bytes(b"{}")
    said = kb("doctor")
    assert (said.status, "does not prove" in said.out) == (0, True)
    refused = kb("branch", "restore", "main", "--json").error
    assert (refused["code"], "--even-damaged" in refused["hint"]) == ("journal_corrupt", True)
    assert kb("query").status == 0
    back = kb("branch", "restore", "main", "--even-damaged")
    assert (back.status, "main is damaged: `kb doctor` says how" in back.err) == (0, True)
    assert kb("branch", "restore", "main").status == 0
    assert kb("query").status == 0


def test_what_nobody_has_accepted_is_not_said_to_be(kb, synced, tmp_path):
    went_back(kb, synced, tmp_path / "kb.backup")
    refused = kb("doctor", "--new-epoch", "--json").error
    assert (refused["code"], "accepted" in refused["message"]) == ("invalid_query", False)
    assert "Its changeset id is forgotten" in refused["message"]
    assert kb("doctor", "--new-epoch", "--yes").status == 0
    assert "A person accepted the loss." in " ".join(kb("log").out.split())


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_backup_is_neither_streamed_nor_without_a_name(kb, synced, command):
    for name in ("-", ""):
        refused = kb(command, "--json", "--", name)
        assert (refused.status, refused.error["code"]) == (2, "invalid_query")
        assert "kb backup ../kb.backup" in refused.error["hint"]
    assert not (synced / "-").exists()


def test_a_pattern_among_the_branches_of_a_backup_is_named_as_matching_nothing(kb, synced, tmp_path):
    backup = str(tmp_path / "kb.backup")
    refused = kb("backup", backup, "--only", "main", "--only", "ma*", "--json")
    assert (refused.status, refused.error["message"]) == (62, "'ma*' has no store to back up.")
    assert "main" in refused.error["hint"]
    assert kb("backup", backup).status == 0
    refused = kb("restore", backup, "--only", "*", "--dry-run", "--json")
    assert (refused.status, refused.error["message"]) == (62, "The backup holds no branch '*'.")


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


def test_a_branch_whose_reflog_is_gone_is_in_doubt(kb, synced):
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
