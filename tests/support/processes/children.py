"""The worker processes of a sync, as the system lists them."""

from __future__ import annotations

import os
from pathlib import Path

PROGRAM = "worker_program.py"


def workers_of(pid: int) -> list[int]:
    """Return the worker processes that a process has now."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in listed.read_text(encoding="ascii").split()]
        except OSError:  # the thread has ended
            continue
    return [one for one in found if is_worker(one)]


def is_worker(pid: int) -> bool:
    """Tell whether a process is there, runs, and is a worker."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(os.fsdecode(word).endswith(PROGRAM) for word in words)
