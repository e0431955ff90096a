"""F5 to F8: files that were cut, flipped, spliced or rewritten by something else. All of it is found, and named."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.errors import Damaged, FormatTooNew, HeadDamaged, JournalCorrupt, JournalTruncated, KBError, SnapshotCorrupt
from kbcore.storage import branchdir, compaction, frame, head, journal, snapshot, verify
from kbcore.storage.head import Head
from tests.fault.workloads import CLOCK, LINEAGE, append, fold, numbers, payload
from tests.support.disk.disk import File, MemoryDisk, copy_of
from tests.support.effort.scale import tries

ROOT = Path("/store")
MAIN = ROOT / "main"


def filled(records: int, *, lineage: str = LINEAGE) -> MemoryDisk:
    """Return a disk with a store of so many records, written as one append and one head."""
    fs = MemoryDisk()
    fs.mkdir(ROOT)
    branchdir.create(fs, MAIN, CLOCK, branch="main", lineage=lineage)
    return fill(fs, records)


def fill(fs: MemoryDisk, records: int) -> MemoryDisk:
    """Add records, and the head that names them."""
    of = head.read(fs, MAIN)
    tip, data = of.head, b""
    for number in range(of.seq + 1, of.seq + records + 1):
        framed, line = frame.encode(number, tip.hash, payload(number, CLOCK.now()))
        data += line
        tip = head.Tip(framed.seq, framed.sum, tip.file, tip.length + len(line), CLOCK.now())
    file_of(fs, of.head.file).data.extend(data)
    file_of(fs, "head.json").data[:] = head.encode(msgspec.structs.replace(of, head=tip))
    return fs


def file_of(fs: MemoryDisk, name: str) -> File:
    node = fs._find(MAIN / name)
    assert isinstance(node, File)
    return node


def read(fs: MemoryDisk, of: Head) -> int:
    """Return how many records a reader gets."""
    return sum(1 for _ in journal.scan(fs, MAIN, of))


def refusal(use: Callable[[], Any]) -> KBError | None:
    try:
        use()
    except KBError as error:
        return error
    return None


def contents(fs: MemoryDisk) -> dict[str, bytes]:
    return {name: bytes(file_of(fs, name).data) for name in fs.listdir(MAIN) if name not in {"lock", "quarantine"}}


@pytest.mark.fault("F5")
def test_a_journal_cut_at_any_length_below_the_head_is_refused_and_left_alone(tally) -> None:
    fs = filled(tries(20, 200))
    of, file = head.read(fs, MAIN), file_of(fs, head.read(fs, MAIN).head.file)
    data = bytes(file.data)
    for length in range(len(data) - 1, -1, -tries(7, 1)):
        del file.data[length:]
        tally.tried()
        for use in (lambda: read(fs, of), lambda: append(fs, MAIN, 999)):
            error = refusal(use)
            if not isinstance(error, JournalTruncated) or str(length) not in error.message:
                tally.violated(length, error)
        if bytes(file.data) != data[:length]:
            tally.violated(length, "the file was changed")
    tally.done()


@pytest.mark.fault("F5")
def test_a_journal_cut_at_any_length_beyond_the_head_goes_to_quarantine(tally) -> None:
    base = filled(5)
    of = head.read(base, MAIN)
    start = of.head.length
    line = frame.encode(of.seq + 1, of.hash, payload(6, CLOCK.now(), tries(20, 4000)))[1]
    file_of(base, of.head.file).data.extend(line)
    for length in range(1, len(line) + 1):
        fs = copy_of(base)
        file = file_of(fs, of.head.file)
        del file.data[start + length :]
        tally.tried()
        if read(fs, of) != 5 or bytes(file.data) != bytes(file_of(base, of.head.file).data)[: start + length]:
            tally.violated(length, "a reader saw or changed bytes beyond the head")
        append(fs, MAIN, 999)
        is_whole = length == len(line)
        if numbers(fs, MAIN) != [1, 2, 3, 4, 5, *[6] * is_whole, 999]:
            tally.violated(length, numbers(fs, MAIN))
        kept = [name for name in fs.listdir(MAIN / "quarantine") if name.endswith(".cut")] if not is_whole else []
        if not is_whole and _bytes(fs, f"quarantine/{kept[0]}") != line[:length]:
            tally.violated(length, f"quarantine holds {kept}")
    tally.done()


def _bytes(fs: MemoryDisk, name: str) -> bytes:
    node = fs._find(MAIN / name)
    assert isinstance(node, File)
    return bytes(node.data)


@pytest.mark.fault("F5")
def test_a_head_file_or_a_snapshot_cut_at_any_length_is_refused(tally) -> None:
    fs = compacted()
    of = head.read(fs, MAIN)
    for name, kind, use in (
        ("head.json", HeadDamaged, lambda: head.read(fs, MAIN)),
        (of.snapshots[0].file, SnapshotCorrupt, lambda: list(snapshot.read(fs, MAIN, of, of.snapshots[0]))),
    ):
        file = file_of(fs, name)
        data = bytes(file.data)
        for length in range(0, len(data), tries(5, 1)):
            file.data[:] = data[:length]
            tally.tried()
            error = refusal(use)
            if not isinstance(error, kind) or name not in error.message:
                tally.violated((name, length), error)
        file.data[:] = data
    tally.done()


def compacted() -> MemoryDisk:
    """Return a store with a sealed segment, a snapshot, and records after it."""
    fs = filled(6)
    compaction.compact(fs, MAIN, CLOCK, fold)
    return fill(fs, 3)


@pytest.mark.fault("F6")
@pytest.mark.parametrize("which", ["active", "sealed"])
def test_every_flipped_bit_of_the_journal_is_found_at_its_line(which: str, tally) -> None:
    fs = filled(tries(5, 40)) if which == "active" else compacted()
    of = head.read(fs, MAIN)
    file = file_of(fs, of.segments[0].file)
    lines = list(itertools.accumulate((byte == ord("\n") for byte in file.data), initial=1))
    for at, bit in itertools.product(range(0, len(file.data), tries(3, 1)), range(8)):
        file.data[at] ^= 1 << bit
        tally.tried()
        error = refusal(lambda: read(fs, of))
        place = (error.data.get("file"), error.data.get("line")) if isinstance(error, JournalCorrupt) else None
        if place != (str(MAIN / of.segments[0].file), lines[at]):
            tally.violated((at, bit), error)
        file.data[at] ^= 1 << bit
    tally.done()


@pytest.mark.fault("F6")
def test_every_flipped_bit_of_the_head_file_and_of_a_snapshot_is_found(tally) -> None:
    fs = compacted()
    of = head.read(fs, MAIN)
    for name, kinds, use in (
        ("head.json", (HeadDamaged, FormatTooNew), lambda: head.read(fs, MAIN)),
        (of.snapshots[0].file, (SnapshotCorrupt,), lambda: list(snapshot.read(fs, MAIN, of, of.snapshots[0]))),
    ):
        file = file_of(fs, name)
        for at, bit in itertools.product(range(0, len(file.data), tries(5, 1)), range(8)):
            file.data[at] ^= 1 << bit
            tally.tried()
            error = refusal(use)
            if not isinstance(error, kinds) or name not in error.message:
                tally.violated((name, at, bit), error)
            file.data[at] ^= 1 << bit
    tally.done()


@pytest.mark.fault("F6")
def test_a_flipped_bit_is_found_by_verify_and_nothing_is_written(tally) -> None:
    fs = compacted()
    names = [*head.read(fs, MAIN).files, "head.json"]
    for name in names:
        file = file_of(fs, name)
        for at in range(0, len(file.data), max(1, len(file.data) // tries(10, 150))):
            file.data[at] ^= 4
            before = contents(fs)
            tally.tried()
            proof = refusal(lambda: _prove(fs))
            if proof is None or name not in proof.message or contents(fs) != before:
                tally.violated((name, at), proof)
            file.data[at] ^= 4
    tally.done()


def _prove(fs: MemoryDisk) -> None:
    proof = verify.prove(fs, MAIN)
    if not proof.is_sound:
        raise JournalCorrupt(" ".join(finding.message for finding in proof.findings))


def shuffled(lines: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Yield a journal with one or two of its lines deleted, doubled, swapped or put elsewhere."""
    for one in range(len(lines)):
        yield f"{one} deleted", lines[:one] + lines[one + 1 :]
        yield f"{one} doubled", lines[: one + 1] + lines[one:]
        yield f"{one} replaced by nothing", [*lines[:one], b"\n", *lines[one + 1 :]]
    for one, two in itertools.combinations(range(len(lines)), 2):
        swapped = list(lines)
        swapped[one], swapped[two] = lines[two], lines[one]
        yield f"{one} and {two} swapped", swapped
        yield f"{one} inserted at {two}", [*lines[:two], lines[one], *lines[two:]]
        yield f"{two} inserted at {one}", [*lines[:one], lines[two], *lines[one:]]
        yield f"{one} to {two} deleted", lines[:one] + lines[two:]


@pytest.mark.fault("F7")
def test_lines_that_are_deleted_doubled_swapped_or_inserted_are_found(tally) -> None:
    fs = filled(tries(8, 40))
    of = head.read(fs, MAIN)
    file = file_of(fs, of.head.file)
    data = bytes(file.data)
    for name, lines in shuffled(data.splitlines(keepends=True)):
        file.data[:] = b"".join(lines)
        before = bytes(file.data)
        tally.tried()
        error = refusal(lambda: read(fs, of))
        is_clean_tail = before[: len(data)] == data
        if is_clean_tail:
            # A whole copy of the last line beyond the head: not acknowledged, so readers ignore it.
            if error or refusal(lambda: append(copy_of(fs), MAIN, 999)):
                tally.violated(name, error)
        elif not isinstance(error, JournalCorrupt | JournalTruncated):
            tally.violated(name, error)
        elif refusal(lambda: append(fs, MAIN, 999)) and bytes(file.data) != before:
            tally.violated(name, "the refused write changed the journal")
        file.data[:] = before
    tally.done()


@pytest.mark.fault("F7")
def test_two_stores_and_two_times_that_were_mixed_are_distinguished(tally) -> None:
    mine, other = filled(8), filled(8, lineage="c" * 64)
    older, newer = copy_of(mine), fill(copy_of(mine), 1)
    much_newer = fill(copy_of(mine), 3)
    segment = head.read(mine, MAIN).head.file

    def with_parts(journal_of: MemoryDisk, head_of: MemoryDisk) -> MemoryDisk:
        fs = copy_of(mine)
        file_of(fs, segment).data[:] = file_of(journal_of, segment).data
        file_of(fs, "head.json").data[:] = file_of(head_of, "head.json").data
        return fs

    for name, fs, kind in (
        ("another store's journal", with_parts(other, mine), JournalCorrupt | JournalTruncated),
        ("another store's head", with_parts(mine, other), JournalCorrupt | JournalTruncated),
        ("a newer head", with_parts(older, newer), JournalTruncated),
    ):
        tally.tried()
        error = refusal(lambda fs=fs: numbers(fs, MAIN))
        if not isinstance(error, kind):
            tally.violated(name, error)
    for at in range(1, 8):
        fs = copy_of(mine)
        lines = bytes(file_of(mine, segment).data).splitlines(keepends=True)
        foreign = bytes(file_of(other, segment).data).splitlines(keepends=True)
        file_of(fs, segment).data[:] = b"".join([*lines[:at], *foreign[at:]])
        tally.tried()
        error = refusal(lambda fs=fs: numbers(fs, MAIN))
        if not isinstance(error, JournalCorrupt) or error.data["line"] != at + 1:
            tally.violated(f"spliced at {at}", error)
    for name, from_, count in (("an older head", newer, 1), ("a much older head", much_newer, 3)):
        fs = with_parts(from_, older)
        tally.tried()
        with journal.writing(fs, MAIN, CLOCK, wait_s=0) as writer:
            reported = " ".join(writer.recovery.sentences())
        if numbers(fs, MAIN) != list(range(1, 9 + count)) or not reported or (count > 1 and "old" not in reported):
            tally.violated(name, reported)
    tally.done()


SHAPES: dict[str, bytes] = {
    **{f"{count} NULs": b"\0" * count for count in (1, 511, 512, 4096)},
    "garbage with a newline": b"x" * 90 + b"\n",
    "half a character": b'{"v":1,"seq":9,"prev":"\xc3',
    "CRLF": b'{"v":1}\r\n',
    "byte-order mark": b"\xef\xbb\xbf{}\n",
    "merge marker": b"<<<<<<< HEAD\n",
    "no newline": b'{"v":1,"seq":9',
    "empty line": b"\n",
    "whole line without newline": b"",
}
CAUSES = {
    "CRLF": "CRLF",
    "byte-order mark": "byte-order mark",
    "merge marker": "merge marker",
    "empty line": "empty line",
}
CAUSES |= {f"{count} NULs": "zero bytes" for count in (1, 511, 512, 4096)}


@pytest.mark.fault("F8")
@pytest.mark.parametrize("name", SHAPES)
def test_odd_bytes_beyond_the_head_are_put_away_and_before_it_are_named(name: str, tally) -> None:
    base = filled(5)
    of = head.read(base, MAIN)
    odd = SHAPES[name] or frame.encode(of.seq + 1, of.hash, payload(6, CLOCK.now()))[1][:-1]
    fs = copy_of(base)
    file_of(fs, of.head.file).data.extend(odd)
    tally.tried()
    assert numbers(fs, MAIN) == [1, 2, 3, 4, 5]
    append(fs, MAIN, 999)
    kept = [one for one in fs.listdir(MAIN / "quarantine") if one.endswith(".cut")]
    assert numbers(fs, MAIN) == [1, 2, 3, 4, 5, 999]
    assert [_bytes(fs, f"quarantine/{one}") for one in kept] == [odd]
    assert json.loads(_bytes(fs, f"quarantine/{kept[0]}.json"))["reason"]
    data = bytes(file_of(base, of.head.file).data)
    starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == ord("\n"))][:-1]
    for line, at in enumerate(starts, 1):
        fs = copy_of(base)
        file_of(fs, of.head.file).data[:] = data[:at] + odd + data[at:]
        before = contents(fs)
        tally.tried()
        error = refusal(lambda fs=fs: numbers(fs, MAIN))
        if not isinstance(error, Damaged) or error.data["line"] != line or CAUSES.get(name, "") not in error.hint:
            tally.violated((name, line), f"{error!r} {error.hint if error else ''}")
        if contents(fs) != before:
            tally.violated((name, line), "something was written")
    tally.done()
