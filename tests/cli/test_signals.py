"""SIGINT and SIGTERM end every command within two seconds, whatever it is at."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.storage import layout, lock
from kbcore.storage.fs import RealFs
from tests.support.processes.cli import environment, write
from tests.support.repository.places import caches_at
from tests.support.repository.repos import git

_MOST_S = 2.0
_BEGUN = "begun"

PROGRAM = """
import sys
from kbcli import app
from kbcore.process import interrupting
{patch}
sys.exit(app.main(sys.argv[1:]))
"""
SLOWLY = """
from kbcore.view import database
real = database.Connection.rows
def rows(self, statement, params=(), **options):
    if {when}:
        print("begun", file=sys.stderr, flush=True)
        statement, params = {slow!r}, ()
    return real(self, statement, params, **options)
database.Connection.rows = rows
"""
SLOW = "select count(*) from range(300000) a, range(300000) b where hash(a.range) < hash(b.range)"
HANGING = "with m as materialized (from range(70000)) from m t join m f using (range) limit 1"
PYTHON = """
from kbcore.view.view import View
def rows(self, *_):
    print("begun", file=sys.stderr, flush=True)
    try:
        while True: sum(range(10000))
    except KeyboardInterrupt:
        while True: sum(range(10000))
View.rows = rows
"""
AFTER = """
import time
from kbcore.sync import run
real = run.file_status
def file_status(*given):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(0.3)
    return real(*given)
run.file_status = file_status
"""
LATE = """
from kbcore.sync import run
def file_status(view, _):
    interrupting._statement_s.set(0.2)
    return view.rows({slow!r})
run.file_status = file_status
"""
CASES = {
    "a slow statement": (SLOWLY.format(when="'node' in str(statement)", slow=SLOW), ["check"]),
    "a statement that hangs": (SLOWLY.format(when="True", slow=HANGING), ["query"]),
    "a program that catches it": (PYTHON, ["query"]),
    "a statement under the lock": (
        SLOWLY.format(when="'begun' not in sys.argv and interrupting._work.get() is not None", slow=SLOW),
        ["apply", "-"],
    ),
}


def started(root: Path, patch: str, words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(patch=patch), *words],
        cwd=root,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str], number: int) -> int:
    """Send a signal, and return the status; the process has two seconds for it."""
    process.send_signal(number)
    begun_s = time.monotonic()
    try:
        status = process.wait(10)
    finally:
        process.kill()
        process.communicate()
    assert time.monotonic() - begun_s < _MOST_S
    return status


@pytest.mark.sliced
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("case", CASES)
def test_a_signal_ends_a_command_within_two_seconds(synced: Path, case: str, number: int) -> None:
    patch, words = CASES[case]
    process = started(synced, patch, words)
    assert process.stdin
    assert process.stderr
    if words[-1] == "-":
        process.stdin.write('{"entities": [{"id": "REQ-1", "status": "active"}]}')
    process.stdin.close()
    process.stdin = None
    assert process.stderr.readline().strip() == _BEGUN
    assert end(process, number) == 128 + number
    # The branch is free, and nothing is half done.
    done = subprocess.run(
        [sys.executable, "-m", "kbcli.app", "verify"], cwd=synced, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kip", 'FIND(?r) WHERE { ?r {type: "Requirement"} }'], ""),
        (["sync", "--dry-run"], ""),
        (["sync"], "warning: Interrupted. Nothing was written.\n"),
    ],
)
def test_only_an_interrupted_command_that_writes_says_that_nothing_was_written(
    synced: Path, words: list[str], said: str
) -> None:
    write(synced, {"docs/requirements/late.md": "---\nid: REQ-9\ntitle: Late\nstatus: open\n---\n"})
    patch = SLOWLY.format(when="interrupting._work.get().has_begun and not interrupting._work.get().stop()", slow=SLOW)
    process = started(synced, patch, words)
    _, complaints = process.communicate(timeout=10)
    assert (process.returncode, complaints.replace(f"{_BEGUN}\n", "")) == (128 + signal.SIGINT, said)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_that_waits_for_a_lock(synced: Path, number: int) -> None:
    directory = Path(git(synced, "rev-parse", "--git-common-dir").strip())
    [place] = [path for path in (synced / directory / "kb").rglob(layout.LOCK) if path.parent.name == "main"]
    with lock.held(RealFs(), SystemClock(), place):
        process = started(synced, "print('begun', file=sys.stderr, flush=True)", ["apply", "-"])
        assert process.stdin
        assert process.stderr
        process.stdin.write('{"entities": [{"id": "REQ-1", "status": "active"}]}')
        process.stdin.close()
        process.stdin = None
        assert process.stderr.readline().strip() == _BEGUN
        time.sleep(1.0)
        assert end(process, number) == 128 + number


@pytest.mark.sliced
@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["set", "REQ-1", "status=done"], "docs/requirements/login.md"),
        (["rename", "REQ-1", "REQ-7"], "docs/tests/login.md"),
        (["new", "req", "title=X"], "docs/requirements/REQ-3-x.md"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_the_files_and_their_record_leaves_the_files_as_they_were(
    synced: Path, words: list[str], changed: str, number: int
) -> None:
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "documents")
    directory = Path(git(synced, "rev-parse", "--git-common-dir").strip())
    [place] = [path for path in (synced / directory / "kb").rglob(layout.LOCK) if path.parent.name == "main"]
    with lock.held(RealFs(), SystemClock(), place):
        process = started(synced, "", words)
        try:
            for _ in range(200):
                if changed in git(synced, "status", "--porcelain", "-uall"):
                    break
                time.sleep(0.1)
            assert changed in git(synced, "status", "--porcelain", "-uall")
            process.send_signal(number)
            out, complaints = process.communicate(timeout=10)
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, out) == (128 + number, "")
    assert complaints in {"", "warning: Interrupted. Nothing was written.\n"}
    assert git(synced, "status", "--porcelain", "-uall") == ""
    assert not list(caches_at(synced).glob("renaming-*"))


def test_kb_watch_ends_during_a_long_check(synced: Path) -> None:
    patch, _ = CASES["a slow statement"]
    process = started(synced, patch, ["watch"])
    assert process.stderr
    while process.stderr.readline().strip() != _BEGUN:
        continue
    assert end(process, signal.SIGTERM) == 0


def test_kb_results_that_watches_ends_within_a_large_report(synced: Path) -> None:
    case = '<testcase name="Login works"><failure message="x"/></testcase>'
    write(synced, {"r.xml": f"<testsuite>{case * 400_000}</testsuite>"})
    patch = """
from kbcore.results import collecting
real = collecting.CollectedOutcomes.add
def add(self, *given):
    print("begun", file=sys.stderr, flush=True)
    return real(self, *given)
collecting.CollectedOutcomes.add = add
"""
    process = started(synced, patch, ["results", "--watch", "r.xml"])
    assert process.stderr
    assert process.stderr.readline().strip() == _BEGUN
    assert end(process, signal.SIGINT) == 0


def followed(root: Path, patch: str) -> subprocess.Popen[str]:
    """Begin a sync with something to write."""
    write(root, {"docs/requirements/late.md": "---\nid: REQ-9\ntitle: Late\nstatus: open\n---\n"})
    process = started(root, patch, ["sync", "--json"])
    assert process.stdin
    process.stdin.close()
    process.stdin = None
    return process


@pytest.mark.sliced(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sync_that_a_signal_meets_after_its_commit_says_what_it_wrote(synced: Path, number: int) -> None:
    process = followed(synced, AFTER)
    assert process.stderr
    assert process.stderr.readline().strip() == _BEGUN
    process.send_signal(number)
    said, complaints = process.communicate(timeout=10)
    assert (process.returncode, complaints) == (0, "")
    assert json.loads(said)["created"] == 1


@pytest.mark.sliced
def test_a_sync_that_has_no_time_left_after_its_commit_says_what_it_wrote(synced: Path) -> None:
    process = followed(synced, LATE.format(slow=SLOW))
    said, _ = process.communicate(timeout=10)
    answer = json.loads(said)
    assert (process.returncode, answer["created"]) == (0, 1), answer
    assert "could not be determined" in answer["warnings"][-1]


IMPORTING = """
import time
from kbcli.invocation.signals import Signals
with Signals().obeyed():
    try:
        import interrupted
        print("imported", interrupted.is_whole, flush=True)
        time.sleep(10)
    except KeyboardInterrupt:
        print("interrupted")
"""
INTERRUPTED = """
import os
os.kill(os.getpid(), {number})
is_whole = sum(range(1000)) > 0
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_a_module_is_imported_is_obeyed_after_it(tmp_path: Path, number: int) -> None:
    write(tmp_path, {"interrupted.py": INTERRUPTED.format(number=int(number))})
    env = {**environment(), "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        cwd=Path.cwd(),
        env=env,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("imported True\ninterrupted\n", "")


EARLY = """
import os
import signal
import sys
from kbcli import app
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs without it
sys.argv = ["kb", "status"]
app._guarded = lambda words: os.kill(os.getpid(), 2)
app.main()
"""


def test_sigint_before_a_command_begins_ends_the_process_without_a_traceback() -> None:
    ended = subprocess.run([sys.executable, "-c", EARLY], env=environment(), capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")
