"""Recovery of bytes beyond the head by a writer: look, decide by the table in ``docs/durability.md``, act.

Invariant: acknowledged bytes are never changed, and nothing is cut before a durable copy is in quarantine.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import msgspec

from kbcore.errors import CommitUncertain, HeadDamaged, KBError, new_head_advice
from kbcore.storage import damage, files, frame, head, layout, quarantine, scan
from kbcore.storage.frame import Flaw
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Tip
from kbcore.storage.places import BrokenWalk, Position
from kbcore.storage.quarantine import QuarantinedFile


class Whole(msgspec.Struct, frozen=True):
    """A complete valid record beyond the head."""

    end: Position
    at: str
    """Time of the record as its payload states it; empty if it states none."""


class Torn(msgspec.Struct, frozen=True):
    """The bytes after the last valid record."""

    offset: int
    length: int
    flaw: Flaw


class SegmentSurvey(msgspec.Struct, frozen=True):
    """The content of the active segment. ``size`` is None if the file is missing."""

    head: Head
    size: int | None
    reached: Position
    """The end of the good records, of those that were acknowledged."""
    damage: BrokenWalk | None = None
    """The first bad record that begins before the head."""
    whole: tuple[Whole, ...] = ()
    torn: Torn | None = None


class RecoveryPlan(msgspec.Struct, frozen=True):
    """The decision: refuse, or cut the torn bytes and roll the whole records forward, or neither."""

    head: Head
    """The head when all is done."""
    whole: tuple[Whole, ...] = ()
    torn: Torn | None = None
    refusal: KBError | None = None


class RecoveryReport(msgspec.Struct, frozen=True):
    """The actions of recovery before a write; empty when the last writer had left cleanly."""

    rolled_forward: tuple[int, ...] = ()
    """Seqs of records that were complete but never acknowledged, and are kept now."""
    is_old_head: bool = False
    """More than one: no crash leaves that, so the head file was an older one, restored by a person or a tool."""
    kept: QuarantinedFile | None = None
    """Torn bytes that were moved to quarantine."""

    def sentences(self) -> list[str]:
        """Return what happened, a sentence each; empty if nothing did."""
        notices: list[str] = []
        if self.rolled_forward:
            first, last = self.rolled_forward[0], self.rolled_forward[-1]
            one = f"record {first} was complete, and now counts."
            many = f"records {first} to {last} were complete, and now count."
            notices.append(f"An earlier writer ended before it could answer: {one if first == last else many}")
        if self.is_old_head:
            notices.append("The head file was older than the journal: a person or a tool restored an old one.")
        if self.kept:
            notices.append(
                f"{self.kept.length} bytes of an unfinished write were cut from {self.kept.file} and kept as "
                f"quarantine/{self.kept.copy}: {self.kept.reason}"
            )
        return notices


def survey(fs: Fs, directory: Path, of: Head) -> SegmentSurvey:
    """Read the active segment to its end, writing nothing.

    Raises:
        StorageError: it cannot be read.
    """
    path, segment, tip = directory / of.head.file, of.active, of.head
    size = files.read_size(fs, path)
    reached = segment.start
    if size is None:
        return SegmentSurvey(of, size, reached)
    whole: list[Whole] = []
    torn: Torn | None = None
    with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
        for item in scan.walk(fs, fd, reached, tip.length):
            if isinstance(item, BrokenWalk):
                return SegmentSurvey(of, size, reached, damage=item)
            reached = item.end
        for item in scan.walk(fs, fd, reached, size):
            if isinstance(item, BrokenWalk):
                torn = Torn(item.at.offset, size - item.at.offset, item.flaw)
            else:
                whole.append(Whole(item.end, frame.time_of(item.frame.rec)))
    return SegmentSurvey(of, size, reached, whole=tuple(whole), torn=torn)


def plan(directory: Path, found: SegmentSurvey) -> RecoveryPlan:
    """Decide by the table in ``docs/durability.md``. Pure: ``directory`` is only named in messages."""
    of, tip, torn = found.head, found.head.head, found.torn
    refusal: KBError | None = None
    if found.size is None:
        refusal = damage.missing(directory, tip.file)
    elif found.size < tip.length:
        refusal = damage.truncated(directory, of.active, tip.length, found.size)
    elif found.damage is not None:
        refusal = damage.corrupt(directory, of.active, found.damage)
    elif found.reached != of.end:
        refusal = damage.mixed(directory, of, found.reached)
    elif torn is not None and torn.flaw.too_new:
        line = (found.whole[-1].end.seq if found.whole else of.seq) - of.active.first_seq + 2
        refusal = damage.too_new(directory / tip.file, line, torn.offset, torn.flaw)
    if refusal is not None:
        return RecoveryPlan(of, refusal=refusal)
    if not found.whole:
        return RecoveryPlan(of, torn=torn)
    last = found.whole[-1].end
    new_tip = Tip(last.seq, last.hash, tip.file, last.offset, found.whole[-1].at or tip.at)
    return RecoveryPlan(msgspec.structs.replace(of, head=new_tip), whole=found.whole, torn=torn)


def run(fs: Fs, directory: Path, of: Head, todo: RecoveryPlan, at: str) -> RecoveryReport:
    """Carry out a plan that is not a refusal: keep and cut torn bytes, then make whole records durable.

    Args:
        fs: the file system.
        directory: the branch's directory.
        of: the head that was surveyed.
        todo: what ``plan`` decided.
        at: the time to note in quarantine.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the next writer finds what there is, and plans again.
    """
    path, torn, kept = directory / of.head.file, todo.torn, None
    if torn is not None:
        span = (torn.offset, torn.offset + torn.length)
        reason = f"{torn.flaw.what[:1].upper()}{torn.flaw.what[1:]}. {torn.flaw.cause}".strip()
        kept = quarantine.keep(fs, directory, of.head.file, span, reason=reason, at=at)
    with files.explained(path, "recover"), files.opened(fs, path, os.O_RDWR) as fd:
        if torn is not None:
            fs.ftruncate(fd, torn.offset)
        if todo.whole:
            rewrite(fs, fd, of.head.length, todo.head.head.length)
            fs.fsync(fd)
        # A cut alone needs no sync: if it is undone, the next writer finds the same and does the same.
    if todo.whole:
        head.publish(fs, directory, todo.head)
    return RecoveryReport(tuple(record.end.seq for record in todo.whole), len(todo.whole) > 1, kept)


def recover(fs: Fs, directory: Path, of: Head, at: str) -> tuple[Head, RecoveryReport]:
    """Survey, plan and run; return the head to go on from. The caller holds the lock.

    Raises:
        JournalCorrupt, JournalTruncated, FormatTooNew: nothing was written.
        CommitUncertain: making an earlier, unanswered record durable failed; it may be the caller's own.
        StorageFull, ReadOnlyStore, StorageError: the torn bytes could not be put away.
    """
    todo = plan(directory, survey(fs, directory, of))
    if todo.refusal is not None:
        raise todo.refusal
    try:
        return todo.head, run(fs, directory, of, todo, at)
    except KBError as error:
        if not todo.whole:
            raise
        raise CommitUncertain(
            f"record {todo.head.seq} of an earlier writer is whole, but may not be durable: {error.message}",
            data=error.data,
        ) from error


def rewrite(fs: Fs, fd: int, start: int, end: int) -> None:
    """Overwrite bytes with themselves, so that the next sync really writes them. Raises ``OSError``.

    After a failed sync the kernel may hold pages that it calls clean and that never reached the disk.
    """
    while start < end:
        part = fs.pread(fd, min(files.CHUNK_BYTES, end - start), start)
        if not part:
            raise OSError(errno.EIO, "the file became shorter")
        files.pwrite_all(fs, fd, part, start)
        start += len(part)


def superseded(fs: Fs, directory: Path, of: Head) -> list[Path]:
    """Return what the last redaction has replaced and what is still there; nothing where there was none.

    Raises: ``StorageError`` when a folder cannot be listed.
    """
    last = of.redacted
    if last is None:
        return []
    with files.explained(directory, "list", reading=True):
        names = sorted(set(fs.listdir(directory)) - of.files)
        kept = quarantine.listed(fs, directory)

    def is_old(name: str) -> bool:
        name = name.removesuffix(layout.TMP_SUFFIX)  # what a writer that ended early did not finish
        return layout.generation_of(name) < last.generation and 0 < _begins(name) <= last.seq

    cut = [name for name in kept if name in last.removes or is_old(quarantine.cut_from(name))]
    return [
        *(directory / name for name in names if is_old(name)),
        *(directory / layout.QUARANTINE / one for one in cut),
    ]


def remove_superseded(fs: Fs, directory: Path, of: Head) -> None:
    """Remove what the last redaction has replaced, if it was interrupted. The caller holds the lock.

    Raises: ``ReadOnlyStore``, ``StorageError`` when something cannot be removed.
    """
    found = superseded(fs, directory, of)
    for path in found:
        with files.explained(path, "remove"):
            if stat.S_ISDIR(fs.lstat(path).st_mode):
                files.remove_tree(fs, path)
            else:
                fs.unlink(path)
    for folder in sorted({path.parent for path in found}):
        # A name that comes back after a loss of power would bring the content back.
        with files.explained(folder, "sync"):
            fs.fsync_dir(folder)


def _begins(name: str) -> int:
    return layout.segment_first_seq(name) or layout.snapshot_seq(name) or 0


def refuse_resized(fs: Fs, directory: Path, of: Head) -> None:
    """Look at the sizes of the sealed segments: damage that can be known without reading. One system call for each.

    Raises:
        JournalCorrupt, JournalTruncated: one is missing, or has another size than when it was sealed.
    """
    for part in of.segments[:-1]:
        length = part.sealed.length if part.sealed else 0
        size = files.read_size(fs, directory / part.file)
        if size is None:
            raise damage.missing(directory, part.file)
        if size < length:
            raise damage.truncated(directory, part, length, size)
        if size > length and not of.ends_at_hole(part):
            raise damage.grown(directory, part, length, size)


def refuse_unlisted(fs: Fs, directory: Path, of: Head) -> None:
    """Look for records in a segment that would follow the head and that it does not name. One system call.

    Raises:
        HeadDamaged: there are: an older head file was put back, and writing on would fork the history.
    """
    following = layout.segment_name(of.seq + 1)
    if following != of.active.file and files.read_size(fs, directory / following):
        raise HeadDamaged(
            f"{directory / layout.HEAD} is older than the journal: it does not name {following}",
            hint=f"Put the newer head file back if you have it. {new_head_advice(layout.branch_of(directory))}",
            data={"file": str(directory / layout.HEAD)},
        )
