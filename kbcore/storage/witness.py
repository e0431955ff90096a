"""The second witness of a branch: its store compared with the last acknowledged record that was noted outside of it.

The note is written after a record is durable and is not synced, so it may be behind the store, and is never ahead of
it: a store that lacks what was noted has lost it. Failing to write it never fails a commit.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Final

import msgspec

from kbcore import ids
from kbcore.errors import KBError, UnknownBranch
from kbcore.storage import head
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.loss import Loss, contradiction, is_put_away, missing
from kbcore.storage.witness_notes import BranchNote, DamagedNote, NotesFolder, Seen, file_of, seen_of

_COMPARISONS: Final = 3
"""Most comparisons with a head that another store replaces meanwhile."""


class BranchWitness:
    """The witness of one branch's store, for all threads of a process.

    Made once and kept. The file is read each time: two notes of one length that follow each other within a tick of the
    file system's clock leave the same times.
    """

    def __init__(self, fs: Fs, directory: Path, place: NotesFolder) -> None:
        self._fs = fs
        self._directory = directory
        self._name = directory.name
        self._place = place
        self._lock = threading.Lock()
        self._remembered: Seen | None = None
        """States seen by this process, for a repository of which nothing can be noted."""
        self._last: BranchNote | None = None
        """The notes as last read, or written since."""
        self.loss: Loss | None = None
        """Losses that the last check found."""
        self.copies: tuple[str, ...] = ()
        """The contradiction of the first copy of the store elsewhere, as of the last check; else empty."""
        self.damaged: DamagedNote | None = None
        """The file of the branch, as of the last check, where it cannot be used."""

    def check(self, of: Head | None) -> Loss | None:
        """Compare a head with what was noted, and return what is missing; note it, if nothing is.

        ``of`` is None where there is no store. A head that lacks something is read again: what was noted may be of a
        commit that came after it was read.

        Raises: what reading a head raises.
        """
        with self._lock:
            loss = self._compare(of)
            if of is not None and loss is None:
                self.copies = self._contradictions(of)
            return loss

    def prepare(self) -> None:
        """Do before the branch is locked what has git started: see ``NotesFolder.prepare``."""
        with self._lock:
            self._place.prepare()

    def note(self, of: Head) -> DamagedNote | None:
        """Note a head that is durable. Return the damaged note that this replaced, None where there was none.

        In a repository without an id nothing is noted. The caller has checked the head before this call, under the same
        lock: the note that it read is not read again.
        """
        with self._lock:
            before = self.damaged
            self._advance(of, self._last or self._look())
            return before if self.damaged is None else None

    def would_lack(self, fs: Fs, directory: Path, of: Head) -> Loss | None:
        """Return what another store, which lies elsewhere, would lack in the place of this one; nothing is noted."""
        with self._lock:
            seen = self._look().seen
        if seen is None:
            return None

        def is_kept(one: Seen) -> bool:
            """Tell whether nothing is missing now: what is in the place is compared by its own head then."""
            with contextlib.suppress(KBError):
                return self._lacking(one, self._now()) is None
            return False

        return missing(fs, directory, seen, of, is_kept)

    def refuse(self, of: Head) -> None:
        """Refuse to write to a store that lacks acknowledged records. Raises: ``StoreWentBack``."""
        with self._lock:
            loss = self._compare(of)
        if loss is not None:
            raise loss.error()

    def accept(self, of: Head) -> None:
        """Note a head whatever was noted before: a person accepted the loss, or KB put another store in its place."""
        with self._lock:
            self._remembered = seen_of(of, self._directory)
            self._place.write(self._name, self._remembered, replaces=bool(self._look().damage))
            self._last = None
            self.loss = None

    def _compare(self, of: Head | None) -> Loss | None:
        note = self._look()
        seen = note.seen
        folder = self._place.folder() if note.damage else None
        self.damaged = DamagedNote(self._name, file_of(folder, self._name), note.damage) if folder else None
        is_known = seen is None or (of is not None and _is_same(seen, of))
        self.loss = None if seen is None or is_known else self._missing(seen, of)
        if of is not None and self.loss is None and note.is_usable:  # only a commit says again what is the last record
            if seen is None and of.seq:
                self._adopt()
            self._advance(of, note)
        return self.loss

    def _look(self) -> BranchNote:
        """Return what is noted of the branch; where that cannot be read, what this process remembers."""
        note = self._place.look(self._name)
        if note.seen is None and (not note.is_usable or self._place.unavailable or self._place.folder() is None):
            note = msgspec.structs.replace(note, seen=self._remembered)
        self._last = note
        return note

    def _missing(self, seen: Seen, of: Head | None) -> Loss | None:
        if of is not None and of.store_id == seen.store_id and of.seq < seen.seq:
            # Usually another writer committed since this head was read. To prove that takes the whole active segment.
            of = self._now()
        if self._lacking(seen, of) is None:
            return None
        # It was noted before the head of this moment is read, so no commit can come between the two.
        seen = self._look().seen or seen
        loss, of = None, self._now()
        for _ in range(_COMPARISONS):
            loss, before = self._lacking(seen, of), of
            of = self._now()
            if loss is None or of == before:
                break
            # KB put another store in the place meanwhile: this one was not the one that the trash names.
        return loss

    def _lacking(self, seen: Seen, of: Head | None) -> Loss | None:
        fs, directory = self._fs, self._directory
        return missing(fs, directory, seen, of, lambda one: is_put_away(fs, directory, one, of))

    def _now(self) -> Head | None:
        try:
            return head.read(self._fs, self._directory)
        except UnknownBranch:
            return None

    def _advance(self, of: Head, note: BranchNote) -> None:
        """Note a head, if it is a later one than what is noted: under the same id never an earlier one.

        A damaged file is replaced even if this process remembers what it was to say.
        """
        seen = note.seen
        is_noted = seen is not None and seen.store_id == of.store_id and seen.seq >= of.seq
        if not of.seq or (is_noted and note.is_usable):
            return
        self._remembered = seen_of(of, self._directory)
        is_written = self._place.write(self._name, self._remembered, replaces=bool(note.damage))
        self._last = BranchNote(self._remembered) if is_written else None
        if is_written:
            self.damaged = None

    def _adopt(self) -> None:
        parent = self._directory.parent

        def is_whole(one: Seen) -> bool:
            directory = parent / ids.encode_branch(one.branch)
            with contextlib.suppress(KBError):
                return missing(self._fs, directory, one, head.read(self._fs, directory), lambda _: False) is None
            return False

        self._place.adopt(is_whole)

    def _contradictions(self, of: Head) -> tuple[str, ...]:
        for folder in self._place.others():
            other = self._place.read(self._name, folder)
            if other is not None and other.store_id == of.store_id and self._place.git_dir_of(folder):
                said = contradiction(self._fs, self._directory, of, other)
                if said:
                    return (said,)
        return ()


def _is_same(seen: Seen, of: Head) -> bool:
    return (seen.store_id, seen.seq, seen.hash) == (of.store_id, of.seq, of.hash)
