"""The lock of a cycle: one process at a time, and not too soon after the cycle before."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Final

from kbcore.errors import AlreadyAsleep
from kbcore.kip.sleep.memory import hours_between
from kbcore.model.values import normal_time
from kbcore.storage import lock
from kbcore.store.workspace import Workspace

COMMAND: Final = "kb sleep"


@contextlib.contextmanager
def sleep_lock(workspace: Workspace, branch: str) -> Iterator[None]:
    """Hold the lock of a branch's cycle; the kernel frees it with its holder. Raises: ``AlreadyAsleep``."""
    fs = workspace.machine.fs
    mark = hashlib.sha256(branch.encode()).hexdigest()[:16]
    path = workspace.folders.branches_dir / f".sleep-{mark}.lock"
    already, clock = f"A cycle of {branch} runs already", workspace.machine.clock
    with lock.alone(fs, clock, path, command=COMMAND, refusal=AlreadyAsleep, already=already):
        yield


def hours_left(last: str, now: str, interval_hours: float) -> float:
    """Return how many hours are left until the next cycle; 0 where it may begin, and where the last one is no time."""
    ended = normal_time(last) if last else None
    if ended is None or ended > now:
        return 0.0
    return max(0.0, interval_hours - hours_between(ended, now))
