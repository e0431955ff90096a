"""Private facts stay private where the settings that say it are not checked out, and where they came later."""

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


def test_the_settings_of_head_are_in_force_where_git_cannot_read_its_index(kb, synced, apply):
    restrict(synced, kb)
    commit_files(synced, {".kb/config.json.old": "not JSON"})
    apply("eve", {"id": "NOTE-1", **SYMBOL, "title": MARKER})
    (synced / ".kb/config.json").unlink()
    (synced / ".git/index").write_bytes(b"DIRC")
    assert kb("config", "get", "share.actors").out.strip() == '["ann"]'
    assert kb("query", "--id", "NOTE-1", "--json").status == 0


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


@pytest.fixture
def by(kb, user):
    """Run ``kb`` as somebody: ``by("eve", "set", …)``; it must succeed."""

    def run(actor, *words, stdin=""):
        user.setenv("KB_ACTOR", actor)
        ran = kb(*words, stdin=stdin)
        user.setenv("KB_ACTOR", "ann")
        assert ran.status == 0, (words, ran)
        return ran

    return run


def test_what_was_private_on_its_own_branch_stays_private_on_one_without_the_setting(kb, synced, up, by):
    git(synced, "branch", "before")
    restrict(synced, kb)
    by("eve", "apply", "-", stdin=json.dumps({"entities": [{"id": "NOTE-1", **SYMBOL, "title": MARKER}]}))
    git(synced, "switch", "--quiet", "before")
    kb("config", "set", "share.mode", "ask")
    kb("branch", "ensure")
    assert reasons(kb) == {2: "private_when_written"}
    assert kb("share").status == 0
    assert kb("push").status == 0
    assert not marked_files(synced)
    assert not is_in_objects(up)
    said = kb("share", "--list").out
    assert "1 change of eve was, or may have been, private when written: `kb share --actor eve` shares it." in said
    assert kb("status", "--json").json["sharing"]["private"] == 1

    assert kb("share", "--actor", "eve").status == 0, "to name the actor is to release it"
    assert len(marked_files(synced)) == 1
    assert reasons(kb) == {2: ""}


def test_a_change_that_another_branch_takes_over_keeps_where_it_was_written(kb, synced, up, by):
    git(synced, "switch", "--quiet", "-c", "before")
    kb("branch", "ensure")
    git(synced, "switch", "--quiet", "main")
    restrict(synced, kb)
    carry_out(by, CASES["a revert of one's own change of a private value"][:-1])
    assert list(reasons(kb).values()) == ["", "private_actor", "", "private_restored"]
    git(synced, "switch", "--quiet", "before")
    by("ann", "merge", "main")
    assert sorted(one["reason"] for one in kb("share", "--list", "--json").json["unshared"]) == [
        "", "", "private_restored", "private_when_written",
    ]  # fmt: skip
    kb("share")
    kb("push")
    assert not marked_files(synced)
    assert not is_in_objects(up)


def forget_amended(root):
    """Amend the last commit, and have git remove what was there before."""
    git(root, "commit", "--quiet", "--amend", "--allow-empty", "-m", "amended")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "--quiet", "--prune=now")


def write_notes(by, *actors):
    for actor in actors:
        note = {"id": f"NOTE-{actor}", **SYMBOL, "title": MARKER if actor == "eve" else "A note"}
        by(actor, "apply", "-", stdin=json.dumps({"entities": [note]}))


def test_what_was_written_at_a_commit_that_is_gone_is_judged_by_all_settings_of_the_history(kb, synced, up, by):
    git(synced, "branch", "before")
    restrict(synced, kb)
    write_notes(by, "eve", "ann")
    forget_amended(synced)
    git(synced, "switch", "--quiet", "before")
    kb("config", "set", "share.mode", "ask")
    kb("branch", "ensure")
    assert reasons(kb) == {2: "private_when_written", 3: ""}
    assert kb("share").status == 0
    assert kb("push").status == 0
    assert not marked_files(synced)
    assert not is_in_objects(up)
    kb("share", "--actor", "eve")
    assert len(marked_files(synced)) == 1, "to name the actor is to release it"


def test_a_repository_without_restrictions_shares_what_was_written_at_a_commit_that_is_gone(kb, synced, by):
    kb("config", "set", "share.mode", "ask")
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "All is shared")
    write_notes(by, "eve", "ann")
    forget_amended(synced)
    assert reasons(kb) == {2: "", 3: ""}


def test_what_was_written_while_another_branch_was_checked_out_is_judged_by_all_settings(kb, synced, up, by):
    git(synced, "branch", "before")
    kb("branch", "ensure", "before")
    restrict(synced, kb)
    for actor in ("eve", "ann"):
        note = {"id": f"NOTE-{actor}", **SYMBOL, "title": MARKER if actor == "eve" else "A note"}
        by(actor, "apply", "-", "--branch", "before", stdin=json.dumps({"entities": [note]}))
    git(synced, "switch", "--quiet", "before")
    kb("config", "set", "share.mode", "ask")
    assert reasons(kb) == {2: "private_when_written", 3: ""}
    assert kb("share").status == 0
    assert kb("push").status == 0
    assert not marked_files(synced)
    assert not is_in_objects(up)
    kb("share", "--actor", "eve")
    assert len(marked_files(synced)) == 1


def test_what_a_fetch_brought_is_judged_by_all_settings(kb, synced, up, by):
    kb("config", "set", "share.mode", "ask")
    write_notes(by, "eve", "ann")
    assert kb("push").status == 0
    clone = synced.parent / "clone"
    git(synced, "push", "--quiet", "origin", "HEAD:refs/heads/public")
    git(synced.parent, "clone", "--quiet", "--branch", "public", str(up), str(clone))
    git(clone, "branch", "--quiet", "-m", "main")
    git(clone, "switch", "--quiet", "-c", "restricted")
    assert kb("init", cwd=clone).status == 0
    settings = clone / ".kb/config.json"
    settings.write_text('{"share": {"mode": "ask", "actors": ["ann"]}}')
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "-m", "Only what ann writes is shared")
    git(clone, "switch", "--quiet", "main")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"share": {"mode": "ask"}}')
    assert kb("fetch", cwd=clone).status == 0
    unshared = kb("share", "--list", "--json", cwd=clone).json["unshared"]
    assert {one["actor"]: one["reason"] for one in unshared} == {"ann": "", "eve": "private_when_written"}


def test_a_change_that_was_in_a_committed_file_is_shared_again_whatever_settings_said_before(kb, synced, by):
    restrict(synced, kb)
    kb("config", "set", "share.actors", '["*"]')
    write_notes(by, "eve")
    assert kb("share", "--actor", "eve").status == 0
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "shared")
    kb("sync")
    [path] = marked_files(synced)
    change = json.loads(path.read_text().splitlines()[0])["change"]
    git(synced, "rm", "--quiet", path)
    git(synced, "commit", "--quiet", "-m", "taken back")
    kb("sync")
    assert kb("share", "--again", change).status == 0
    assert len(marked_files(synced)) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "private_when_written"),
        (b'{"share": {"actors": ["\xff"]}}', "private_when_written"),
        (b'{"share": {"actrs": ["ann"]}}', "private_when_written"),
        (b'{"anything": {}}', ""),
    ],
)
def test_settings_of_a_commit_that_cannot_be_read_share_nothing_that_was_written_at_it(kb, synced, by, text, reason):
    (synced / ".kb/config.json").write_bytes(text)
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "Settings")
    (synced / ".kb/config.json").write_text('{"share": {"mode": "ask"}}')
    write_notes(by, "eve")
    assert reasons(kb) == {2: reason}


def test_settings_of_a_commit_that_are_not_in_this_clone_share_nothing_and_those_of_others_count(kb, synced, by):
    blobs = []
    for number in (1, 2, 3):
        kb("config", "set", "share.mode", "ask")
        kb("config", "set", "share.actors", json.dumps(["ann", f"ann-{number}"]))
        git(synced, "add", "--all")
        git(synced, "commit", "--quiet", "-m", "Settings")
        blobs.append(git(synced, "rev-parse", "HEAD:.kb/config.json"))
        write_notes(by, "eve") if number == 1 else by("eve", "set", "NOTE-eve", f"owner={number}")
    kb("config", "unset", "share.actors")
    (synced / ".git/objects" / blobs[1][:2] / blobs[1][2:]).unlink()
    assert reasons(kb) == dict.fromkeys((2, 3, 4), "private_when_written")


EVE_NOTE = ("eve", "apply", {"entities": [{"id": "NOTE-1", **SYMBOL, "title": MARKER}]})
PUBLIC = ("ann", "apply", {"entities": [{"id": "S-1", **SYMBOL, "tags": ["first"]}, {"id": "S-2", **SYMBOL}]})
EVE_EDGE = {"edges": [{"type": "relates_to", "kind": MARKER, "from": "S-1", "to": "S-2"}]}

CASES = {
    "a revert of one's own change of a private value": [
        PUBLIC, ("eve", "set", "S-1", f"owner={MARKER}"), ("ann", "set", "S-1", "owner=x"), ("ann", "revert", "4"),
        "private_restored",
    ],
    "a rollback to a private value": [
        PUBLIC, ("eve", "set", "S-1", f"owner={MARKER}"), ("ann", "set", "S-1", "owner=x"), ("ann", "rollback", "3"),
        "private_restored",
    ],
    "a revert of a deletion of an entity with a private value": [
        PUBLIC, ("eve", "set", "S-2", f"owner={MARKER}"), ("ann", "delete", "S-2"), ("ann", "revert", "4"),
        "private_restored",
    ],
    "a revert of a deletion of an entity with a private tag": [
        PUBLIC, ("eve", "set", "S-2", f"tags={MARKER}"), ("ann", "delete", "S-2"), ("ann", "revert", "4"),
        "private_restored",
    ],
    "a deletion of a private entity": [EVE_NOTE, ("ann", "delete", "NOTE-1"), "private_origin"],
    "a change of a private entity": [EVE_NOTE, ("ann", "set", "NOTE-1", "owner=x"), "private_origin"],
    "a rename of a private entity": [EVE_NOTE, ("ann", "rename", "NOTE-1", "NOTE-2"), "private_origin"],
    "an edge to a private entity": [
        PUBLIC, EVE_NOTE, ("ann", "link", "S-1", "relates_to:see_also", "NOTE-1"), "private_origin",
    ],
    "a change of what a hidden rename called so": [
        EVE_NOTE, ("ann", "rename", "NOTE-1", "NOTE-2"), ("ann", "set", "NOTE-2", "owner=x"), "private_origin",
    ],
    "a change of an entity that was renamed privately": [
        PUBLIC, ("eve", "rename", "S-1", MARKER), ("ann", "set", MARKER, "owner=x"), "private_origin",
    ],
    "a revert of a private rename": [
        PUBLIC, ("eve", "rename", "S-1", MARKER), ("ann", "revert", "3"), "private_origin",
    ],
    "a removal of a private tag": [
        PUBLIC, ("eve", "set", "S-1", f"tags=first,{MARKER}"), ("ann", "set", "S-1", "tags=first"), "private_origin",
    ],
    "a removal of a private field": [
        PUBLIC, ("eve", "set", "S-1", f"attributes.{MARKER}=1"), ("ann", "set", "S-1", f"attributes.{MARKER}="),
        "private_origin",
    ],
    "a revert of a private edge": [PUBLIC, ("eve", "apply", EVE_EDGE), ("ann", "revert", "3"), "private_origin"],
    "a value of a private edge": [
        PUBLIC, ("eve", "apply", EVE_EDGE),
        ("ann", "apply", {"edges": [{**EVE_EDGE["edges"][0], "confidence": 0.5}]}), "private_origin",
    ],
    "a revert of a removal of a private edge": [
        PUBLIC, ("eve", "apply", EVE_EDGE), ("ann", "revert", "3"), ("ann", "revert", "4"), "private_restored",
    ],
    "a merge of an entity with a private value": [
        PUBLIC, ("eve", "set", "S-2", f"attributes.note={MARKER}"),
        ("ann", "kip", 'MERGE CONCEPT ?x INTO ?y WHERE { ?x {id: "S-2"} ?y {id: "S-1"} }'), "private_restored",
    ],
    "a change of a private entity, whose id another one has now": [
        EVE_NOTE, ("ann", "set", "NOTE-1", f"owner={MARKER}"), ("ann", "delete", "NOTE-1"),
        ("ann", "apply", {"entities": [{"id": "NOTE-1", **SYMBOL}]}), "",
    ],
    "the same value stated by somebody else": [
        PUBLIC, ("eve", "set", "S-1", "owner=bob"), ("ann", "set", "S-1", "owner=x"),
        ("ann", "set", "S-1", "owner=bob"), "",
    ],
    "a revert to what was public before": [
        PUBLIC, ("ann", "set", "S-1", "owner=bob"), ("eve", "set", "S-1", f"owner={MARKER}"), ("ann", "revert", "4"),
        "",
    ],
    "a deletion of a public entity with private values": [
        PUBLIC, ("eve", "set", "S-2", f"owner={MARKER}"), ("ann", "delete", "S-2"), "",
    ],
}  # fmt: skip


def carry_out(by, steps):
    for actor, command, *words in steps:
        if command == "apply":
            by(actor, "apply", "-", stdin=json.dumps(words[0]))
        else:
            by(actor, command, *words)


@pytest.mark.parametrize("name", CASES)
def test_what_only_a_private_change_stated_is_in_no_other_one(kb, synced, up, by, name):
    *steps, reason = CASES[name]
    restrict(synced, kb)
    carry_out(by, steps)
    found = reasons(kb)
    assert found[max(found)] == reason, found
    kb("share")
    git(synced, "commit", "--quiet", "--allow-empty", "-m", "shared")
    kb("sync")
    assert reasons(kb) == {seq: why for seq, why in found.items() if why}, "what is in files counts as well"
    kb("push")
    assert not marked_files(synced)
    assert not is_in_objects(synced)
    assert not is_in_objects(up)


@pytest.mark.parametrize(("taken", "reason"), [(MARKER, "private_restored"), ("bob", "")])
def test_a_decision_for_a_private_value_is_private(kb, synced, up, by, taken, reason):
    restrict(synced, kb)
    carry_out(by, [PUBLIC])
    git(synced, "switch", "--quiet", "-c", "topic")
    kb("branch", "ensure")
    by("eve", "set", "S-1", f"owner={MARKER}")
    git(synced, "switch", "--quiet", "main")
    by("ann", "set", "S-1", "owner=bob")
    by("ann", "merge", "topic")
    [contested] = kb("resolve", "--json").json["conflicts"]
    number = 1 + [one["value"] for one in contested["values"]].index(taken)
    by("ann", "resolve", "S-1", "owner", "--take", str(number))
    found = reasons(kb)
    assert found[max(found)] == reason
    kb("share")
    kb("push")
    assert not marked_files(synced)
    assert not is_in_objects(up)


def test_what_a_committed_file_or_a_document_states_is_public(kb, synced, by):
    kb("config", "set", "share.mode", "ask")
    carry_out(by, [PUBLIC, ("eve", "set", "S-1", "owner=eve")])
    kb("share")
    restrict(synced, kb)
    carry_out(by, [("ann", "set", "S-1", "owner=x"), ("ann", "revert", str(kb("status", "--json").json["seq"] + 1))])
    assert set(reasons(kb).values()) == {""}, "what a committed file held is put back"

    carry_out(by, [("eve", "apply", {"entities": [{"id": "REQ-9", "type": "req", "title": "New", "status": "draft"}]})])
    by("ann", "link", "S-1", "relates_to:see_also", "REQ-9")
    assert [*reasons(kb).values()][-2:] == ["private_actor", "private_origin"]
    text = "---\nid: REQ-9\ntitle: New\nstatus: draft\n---\n"
    commit_files(synced, {"docs/requirements/REQ-9.md": text})
    kb("sync")
    assert [*reasons(kb).values()][-2:] == ["private_actor", ""]


def test_the_list_says_why_a_change_is_private(kb, synced, by):
    restrict(synced, kb)
    carry_out(by, CASES["a rollback to a private value"][:-1])
    by("ann", "set", "S-1", "owner=x")
    by("ann", "link", "S-1", "relates_to:see_also", "S-2")
    by("eve", "rename", "S-2", "S-9")
    by("ann", "set", "S-9", "owner=x")
    out = kb("share", "--list").out
    assert "private: put back" in out
    assert "Record 5 ('rollback to 3') is private: it puts owner of S-1 back as private changes alone stated it." in out
    assert "Record 9 ('set owner of S-9') is private: it names S-9, which private changes alone stated." in out


def test_a_change_of_an_entity_whose_file_is_gone_is_judged_by_the_type_that_the_entity_had(kb, synced, by):
    kb("config", "set", "share.mode", "ask")
    kb("config", "set", "share.types", '["symbol"]')
    carry_out(by, [("ann", "apply", {"entities": [{"id": "S-1", "type": "symbol", "title": "1", "status": "active"}]})])
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "--quiet", "-m", "shared")
    kb("sync")
    by("ann", "set", "S-1", "owner=AKIA" + "IOSFODNN7EXAMPLQ")
    by("ann", "set", "S-1", "priority=high")
    git(synced, "rm", "-r", "--quiet", ".kb/changes")
    kb("sync")
    git(synced, "commit", "--quiet", "-m", "taken back")
    assert [*reasons(kb).values()] == ["secret", ""]


def test_what_was_written_of_an_entity_of_a_private_type_stays_private_under_the_same_id(kb, synced, up, by):
    note = {"id": "N-1", "type": "note", "title": "1", "status": "active"}
    kb("config", "set", "share.mode", "ask")
    kb("config", "set", "share.types", '["symbol"]')
    carry_out(by, [("ann", "apply", {"entities": [note]}), ("ann", "set", "N-1", f"owner={MARKER}")])
    carry_out(by, [("ann", "delete", "N-1"), ("ann", "apply", {"entities": [{"id": "N-1", **SYMBOL}]})])
    assert [*reasons(kb).values()] == ["private_type"] * 3 + [""]
    kb("share")
    kb("push")
    assert not marked_files(synced)
    assert not is_in_objects(up)


@pytest.mark.parametrize("is_committed", [False, True])
def test_what_was_written_while_an_entity_had_a_private_type_stays_private(kb, synced, up, by, is_committed):
    kb("config", "set", "share.mode", "ask")
    carry_out(by, [("ann", "apply", {"entities": [{"id": "S-1", **SYMBOL}]})])
    if is_committed:
        by("ann", "set", "S-1", "type=note")
        kb("share")
    git(synced, "commit", "--quiet", "--allow-empty", "-m", "shared")
    kb("sync")
    kb("config", "set", "share.types", '["symbol"]')
    if not is_committed:
        by("ann", "set", "S-1", "type=note")
    by("ann", "set", "S-1", f"owner={MARKER}")
    by("ann", "set", "S-1", "type=symbol")
    by("ann", "set", "S-1", "owner=ann")
    assert [*reasons(kb).values()][-3:] == ["private_type", "", ""]
    kb("share")
    kb("push")
    assert not marked_files(synced)
    assert not is_in_objects(up)
