"""The time of one upsert over MCP, against writing the same bytes durably, for several sizes of the store."""

from __future__ import annotations

import os

from benchmarks import generate
from benchmarks.bare_commit import BareCommit
from benchmarks.measure import ProcessFailed, Sample, call, in_turns
from benchmarks.pipe import Pipe, answer
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
    os.sync()  # the stores were copied; no first commit shall wait for that
    rounds = place.sizes.calls
    *taken, floor = in_turns(
        *(server.next for server in servers), lambda: call(bare), rounds=rounds, warm_ups=max(1, rounds // 10)
    )
    bare.close()
    rows = [
        Row(
            name="kb_upsert over MCP",
            against="bare durable write",
            count=server.count,
            unit="entities",
            kb=kb,
            floor=floor,
            peak_bytes=server.close(),
            at_most=6.0,
            grows_at_most=FLAT,
        )
        for server, kb in zip(servers, taken, strict=True)
    ]
    return rows + [_by_size(rows[0], rows[-1])] * (len(rows) > 1)


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
