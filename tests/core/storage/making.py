"""Stores and clocks for the tests of the storage layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from kbcore.storage import branchdir, compaction, frame, head, journal
from kbcore.storage.fs import RealFs
from kbcore.storage.head import Head
from tests.support.disk.faultfs import NoSyncFs

FS = RealFs()
NO_SYNC = NoSyncFs()
"""For preparing and for repeating things: nothing here pulls a plug."""
LINEAGE = "a" * 64


class FakeClock:
    """Time that passes only when somebody sleeps, and by a millisecond at each look."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def now(self) -> str:
        self.elapsed_s += 0.001
        total = int(self.elapsed_s * 1000)
        return (
            f"2026-11-20T{total // 3600000:02}:{total // 60000 % 60:02}:{total // 1000 % 60:02}.{total % 1000:03}000Z"
        )

    def monotonic_s(self) -> float:
        return self.elapsed_s

    def sleep(self, wait_s: float) -> None:
        self.elapsed_s += wait_s


CLOCK = FakeClock()


def payload(number: int, *, at: str = "", pad: int = 0) -> bytes:
    """Return a small record's payload."""
    return json.dumps({"at": at or CLOCK.now(), "n": number, "pad": "x" * pad}, separators=(",", ":")).encode()


def new_store(tmp_path: Path, records: int = 0, *, name: str = "main", pad: int = 0) -> Path:
    """Create a store and fill it, without a commit each: the file a row of commits would leave."""
    directory = tmp_path / name
    directory.parent.mkdir(exist_ok=True)
    branchdir.create(NO_SYNC, directory, CLOCK, branch=name, lineage=LINEAGE)
    fill(directory, records, pad=pad)
    return directory


def fill(directory: Path, records: int, *, pad: int = 0) -> Head:
    """Add records as one write, and the head that names them."""
    of = head.read(FS, directory)
    tip, lines = of.head, []
    seq, prev, at = tip.seq, tip.hash, tip.at
    for number in range(seq + 1, seq + records + 1):
        at = CLOCK.now()
        framed, line = frame.encode(number, prev, payload(number, at=at, pad=pad))
        seq, prev = framed.seq, framed.sum
        lines.append(line)
    data = b"".join(lines)
    with (directory / tip.file).open("ab") as file:
        file.write(data)
    new = msgspec.structs.replace(of, head=head.Tip(seq, prev, tip.file, tip.length + len(data), at))
    (directory / "head.json").write_bytes(head.encode(new))
    return new


def compacted_store(tmp_path: Path, *records: int, name: str = "main") -> Path:
    """Create a store with a segment for each of these numbers of records; all but the last are sealed, by snapshots."""
    directory = new_store(tmp_path, records[0], name=name)
    for number in records[1:]:
        compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b'{"seq":%d}' % of.seq], wait_s=0)
        fill(directory, number)
    return directory


def holed_store(tmp_path: Path, *, snapshots: tuple[int, ...] = (3, 5)) -> Path:
    """Create a store of records 1 to 3, 6 and 7, with these of the snapshots at 3 and 5; the file between is gone."""
    directory = compacted_store(tmp_path, 3, 2, 2)
    (directory / head.read(FS, directory).segments[1].file).unlink()
    remove_from_head(directory, 4, *({3, 5} - {*snapshots}))
    return directory


def remove_from_head(directory: Path, *seqs: int) -> None:
    """Take segments and snapshots out of a head, by the seq in their names; before a gap that makes missing records."""
    of = head.read(FS, directory)
    new = msgspec.structs.replace(
        of,
        features_required=tuple(sorted({*of.features_required, head.HOLES})),
        segments=tuple(part for part in of.segments if part.first_seq not in seqs),
        snapshots=tuple(ref for ref in of.snapshots if ref.seq not in seqs),
    )
    (directory / "head.json").write_bytes(head.encode(new))


def head_of(**stated: Any) -> Head:
    """Return the head of seven records of branch main in one segment, with other values where stated."""
    file = "journal-0000000001.jsonl"
    whole = Head(
        format=1,
        features_required=(),
        store_id="own",
        lineage="one",
        branch="main",
        origin=None,
        pruned=None,
        snapshots=(),
        segments=(head.Segment(file, 1, "one"),),
        head=head.Tip(7, "sum of 7", file, 700, ""),
    )
    return msgspec.structs.replace(whole, **stated)


def append(directory: Path, number: int, *, fs: Any = NO_SYNC) -> Head:
    """Commit one record."""
    with journal.writing(fs, directory, CLOCK, wait_s=0) as writer:
        at = CLOCK.now()
        return writer.append(payload(number, at=at), at)


def next_line(directory: Path, number: int = 0) -> bytes:
    """Return the line of the record that would come next, without writing it."""
    tip = head.read(FS, directory).head
    at = CLOCK.now()
    return frame.encode(tip.seq + 1, tip.hash, payload(number or tip.seq + 1, at=at))[1]


def numbers(directory: Path) -> list[int]:
    """Return the number in each record, by the whole journal's reading."""
    of = head.read(FS, directory)
    return [json.loads(entry.frame.rec)["n"] for entry in journal.scan(FS, directory, of)]


def names(directory: Path) -> list[str]:
    """Return what is in a directory."""
    return sorted(path.name for path in directory.iterdir())


def segment(directory: Path) -> Path:
    """Return the active segment."""
    return directory / head.read(FS, directory).head.file


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file under a directory, except the lock, with its bytes."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "lock"
    }
