"""Work on a store while it is damaged, and what must be true of it afterwards. Shared by all kinds of damage.

Each workload prepares a store, does something that is acknowledged step by step, and may be cut short anywhere. The
promise is always the same: what was acknowledged is there, at most one more record is, the next command just works,
and what was in the way is kept.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kbcore.storage import (
    branchdir,
    compaction,
    frame,
    head,
    journal,
    quarantine,
    rebuild,
    redacting,
    snapshot,
    verify,
)
from kbcore.storage.head import Head
from tests.core.storage.making import FakeClock
from tests.support.disk.disk import MemoryDisk

CLOCK = FakeClock()
LINEAGE = "a" * 64
TORN = b'{"v":1,"seq":' + b"y" * 700
"""An append that was cut off; longer than a sector, so that it can be half there."""
LONG_TORN = TORN + b"z" * 6000

Acked = list[Any]
"""The acknowledged steps of a workload, in order: numbers of records, and words for other things."""


class Workload(msgspec.Struct, frozen=True):
    """One thing that is done to a store under ``root``; ``before`` are the records that it begins with.

    ``maybe`` is a record that may count although it was not acknowledged; ``branch`` is the store that ``run`` leaves.
    """

    name: str
    prepare: Callable[[Any, Path], None]
    run: Callable[[Any, Path, Acked], None]
    before: tuple[int, ...] = (1, 2, 3)
    maybe: int = 0
    branch: str = "main"
    torn: bytes = b""


def payload(number: int, at: str, pad: int = 40, secret: bytes = b"") -> bytes:
    """Return a record's payload."""
    return json.dumps({"at": at, "n": number, "p": secret.decode() + "x" * pad}, separators=(",", ":")).encode()


def append(fs: Any, directory: Path, number: int, pad: int = 40, secret: bytes = b"") -> None:
    """Commit one record. No workload leaves more than one record beyond the head, so no report of it may come."""
    with journal.writing(fs, directory, CLOCK, wait_s=0) as writer:
        assert not writer.recovery.is_old_head, "a false report of an old head"
        at = max(CLOCK.now(), writer.head.head.at)
        writer.append(payload(number, at, pad, secret), at)


def numbers(fs: Any, directory: Path) -> list[int]:
    """Return the records that a reader sees."""
    of = head.read(fs, directory)
    return [json.loads(entry.frame.rec)["n"] for entry in journal.scan(fs, directory, of)]


def fold(of: Head) -> Iterator[bytes]:
    """Return the lines of a snapshot; the storage layer does not look inside."""
    yield from (b'{"row":%d,"pad":"%s"}' % (number, b"z" * 1500) for number in range(of.seq))


def bytes_of(fs: Any, path: Path) -> bytes:
    """Return a file's content by way of the file system under test."""
    fd = fs.open(path, os.O_RDONLY)
    try:
        return bytes(fs.pread(fd, 1 << 24, 0))
    finally:
        fs.close(fd)


def _plain(fs: Any, root: Path) -> None:
    branchdir.create(fs, root / "main", CLOCK, branch="main", lineage=LINEAGE)
    for number in (1, 2, 3):
        append(fs, root / "main", number)


def _beyond(*, is_whole: bool, torn: bytes, pad: int = 700) -> Callable[[Any, Path], None]:
    """Return a preparation with something beyond the head: a record whose sync failed, or bytes cut off, or both."""

    def prepare(fs: Any, root: Path) -> None:
        _plain(fs, root)
        of = head.read(fs, root / "main")
        path = root / "main" / of.head.file
        line = frame.encode(of.seq + 1, of.hash, payload(4, CLOCK.now(), pad))[1] if is_whole else b""
        fd = fs.open(path, os.O_WRONLY | os.O_APPEND)
        fs.write(fd, line + torn)
        if torn:
            fs.fsync(fd)
        else:
            _fail_sync(fs, fd, path)
        fs.close(fd)

    return prepare


def _fail_sync(fs: Any, fd: int, path: Path) -> None:
    """Leave what was written as a failed sync does, where the file system can show that: read, and never saved."""
    if isinstance(fs, MemoryDisk):
        fs.fail_sync(path)
    else:
        fs.fsync(fd)


def _compacted(fs: Any, root: Path) -> None:
    _plain(fs, root)
    compaction.compact(fs, root / "main", CLOCK, fold)
    for number in (4, 5):
        append(fs, root / "main", number)


def _headless(fs: Any, root: Path) -> None:
    """Lose the head file, and leave the last record as a failed sync does."""
    _plain(fs, root)
    directory = root / "main"
    of = head.read(fs, directory)
    fd = fs.open(directory / of.head.file, os.O_WRONLY | os.O_APPEND)
    fs.write(fd, frame.encode(of.seq + 1, of.hash, payload(4, CLOCK.now()))[1])
    _fail_sync(fs, fd, directory / of.head.file)
    fs.close(fd)
    fs.unlink(directory / "head.json")
    fs.fsync_dir(directory)


def _commits(count: int, pad: int) -> Callable[[Any, Path, Acked], None]:
    def run(fs: Any, root: Path, acked: Acked) -> None:
        for number in range(100, 100 + count):
            append(fs, root / "main", number, pad)
            acked.append(number)

    return run


def _compacted_long(fs: Any, root: Path) -> None:
    _plain(fs, root)
    compaction.compact(fs, root / "main", CLOCK, fold)
    for number in (4, 5):
        append(fs, root / "main", number, 4000)


def _compact(before: int | None) -> Callable[[Any, Path, Acked], None]:
    def run(fs: Any, root: Path, acked: Acked) -> None:
        compaction.compact(fs, root / "main", CLOCK, fold, prune_before=before, wait_s=0)
        acked.append("compacted")
        append(fs, root / "main", 100)
        acked.append(100)

    return run


SECRET = b"hunter2"


def _with_secret(fs: Any, root: Path) -> None:
    """Make a store with a secret in its second record, a snapshot after it, a sealed file and bytes in quarantine."""
    branchdir.create(fs, root / "main", CLOCK, branch="main", lineage=LINEAGE)
    for number in (1, 2, 3):
        append(fs, root / "main", number, secret=SECRET if number == 2 else b"")
    compaction.compact(fs, root / "main", CLOCK, lambda of: [SECRET_FACT, *fold(of)])
    append(fs, root / "main", 4)
    directory = root / "main"
    quarantine.keep(fs, directory, head.read(fs, directory).segments[0].file, (0, 700), reason="kept", at=CLOCK.now())
    append(fs, directory, 5, secret=SECRET)


SECRET_FACT = b'{"row":"%b"}' % SECRET


def _redact(fs: Any, root: Path, acked: Acked) -> None:
    directory, left = root / "main", list[str]()
    with journal.writing(fs, directory, CLOCK, wait_s=0) as writer:
        of = writer.head
        redacting.remove_unfinished(fs, directory, of)
        chained = redacting.write_again(fs, directory, of, 2, lambda _seq, raw, _sums: raw.replace(SECRET, b"[gone]"))
        (ref,) = of.snapshots
        at = head.Tip(ref.seq, chained.new_hash(ref.seq, ref.hash), "", 0, "")
        facts = [one.replace(SECRET, b"[gone]") for one in snapshot.read(fs, directory, of, ref)]
        new = msgspec.structs.replace(chained.head, head=at)
        again = snapshot.write(fs, directory, new, facts, generation=of.generation + 1)
        redacted = head.Redacted(of.generation + 1, of.seq + 1, of.store_id)
        new = msgspec.structs.replace(chained.head, snapshots=(again,), redacted=redacted)
        now = max(CLOCK.now(), of.head.at)
        ended = head.Epoch(of.store_id, of.seq, new.hash, of.seq, now)
        with redacting.publishing(fs, directory, of, new, left) as last:
            last.append(payload(100, now), now, epochs_of=head.with_epoch(new, ended))
    acked.append(100)
    if not left:
        acked.append("taken out")


def _holds_secret(fs: Any, directory: Path) -> list[str]:
    """Return the files of a store, and of its quarantine, that hold the secret."""
    found = []
    for folder in (directory, directory / "quarantine"):
        for name in fs.listdir(folder) if folder == directory or "quarantine" in fs.listdir(directory) else ():
            path = folder / name
            if stat.S_ISREG(fs.lstat(path).st_mode) and SECRET in bytes_of(fs, path):
                found.append(str(path))
    return found


def _copy(fs: Any, root: Path, acked: Acked) -> None:
    branchdir.copy(fs, root / "main", root / "topic", branch="topic")
    acked.append("made")
    append(fs, root / "topic", 100)
    acked.append(100)


def _create(fs: Any, root: Path, acked: Acked) -> None:
    branchdir.create(fs, root / "topic", CLOCK, branch="topic", lineage="b" * 64)
    acked.append("made")
    append(fs, root / "topic", 100)
    acked.append(100)


def _rebuild(fs: Any, root: Path, acked: Acked) -> None:
    rebuild.rebuild_head(fs, root / "main", CLOCK, branch="main")
    acked.append("rebuilt")
    append(fs, root / "main", 100)
    acked.append(100)


_FIVE = (1, 2, 3, 4, 5)
WORKLOADS = (
    Workload("commits", _plain, _commits(3, 40)),
    Workload("longer commits", _plain, _commits(2, 2000)),
    Workload("long commits", _plain, _commits(3, 8000)),
    Workload("commit over a torn tail", _beyond(is_whole=False, torn=TORN), _commits(2, 40), torn=TORN),
    Workload("commit over a whole record", _beyond(is_whole=True, torn=b""), _commits(2, 40), maybe=4),
    Workload("commit over both", _beyond(is_whole=True, torn=TORN), _commits(1, 40), maybe=4, torn=TORN),
    Workload(
        "commit over a long torn tail", _beyond(is_whole=False, torn=LONG_TORN), _commits(1, 8000), torn=LONG_TORN
    ),
    Workload("commit over a long record", _beyond(is_whole=True, torn=b"", pad=8000), _commits(1, 40), maybe=4),
    Workload("compact", _compacted, _compact(None), before=_FIVE),
    Workload("prune", _compacted, _compact(4), before=_FIVE),
    Workload("copy a branch", _compacted, _copy, before=_FIVE, branch="topic"),
    Workload("copy a long branch", _compacted_long, _copy, before=_FIVE, branch="topic"),
    Workload("create a branch", _plain, _create, before=(), branch="topic"),
    Workload("rebuild the head", _headless, _rebuild, maybe=4),
    Workload("redact", _with_secret, _redact, before=_FIVE),
)

SIZES = (0, 470, 4_000, 12_000, 70_000)
"""The bytes that the records of a soak get: none, to the end of a sector, of several, and beyond one write."""

SOAKED = WORKLOADS + tuple(Workload(f"commits of {pad} bytes", _plain, _commits(2, pad)) for pad in SIZES)
"""Further runs of a soak: the same commits with records of other lengths."""

CONTROLLED = tuple(work for work in WORKLOADS if "long" not in work.name and work.name != "commit over both")
"""Those that show that every sync is needed. In the others a sync repeats another, or nothing new would be seen."""


def check(work: Workload, fs: Any, root: Path, acked: Acked, *, is_refused: bool = False) -> None:
    """Hold a store against the promise, first as a reader finds it, then after the next writer.

    With ``is_refused`` the last thing asked for was answered with "not applied", and must not be there.
    """
    directory = root / work.branch
    if work.branch != "main":
        assert numbers(fs, root / "main"), "the source is there"
        is_made = work.branch in fs.listdir(root)
        assert is_made or "made" not in acked, "a store that was acknowledged is gone"
        assert not (is_made and is_refused and "made" not in acked), "a store was made although that was refused"
        branchdir.clear_unfinished(fs, root)
        assert set(fs.listdir(root)) == {"main", work.branch} if is_made else {"main"}
        if not is_made:
            return
    if work.name == "rebuild the head":
        if "head.json" in fs.listdir(directory):
            _check_copy(fs, directory)
        else:
            assert "rebuilt" not in acked, "a head that was acknowledged is gone"
            rebuild.rebuild_head(fs, directory, CLOCK, branch="main")
    more = 0 if is_refused else 1
    _check_records(work, fs, directory, acked, more, "a reader sees")
    _check_quarantine(work, fs, directory)
    if "taken out" in acked:
        assert not _holds_secret(fs, directory), "what was taken out is there after the answer"
    append(fs, directory, 999)
    if work.name == "redact":
        is_redacted = head.read(fs, directory).generation == 1
        assert is_redacted != bool(_holds_secret(fs, directory)), "what was taken out is there after the next write"
    _check_records(work, fs, directory, acked, more, "after the next write there is", last=(999,))
    _check_sound(fs, directory)
    compaction.compact(fs, directory, CLOCK, fold, wait_s=0)
    _check_sound(fs, directory)


def _expected(work: Workload, acked: Acked, found: list[int]) -> list[int]:
    """Return what must be there: the records before, one that may be, and those acknowledged."""
    maybe = [work.maybe] if work.maybe in found else []
    return [*work.before, *maybe, *(number for number in acked if isinstance(number, int))]


def _check_records(
    work: Workload, fs: Any, directory: Path, acked: Acked, more: int, where: str, last: tuple[int, ...] = ()
) -> None:
    """All that was acknowledged is there, in order, then at most ``more`` records, then the ``last`` ones."""
    found = numbers(fs, directory)
    wanted = _expected(work, acked, found)[head.read(fs, directory).first_seq - 1 :]
    between = found[len(wanted) : len(found) - len(last)]
    is_right = found == [*wanted, *between, *last] and len(between) <= more
    assert is_right, f"{where} {found} instead of {[*wanted, *last]}"


def _check_quarantine(work: Workload, fs: Any, directory: Path) -> None:
    """Check that the bytes beyond the head are still there, or is kept in quarantine with its reason."""
    if not work.torn:
        return
    of = head.read(fs, directory)
    if work.torn in bytes_of(fs, directory / of.head.file):
        return
    names = fs.listdir(directory / "quarantine") if "quarantine" in fs.listdir(directory) else []
    kept = {name: bytes_of(fs, directory / "quarantine" / name) for name in names if name.endswith(".cut")}
    assert work.torn in kept.values(), f"bytes were dropped: {names}"
    reason = next(name for name, data in kept.items() if data == work.torn) + ".json"
    assert "reason" in json.loads(bytes_of(fs, directory / "quarantine" / reason))


def _check_copy(fs: Any, directory: Path) -> None:
    """A repair leaves a whole copy of what it found."""
    copies = [name for name in fs.listdir(directory / "quarantine") if name.startswith("before-rebuild")]
    assert len(copies) == 1, f"no copy of the store before the repair: {copies}"
    segment = "journal-0000000001.jsonl"
    kept = bytes_of(fs, directory / "quarantine" / copies[0] / segment)
    assert kept.count(b"\n") == 4, "the copy is not whole"


def _check_sound(fs: Any, directory: Path) -> None:
    proof = verify.prove(fs, directory)
    assert proof.is_sound, proof.findings
    of = head.read(fs, directory)
    for ref in of.snapshots:
        assert list(snapshot.read(fs, directory, of, ref))
