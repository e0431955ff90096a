"""Acknowledged records that a store lacks: what was noted of it, compared with its head and its journal.

Nothing is a loss that KB itself did, by moving the store or putting another one in its place; and damage proves none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore.errors import Damaged, HistoryPruned, KBError, StoreWentBack
from kbcore.errors.remedies import brought_back, kb, shell
from kbcore.storage import files, frame, head, layout, recovery, scan, trashed
from kbcore.storage.fs import Fs
from kbcore.storage.head import Epoch, Head, Tip
from kbcore.storage.places import record_range
from kbcore.storage.witness_notes import Seen, seen_of

NOT_WRITTEN: Final = "Nothing is written until that is settled."


class LostRecords(msgspec.Struct, frozen=True):
    """Records that are missing, all written under one store id: the first and the last."""

    store_id: str
    first: int
    last: int


class Loss(msgspec.Struct, frozen=True):
    """Acknowledged records that are missing from the store of a branch.

    ``now`` is the seq that the store ends at, None where there is no store.
    """

    kind: Literal["went_back", "differs", "gone", "replaced"]
    branch: str
    directory: Path
    store_id: str
    """Under which the records were acknowledged."""
    seen: int
    hash: str
    now: int | None
    kept: int | None = 0
    """The last record that the store has in common with the one that was seen, where it has another id now; 0 where it
    has none of them, None where that cannot be known."""
    epochs: tuple[Epoch, ...] = ()
    """Those that the store that was seen had ended."""

    @property
    def first(self) -> int:
        """The first record that is missing, as far as that is known; see ``is_first_known``."""
        if self.kind == "went_back":
            return (self.now or 0) + 1
        return self.kept + 1 if self.is_first_known and self.kept is not None else self.seen

    @property
    def is_first_known(self) -> bool:
        """Tell whether no record before the first is missing."""
        return self.kind != "differs" and (self.kind != "replaced" or self.kept is not None)

    @property
    def is_of_one(self) -> bool:
        """Tell whether a single record is missing, and no other can be."""
        return self.first == self.seen and self.is_first_known

    @property
    def by_id(self) -> tuple[LostRecords, ...]:
        """The missing records by the store id under which they were written, oldest first."""
        found, after = [], self.first - 1
        for one in self.epochs:
            if self.is_first_known and one.store_id != self.store_id and one.seq > after:
                found.append(LostRecords(one.store_id, after + 1, one.seq))
                after = one.seq
        return (*found, LostRecords(self.store_id, after + 1, self.seen))

    def sentence(self) -> str:
        """Return what is wrong, with the seqs."""
        seqs = f"seen: {self.seen}, now: {'no store' if self.now is None else self.now}"
        rows = record_range(self.first, self.seen)
        verb = "is" if self.first == self.seen else "are"
        if self.kind == "went_back":
            return f"The store of {self.branch} went back to an earlier state. {seqs}; {rows} {verb} missing."
        if self.kind == "differs":
            return (
                f"The store of {self.branch} has another record {self.seen} than the one that was acknowledged "
                f"({self.hash[:12]}). {seqs}; record {self.seen} and some before it may be missing."
            )
        if self.kind == "gone":
            return f"The store of {self.branch} is missing. {seqs}; {rows} {verb} missing."
        begins = f"Another store has the place of the one of {self.branch}. {seqs};"
        if not self.is_first_known:
            return f"{begins} {rows} of the store {self.store_id[:12]} and some before it may be missing."
        named = [f"{record_range(one.first, one.last)} of the store {one.store_id[:12]}" for one in self.by_id]
        return f"{begins} {' and '.join(named)} {'is' if self.is_of_one else 'are'} missing."

    def remedy(self, way_on: str = "") -> str:
        """Return what a person can do, in commands that mean this branch whatever is checked out.

        ``way_on`` is what to do without a backup, where it is known whether the store is damaged as well.
        """
        damaged = f"where the journal is damaged as well, {layout.salvage_command(self.branch, '--yes')}"
        return (
            f"If there is a backup, {layout.restore_command(self.directory, self.branch)} brings the store back as it "
            f"was then. {way_on or self.new_epoch(or_else='' if self.kind == 'gone' else damaged)}"
        )

    def new_epoch(self, or_else: str = "") -> str:
        """Return how a person goes on without the missing records; ``or_else`` is another way."""
        command = shell("doctor", "--new-epoch", "--branch", self.branch)
        return (
            f"To go on without the missing records, a person runs {command}"
            f"{f', or, {or_else}' * bool(or_else)}. {brought_back('Then')}"
        )

    def warning(self, remedy: str = "") -> str:
        """Return what to say to who does not write: what is wrong, what that means, and what can be done.

        ``remedy`` is used instead of its own.
        """
        return f"{self.sentence()} {NOT_WRITTEN} {remedy or self.remedy()}"

    def error(self, way_on: str = "") -> StoreWentBack:
        """Return the error that refuses a write; ``way_on`` is as in ``remedy``."""
        data = {"branch": self.branch, "file": str(self.directory), "seen": self.seen, "now": self.now}
        return StoreWentBack(self.sentence(), hint=self.remedy(way_on), data=data)


def missing(fs: Fs, directory: Path, seen: Seen, of: Head | None, is_put_away: Callable[[Seen], bool]) -> Loss | None:
    """Return what a store lacks of what was acknowledged, None when nothing is missing.

    Args:
        fs: the file system.
        directory: of the store.
        seen: what was noted; read before ``of`` was.
        of: the head of the store now, None where there is no store.
        is_put_away: tells whether KB itself moved the store that was seen, and what it put there since is there.

    Raises: ``StorageError`` when the journal cannot be read.
    """

    def lost(kind: Literal["went_back", "differs", "gone", "replaced"], kept: int | None = 0) -> Loss:
        now = of.seq if of else None
        return Loss(kind, seen.branch, directory, seen.store_id, seen.seq, seen.hash, now, kept, seen.epochs)

    if of is None:
        return None if is_put_away(seen) else lost("gone")
    if of.store_id == seen.store_id:
        if of.seq < seen.seq:
            return None if _follows_head(fs, directory, of, seen) else lost("went_back")
        return None if holds(fs, directory, of, seen) else lost("differs")
    ended = of.epoch_of(seen.store_id)
    if (ended and seen.seq <= ended.seen) or is_put_away(seen):
        return None
    has_all = of.lineage == seen.lineage and of.seq >= seen.seq and holds(fs, directory, of, seen)
    return None if has_all else lost("replaced", _kept(fs, directory, of, seen))


def _kept(fs: Fs, directory: Path, of: Head, seen: Seen) -> int | None:
    """Return the last record that a store has in common with one that was seen, by their ids; see ``Loss.kept``."""
    if of.lineage != seen.lineage:
        return 0
    ours = {one.store_id: one.seq for one in of.epochs} | {of.store_id: of.seq}
    theirs = {one.store_id: Tip(one.seq, one.hash, "", 0, one.at) for one in seen.epochs}
    theirs[seen.store_id] = Tip(seen.seq, seen.hash, seen.file, seen.length, seen.at)
    common = {one: min(ours[one], theirs[one].seq) for one in ours.keys() & theirs.keys()}
    kept = max(common.values(), default=0)
    ends = [tip for tip in theirs.values() if tip.seq == kept]
    # Where one was copied from the other and both went on, they differ before the last record of a common id.
    is_known = all(holds(fs, directory, of, tip) for tip in ends) if ends else of.seq == kept
    return kept or None if is_known else None


def contradiction(fs: Fs, directory: Path, of: Head, other: Seen) -> str:
    """Return how a copy of this store elsewhere contradicts it, "" where it does not.

    Both have the same id and other records: one was copied from the other, and both went on. A copy that is merely
    behind is none.
    """
    other_directory = Path(other.directory)
    if not other.directory or other_directory == directory:
        return ""
    try:
        there = head.read(fs, other_directory)
        if there.store_id != of.store_id:
            return ""
        if there.seq <= of.seq:
            is_one = holds(fs, directory, of, seen_of(there, other_directory))
        else:
            is_one = holds(fs, other_directory, there, seen_of(of, directory))
    except KBError:
        # It is gone or damaged: it proves nothing against this store.
        return ""
    if is_one:
        return ""
    new_epoch = kb("doctor", "--new-epoch", "--branch", layout.branch_of(directory, of.branch))
    return (
        f"{directory} and {other_directory} have the same store id and other records up to seq "
        f"{min(of.seq, there.seq)}: one is a copy of the other, and both were written to since. A reference "
        f"to a record can mean either; {new_epoch} gives one of them an id of its own."
    )


def holds(fs: Fs, directory: Path, of: Head, seen: Seen | Tip) -> bool:
    """Tell whether a store that ends at the seen record or later has that record, as far as it can still be known."""
    if of.seq == seen.seq:
        return of.hash == seen.hash
    for part in of.segments:
        if part.first_seq == seen.seq + 1:
            return part.base_hash == seen.hash
        if part.sealed and part.sealed.last_seq == seen.seq:
            return part.sealed.hash == seen.hash
    if seen.seq < of.first_seq:
        return True  # pruned
    part = next(one for one in reversed(of.segments) if one.first_seq <= seen.seq)
    if part.file == seen.file and _is_followed(fs, directory / part.file, seen):
        return True
    try:
        for entry in scan.scan(fs, directory, of, after=part.start, until=seen.seq):
            if entry.frame.seq == seen.seq:
                return entry.frame.sum == seen.hash
    except (Damaged, HistoryPruned):
        # Damage is no proof of a loss; whoever reads the record reports it.
        return True
    return True


def _is_followed(fs: Fs, path: Path, seen: Seen | Tip) -> bool:
    """Tell whether the record after the seen one begins where that one ended, and names its hash."""
    begins = frame.beginning(seen.seq + 1, seen.hash)
    with contextlib.suppress(OSError), files.opened(fs, path, os.O_RDONLY) as fd:
        return fs.pread(fd, len(begins), seen.length) == begins
    return False


def _follows_head(fs: Fs, directory: Path, of: Head, seen: Seen) -> bool:
    """Tell whether the seen record lies complete after the head: the head file is an older one, and nothing is lost."""
    if seen.file != of.head.file:
        return False
    found = recovery.survey(fs, directory, of)
    return found.damage is None and any((one.end.seq, one.end.hash) == (seen.seq, seen.hash) for one in found.whole)


def is_put_away(fs: Fs, directory: Path, seen: Seen, of: Head | None) -> bool:
    """Tell whether KB itself moved the store that was seen, and what it put there since is there.

    ``of`` is the store that the directory has now, None for none.
    """

    def has_it(place: Path, there: Head) -> bool:
        ended = there.epoch_of(seen.store_id)
        with contextlib.suppress(KBError):
            if ended is not None:  # as in ``missing``: what was redacted in the trash has another id since
                return seen.seq <= ended.seen
            return there.store_id == seen.store_id and there.seq >= seen.seq and holds(fs, place, there, seen)
        return False

    with contextlib.suppress(KBError):
        return trashed.accounts_for(fs, directory, of, has_it)
    return False
