"""F1: SIGKILL between the steps of ``kb share``, and of a sync that takes changes: both or neither, no file twice."""

from __future__ import annotations

import copy
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fault.conftest import Tally
from tests.share.conftest import FILES
from tests.support.effort.scale import spread, tries
from tests.support.processes.cli import environment
from tests.support.repository.clones import Clone, clone_of, hold, upstream

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


def killed(root: Path, steps: int, command: str) -> tuple[bool, int]:
    """Run a command that is killed after so many steps; return whether it was, else how many it took."""
    words = [sys.executable, "-c", KILLED, str(steps), "-C", str(root), command]
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
    for point in spread(range(steps), tries(3, steps)):
        # What KB has noted of this repository outside of it is of another copy.
        monkeypatch.setenv("HOME", str(ready.with_name(f"home-{point}")))
        shutil.rmtree(model.root)
        clone = Clone(shutil.copytree(ready, model.root, symlinks=True), model.actor)
        clone.own, clone.handed_over = copy.deepcopy(model.own), copy.deepcopy(model.handed_over)
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
