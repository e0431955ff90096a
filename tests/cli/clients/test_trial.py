"""A server is started, greeted and ended again, whatever it does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kbcli.clients.trial import try_to_start
from kbcore.clock import Clock, SystemClock
from tests.support.processes.cli import environment

WELCOME = '{"jsonrpc": "2.0", "id": 1, "result": {}}'


class ClockThatWaitsForAFile(SystemClock):
    """A clock whose first reading waits until a program that was started has made a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def monotonic_s(self) -> float:
        while not self._path.exists():
            time.sleep(0.005)
        return super().monotonic_s()


def tried(tmp_path, script: str, patience_s: float = 20.0, clock: Clock | None = None) -> str:
    command = [sys.executable, "-S", "-c", script]
    return try_to_start(command, tmp_path, environment(), clock or SystemClock(), patience_s=patience_s)


def test_a_server_that_answers_is_well_and_is_ended(tmp_path):
    script = (
        "import sys, json, pathlib\n"
        "asked = json.loads(sys.stdin.readline())\nassert asked['method'] == 'initialize'\n"
        f"print({WELCOME!r}, flush=True)\nsys.stdin.read()\npathlib.Path('ended').touch()\n"
    )
    assert tried(tmp_path, script) == ""
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no\\n such module')", "it ended with status 1: no such module"),
        ("import sys; sys.exit(3)", "it ended with status 3, and wrote nothing to standard error"),
        ("print('Hello!', flush=True)", "it answered something else: Hello!"),
        ("print('[' * 20000, flush=True)", "it answered something else: [[["),
        ("print('{\"error\": {}}', flush=True)", 'it answered something else: {"error": {}}'),
    ],
)
def test_failures_are_reported(tmp_path, script, said):
    assert tried(tmp_path, script).startswith(said)


def test_a_program_that_closed_its_input_before_the_greeting_is_reported_with_what_it_wrote(tmp_path):
    script = "import os, pathlib; os.close(0); print('Hello!', flush=True); pathlib.Path('closed').touch()"
    found = tried(tmp_path, script, clock=ClockThatWaitsForAFile(tmp_path / "closed"))
    assert found == "it answered something else: Hello!"


def test_a_server_that_keeps_silent_is_given_up(tmp_path):
    script = "import sys\nprint('loading', file=sys.stderr, flush=True)\nsys.stdin.readline()\nsys.stdin.read()\n"
    found = tried(tmp_path, script, patience_s=0.3)
    assert found.startswith("it gave no answer within 0.3 s")


def test_a_program_that_cannot_be_started_is_reported(tmp_path):
    found = try_to_start([str(tmp_path / "none")], tmp_path, environment(), SystemClock())
    assert found == "it cannot be started: No such file or directory"
