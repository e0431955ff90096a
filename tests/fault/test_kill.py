"""F1: SIGKILL before any system call of a real process. F23: the order of the system calls of one commit."""

from __future__ import annotations

import collections
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kbcore.errors import KBError
from kbcore.storage.fs import RealFs
from tests.fault.workloads import SOAKED, WORKLOADS, Acked, Workload, check
from tests.support.disk.faultfs import LoggingFs, NoSyncFs
from tests.support.effort.scale import SCALE, tries

CALLS = (
    "openat,write,pwrite64,fsync,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
CALLS += ",flock,close"
_LINE = re.compile(r"(?:\d+ +)?(\w+)\((.*)")
_KILLED = -9
SOURCE = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed here")


def traced(work: Workload, root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a workload under strace; its trace goes to ``trace`` beside the store."""
    trace = str(root.parent / "trace")
    command = ["strace", "-y", "-o", trace, *options, sys.executable, "-m", "tests.fault.killed", str(root), work.name]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=60, check=False)


def prepared(work: Workload, root: Path) -> Path:
    root.mkdir(parents=True)
    work.prepare(NoSyncFs(), root)
    return root


def calls_on(root: Path) -> list[tuple[str, int, str]]:
    """Return each traced call that names a file of the store: its name, its number among its like, its arguments."""
    counted, found = collections.Counter[str](), []
    for line in (root.parent / "trace").read_text(encoding="utf-8", errors="replace").splitlines():
        call = _LINE.match(line)
        if call:
            counted[call[1]] += 1
            if str(root) in call[2]:
                found.append((call[1], counted[call[1]], call[2]))
    return found


def acknowledged(printed: str) -> Acked:
    return [int(line) if line.isdigit() else line for line in printed.splitlines()]


KILLED = SOAKED if SCALE == "soak" else tuple(work for work in WORKLOADS if "long" not in work.name)
"""Only a soak tries records of other lengths: with these, F2 ends the process within each call."""


@pytest.mark.sliced(4)
@pytest.mark.fault("F1")
@pytest.mark.parametrize("work", KILLED, ids=lambda work: work.name)
def test_sigkill_before_any_system_call_keeps_what_was_acknowledged(work: Workload, tmp_path: Path, tally) -> None:
    ready = prepared(work, tmp_path / "ready" / "store")
    # The store keeps its path, so that the numbers of the calls stay what they were.
    root = tmp_path / "run" / "store"
    shutil.copytree(ready, root)
    assert traced(work, root, "-e", f"trace={CALLS}").returncode == 0
    points = [(name, number) for name, number, _ in calls_on(root)]
    step = max(1, len(points) // tries(2, len(points)))
    for name, number in points[::step]:
        shutil.rmtree(root)
        shutil.copytree(ready, root)
        ended = traced(work, root, "-e", f"trace={name}", "-e", f"inject={name}:signal=SIGKILL:when={number}")
        tally.tried()
        if ended.returncode != _KILLED:
            tally.violated((work.name, name, number), f"it was not killed: {ended.returncode} {ended.stderr[-300:]}")
            continue
        try:
            check(work, NoSyncFs(), root, acknowledged(ended.stdout))
        except (KBError, AssertionError, OSError, ValueError) as error:
            tally.violated((work.name, name, number), f"{type(error).__name__}: {error}")
    tally.done()


@pytest.mark.fault("F23")
def test_a_commit_answers_only_after_the_record_and_the_head_are_durable(tmp_path: Path, tally) -> None:
    work = next(one for one in WORKLOADS if one.name == "commits")
    root = prepared(work, tmp_path / "store")
    ended = traced(work, root, "-e", "trace=write,fsync,rename,renameat,renameat2,openat")
    assert ended.stdout.split() == ["100", "101", "102"]
    steps = []
    for line in (tmp_path / "trace").read_text(encoding="utf-8", errors="replace").splitlines():
        call = _LINE.match(line)
        assert call or "exited" in line
        if call and re.match(r"1<", call[2]):
            steps.append("answer")
        elif call and str(root) in call[2] and not (call[1] == "openat" and "O_CREAT" not in call[2]):
            named = re.findall(r"(head\.json\.tmp|head\.json|journal-\d+\.jsonl|lock|/main)[>\"]", call[2])
            steps.append(f"{call[1].removesuffix('at2').removesuffix('at')} {named[-1].lstrip('/')}")
    one = [
        "open lock",
        "write journal-0000000001.jsonl",
        "fsync journal-0000000001.jsonl",
        "open head.json.tmp",
        "write head.json.tmp",
        "fsync head.json.tmp",
        "rename head.json",
        "fsync main",
        "answer",
    ]
    tally.tried(len(steps))
    if steps != one * 3:
        tally.violated("the order of calls", steps)
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("F1")
def test_no_system_call_on_the_store_goes_past_the_file_system_layer(tmp_path: Path, tally) -> None:
    for work in KILLED:
        root = prepared(work, tmp_path / work.name.replace(" ", "-") / "store")
        copy = tmp_path / (work.name.replace(" ", "-") + "-again") / "store"
        shutil.copytree(root, copy)
        log = LoggingFs(RealFs())
        work.run(log, copy, [])
        assert traced(work, root, "-e", f"trace={CALLS}").returncode == 0
        seen = collections.Counter(_MADE_BY.get(name, name) for name, _, _ in calls_on(root))
        made = collections.Counter(_FAMILY.get(kind, kind) for kind, _ in log.calls)
        tally.tried(sum(seen.values()))
        # To sync a directory, and to list it, is to open it first.
        made["openat"] += sum(kind in {"fsync_dir", "listdir"} for kind, _ in log.calls)
        for kind in ("openat", "write", "pwrite64", "fsync", "ftruncate", "rename", "link", "unlink", "mkdir", "flock"):
            if seen[kind] != made[kind]:
                tally.violated((work.name, kind), f"the system saw {seen[kind]}, the layer made {made[kind]}")
    tally.done()


_MADE_BY = {"renameat": "rename", "renameat2": "rename", "linkat": "link", "unlinkat": "unlink", "mkdirat": "mkdir"}
_FAMILY = {"open": "openat", "pwrite": "pwrite64", "fsync_dir": "fsync", "replace": "rename"}
