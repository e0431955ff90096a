"""The backup of a branch in a ref of a real git remote: what it holds, what never gets there, and what comes back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import BackupDamaged, GitUnusable, InvalidQuery, KBError, NotFound, UnknownBranch
from kbcore.git import remotes
from kbcore.maintenance import redaction, redaction_preview
from kbcore.maintenance.epochs import accept
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, identified, redacted
from kbcore.share import backup_ref
from kbcore.share.backup_ref import Fetched, Pushed, RefContent, read_ref
from kbcore.share.sharing import share
from kbcore.store import backup_refs, branches
from tests.support.processes.cli import environment
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git, run_git

REF = "refs/kb/main"
SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def push(clone: Clone, remote: str = "origin", *, branch: str = "", dry_run: bool = False) -> Pushed:
    return backup_ref.push(clone.workspace(), branch or clone.branch, remote, dry_run=dry_run)


def fetch(clone: Clone, remote: str = "origin", *, dry_run: bool = False) -> Fetched:
    workspace = clone.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    found = backup_ref.fetch(workspace, choice.branch, remote, clone.author(), dry_run=dry_run)
    clone.note_own()
    return found


def content(clone: Clone, ref: str = REF) -> RefContent:
    return read_ref(clone.workspace(), "origin", ref)


def everything_in(up: Path) -> bytes:
    """Return the content of all objects of a repository."""
    words = ["git", "-C", str(up), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    return subprocess.run(words, capture_output=True, check=True).stdout


def set_ref(up: Path, files: dict[str, bytes], ref: str = REF) -> str:
    """Have a ref of the remote name a commit with these files, whatever it named."""
    tree = b""
    for path, data in files.items():
        words = ["git", "hash-object", "-w", "--stdin"]
        name = subprocess.run(words, input=data, capture_output=True, check=True, cwd=up).stdout.strip()
        tree += b"100644 blob %b\t%b\n" % (name, path.encode())
    made = (
        subprocess.run(["git", "mktree"], input=tree, capture_output=True, check=True, cwd=up).stdout.decode().strip()
    )
    commit = git(up, "commit-tree", made, "-m", "by hand")
    git(up, "update-ref", ref, commit)
    return commit


@pytest.fixture
def writing(ann: Clone) -> Clone:
    """The clone of ann with three changes that are in no file, one of them of bob."""
    ann.fact("FACT-2", tags=["new"])
    ann.link("FACT-2", "FACT-1")
    ann.actor = "bob"
    ann.add("FACT-1", title="By bob")
    ann.actor = "ann"
    return ann


def test_what_was_seen_in_a_file_that_was_never_committed_is_fetched(writing: Clone, bob: Clone) -> None:
    push(writing)
    writing.share()
    paths = [one for one in writing.changes() if one not in writing.committed()]
    for path in paths:
        (bob.root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(writing.root / path, bob.root / path)
    hold(bob)
    for path in paths:
        (bob.root / path).unlink()
    hold(bob)
    assert len(fetch(bob).merged.changes) == 3
    hold(bob)


def test_a_round_trip_brings_all_changes_with_their_writers_once(writing: Clone, bob: Clone) -> None:
    pushed = push(writing)
    assert (len(pushed.added), pushed.total) == (3, 3)
    assert content(writing).commit == pushed.commit
    fetched = fetch(bob)
    assert {one.actor for one in fetched.merged.changes} == {"ann", "bob"}
    assert (len(fetched.merged.changes), fetched.total) == (3, 3)
    hold(bob, writing)
    assert bob.facts() == writing.facts()
    again = fetch(bob)
    assert not again.merged.changes
    assert not again.merged.outcome.applied
    assert not push(bob).added
    hold(bob)


def test_a_push_without_news_pushes_nothing_and_a_dry_run_neither(writing: Clone, up: Path) -> None:
    assert len(push(writing, dry_run=True).added) == 3
    assert git(up, "for-each-ref", "refs/kb/") == ""
    first = push(writing)
    again = push(writing)
    assert (again.commit, again.added, again.total) == (first.commit, (), 3)
    writing.add("FACT-2", title="Later")
    later = push(writing)
    assert (len(later.added), later.total) == (1, 4)
    assert git(up, "rev-parse", f"{REF}~1") == first.commit


def test_months_without_news_keep_their_packs(writing: Clone, up: Path) -> None:
    push(writing)
    [path] = content(writing).files
    files = {**content(writing).files}
    old = [redacted(one) for one in change_file.decode(files[path], path).changes]
    made = change_file.encode_packs([*old, *(identified_in(one, "2020-01") for one in old[:1])])
    set_ref(up, made)
    writing.add("FACT-2", title="Later")
    push(writing)
    assert {name for name in content(writing).files if name in made} == {min(made)}


def identified_in(change: Change, month: str) -> Change:
    return identified(Change("", f"{month}{change.at[7:]}", change.actor, change.tool, change.claims))


def test_what_a_file_holds_is_not_pushed_and_nothing_is_doubled_when_it_is_shared_later(
    writing: Clone, bob: Clone
) -> None:
    push(writing)
    fetch(bob)
    writing.commit()
    assert not push(writing).added
    writing.push()
    bob.pull()
    hold(writing, bob)
    assert bob.facts() == writing.facts()
    assert not bob.workspace().changes("main").read(lambda index, seq: index.unshared(seq))


def test_a_lost_clone_gets_all_back(writing: Clone, clone: Callable[..., Clone]) -> None:
    before = writing.facts()
    push(writing)
    writing.close()
    shutil.rmtree(writing.root)
    again = clone("ann")
    assert len(fetch(again).merged.changes) == 3
    hold(again)
    assert again.facts() == before


def test_lost_stores_get_all_back_also_before_a_sync(writing: Clone) -> None:
    before = writing.facts()
    push(writing)
    writing.close()
    for place in (stores_at(writing.root), caches_at(writing.root)):
        shutil.rmtree(place)
    again = Clone(writing.root, "ann")
    accept(again.workspace(), "main", again.author())
    assert len(fetch(again).merged.changes) == 3
    hold(again)
    assert again.facts() == before
    again.close()


def test_private_changes_secrets_and_old_values_of_them_are_in_no_object_of_the_remote(
    writing: Clone, bob: Clone, up: Path
) -> None:
    (writing.root / ".kb/config.json").write_text('{"share": {"actors": ["ann"], "types": ["symbol"]}}')
    writing.actor = "eve"
    writing.add("FACT-1", title="Known to eve only", owner="private-owner")
    writing.actor = "ann"
    writing.add("FACT-1", title="Known to all")
    writing.fact("FACT-3", owner=SECRET)
    writing.apply(entities=[{"id": "T-1", "type": "test", "title": "private-type", "status": "active"}])
    pushed = push(writing)
    reasons = sorted(one.withheld for one in pushed.withheld)
    assert reasons == ["private_actor", "private_actor", "private_type", "secret"]
    found = everything_in(up)
    for text in ("Known to eve only", "private-owner", SECRET, "private-type", "By bob"):
        assert text.encode() not in found, text
    assert b"Known to all" in found
    # Private in this clone is what was taken over from another one, too.
    (bob.root / ".kb/config.json").write_text("{}")
    bob.actor = "eve"
    bob.add("FACT-1", owner="of eve in bob")
    git(bob.root, "fetch", "--quiet", "../ann")
    bob.git("remote", "add", "second", up.with_name("second.git"))
    git(up.parent, "init", "--quiet", "--bare", "second.git")
    push(bob, "second")
    fetch_from(writing, "../second.git")
    assert "of eve in bob" in str(writing.facts())
    push(writing)
    assert b"of eve in bob" not in everything_in(up)


def fetch_from(clone: Clone, remote: str) -> Fetched:
    clone.git("remote", "add", "second", (clone.root / remote).resolve())
    return fetch(clone, "second")


def test_values_of_both_sides_are_contested_after_a_fetch_and_a_decision_travels(ann: Clone, bob: Clone) -> None:
    for one in (ann, bob):
        one.add("FACT-1", title=f"By {one.actor}")
    push(ann)
    assert push(bob).total == 2
    for one in (ann, bob):
        assert fetch(one).merged.contested == 1
        hold(one)
        assert one.conflicts() == {("FACT-1", "title")}
    ann.resolve("FACT-1", "title", 1)
    push(ann)
    fetch(bob)
    hold(ann, bob)
    assert not bob.conflicts()
    assert bob.facts() == ann.facts()


def test_a_redacted_copy_in_the_ref_wins_and_stays(writing: Clone, clone: Callable[..., Clone], up: Path) -> None:
    push(writing)
    [(path, data)] = content(writing).files.items()
    hidden = [
        redacted(one, claims=range(9)) if one.actor == "bob" else one for one in change_file.decode(data, path).changes
    ]
    set_ref(up, change_file.encode_packs(hidden))
    writing.add("FACT-2", title="Later")
    push(writing)
    assert sum(b"By bob" in data for data in content(writing).files.values()) == 0
    other = clone("eve")
    fetch(other)
    hold(other)
    assert "By bob" not in str(other.facts())
    assert other.titles()["FACT-2"] == "Later"


def test_what_was_withdrawn_stays_so_in_this_clone_and_in_a_new_one(
    writing: Clone, clone: Callable[..., Clone]
) -> None:
    push(writing)
    writing.commit("shared")
    writing.git("reset", "--quiet", "--hard", "HEAD~1")
    hold(writing)
    assert "FACT-2" not in writing.titles()
    assert not fetch(writing).merged.changes
    push(writing)
    assert len(content(writing).withdrawn) == 3
    again = clone("eve")
    fetched = fetch(again)
    assert (len(fetched.merged.changes), fetched.withdrawn) == (0, 3)
    hold(again, writing)
    assert "FACT-2" not in again.titles()


def test_clones_that_push_at_once_lose_nothing(clone: Callable[..., Clone], up: Path) -> None:
    clones = [clone(f"c{number}") for number in range(4)]
    for one in clones:
        one.fact(f"FACT-{one.actor}")
        one.close()
    words = [sys.executable, "-c", "from kbcli.app import main; main()"]
    started = [
        subprocess.Popen([*words, "-C", str(one.root), "push"], env=environment(), stdout=subprocess.DEVNULL)
        for one in clones
    ]
    assert [one.wait() for one in started] == [0] * len(clones)
    assert content(clones[0]).changes.keys() == {key for one in clones for key in one.own["main"]}
    for one in clones:
        fetch(one)
        hold(one)
    assert len({str(sorted(one.facts())) for one in clones}) == 1
    assert len(git(up, "rev-list", REF).splitlines()) == len(clones)


def test_a_push_that_another_one_came_before_is_made_again_on_top(writing: Clone, bob: Clone, up: Path) -> None:
    bob.fact("FACT-9")
    push(bob)
    theirs = git(up, "rev-parse", REF)
    git(up, "update-ref", "-d", REF)
    script = up.with_name("receive.sh")
    once = f"touch {up}/once; git -C {up} update-ref {REF} {theirs}"
    script.write_text(f'test -e {up}/once || {{ {once}; }}\nexec git-receive-pack "$@"\n')
    writing.git("config", "remote.origin.receivepack", f"sh {script}")
    assert push(writing).total == 4
    assert (up / "once").exists()
    assert git(up, "rev-parse", f"{REF}~1") == theirs


def test_a_push_after_a_commit_that_no_sync_has_noted_redacts_nothing_and_keeps_values_before(
    ann: Clone, up: Path
) -> None:
    for actor in ("ann", "bot"):
        ann.actor = actor
        ann.add("FACT-1", title=f"By {actor}")
    first = push(ann)
    share(ann.workspace(), ann.branch, actors=["ann"])
    ann.git("commit", "--quiet", "-m", "what ann wrote")
    second = push(ann)
    assert (second.commit, second.redacted, second.added) == (first.commit, (), ())
    ann.add("FACT-1", title="Again")
    third = push(ann)
    assert (third.redacted, git(up, "rev-parse", f"{REF}~1")) == ((), first.commit)
    [(path, _)] = share(ann.workspace(), ann.branch).files.items()
    assert '"was":"By ann"' in (ann.root / path).read_text()


def test_a_ref_that_goes_between_two_attempts_of_a_push_is_made_again(writing: Clone, up: Path) -> None:
    push(writing)
    writing.commit()
    writing.add("FACT-2", title="Later")
    hook = up / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    free = "env -u GIT_QUARANTINE_PATH -u GIT_OBJECT_DIRECTORY"
    hook.write_text(f"#!/bin/sh\n{free} git update-ref -d {REF} && rm hooks/pre-receive\nexit 1\n")
    hook.chmod(0o755)
    pushed = push(writing)
    assert (len(pushed.added), pushed.total, pushed.redacted) == (1, 1, ())
    assert pushed.commit == git(up, "rev-parse", REF)


def refused(do: Callable[[], object], kind: type[KBError], match: str) -> None:
    with pytest.raises(kind, match=match) as caught:
        do()
    said = f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint
    assert not any(word in said for word in ("--force", "update-ref", "push -", "reset --hard", "rm "))


def state_of(clone: Clone, up: Path) -> tuple[object, ...]:
    refs = [git(root, "for-each-ref") for root in (up, clone.root)]
    config = (clone.root / ".git/config").read_text()
    return (*refs, config, clone.facts(), (clone.root / ".git/FETCH_HEAD").exists())


def test_a_wrong_or_unreachable_remote_and_a_missing_ref_are_errors_that_change_nothing(
    writing: Clone, up: Path
) -> None:
    before = state_of(writing, up)
    for do in (push, fetch):
        refused(lambda do=do: do(writing, "nowhere"), GitUnusable, "nowhere could not be read")  # type: ignore[misc]
        refused(lambda do=do: do(writing, "--upload-pack=x"), InvalidQuery, "is no remote")  # type: ignore[misc]
        refused(lambda do=do: do(writing, " "), InvalidQuery, "is no remote")  # type: ignore[misc]
    refused(lambda: fetch(writing), NotFound, f"origin has no ref {REF}")
    shutil.move(up, up.with_name("gone.git"))
    for do in (push, fetch):
        refused(lambda do=do: do(writing), GitUnusable, "origin could not be read")  # type: ignore[misc]
    shutil.move(up.with_name("gone.git"), up)
    assert state_of(writing, up) == before
    assert backup_refs.noted(writing.workspace()) == ()


@pytest.mark.parametrize("how", ["cut", "edited", "renamed", "foreign", "folder", "withdrawn", "secret", "newer"])
def test_a_ref_that_kb_cannot_read_is_refused_by_push_and_fetch(writing: Clone, up: Path, how: str) -> None:
    push(writing)
    [(path, data)] = content(writing).files.items()
    files = {
        "cut": {path: data[:-1]},
        "edited": {path: data.replace(b"By bob", b"By eve")},
        "renamed": {path.replace("pack-20", "pack-19"): data},
        "foreign": {"README.md": b"text"},
        "folder": {path: data, "other.jsonl": data},
        "withdrawn": {path: data, "withdrawn.txt": b"abc\n"},
        "secret": change_file.encode_packs([with_text(one, SECRET) for one in change_file.decode(data, path).changes]),
        "newer": {path: data.replace(b'"pack":1', b'"pack":2')},
    }[how]
    set_ref(up, files)
    writing.add("FACT-2", title="Later")
    before = state_of(writing, up)
    for do in (push, fetch):
        refused(lambda do=do: do(writing), BackupDamaged, f"{REF} of origin is no backup that this KB can read")  # type: ignore[misc]
    assert state_of(writing, up) == before


def with_text(change: Change, text: str) -> Change:
    return identified(msgspec.structs.replace(change, message=text))


def test_a_ref_that_names_no_commit_is_refused(writing: Clone, up: Path) -> None:
    git(up, "update-ref", REF, git(up, "rev-parse", "main^{tree}"))
    refused(lambda: fetch(writing), BackupDamaged, "it names no commit")
    git(up, "update-ref", REF, git(up, "rev-parse", "main"))
    refused(lambda: push(writing), BackupDamaged, "KB writes no '.kb/")


def test_a_remote_that_refuses_is_named_with_its_words_and_nothing_changes(writing: Clone, up: Path) -> None:
    git(up, "config", "receive.hideRefs", "refs/kb")
    before = state_of(writing, up)
    refused(lambda: push(writing), GitUnusable, f"origin did not take the push to {REF}.*hidden ref")
    git(up, "config", "--unset", "receive.hideRefs")
    hook = up / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho read-only for all >&2\nexit 1\n")
    hook.chmod(0o755)
    refused(lambda: push(writing), GitUnusable, "read-only for all")
    assert state_of(writing, up) == before
    hook.unlink()
    assert push(writing).total == 3


def test_nothing_is_left_in_the_refs_the_configuration_and_the_worktree_of_the_clone(writing: Clone, up: Path) -> None:
    before = state_of(writing, up)[1:]
    push(writing)
    fetch(writing)
    assert state_of(writing, up)[1:] == before
    assert not writing.git("status", "--porcelain")


def test_a_detached_head_is_refused_unless_a_branch_is_named_and_odd_names_work(writing: Clone, up: Path) -> None:
    writing.git("switch", "--quiet", "--detach")
    refused(lambda: push(writing), InvalidQuery, "HEAD is detached")
    assert push(writing, branch="main").total == 3
    refused(lambda: push(writing, branch="never-made"), UnknownBranch, "never-made has no store")
    writing.switch("main")
    name = "fix/ü-'x'$(y)&;"
    writing.begin(name)
    writing.fact("FACT-7")
    assert push(writing).ref == f"refs/kb/{name}"
    assert f"refs/kb/{name}" in git(up, "-c", "core.quotePath=false", "for-each-ref", "--format=%(refname)")
    assert fetch(writing).total == 4


def test_a_partial_and_a_shallow_clone_push_and_fetch_all(
    writing: Clone, clone: Callable[..., Clone], up: Path
) -> None:
    git(up, "config", "uploadpack.allowFilter", "true")
    push(writing)
    for actor, option in (("eve", "--filter=blob:none"), ("joe", "--depth=1")):
        one = clone(actor, option)
        assert len(fetch(one).merged.changes) >= 3
        one.fact(f"FACT-{actor}")
        push(one)
        hold(one)
    assert fetch(writing).total == 5


def test_a_commit_that_is_there_is_not_fetched_again(writing: Clone, up: Path) -> None:
    commit = push(writing).commit
    assert commit
    script = up.with_name("upload.sh")
    script.write_text(f'echo x >> {up}/asked\nexec git-upload-pack "$@"\n')
    writing.git("config", "remote.origin.uploadpack", f"sh {script}")
    fetch(writing)
    assert len((up / "asked").read_text().splitlines()) == 1, "one ls-remote, and no fetch"
    assert remotes.commit_of_ref(writing.workspace().repo, os.environ, "origin", REF) == commit
    assert run_git(writing.root, "cat-file", "-e", commit).returncode == 0


def test_a_clone_that_lacks_a_value_before_a_change_redacts_nothing_in_the_ref(ann: Clone, bob: Clone) -> None:
    ann.add("FACT-1", title="Old title")
    ann.actor = "eve"
    ann.add("FACT-1", title="New title")
    push(ann)
    commit = content(ann).commit
    (ann.root / ".kb/config.json").write_text('{"share": {"mode": "ask", "actors": ["eve"]}}')
    ann.commit()  # the change of eve without the value before it, which a private change stated
    ann.push()
    bob.pull()
    bob.sync()
    before = content(bob)
    [late] = [one for one in before.changes.values() if one.actor == "eve"]
    mine = bob.workspace().changes("main").read(lambda index, _: index.bodies([late.id]))
    assert mine[late.id] != late

    pushed = push(bob)

    assert (pushed.redacted, pushed.added) == ((), ())
    assert (before.commit, content(bob).changes) == (commit, before.changes)

    fetch(bob)
    redaction.redact(bob.workspace(), "main", redaction_preview.Wanted("pattern", "Old title"), bob.author())
    assert len(push(bob).redacted) == 2
    assert not [name for name, data in content(bob).files.items() if b"Old title" in data]
