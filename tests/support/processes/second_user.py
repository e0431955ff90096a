"""Programs that run as another user of the machine. Only root can start them; elsewhere their tests are skipped."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.processes.cli import Ran
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]
ALICE, BOB, TEAM = 61001, 61002, 61100
WAIT_S = 600.0
"""Only a program that hangs takes so long. Each imports all of KB, which takes long on a machine that is at work."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")


_AS_ANOTHER = """
import importlib, os, pkgutil, sys
import duckdb, gherkin, typer, yaml, difflib, pwd, zoneinfo, encodings.idna, encodings.utf_8_sig
import kbcore, kbcli
# The other user may not be allowed to read this Python.
for package in (kbcore, kbcli):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
uid, gid, team, umask, *words = sys.argv[1:]
os.setgroups([int(team)])
os.setgid(int(gid))
os.setuid(int(uid))
os.umask(int(umask))
from kbcli import app
sys.exit(app.main(words))
"""


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
    given = [str(number) for number in (uid, uid, TEAM, umask)]
    done = subprocess.run(
        [sys.executable, "-c", _AS_ANOTHER, *given, *words],
        cwd=root,
        env=_environment(root, env),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def _environment(home: Path, more: Mapping[str, str] | None) -> dict[str, str]:
    return git_env({"PYTHONPATH": str(ROOT), "HOME": str(home), **(more or {})})


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user may pass through; the temporary folder of the tests lets its owner in alone."""
    with tempfile.TemporaryDirectory(prefix="kb-users-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
