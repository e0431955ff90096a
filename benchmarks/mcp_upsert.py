"""The time of one upsert over MCP, for several sizes of the store, against writing the same bytes durably.

How fast a disk makes bytes durable says nothing of KB, and differs more between machines than anything else here. So
there is a second floor, which the guard uses: the same write and the SDK's own call of a tool that does nothing.
"""

from __future__ import annotations

import os
import sys

import msgspec

from benchmarks import generate
from benchmarks.bare_commit import BareCommit
from benchmarks.measure import ProcessFailed, Sample, Series, call, in_turns, together
from benchmarks.pipe import EMPTY_TOOL, Pipe, answer
from benchmarks.place import Place
from benchmarks.table import FLAT, Row

_NO_SLOWER = 1.1
"""The same time, with room for the noise of the disk."""


class Upserts:
    """A server on a store of its own, which takes one changeset after the other."""

    def __init__(self, place: Place, count: int, name: str = "upserts") -> None:
        self.count = count
        self.root = place.copy_of(place.store(count), f"{name}-{count}")
        self.pipe = Pipe(place.kb_mcp(self.root), cwd=self.root, env=place.env)
        self._number = 0

    def next(self) -> Sample:
        """Write one entity and one edge, and return how long the answer took."""
        self._number += 1
        target = generate.entity_id(1 + 3 * (self._number % (self.count // 4)))
        asked = generate.changeset(f"NEW-{self._number:06d}", target)
        sample, result = self.pipe.call("kb_upsert", asked)
        if answer(result)["seq"] != self.count + self._number:
            raise ProcessFailed("kb_upsert did not write one record")
        return sample

    def close(self) -> int | None:
        """End the server and return its peak of memory."""
        return self.pipe.close().peak_bytes


def run(place: Place) -> list[Row]:
    """Measure the stores of all sizes and the floor, commit by commit alternately."""
    servers = [Upserts(place, count) for count in place.sizes.records]
    servers[0].next()  # so that the store's last line is one of these
    bare = BareCommit(servers[0].root, place.directory / "bare-upsert")
    empty = Pipe([sys.executable, "-m", "benchmarks.empty_server"], cwd=servers[0].root, env=place.env)
    os.sync()  # the stores were copied; no first commit shall wait for that
    rounds = place.sizes.calls
    *taken, write, nothing = in_turns(
        *(server.next for server in servers),
        lambda: call(bare),
        lambda: empty.call(EMPTY_TOOL, {})[0],
        rounds=rounds,
        warm_ups=max(1, rounds // 10),
    )
    bare.close()
    empty.close()
    rows = [_row(server, kb, write) for server, kb in zip(servers, taken, strict=True)]
    both = Series(tuple(map(together, write.samples, nothing.samples)))
    called = msgspec.structs.replace(rows[0], against="the write + empty tool of the SDK", floor=both, at_most=None)
    return [*rows, called] + [_by_size(rows[0], rows[-1])] * (len(rows) > 1)


def _row(server: Upserts, kb: Series, write: Series) -> Row:
    return Row(
        name="kb_upsert over MCP",
        against="bare durable write",
        count=server.count,
        unit="entities",
        kb=kb,
        floor=write,
        peak_bytes=server.close(),
        at_most=6.0,
        grows_at_most=FLAT,
    )


def _by_size(small: Row, large: Row) -> Row:
    return Row(
        name=large.name,
        against=f"the same at {small.count:,}",
        count=large.count,
        unit=large.unit,
        kb=large.kb,
        floor=small.kb,
        peak_bytes=None,
        at_most=_NO_SLOWER,
    )
