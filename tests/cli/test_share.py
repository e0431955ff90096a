"""``kb share`` and what ``kb status`` and ``kb init`` say of it: what is shared, by whom, and what stays here."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from kbcore.model.claims import change_file
from kbcore.model.claims.change import SELF, Change, Create, EntityRef, SetField, identified
from tests.support.processes.cli import write
from tests.support.repository.places import caches_at
from tests.support.repository.repos import commit_files, git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}
SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


@pytest.fixture
def apply(kb, user):
    def by(actor, *entities, message=""):
        user.setenv("KB_ACTOR", actor)
        ran = kb("apply", "-", stdin=json.dumps({"entities": list(entities), "message": message}))
        assert ran.status == 0, ran
        user.setenv("KB_ACTOR", "tester")

    return by


def change_files(root):
    return sorted(str(path.relative_to(root)) for path in (root / ".kb/changes").rglob("*.jsonl"))


def actors_in(root):
    first = [json.loads((root / name).read_text().splitlines()[0]) for name in change_files(root)]
    return sorted(one["actor"] for one in first)


def listed(kb):
    found = kb("share", "--list", "--json").json
    return [(one["seq"], one["actor"], one["reason"], bool(one["file"])) for one in found["unshared"]], [
        one["change"] for one in found["withdrawn"]
    ]


def test_a_dry_run_lists_what_is_there_by_actor_and_only_one_of_them_can_be_shared(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    apply("ann", {"id": "S-2", **SYMBOL})
    apply("zoe", {"id": "S-3", **SYMBOL})
    dry = kb("share", "--dry-run").out.splitlines()
    assert [line.rpartition(": ")[2] for line in dry] == ["2 changes of ann.", "1 change of zoe."]
    assert change_files(synced) == []

    kb("share", "--actor", "zoe")
    assert actors_in(synced) == ["zoe"]
    assert listed(kb)[0] == [(2, "ann", "", False), (3, "ann", "", False), (4, "zoe", "", True)]
    kb("share", "--actor", "ann", "--actor", "zoe")
    assert actors_in(synced) == ["ann", "zoe"]


def test_an_actor_without_changes_is_refused(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    ran = kb("share", "--actor", "bob")
    assert ran.status != 0
    assert ran.err.startswith("error: 'bob' has no change that is not shared.")
    assert change_files(synced) == []


def test_the_list_says_what_keeps_a_change_and_what_was_taken_back(kb, synced, apply):
    kb("config", "set", "share.actors", '["ann", "bob"]')
    apply("ann", {"id": "S-1", **SYMBOL}, message="Learnt")
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    kb("sync")
    assert listed(kb) == ([], [])
    [name] = change_files(synced)
    change = json.loads((synced / name).read_text().splitlines()[0])["change"]
    git(synced, "rm", "-q", name)
    git(synced, "commit", "-q", "-m", "taken back")
    kb("sync")
    apply("bob", {"id": "S-2", **SYMBOL, "owner": SECRET})
    apply("eve", {"id": "S-3", **SYMBOL})
    unshared, withdrawn = listed(kb)
    assert [(actor, reason) for _, actor, reason, _ in unshared] == [("bob", "secret"), ("eve", "private_actor")]
    assert withdrawn == [change]
    said = kb("share", "--list")
    assert [word in said.out for word in ("refused: secret", "private: actor", change[:12], "Learnt")] == [True] * 4
    assert SECRET not in said.out + said.err
    assert kb("share", "--again", change[:12]).status != 0, "bob's change is still refused"
    assert change_files(synced) == [name]


@pytest.fixture
def withdrawn(kb, synced, apply):
    """The id of a change of ann with the owner zoe, whose committed file is gone."""
    apply("ann", {"id": "S-1", **SYMBOL, "owner": "zoe"})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    kb("sync")
    git(synced, "rm", "-q", *change_files(synced))
    git(synced, "commit", "-q", "-m", "taken back")
    kb("sync")
    [change] = listed(kb)[1]
    return change


def test_each_answer_in_a_sparse_clone_says_that_it_lacks_the_change_files(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    there = synced.parent / "sparse"
    git(synced.parent, "clone", "-q", "--no-checkout", str(synced), str(there))
    git(there, "sparse-checkout", "set", "docs")
    git(there, "checkout", "-q", "main")
    lacking = "git has change files here and leaves them out of the worktree"
    for _ in ("before the sync", "after it"):
        for words in (("show", "S-1"), ("query", "symbol"), ("kip", 'FIND(?s) WHERE { ?s {type: "Symbol"} }')):
            assert lacking in kb(*words, cwd=there).err, words
        assert kb("query", "symbol", "--json", cwd=there).json["freshness_reason"].startswith(lacking)
        kb("sync", cwd=there)


def test_a_change_whose_file_head_has_again_is_not_listed_as_taken_back(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    kb("sync")
    git(synced, "reset", "-q", "--hard", "HEAD~1")
    kb("sync")
    assert len(listed(kb)[1]) == 1
    git(synced, "reset", "-q", "--hard", "HEAD@{1}")
    assert listed(kb) == ([], [])


@pytest.mark.parametrize("is_only_file", [True, False])
def test_a_change_whose_file_a_reset_took_back_is_listed_and_shared_again_before_a_sync(
    kb, synced, apply, is_only_file
):
    for number in range(1 if is_only_file else 2):
        apply("ann", {"id": f"S-{number}", **SYMBOL})
        kb("share")
        git(synced, "add", "-A")
        git(synced, "commit", "-q", "-m", "shared")
        kb("sync")
    [*_, gone] = sorted(git(synced, "diff", "--name-only", "HEAD~1", "--", ".kb/changes/*/*.jsonl").split())
    git(synced, "reset", "-q", "--hard", "HEAD~1")
    unshared, [change] = listed(kb)
    assert unshared == []
    [file] = kb("share", "--again", change, "--json").json["files"]
    assert [file["path"], *(one["change"] for one in file["changes"])] == [gone, change]
    assert [reason for *_, reason, _ in listed(kb)[0]] == [""]
    assert kb("sync").status == 0
    assert kb("show", f"S-{number}").status == 0


def test_files_that_cannot_be_staged_are_said_to_be_written(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    (synced / ".git/index.lock").touch()
    ran = kb("share")
    assert ran.status == 67
    assert "1 change file was written. Nothing else was written." in ran.err
    assert "run `kb share` again: it stages the files." in ran.err
    assert len(change_files(synced)) == 1
    ran = kb("share")
    assert ran.status == 67
    assert "change file was written" not in ran.err
    (synced / ".git/index.lock").unlink()
    assert kb("share").status == 0
    assert ".kb/changes" in git(synced, "status", "--porcelain")


def test_an_entity_of_a_change_file_before_the_sync_is_said_to_be_of_one(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    there = synced.parent / "clone"
    git(synced.parent, "clone", "-q", str(synced), str(there))
    assert kb("show", "S-1", cwd=there).status == 0
    for words in (("set", "S-1", "owner=x"), ("rename", "S-1", "S-2"), ("link", "S-1", "relates_to", "REQ-1")):
        assert "'.kb/changes' states 'S-1', but it is not recorded yet." in kb(*words, cwd=there).err, words
    assert "no record of main has what was given as an id" in kb("redact", "S-1", "--field", "title", cwd=there).err


def test_a_change_that_is_named_twice_is_shared_again_once(kb, synced, withdrawn):
    [file] = kb("share", "--again", withdrawn, "--again", withdrawn[:12], "--json").json["files"]
    assert [one["change"] for one in file["changes"]] == [withdrawn]
    assert kb("sync").status == 0
    assert kb("check").status == 0


def test_a_private_change_is_not_shared_again(kb, synced, withdrawn):
    kb("config", "set", "share.actors", '["bob"]')
    found = kb("share", "--again", withdrawn, "--json").json
    assert found["files"] == []
    assert [(one["change"], one["reason"]) for one in found["withheld"]] == [(withdrawn, "private_actor")]
    assert not change_files(synced)


def test_the_list_takes_no_other_option_and_writes_nothing(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    assert kb("share", "--list", "--dry-run").status == 2
    assert not list(caches_at(synced).rglob("claims.db"))
    assert [seq for seq, *_ in listed(kb)[0]] == [2]
    assert not list(caches_at(synced).rglob("claims.db"))


def test_a_read_only_list_uses_the_index_that_is_there_and_adds_later_records(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    apply("ann", {"id": "S-2", **SYMBOL})
    [index] = caches_at(synced).rglob("claims.db")
    before = index.read_bytes()
    assert [seq for seq, *_ in listed(kb)[0]] == [2, 3]
    assert index.read_bytes() == before


def test_an_index_that_is_damaged_is_made_again(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    [index] = caches_at(synced).rglob("claims.db")
    for damage in (b"no database", index.read_bytes()[:5000], index.read_bytes()[:100] + b"\xff" * 9000):
        index.write_bytes(damage)
        apply("ann", {"id": "S-1", "owner": str(len(damage))})
        assert kb("share").status == 0
        opened = sqlite3.connect(index)
        assert opened.execute("pragma integrity_check").fetchall() == [("ok",)]
        opened.close()
    assert len(listed(kb)[0]) == 4


def values_before(root):
    lines = [json.loads(line) for name in change_files(root) for line in (root / name).read_text().splitlines()]
    return {one["now"]: one.get("was") for one in lines if one.get("field") == "owner"}


def test_the_value_before_is_written_for_reviews_if_it_is_shared_itself(kb, synced, apply):
    kb("config", "set", "share.actors", '["ann", "bob"]')
    apply("ann", {"id": "S-1", **SYMBOL, "owner": "first"})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    kb("sync")
    apply("ann", {"id": "S-1", "owner": "second"})
    apply("eve", {"id": "S-1", "owner": "private"})
    apply("bob", {"id": "S-1", "owner": "third"})
    kb("share")
    assert values_before(synced) == {"first": None, "second": "first", "third": None}
    assert not any("private" in (synced / name).read_text() for name in change_files(synced))


def test_a_value_that_takes_the_place_of_a_secret_is_shared_without_it(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    apply("ann", {"id": "S-1", "owner": SECRET})
    apply("ann", {"id": "S-1", "owner": "clean"})
    found = kb("share", "--json").json
    assert [(one["seq"], one["reason"]) for one in found["withheld"]] == [(3, "secret")]
    assert values_before(synced) == {"clean": None}
    assert not any(SECRET in (synced / name).read_text() for name in change_files(synced))


NAMED = {"id": "S-2", **SYMBOL}
HOLDERS = {
    "name of an attribute": {"entities": [{**NAMED, "attributes": {SECRET: 1}}]},
    "name within an attribute": {"entities": [{**NAMED, "attributes": {"a": {SECRET: 1}}}]},
    "key of metadata": {"entities": [{**NAMED, "metadata": {SECRET: 1}}]},
    "id": {"entities": [{**NAMED, "id": SECRET}]},
    "kind of an edge": {"edges": [{"type": "relates_to", "kind": SECRET, "from": "S-1", "to": "REQ-1"}]},
    "message": {"entities": [NAMED], "message": SECRET},
    "actor": {"entities": [NAMED]},
    "session": {"entities": [NAMED]},
}
"""Changesets with a secret, by the place of it."""


@pytest.mark.parametrize("where", HOLDERS)
def test_a_secret_is_refused_wherever_a_change_has_it_and_never_printed(kb, synced, apply, user, where):
    apply("ann", {"id": "S-1", **SYMBOL})
    user.setenv("KB_ACTOR", SECRET if where == "actor" else "ann")
    user.setenv("KB_SESSION", SECRET if where == "session" else "s")
    assert kb("apply", "-", stdin=json.dumps(HOLDERS[where])).status == 0
    said = kb("share", "--list")
    assert "refused: secret" in said.out
    assert "Record 3 " in said.err
    assert ("kb redact 3" in said.err) is (where in {"message", "name within an attribute"})
    assert SECRET not in said.out + said.err
    ran = kb("share")
    assert ran.status == 1
    assert SECRET not in ran.out + ran.err
    assert len(change_files(synced)) == 1
    assert not any(SECRET in (synced / name).read_text() for name in change_files(synced))


def test_a_secret_that_was_replaced_is_redacted_as_the_warning_says_and_all_is_shared(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL, "owner": SECRET})
    apply("ann", {"id": "S-1", "owner": "clean"})
    assert "`kb redact 2`" in kb("share").err
    assert kb("redact", "2", "--yes").status == 0
    assert kb("share").status == 0
    assert listed(kb)[0] == [(2, "ann", "", True), (3, "ann", "", True)]
    assert not any(SECRET in (synced / name).read_text() for name in change_files(synced))


def test_what_a_killed_process_left_beside_the_files_is_removed(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    [name] = change_files(synced)
    left = (synced / name).with_name(f".{name.rpartition('/')[2]}.kb-0123abcd")
    left.write_text("half of")
    kb("share", "--dry-run")
    assert left.exists()
    kb("share")
    assert not left.exists()
    assert change_files(synced) == [name]


def test_an_index_whose_damage_is_seen_only_when_it_is_read_is_made_again(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("share")
    [index] = caches_at(synced).rglob("claims.db")
    opened = sqlite3.connect(index)
    [[page]] = opened.execute("select rootpage from sqlite_master where name = 'change'").fetchall()
    [[size]] = opened.execute("pragma page_size").fetchall()
    opened.close()
    data = index.read_bytes()
    index.write_bytes(data[: (page - 1) * size] + b"\xff" * size + data[page * size :])
    assert len(listed(kb)[0]) == 1, "who may not write reads the journal"
    assert kb("share").status == 0
    opened = sqlite3.connect(index)
    assert opened.execute("pragma integrity_check").fetchall() == [("ok",)]
    opened.close()


@pytest.mark.parametrize(
    ("mode", "said"), [("off", "stays in this clone"), ("ask", "`kb share` writes"), ("auto", "`git commit` takes")]
)
def test_init_sets_how_changes_are_shared_and_says_what_that_means(kb, root, mode, said):
    assert said in kb("init", "--share", mode).out.splitlines()[-1]
    assert json.loads((root / ".kb/config.json").read_text())["share"]["mode"] == mode


def test_a_later_init_changes_that_and_nothing_else(kb, synced):
    write(synced, {".kb/config.json": '{\n  "defaultBranch": "main"\n}\n'})
    assert kb("init", "--share", "auto").status == 0
    assert json.loads((synced / ".kb/config.json").read_text()) == {"defaultBranch": "main", "share": {"mode": "auto"}}
    kb("init")
    assert json.loads((synced / ".kb/config.json").read_text())["share"] == {"mode": "auto"}
    assert kb("init", "--share", "perhaps").status == 2


def test_without_sharing_the_status_says_nothing_of_it_and_no_index_is_made(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    assert kb("status", "--json").json["sharing"] is None
    assert "shared" not in kb("status").out
    commit_files(synced, {"a.txt": "a"})
    for event in (("pre-commit",), ("post-commit",)):
        assert kb("hook", *event) == (0, "", "")
    assert not list(caches_at(synced).rglob("claims.db"))


def test_the_status_says_what_is_not_shared_by_actor_from_when_sharing_is_on(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    apply("ann", {"id": "S-2", **SYMBOL})
    apply("zoe", {"id": "S-3", **SYMBOL, "owner": SECRET})
    kb("config", "set", "share.mode", "ask")
    found = kb("status", "--json").json["sharing"]
    assert (found["mode"], found["unshared"], found["actors"]) == ("ask", 2, {"ann": 2})
    assert (found["refused"], found["private"], found["withdrawn"], found["contested"]) == (1, 0, 0, 0)
    out = kb("status").out
    assert "2 changes are not shared (2 of ann): `kb share` writes them." in out
    assert "1 change is not shared, because no file may hold it: `kb share --list` says why." in out
    assert "2 changes are not shared: `kb share` writes them." in kb("prime").out
    kb("share")
    assert kb("status", "--json").json["sharing"]["written"] == 2
    commits = "`git commit` of the files that hold them shares them; `kb share` stages these files."
    assert f"2 changes are not shared (2 of ann): {commits}" in kb("status").out
    assert commits in kb("doctor").out
    apply("ann", {"id": "S-4", **SYMBOL})
    both = "`kb share` writes 1 and stages the files of 2, and a commit shares them."
    assert f"3 changes are not shared (3 of ann): {both}" in kb("status").out


def test_after_sharing_was_turned_off_the_files_stay_and_hold(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("config", "set", "share.mode", "ask")
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    kb("init", "--share", "off")
    apply("ann", {"id": "S-2", **SYMBOL})
    kb("sync")
    assert len(change_files(synced)) == 1
    assert kb("show", "S-1").status == 0
    assert kb("status", "--json").json["sharing"]["unshared"] == 1
    assert "not shared" not in kb("status").out


def test_the_status_counts_contested_fields(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    git(synced, "switch", "-q", "-c", "topic")
    kb("branch", "ensure")
    apply("bob", {"id": "S-1", "title": "Theirs", "owner": "bob"})
    git(synced, "switch", "-q", "main")
    apply("ann", {"id": "S-1", "title": "Ours", "owner": "ann"})
    kb("merge", "topic")
    assert "2 fields are contested: `kb resolve` lists and settles them." in kb("status").out
    found = kb("status", "--json").json["sharing"]
    assert (found["mode"], found["unshared"], found["contested"]) == ("off", 0, 2)
    shutil.rmtree(caches_at(synced))
    assert kb("status", "--json").json["sharing"] == found


def test_a_file_with_what_no_client_can_say_is_refused_and_the_branch_stays_usable(kb, synced):
    claims = (Create("X-1"), SetField(EntityRef("X-1", (SELF,)), "tags", now="x", salt="s" * 16))
    change = identified(Change("", "2026-11-01T10:00:00.000000Z", "eve", "kb/x", claims))
    data = change_file.encode([change])
    place = synced / ".kb" / "changes" / change_file.file_path([change], data)
    place.parent.mkdir(parents=True)
    place.write_bytes(data)

    assert kb("sync").status == 0

    found = kb("check", "--json").json["violations"]
    assert any(
        "no client can say this" in one["message"] for one in found if one["source"] == f"{place.relative_to(synced)}"
    )
    assert kb("query", "--id", "X-1", "--json").json["entities"] == []
    place.unlink()
    assert kb("sync").status == 0
    assert "no client can say" not in kb("check").out


def test_a_record_that_only_notes_the_file_of_changes_has_nothing_to_undo(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    kb("config", "set", "share.mode", "ask")
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    noted = kb("sync", "--json").json["seq"]
    ran = kb("revert", str(noted))
    assert ran.status == 64
    assert ran.err == (
        f"error: Record {noted} changed no entity and no edge, only what is known of files: there is nothing to undo."
        f" Nothing was written.\nhint: `kb show {noted}` names the files. What they state is undone in them.\n"
    )
    assert kb("status", "--json").json["seq"] == noted


def test_a_change_that_is_shared_again_in_another_file_before_a_sync_is_not_withdrawn(kb, synced, apply):
    apply("ann", {"id": "S-1", **SYMBOL})
    apply("ann", {"id": "S-2", **SYMBOL})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "shared")
    kb("sync")
    git(synced, "reset", "-q", "--hard", "HEAD~1")
    [first, second] = listed(kb)[1]
    assert kb("share", "--again", first).status == 0
    assert listed(kb)[1] == [second]
    kb("sync")
    assert listed(kb)[1] == [second]
