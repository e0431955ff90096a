"""F27: a sync that is ended while its worker processes read leaves none of them, and no part of a record."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbcore import limits
from kbcore.sync.workers import usual_count
from tests.fault.conftest import Tally
from tests.support.effort.scale import SEED, tries
from tests.support.processes.children import is_worker, workers_of
from tests.support.processes.cli import environment, run_kb
from tests.support.repository.project import document, req
from tests.support.repository.repos import make_repository

FILES = limits.MIN_PARALLEL_FILES + 100
WAIT_S = 60.0

pytestmark = pytest.mark.skipif(not usual_count(), reason="this machine has one core: there a sync starts no process")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with many documents and a KB without a record."""
    root = tmp_path_factory.mktemp("workers") / "p"
    make_repository(root)
    for folder in ("requirements", "tests"):
        (root / "docs" / folder).mkdir(parents=True)
    for number in range(FILES):
        (root / f"docs/requirements/{number}.md").write_text(req(f"REQ-{number}", links=f"[REQ-{number // 2}]"))
    (root / "docs/tests/a.md").write_text(document("TEST-1", title="T", status="active", links="[REQ-1]"))
    assert run_kb(root, "init", "--no-hooks").status == 0
    return root


def begun(root: Path) -> tuple[subprocess.Popen[str], set[int]]:
    """Begin a sync; return it and its workers once it has some."""
    command = [sys.executable, "-m", "kbcli.app", "-C", str(root), "sync", "--json"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment(), text=True)
    until_s = time.monotonic() + WAIT_S
    while not (workers := workers_of(process.pid)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
    return process, {*workers}


def left(workers: set[int]) -> set[int]:
    """Return the workers that are still there after a while: one that has lost its parent ends after its job."""
    until_s = time.monotonic() + WAIT_S
    while (there := {pid for pid in workers if is_worker(pid)}) and time.monotonic() < until_s:
        time.sleep(0.01)
    return there


def recorded(root: Path) -> int:
    done = run_kb(root, "status", "--json")
    assert done.status == 0, done.err
    return int(done.json["seq"])


@pytest.mark.fault("F27")
def test_a_sync_that_is_ended_while_workers_read_leaves_no_process_and_no_part_of_a_record(
    repository: Path, tally: Tally
) -> None:
    dice, count = random.Random(SEED), tries(3, 60)
    ends = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    for number in range(count):
        if recorded(repository):
            break  # it was ended after its record: the next one would find nothing to read
        process, workers = begun(repository)
        time.sleep(dice.uniform(0, 0.4))
        workers |= {*workers_of(process.pid)}
        process.send_signal(ends[number % len(ends)])
        said, warned = process.communicate(timeout=WAIT_S)
        if left(workers):
            tally.violated(number, "a worker is left")
        if "Traceback" in warned:
            tally.violated(number, warned)
        is_acknowledged = bool(said.strip()) and json.loads(said).get("seq") == 1
        if is_acknowledged and not recorded(repository):
            tally.violated(number, "it was acknowledged and is not there")
        tally.tried()
    done = run_kb(repository, "sync", "--json")
    assert done.status == 0, done.err
    assert recorded(repository) == 1
    assert run_kb(repository, "verify").status == 0
    tally.done(at_least=1)


@pytest.mark.fault("F27")
def test_a_worker_that_is_killed_again_and_again_changes_no_record(repository: Path, tally: Tally) -> None:
    texts = {path: path.read_text() for path in sorted((repository / "docs/requirements").iterdir())}
    for path, text in texts.items():
        path.write_text(text.replace("status: open", "status: done"))
    process, workers = begun(repository)
    while process.poll() is None:
        for pid in workers_of(process.pid):
            os.kill(pid, signal.SIGKILL)
            tally.tried()
    said, warned = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, warned
    answer = json.loads(said)
    # Without the test before, on a day that has this one alone, nothing is recorded yet: the test of the documents too.
    assert answer["updated"] == FILES or answer["created"] == FILES + 1
    assert [one for one in answer["warnings"] if "ended before the sync did" in one]
    assert not left(workers)
    tally.done(at_least=1)
