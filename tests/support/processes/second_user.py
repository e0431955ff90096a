"""Programs that run as another user of the machine, which only root can start, or without the powers of root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.processes.cli import Ran, run_kb
from tests.support.processes.forked import AS_ANOTHER
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]
ALICE, BOB, TEAM = 61001, 61002, 61100
WAIT_S = 600.0
"""Only a program that hangs takes so long."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")


def run_as(
    uid: int, words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, *, umask: int = 0o022, gid: int = 0
) -> Ran:
    """Run a program as a user who is in the group TEAM, and return how it ended."""
    done = subprocess.run(
        list(words),
        cwd=cwd,
        env=_environment(cwd, env),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        user=uid,
        group=gid or uid,
        extra_groups=[TEAM],
        umask=umask,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def kb_as(uid: int, root: Path, *words: str, env: Mapping[str, str] | None = None, umask: int = 0o022) -> Ran:
    """Run `kb` as a user who is in the group TEAM."""
    return run_kb(root, *words, env=_environment(root, env) | {AS_ANOTHER: f"{uid} {uid} {TEAM} {umask}"})


def _environment(home: Path, more: Mapping[str, str] | None) -> dict[str, str]:
    return git_env({"PYTHONPATH": str(ROOT), "HOME": str(home), **(more or {})})


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user may pass through; the temporary folder of the tests lets its owner in alone."""
    with tempfile.TemporaryDirectory(prefix="kb-users-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def without_powers() -> tuple[str, ...]:
    """Return what to put before a command so that permissions bind it, as they do not bind root."""
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("permissions do not bind root, and there is no setpriv to lay its powers down")
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
