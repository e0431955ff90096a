"""Other gits than the one that runs the tests, where there are some: newer ones know of more.

``KB_TEST_GIT`` names the program of such a git; without it, the ``git`` of PATH may be new enough. The everyday tests
run with hooks in files: where the ``git`` of PATH has hooks by configuration, they get one that says it has not.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.support.repository.repos import git_env

_PATH = os.environ.setdefault("KB_TEST_PATH", os.environ.get("PATH", os.defpath))
"""As it was before a stand-in came to its head; the workers of one run inherit it."""
_NAMED = os.environ.get("KB_TEST_GIT")
_CONFIGURED_HOOKS = ("-c", "hook.x.command=:", "-c", "hook.x.event=post-merge", "hook", "list", "post-merge")


def newer_git(feature: str) -> dict[str, str]:
    """Return the environment of a git that can do something: ``reftable`` or ``configured hooks``; or skip the test."""
    found = _folder_of(feature)
    if found is None:
        pytest.skip(f"no git here has {feature}; KB_TEST_GIT may name the program of one that has")
    return git_env({"PATH": f"{found}{os.pathsep}{_PATH}"})


@cache
def _folder_of(feature: str) -> Path | None:
    for program in filter(None, [_NAMED, shutil.which("git", path=_PATH)]):
        if _can(program, feature):
            return Path(program).parent
    return None


def _can(program: str, feature: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        if feature == "reftable":
            return _succeeds(program, ("init", "--quiet", "--ref-format=reftable", folder), folder)
        return _succeeds(program, ("init", "--quiet", folder), folder) and _succeeds(program, _CONFIGURED_HOOKS, folder)


def _succeeds(program: str, arguments: Sequence[str], folder: str) -> bool:
    done = subprocess.run([program, *arguments], cwd=folder, env=git_env(), capture_output=True, check=False)
    return done.returncode == 0


def use_hooks_in_files() -> None:
    """Put a git without hooks by configuration at the head of PATH, where the one that is there has them."""
    program = shutil.which("git")
    if program is None or not _can(program, "configured hooks"):
        return
    folder = Path(tempfile.mkdtemp(prefix="kb-test-git-"))
    atexit.register(shutil.rmtree, folder)
    stand_in = folder / "git"
    stand_in.write_text(f'#!/bin/sh\ncase " $* " in *" hook list "*) exit 129;; esac\nexec \'{program}\' "$@"\n')
    stand_in.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{_PATH}"
