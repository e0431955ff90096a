"""Timing of whole processes and of single calls, two kinds alternately, so that a noisy machine disturbs both equally.

A process is timed from its start to its end, with the processor time and the peak memory that the system kept for
it. On Linux a child's peak counts the most that its parent had held when it was started: the measuring process stays
small, and a peak that is no larger than its own is not known.
"""

from __future__ import annotations

import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

_LOOK_S = 0.05
"""The time between two looks at the memory of a process and its children."""
PEAK_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


class Sample(msgspec.Struct, frozen=True):
    """One run: seconds by the clock, seconds of the processor, bytes of memory at the peak; None is unknown."""

    wall_s: float
    cpu_s: float | None = None
    peak_bytes: int | None = None


class Series(msgspec.Struct, frozen=True):
    """All runs of one kind, in order."""

    samples: tuple[Sample, ...]

    @property
    def walls_s(self) -> list[float]:
        """Seconds by the clock, in order."""
        return [sample.wall_s for sample in self.samples]

    @property
    def median_s(self) -> float:
        """The run in the middle: half were faster, half slower."""
        return statistics.median(self.walls_s)

    def ratio_to(self, other: Series) -> float:
        """Return how many times as long these runs took as those that were made alternately with them.

        It is the median of the ratios of each round: a machine that becomes slower for a while slows both runs of a
        round, but not all rounds. Series of other lengths were not made so: then it is the ratio of the medians.
        """
        if len(self.samples) != len(other.samples):
            return self.median_s / other.median_s
        return statistics.median(
            one.wall_s / beside.wall_s for one, beside in zip(self.samples, other.samples, strict=True)
        )

    @property
    def cpu_s(self) -> float | None:
        """The median of the processor's time."""
        known = [sample.cpu_s for sample in self.samples if sample.cpu_s is not None]
        return statistics.median(known) if known else None

    @property
    def peak_bytes(self) -> int | None:
        """The largest peak."""
        return max((sample.peak_bytes for sample in self.samples if sample.peak_bytes is not None), default=None)


Work = Callable[[], Sample]


class ProcessFailed(Exception):
    """A measured program ended with a status that means it did not do its work."""


def process(
    words: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    allowed: Collection[int] = (0,),
    with_children: bool = False,
) -> Sample:
    """Run a program to its end and return what it took. Its output is thrown away.

    ``with_children`` has the peak memory be that of the program and the processes that it starts, taken together, as
    far as looks at them show it; pages that they share count for each.

    Raises: ``ProcessFailed`` with what it wrote to standard error.
    """
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        child = subprocess.Popen(
            [str(word) for word in words],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        watched = _Watched(child.pid) if with_children else None
        sample, status = ended(child, start)
        if watched is not None:
            sample = msgspec.structs.replace(sample, peak_bytes=max(watched.stop(), sample.peak_bytes or 0) or None)
        if status not in allowed:
            said.seek(0)
            text = said.read().decode(errors="replace")[-2000:]
            raise ProcessFailed(f"{' '.join(map(str, words))} ended with status {status}: {text}")
    return sample


class _Watched:
    """The most memory that a process and its children have held together. Where there is no ``/proc``, none is seen."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak_bytes = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> int:
        self._is_over.set()
        self._thread.join()
        return self._peak_bytes

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            self._peak_bytes = max(self._peak_bytes, sum(map(_resident_bytes, _family(self._pid))))


def _family(pid: int, of_parent: bytes = b"") -> list[int]:
    """Return a process and its descendants, without those that have not begun their program.

    Between fork and exec a child has the words of its parent (``of_parent``), and the very same memory.
    """
    words = b""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    if words and words == of_parent:
        return []
    found = [pid]
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [one for child in listed.read_text(encoding="ascii").split() for one in _family(int(child), words)]
    return found


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def ended(child: subprocess.Popen[bytes], start: float) -> tuple[Sample, int]:
    """Wait for a child and return what it took since ``start`` (of ``time.perf_counter``), and its status."""
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if sys.platform == "linux" else 0
    peak_bytes = usage.ru_maxrss * PEAK_UNIT_BYTES if usage.ru_maxrss > own else None
    return Sample(wall_s, usage.ru_utime + usage.ru_stime, peak_bytes), child.returncode


def together(*samples: Sample) -> Sample:
    """Return several runs, one after the other, as one."""
    return Sample(
        sum(sample.wall_s for sample in samples),
        sum(sample.cpu_s or 0.0 for sample in samples),
        max((sample.peak_bytes for sample in samples if sample.peak_bytes is not None), default=None),
    )


def call(work: Callable[[], object]) -> Sample:
    """Run a function in this process and return what it took by the clock."""
    start = time.perf_counter()
    work()
    return Sample(time.perf_counter() - start)


def cpu_s_of(pid: int) -> float | None:
    """Return the processor time that a process has taken so far, with all its threads; None where that is not known.

    The number of the clock is that of Linux, ``clock_getcpuclockid(3)``, which Python does not offer.
    """
    return time.clock_gettime((~pid << 3) | 2) if sys.platform == "linux" else None


def in_turns(*works: Work, rounds: int, warm_ups: int = 1) -> tuple[Series, ...]:
    """Run each kind of work once, then each again, and so on; the warm-ups are not counted."""
    for _ in range(warm_ups):
        for work in works:
            work()
    taken: list[list[Sample]] = [[] for _ in works]
    for _ in range(rounds):
        for samples, work in zip(taken, works, strict=True):
            samples.append(work())
    return tuple(Series(tuple(samples)) for samples in taken)
