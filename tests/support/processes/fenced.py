"""Python programs in a user namespace of their own: where the system gives few watches, or root is not all-powerful."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

_WAIT_S = 60.0
_NAMESPACE = ("unshare", "--user")


def with_few_watches(limit: int, program: str, *words: object) -> str:
    """Run a program that can have so many folders watched, and return what it prints."""
    setting = f"echo {limit} > /proc/sys/user/max_inotify_watches"
    return _run("--map-root-user", "sh", "-c", f'{setting} && exec "$@"', "sh", program=program, words=words)


def as_somebody(program: str, *words: object) -> str:
    """Run a program as the owner of what this process makes, who is not root, and return what it prints."""
    return _run("--map-user=1000", program=program, words=words)


def _run(*fence: str, program: str, words: tuple[object, ...]) -> str:
    if (
        shutil.which("unshare") is None
        or subprocess.run([*_NAMESPACE, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this system gives no user namespaces")
    command = [*_NAMESPACE, *fence, sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_WAIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
