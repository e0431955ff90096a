"""How long does one upsert take over MCP, against writing the same bytes durably, and does the store's size matter?

The floor appends to a file and syncs it, renames a small file over another, and syncs the directory.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks import generate
from benchmarks.measure import ProcessFailed, Sample, Series, call, in_turns
from benchmarks.pipe import Pipe
from benchmarks.place import Place
from benchmarks.table import Row

_NO_SLOWER = 1.1
"""The same time, with room for the noise of the disk."""


class Upserts:
    """A server on a store of its own, which takes one changeset after the other."""

    def __init__(self, place: Place, count: int) -> None:
        self.root = place.copy_of(place.store(count), f"upserts-{count}")
        self._count = count
        self._number = 0
        self._pipe = Pipe(place.kb_mcp(self.root), cwd=self.root, env=place.env)

    def next(self) -> Sample:
        """Write one entity and one edge, and return how long the answer took."""
        self._number += 1
        target = generate.entity_id(1 + 3 * (self._number % (self._count // 4)))
        asked = generate.changeset(f"NEW-{self._number:06d}", target)
        sample, result = self._pipe.call("kb_upsert", asked)
        if json.loads(result["content"][0]["text"])["seq"] != self._count + self._number:
            raise ProcessFailed("kb_upsert did not write one record")
        return sample

    def close(self) -> int | None:
        """End the server and return its peak of memory."""
        return self._pipe.close().peak_bytes


class BareCommit:
    """The floor: the same bytes, in a directory of the same file system."""

    def __init__(self, like: Path, directory: Path) -> None:
        """Take the lengths of a record and of the head from a store."""
        branch = like / ".kb" / "branches" / "main"
        with max(branch.glob("journal-*.jsonl")).open("rb") as lines:
            self._line = lines.readlines()[-1]
        self._head = (branch / "head.json").read_bytes()
        directory.mkdir()
        self._directory = directory
        self._journal = os.open(directory / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self) -> None:
        """Append, sync, rename, sync the directory."""
        os.write(self._journal, self._line)
        os.fsync(self._journal)
        new = self._directory / "head.new"
        new.write_bytes(self._head)
        new.replace(self._directory / "head")
        folder = os.open(self._directory, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def run(place: Place) -> list[Row]:
    """Measure a small store, a large one and the floor, commit by commit in turns."""
    few, many = Upserts(place, place.sizes.few_records), Upserts(place, place.sizes.records)
    few.next()  # so that the store's last line is one of these
    bare = BareCommit(few.root, place.directory / "bare")
    os.sync()  # the stores were copied; nobody's first commit shall wait for that
    small, large, floor = in_turns(
        few.next, many.next, lambda: call(bare), rounds=place.sizes.calls, warm_ups=max(1, place.sizes.calls // 10)
    )
    peaks = few.close(), many.close()
    return [*_against_floor(place, small, large, floor, peaks), _by_size(place, small, large)]


def _against_floor(
    place: Place, small: Series, large: Series, floor: Series, peaks: tuple[int | None, int | None]
) -> list[Row]:
    sizes = (place.sizes.few_records, place.sizes.records)
    return [
        Row("kb_upsert over MCP / bare durable write", f"{count:,} entities", kb, floor, 6.0, peak)
        for count, kb, peak in zip(sizes, (small, large), peaks, strict=True)
    ]


def _by_size(place: Place, small: Series, large: Series) -> Row:
    few, many = place.sizes.few_records, place.sizes.records
    return Row(f"kb_upsert over MCP / the same at {few:,}", f"{many:,} entities", large, small, _NO_SLOWER, None)
