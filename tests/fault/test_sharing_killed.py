"""F1: SIGKILL between the steps of what shares, packs, redacts, pushes and fetches: nothing is lost, or there twice."""

from __future__ import annotations

import copy
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.share.backup_ref import fetch, push, read_ref
from tests.fault.conftest import Tally
from tests.share.conftest import FILES
from tests.support.disk.secrets import files_with
from tests.support.effort.scale import spread, tries
from tests.support.processes.cli import environment
from tests.support.repository.clones import Clone, clone_of, hold, upstream
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import run_git

KILLED = """
import os, signal, sys
left = [int(sys.argv.pop(1))]
def writes(event, args):
    if event != "open":
        return event in {"os.rename", "os.link", "os.remove", "os.mkdir", "sqlite3.connect", "subprocess.Popen"}
    is_written = isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    return is_written and any(place in str(args[0]) for place in ("/.git/kb/", "/.kb/changes/"))
def at(event, args):
    if writes(event, args):
        left[0] -= 1
        left[0] < 0 and os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(at)
from kbcli.app import main
try:
    main()
finally:
    print(f"left {left[0]}", file=sys.stderr)
"""
"""A command that is killed before it opens, names or removes one more than so many files, or starts git once more."""
_MANY = 100_000
SECRET = "hunter2-Pa55word"


def killed(root: Path, steps: int, command: str) -> tuple[bool, int]:
    """Run a command that is killed after so many steps; return whether it was, else how many it took."""
    # Bytecode is written only by who imports a module first, so it must be no step.
    words = [sys.executable, "-B", "-c", KILLED, str(steps), "-C", str(root), *command.split()]
    ended = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    if ended.returncode == -signal.SIGKILL:
        return True, steps
    assert ended.returncode == 0, ended.stderr
    return False, steps - int(ended.stderr.rpartition("left ")[2])


@pytest.fixture
def scene(tmp_path: Path) -> tuple[Clone, Clone]:
    """The clones of ann, who has two changes to share, and of bob, who has pulled one and not synced."""
    up = upstream(tmp_path, FILES)
    bob = clone_of(up, "bob")
    ann = clone_of(up, "ann")
    ann.fact("FACT-1")
    ann.commit()
    ann.push()
    ann.add("FACT-1", title="Later")
    ann.actor = "eve"
    ann.fact("FACT-2")
    bob.fact("FACT-3")
    bob.pull()
    return ann, bob


@pytest.mark.fault("F1")
@pytest.mark.parametrize("command", ["share", "sync"])
def test_a_kill_between_the_steps_of_sharing_loses_and_doubles_nothing(
    scene: tuple[Clone, Clone], command: str, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scene[0] if command == "share" else scene[1]
    for one in scene:
        one.close()
    ready = shutil.copytree(model.root, model.root.with_name("ready"), symlinks=True)
    was_killed, steps = killed(model.root, _MANY, command)
    assert not was_killed
    for point in spread(range(steps), tries(2, steps)):
        # What KB has noted of this repository outside of it is of another copy.
        monkeypatch.setenv("HOME", str(ready.with_name(f"home-{point}")))
        shutil.rmtree(model.root)
        clone = Clone(shutil.copytree(ready, model.root, symlinks=True), model.actor)
        clone.own, clone.once_committed = copy.deepcopy(model.own), copy.deepcopy(model.once_committed)
        tally.tried()
        if not killed(clone.root, point, command)[0]:
            tally.violated((command, point), "it was not killed")
        try:
            hold(clone)
            clone.commit()
            hold(clone)
            found = Counter(change.id for changes in clone.committed().values() for change in changes)
            assert {*found.values()} == {1}
            assert not [*clone.root.glob(".kb/changes/*/.*.kb-*")]
            own = {*clone.own["main"]}
            assert own <= found.keys()
        except AssertionError as error:
            tally.violated((command, point), error)
        clone.close()
    tally.done()


def scenes_of(
    model: Clone, tally: Tally, monkeypatch: pytest.MonkeyPatch, command: str
) -> Iterator[tuple[int, Clone, Path]]:
    """Yield a copy of a clone, with one of its remote, for each point at which a command was killed in it."""
    model.close()
    up = model.root.with_name("up.git")
    ready, ready_up = (
        shutil.copytree(one, one.with_name(f"ready-{one.name}"), symlinks=True) for one in (model.root, up)
    )
    was_killed, steps = killed(model.root, _MANY, command)
    assert not was_killed
    for point in spread(range(steps), tries(3, steps)):
        monkeypatch.setenv("HOME", str(ready.with_name(f"home-{point}")))
        for one in (model.root, up):
            shutil.rmtree(one)
        clone = Clone(shutil.copytree(ready, model.root, symlinks=True), model.actor)
        shutil.copytree(ready_up, up, symlinks=True)
        clone.own, clone.once_committed = copy.deepcopy(model.own), copy.deepcopy(model.once_committed)
        tally.tried(int(killed(clone.root, point, command)[0]))
        yield point, clone, up
        clone.close()
    tally.done()


@pytest.mark.fault("F1")
def test_a_kill_while_files_are_packed_loses_and_doubles_nothing_and_the_next_call_finishes(
    scene: tuple[Clone, Clone], tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = scene
    for number in range(3):
        model.add("FACT-1", title=f"Title {number}")
        model.commit()
    ids = sorted(change.id for changes in model.committed().values() for change in changes)
    for point, clone, _ in scenes_of(model, tally, monkeypatch, "share pack --before 2100-01-01"):
        try:
            hold(clone)
            clone.pack()
            hold(clone)
            clone.git("commit", "--quiet", "-m", "packed")
            hold(clone)
            assert not clone.git("status", "--porcelain")
            assert all("/pack-" in path for path in clone.committed())
            assert sorted(change.id for changes in clone.committed().values() for change in changes) == ids
        except AssertionError as error:
            tally.violated(("pack", point), error)


@pytest.mark.fault("F1")
def test_what_is_committed_after_a_kill_while_files_are_packed_has_every_change(
    scene: tuple[Clone, Clone], tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by `git commit --all`, which takes the deletions and none of the files that are new."""
    model, _ = scene
    model.commit()
    ids = {change.id for changes in model.committed().values() for change in changes}
    for point, clone, _ in scenes_of(model, tally, monkeypatch, "share pack --before 2100-01-01"):
        try:
            clone.git("commit", "--quiet", "--all", "--allow-empty", "-m", "after it")
            assert {change.id for changes in clone.committed().values() for change in changes} == ids
            hold(clone)
        except AssertionError as error:
            tally.violated(("pack", point), error)


@pytest.mark.fault("F1")
@pytest.mark.parametrize("command", ["push", "fetch"])
def test_a_kill_while_the_backup_is_pushed_or_fetched_loses_nothing_and_can_be_repeated(
    scene: tuple[Clone, Clone], command: str, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = scene
    other, model = (bob, ann) if command == "push" else (ann, bob)
    push(other.workspace(), "main", "origin")
    other.close()
    for point, clone, _ in scenes_of(model, tally, monkeypatch, command):
        try:
            clone.note_own()
            hold(clone)
            if command == "push":
                push(clone.workspace(), "main", "origin")
            else:
                fetch(clone.workspace(), "main", "origin", clone.author())
                clone.note_own()
            hold(clone)
            found = read_ref(clone.workspace(), "origin", "refs/kb/main")
            unshared = clone.workspace().changes("main").read(lambda index, seq: index.unshared(seq))
            assert found.changes.keys() >= {key for key in other.own["main"] if key not in other.once_committed["main"]}
            own = {one.change.id for one in unshared}
            assert own >= found.changes.keys() if command == "fetch" else found.changes.keys() >= own
        except AssertionError as error:
            tally.violated((command, point), error)


@pytest.mark.fault("F1")
def test_a_kill_while_change_files_are_redacted_leaves_no_change_in_no_file_and_the_next_call_finishes(
    scene: tuple[Clone, Clone], tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the index has each change at any moment, in a whole file or in a redacted one."""
    model, _ = scene
    model.add("FACT-1", title=f"Use {SECRET}")
    model.commit()
    model.pack()
    model.commit()
    model.add("FACT-1", title=f"Use {SECRET} again")
    model.commit()
    model.add("FACT-2", owner=SECRET)
    ids = {change.id for changes in model.committed().values() for change in changes}
    for point, clone, _ in scenes_of(model, tally, monkeypatch, f"redact {SECRET} --yes"):
        try:
            clone.git("commit", "--quiet", "--allow-empty", "-m", "what is staged")
            assert {change.id for changes in clone.committed().values() for change in changes} == ids
            clone.redact(SECRET)
            assert not files_with(SECRET, stores_at(clone.root), caches_at(clone.root), clone.root / ".kb")
            clone.git("commit", "--quiet", "--allow-empty", "-m", "redacted")
            assert not clone.git("status", "--porcelain")
            assert run_git(clone.root, "grep", "--cached", "--quiet", SECRET).returncode == 1
            hold(clone)
            assert {change.id for changes in clone.committed().values() for change in changes} == ids
            assert clone.titles()["FACT-1"] == "[redacted]"
        except AssertionError as error:
            tally.violated(("redact", point), error)
