"""The throughput of eight servers that write to one branch, against one server, and the spread of their waits.

Both are measured alternately on one store. Each server sends the next changeset as soon as the last one was answered.
"""

from __future__ import annotations

import json
import os
import selectors
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import generate
from benchmarks.measure import ProcessFailed, Sample, Series
from benchmarks.pipe import Pipe
from benchmarks.place import Place
from benchmarks.table import Row
from tests.support.repository.places import stores_at

_WRITERS = 8
_STORE_RECORDS = 5_000
_WARM_UPS = 3
"""Changesets of each writer before it is measured: the first ones fold what others wrote meanwhile."""
_LONGER_AT_MOST = 1.11
"""Eight are to write at least 0.9 times as much together as one alone."""
_WORST_WAIT = 6.0
"""The factor of the mean wait that one in a hundred may wait."""
_PERCENT = 100


class Writers:
    """Servers on one store, and the changesets that they are asked to write, each of one new entity and one edge."""

    def __init__(self, place: Place) -> None:
        self.count = max((one for one in place.sizes.records if one <= _STORE_RECORDS), default=_STORE_RECORDS)
        self.root = place.copy_of(place.store(self.count), f"many-{self.count}")
        self.pipes = [Pipe(place.kb_mcp(self.root), cwd=self.root, env=place.env) for _ in range(_WRITERS)]
        self._number = 0

    def write(self, writers: Sequence[Pipe], calls: int) -> tuple[Sample, list[float]]:
        """Let these servers write ``calls`` changesets, and return seconds per changeset and each one's wait."""
        self._answers(writers, _WARM_UPS * len(writers))
        before_s = self._cpu_s()
        start = time.perf_counter()
        waits = self._answers(writers, calls)
        taken_s = time.perf_counter() - start
        after_s = self._cpu_s()
        cpu_s = None if before_s is None or after_s is None else (after_s - before_s) / calls
        return Sample(taken_s / calls, cpu_s), waits

    def close(self) -> int | None:
        """End the servers and return the largest peak of memory.

        Raises: ``ProcessFailed`` when there is not one record for each changeset.
        """
        head = json.loads((stores_at(self.root) / "main" / "head.json").read_bytes())
        if head["head"]["seq"] != self.count + self._number:
            raise ProcessFailed(f"{self._number} changesets led from record {self.count} to {head['head']['seq']}")
        peaks = [pipe.close().peak_bytes for pipe in self.pipes]
        return max((peak for peak in peaks if peak is not None), default=None)

    def _answers(self, writers: Sequence[Pipe], calls: int) -> list[float]:
        waits, left = list[float](), calls
        started: dict[Pipe, float] = {}
        with selectors.DefaultSelector() as waiting:
            for pipe in writers:
                waiting.register(pipe.answers, selectors.EVENT_READ, pipe)
            idle = list(writers)
            while len(waits) < calls:
                for pipe in idle[:left]:
                    started[pipe] = self._begin(pipe)
                left -= len(idle[:left])
                idle = [key.data for key, _ in waiting.select()]
                for pipe in idle:
                    pipe.finish()
                    waits.append(time.perf_counter() - started.pop(pipe))
        return waits

    def _begin(self, pipe: Pipe) -> float:
        self._number += 1
        target = generate.entity_id(1 + 3 * (self._number % (self.count // 4)))
        pipe.begin("kb_upsert", generate.changeset(f"MANY-{self._number:06d}", target))
        return time.perf_counter()

    def _cpu_s(self) -> float | None:
        """Return the processor's time of all servers so far; None where the system does not report it."""
        try:
            fields = [Path(f"/proc/{pipe.pid}/stat").read_text().rpartition(")")[2].split() for pipe in self.pipes]
        except OSError:
            return None
        return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def run(place: Place) -> list[Row]:
    """Measure one server and eight of them alternately."""
    writers = Writers(place)
    os.sync()  # the store was copied; no first commit shall wait for that
    together, alone = list[Sample](), list[Sample]()
    late, mean = list[Sample](), list[Sample]()
    for _ in range(place.sizes.rounds):
        alone.append(writers.write(writers.pipes[:1], place.sizes.calls)[0])
        sample, waits = writers.write(writers.pipes, place.sizes.calls)
        together.append(sample)
        late.append(Sample(sorted(waits)[-1 - len(waits) // _PERCENT]))
        mean.append(Sample(statistics.mean(waits)))
    peak_bytes = writers.close()
    rows = (
        (f"a changeset of {_WRITERS} writers", "one writer", together, alone, _LONGER_AT_MOST),
        (f"slowest hundredth of {_WRITERS} writers", "their mean wait", late, mean, _WORST_WAIT),
    )
    return [
        Row(
            name=name,
            against=against,
            count=writers.count,
            unit="entities",
            kb=Series(tuple(kb)),
            floor=Series(tuple(floor)),
            peak_bytes=peak_bytes,
            at_most=at_most,
        )
        for name, against, kb, floor, at_most in rows
    ]
