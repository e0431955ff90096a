"""`kb gc` and the trash: what exists nowhere any more is put away, proven and emptied."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.support.processes.cli import LOGIN, write
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import add_worktree, commit_files, git


@pytest.mark.sliced
def test_gc_removes_what_exists_nowhere_any_more(kb, synced):
    commit_files(synced, {"x": "1"})
    git(synced, "switch", "-q", "-c", "gone")
    kb("branch", "ensure")
    git(synced, "switch", "-q", "main")
    git(synced, "branch", "-q", "-D", "gone")
    assert kb("gc", "--dry-run").out == "would move gone to the trash\n1 store kept.\n  main: the default branch\n"
    dry = {"removed": ["gone"], "kept": ["main"], "dry_run": True}
    trash = [{"name": "gone", "records": 0, "facts": 0, "unshared": 0, "place": "", "renamed_to": ""}]
    reasons = {"main": "the default branch"}
    nothing = {"documents": 0, "unfinished": 0, "reports": 0, "notes": [], "warnings": []}
    expected = dry | {"trash": trash, "reasons": reasons} | nothing
    assert kb("gc", "--dry-run", "--json").json == expected
    done = kb("gc", "--json").json
    assert (done["removed"], done["kept"], done["dry_run"]) == (["gone"], ["main"], False)
    assert done["trash"][0]["place"].startswith(str(stores_at(synced) / ".trash/gone~"))
    assert kb("gc").out == "Nothing to remove; 1 store kept.\n  main: the default branch\n"


@pytest.mark.sliced
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


@pytest.mark.sliced
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


@pytest.mark.sliced
def test_gc_names_what_is_lost_sight_of_and_the_command_that_brings_it_back(kb, synced):
    git(synced, "branch", "gone")
    write(synced, {"change.json": '{"entities": [{"id": "X", "type": "req", "title": "X", "status": "open"}]}'})
    assert kb("apply", "change.json", "--branch", "gone").status == 0
    git(synced, "branch", "-q", "-D", "gone")
    dry = kb("gc", "--dry-run")
    assert dry.out == "would move gone to the trash\n1 store kept.\n  main: the default branch\n"
    said = "Clients wrote 1 fact on gone that main has not; "
    assert dry.err == f"warning: {said}`kb merge gone --branch main` brings them.\n"
    ran = kb("gc")
    assert ran.status == 0
    assert f"{said}the store is kept in " in ran.err
    assert "`kb branch restore gone` brings it back." in ran.err
    back = kb("branch", "restore", "gone")
    assert back.out == "gone: is back, at seq 2\n"
    assert "git has no branch gone" in back.err
    assert kb("show", "X", "--branch", "gone").status == 0
    would = kb("merge", "gone", "--branch", "main", "--dry-run")
    assert would.out == "Would change main at seq 1: 1 created. 1 change of gone would be merged.\n"
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
    reported = kb("verify")
    assert (reported.status, reported.err) == (
        0,
        "note: 1 store in the trash is not proven; `kb branch trash --verify` does it.\n",
    )
    assert kb("verify", "--json").json["trash_not_proven"] == 1
    head.write_bytes(whole)
    emptied = kb("gc", "--empty-trash").out
    assert emptied.startswith("1 store left in the trash.\n  gone: stays until 20")
    assert "`--older-than DAYS`" in emptied
    [waiting] = kb("gc", "--empty-trash", "--older-than", "30", "--json").json["emptied"]["waiting"]
    assert (waiting["branch"], len(waiting["until"])) == ("gone", 10)
    assert "would delete the store of gone" in kb("gc", "--empty-trash", "--older-than", "0", "--dry-run").out
    assert kb("gc", "--older-than", "0").status == 2
    for days in ("-5", "36501"):
        refused = kb("gc", "--empty-trash", "--older-than", days)
        assert (refused.status, f"--older-than must be from 0 to 36500, not {days}." in refused.err) == (2, True)
    done = kb("gc", "--empty-trash", "--older-than", "0", "--json").json["emptied"]
    assert ([one["branch"] for one in done["deleted"]], done["left"]) == (["gone"], 0)
    assert kb("branch", "restore", "gone").status == 62


@pytest.mark.sliced
def test_a_store_left_by_a_forced_rename_is_named_on_use_and_by_gc(kb, synced):
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


@pytest.mark.sliced
def test_gc_of_a_branch_with_changes_that_are_not_shared_says_how_many(kb, synced):
    kb("config", "set", "share.mode", "ask")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "settings")
    git(synced, "switch", "-q", "-c", "gone")
    kb("branch", "ensure")
    for number in range(3):
        entity = {"id": f"S-{number}", "type": "symbol", "title": "One", "status": "active"}
        kb("apply", "-", stdin=json.dumps({"entities": [entity]}))
    kb("share")
    git(synced, "commit", "-q", "-m", "shared")
    kb("sync")
    for number in range(2):
        kb("apply", "-", stdin=json.dumps({"entities": [{"id": f"S-{number}", "owner": "ann"}]}))
    git(synced, "switch", "-q", "-f", "main")
    git(synced, "branch", "-q", "-D", "gone")
    assert kb("gc", "--dry-run", "--json").json["trash"][0]["unshared"] == 2
    said = kb("gc")
    assert "Clients wrote 3 facts on gone that main has not (2 changes not shared); the store is kept in" in said.err
