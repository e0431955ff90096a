"""The time that a process takes by itself: without what it waits for a processor or a disk that others use.

A process that hangs is asleep, one in an endless loop uses a processor: both count, however busy the machine is. Where
the system has no ``/proc``, all time counts.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LOOK_S: Final = 0.01
_MOST_BETWEEN_S: Final = 2 * _LOOK_S
_ASLEEP: Final = frozenset("SIZXtT")
"""States of threads that neither run, nor wait for a processor or a disk."""
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_TIMES: Final = slice(11, 15)
"""Processor time among the words of ``stat`` after the name: its own and that of its children that ended."""


def own_time_s(process: subprocess.Popen[bytes] | subprocess.Popen[str], most_s: float) -> float:
    """Wait until a process ends, or has taken longer than ``most_s`` by itself; return what it took from now on.

    It is that of the process and its children together, and never more than the time by the clock.
    """
    began_s = last_s = time.monotonic()
    _, begun_cpu_s = _look(process.pid)
    asleep_s = used_s = own_s = 0.0
    while process.poll() is None and own_s <= most_s:
        time.sleep(_LOOK_S)
        now_s = time.monotonic()
        is_asleep, cpu_s = _look(process.pid)
        # How it was meanwhile is not known where this process itself had to wait for a processor.
        asleep_s += min(now_s - last_s, _MOST_BETWEEN_S) if is_asleep else 0.0
        last_s = now_s
        own_s = now_s - began_s
        if _PROC.is_dir():
            used_s = max(used_s, cpu_s - begun_cpu_s)  # of a process that has ended nothing can be read
            own_s = min(own_s, asleep_s + used_s)
    return own_s


def _look(pid: int) -> tuple[bool, float]:
    """Tell whether a process and all below it are asleep, and the processor time that they have used."""
    is_asleep, cpu_s = True, 0.0
    for one in _with_children(pid):
        for task in _entries(one / "task"):
            words = _words(task / "stat")
            is_asleep = is_asleep and (not words or words[0] in _ASLEEP)
        cpu_s += sum(map(int, _words(one / "stat")[_TIMES])) * _TICK_S
    return is_asleep, cpu_s


def _with_children(pid: int) -> Iterator[Path]:
    yield _PROC / str(pid)
    for task in _entries(_PROC / str(pid) / "task"):
        for child in _read(task / "children").split():
            yield from _with_children(int(child))


def _words(path: Path) -> list[str]:
    """Return the words of a ``stat`` after the name of the program; none for a process that is gone."""
    return _read(path).rpartition(")")[2].split()


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # it has ended, or there is no such system
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
