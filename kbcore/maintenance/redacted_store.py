"""Take something out of one store: find it in every record, write the files again, and publish them with one head.

The caller holds the lock of the store to write. A store is read twice to find it, because what a later record shows of
an earlier one is known only then.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.maintenance.epochs import NoteContent, append_note, ending
from kbcore.model import canonical
from kbcore.model.claims.change import REDACTED, Change, RedactedField, SetField, UnsetField, key_of_field
from kbcore.model.claims.derived import may_be_change
from kbcore.model.record import REDACTION, RedactedRecord, Redaction
from kbcore.model.redaction.redactor import RedactedPlace, Redactor
from kbcore.model.redaction.target import RedactionTarget
from kbcore.model.state import State
from kbcore.storage import files, quarantine, recovery, redacting, scan, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Redacted, SnapshotRef
from kbcore.storage.journal import Writer
from kbcore.storage.redacting import Chained
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.text.wording import pluralize, some_of
from kbcore.view import claim_filling, replay
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.record_rows import FoldedRecord, fold

_LEAST_CHARS: Final = 6
"""Shorter texts of values that were taken out are not looked for elsewhere: they may be anything."""
_SHOWN: Final = 20
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class StoreSurvey:
    """The holders of the target in one store, as of one head."""

    def __init__(self, fs: Fs, directory: Path, of: Head, target: RedactionTarget) -> None:
        """Raises: ``InvalidQuery`` where a pattern is part of a name; what reading the store raises."""
        self._fs = fs
        self._directory = directory
        self._of = of
        self._target = target
        self._is_of_records = bool(target.seqs or target.changes)
        self.redactor = Redactor(target)
        self.records: dict[int, list[RedactedPlace]] = {}
        """The changed places of each record that would be changed."""
        self.bases: tuple[int, ...] = ()
        """The snapshots of what pruned or missing records led to, of which facts would be changed."""
        self.unused = self._unused()
        """The files that hold a pattern and that the store does not use: what was cut off, or left by a crash."""
        self._read()
        self.redactor = Redactor(target, self.redactor)
        self._read()

    def _read(self) -> None:
        # A record is found in the facts after it by its values, and the new ids of facts are those of later records.
        if not self._is_of_records:
            self.bases = self._changed_bases(self.redactor)
        self.records = {}
        for entry in scan.scan(self._fs, self._directory, self._of):
            self.redactor.payload(entry.frame.seq, entry.frame.rec, {})
            if self.redactor.places:
                self.records[entry.frame.seq] = self.redactor.places
        if self._is_of_records:
            self.bases = self._changed_bases(self.redactor)

    def _unused(self) -> tuple[str, ...]:
        fs, of, matches = self._fs, self._of, self._target.matches
        if matches is None:
            return ()
        after = msgspec.structs.replace(of, redacted=self._redacted())
        found = recovery.superseded(fs, self._directory, after)
        return tuple(str(one.relative_to(self._directory)) for one in found if _holds(fs, one, matches))

    def _redacted(self) -> Redacted:
        of = self._of
        copies = tuple(name for name in self.quarantined() if not quarantine.cut_from(name))
        return Redacted(of.generation + 1, of.seq + 1, of.store_id, copies)

    def _changed_bases(self, redactor: Redactor) -> tuple[int, ...]:
        found = ((base, self._facts(base, redactor)[1]) for base in _bases(self._of))
        return tuple(base.seq for base, is_changed in found if is_changed)

    def _facts(self, ref: SnapshotRef, redactor: Redactor) -> tuple[list[bytes], bool]:
        return redactor.facts(snapshot.read(self._fs, self._directory, self._of, ref))

    @property
    def is_empty(self) -> bool:
        """True when nothing holds it."""
        return not (self.records or self.bases or self.unused)

    @property
    def first(self) -> int:
        """The first record that would be changed, or the one after the last where there is none."""
        return min(self.records, default=self._of.seq + 1)

    def snapshots(self) -> int:
        """Return how many snapshots would be written again."""
        return sum(ref.seq >= self.first or ref.seq in self.bases for ref in self._of.snapshots)

    def quarantined(self) -> tuple[str, ...]:
        """Return what lies in quarantine: copies of old lines, which go. Raises: ``StorageError``."""
        with files.explained(self._directory, "list", reading=True):
            return tuple(quarantine.listed(self._fs, self._directory))

    def also_in(self) -> tuple[int, ...]:
        """Return the records that hold a text of a value that would be taken out as a whole, and would stay."""
        texts = sorted(one for one in self.redactor.removed if len(one) >= _LEAST_CHARS and REDACTED not in one)
        spelled = [msgspec.json.encode(one)[1:-1] for one in texts]
        entries = scan.scan(self._fs, self._directory, self._of) if spelled else ()
        others = (entry.frame for entry in entries if entry.frame.seq not in self.records)
        return tuple(one.seq for one in others if any(text in one.rec for text in spelled))

    def write_again(self, *, is_shared: bool) -> tuple[Head, Redaction]:
        """Write all files that change; return the head that names them, and what its record says of them.

        With ``is_shared`` others may know the ids of the changes that records are: they stay.

        Raises: ``StorageFull``, ``ReadOnlyStore``, ``StorageError``; what reading the store raises.
        """
        of, first = self._of, self.first
        own = self._own_changes() if is_shared else None
        redactor, changed, kept = Redactor(self._target, self.redactor, own), list[RedactedRecord](), hashlib.sha256()
        if not self._is_of_records:
            self._changed_bases(redactor)  # the new ids of what only they name
        start = min(part.first_seq for part in of.segments if part.sealed is None or part.sealed.last_seq >= first)

        def payload(seq: int, raw: bytes, sums: Any) -> bytes:
            new = redactor.payload(seq, raw, sums)
            if redactor.places:
                changed.append(RedactedRecord(seq, hashlib.sha256(new).hexdigest()))
            else:
                kept.update(raw + b"\n")
            return new

        for entry in scan.scan(self._fs, self._directory, of, until=start - 1) if start > of.first_seq else ():
            payload(entry.frame.seq, entry.frame.rec, {})
        chained = redacting.write_again(self._fs, self._directory, of, first, payload)
        made, bases = list[SnapshotRef](), list[int]()
        for begin, end in of.parts:
            refs = [ref for ref in of.snapshots if begin - 1 <= ref.seq <= end]
            state, known, reached, is_changed = State(), list[canonical.KnownChangeset](), begin - 1, False
            if begin != 1 and refs:
                base, refs = refs[0], refs[1:]
                lines, is_changed = self._facts(base, redactor)
                bases += [base.seq] if is_changed else []
                made.append(self._base_again(chained, base, lines, is_changed=is_changed))
                folded = canonical.read(lines)
                state, known, reached = folded.state, list(folded.known), base.seq
            old = {ref.seq for ref in refs if ref.seq < first and not is_changed}
            made += [ref for ref in refs if ref.seq in old]
            wanted = {ref.seq for ref in refs} - old
            for one in self._entries(chained, reached, wanted):
                fold(state, one)
                known.append(replay.known_of(one))
                if one.seq in wanted:
                    made.append(self._snapshot(chained, one.seq, one.sum, canonical.lines(state, known)))
        ordered = tuple(sorted(made, key=lambda ref: ref.seq))
        new = msgspec.structs.replace(chained.head, snapshots=ordered, redacted=self._redacted())
        return new, Redaction(first, tuple(changed), kept.hexdigest(), of.first_seq, tuple(bases))

    def refuse_kept(self) -> None:
        """Refuse a pattern that is in what the id of a change is taken of, which a record that changes is.

        Raises: ``InvalidQuery``; what reading the store raises.
        """
        if self._target.matches is not None and not self.is_empty:
            for change in self._own_changes().values():
                self.redactor.refuse_kept(change)

    def _own_changes(self) -> dict[int, Change]:
        """Return the changes that records are, from the first changed one on: their ids follow from the old chain."""
        found = claim_filling.in_memory(self._fs, self._directory, self._of).own_since(self.first)
        entries = replay.entries(self._fs, self._directory, self._of, skip=self.first - 1) if found else ()
        return {one.seq: found[one.seq] for one in entries if one.seq in found and may_be_change(one.record)}

    def _entries(self, chained: Chained, reached: int, wanted: set[int]) -> Iterator[FoldedRecord]:
        if wanted:
            yield from replay.entries(self._fs, self._directory, chained.head, until=max(wanted), skip=reached)

    def _base_again(self, chained: Chained, base: SnapshotRef, lines: list[bytes], *, is_changed: bool) -> SnapshotRef:
        hash_ = chained.new_hash(base.seq, base.hash)
        return self._snapshot(chained, base.seq, hash_, lines) if is_changed or hash_ != base.hash else base

    def _snapshot(self, chained: Chained, seq: int, hash_: str, lines: Iterable[bytes]) -> SnapshotRef:
        tip = msgspec.structs.replace(chained.head.head, seq=seq, hash=hash_)
        at = msgspec.structs.replace(chained.head, head=tip)
        return snapshot.write(self._fs, self._directory, at, lines, generation=self._of.generation + 1)


def redact(
    workspace: Workspace, directory: Path, writer: Writer, survey: StoreSurvey, author: Author, *, is_shared: bool
) -> tuple[Head, int, tuple[str, ...]]:
    """Take it out of a store; return its new head, how many records were changed, and what could not be removed yet.

    Raises: as ``StoreSurvey.write_again``: the old head counts; ``CommitUncertain``: the old head or the new one
    counts, and giving the command again is safe.
    """
    fs, of, left = workspace.machine.fs, writer.head, list[str]()
    redacting.remove_unfinished(fs, directory, of)
    try:
        new, content = survey.write_again(is_shared=is_shared)
    except BaseException:
        redacting.remove_unfinished(fs, directory, of)
        raise
    said = [*writer.recovery.sentences(), _said(content)]
    sentences, ended = ending(new, said, workspace.machine.clock.now())
    with redacting.publishing(fs, directory, of, new, left) as again:
        note = NoteContent(redaction=content)
        append_note(workspace, again, author, sentences, source=REDACTION, content=note, ended=[ended])
    return again.head, len(survey.records), tuple(left)


def names_in(fs: Fs, directory: Path, of: Head) -> Redactor:
    """Return what has seen the ids of all entities of a store, and the former ids of each."""
    names = Redactor(RedactionTarget())
    for base in _bases(of):
        names.facts(snapshot.read(fs, directory, of, base))
    for entry in scan.scan(fs, directory, of):
        names.payload(entry.frame.seq, entry.frame.rec, {})
    return names


def changes_of(fs: Fs, directory: Path, of: Head, seq: int) -> frozenset[str]:
    """Return the ids of the changes that came with a record: its own, or those of others."""
    index = claim_filling.in_memory(fs, directory, of)
    return frozenset(one.id for one in index.came_with([seq]).get(seq, ()))


def has_change(fs: Fs, directory: Path, of: Head, change: str) -> bool:
    """Tell whether a store has a change of this id."""
    return bool(claim_filling.in_memory(fs, directory, of).bodies([change]))


def names_taken_out(
    fs: Fs, directory: Path, of: Head, change: str, copies: Collection[tuple[Change, Change]] = ()
) -> frozenset[str]:
    """Return the names of fields that a record states as part of a change, and that a later copy of it lacks.

    ``copies`` are others of the change, each with what this clone shows of it: their names count as well.
    """
    index, whole = ClaimIndex(":memory:"), None
    index.database.empty()
    filling = claim_filling.Filling(index)
    for entry in replay.entries(fs, directory, of):
        filling.take_in(entry)
        whole = whole or index.bodies([change]).get(change)
    left_here = index.bodies([change]).get(change)
    pairs = [*copies, *((one, left_here) for one in (whole, *(copy for copy, _ in copies)) if one and left_here)]
    return frozenset(
        key_of_field(one.field)
        for mine, other in pairs
        for one, left in zip(mine.claims, other.claims, strict=True)
        if isinstance(left, RedactedField) and isinstance(one, SetField | UnsetField)
    )


def seqs_of(fs: Fs, directory: Path, of: Head, changes: Collection[str]) -> frozenset[int]:
    """Return the records of a store that are one of some changes themselves."""
    own = claim_filling.in_memory(fs, directory, of).own_since(1)
    found = {seq for seq, change in own.items() if change.id in changes}
    entries = replay.entries(fs, directory, of, skip=min(found) - 1, until=max(found)) if found else ()
    return frozenset(one.seq for one in entries if one.seq in found and may_be_change(one.record))


def _bases(of: Head) -> Iterator[SnapshotRef]:
    """Yield the snapshots that hold what pruned or missing records led to: no replay leads to them."""
    for first, last in of.parts:
        refs = [ref for ref in of.snapshots if first - 1 <= ref.seq <= last]
        if first != 1 and refs:
            yield refs[0]


def _holds(fs: Fs, path: Path, matches: re.Pattern[str]) -> bool:
    """Tell whether a file, or one in a folder, has a text in a line, as it is or as JSON spells it.

    Raises: ``StorageError``.
    """
    with files.explained(path, "read", reading=True):
        about = fs.lstat(path)
        if stat.S_ISDIR(about.st_mode):
            return any(_holds(fs, path / name, matches) for name in sorted(fs.listdir(path)))
        if not stat.S_ISREG(about.st_mode):
            return False
        with files.opened(fs, path, os.O_RDONLY) as fd:
            lines = files.read_lines(fs, fd, 0, about.st_size, about.st_size)
            return any(_is_in_line(line.decode(errors="replace"), matches) for _, line in lines)


def _is_in_line(line: str, matches: re.Pattern[str]) -> bool:
    if matches.search(line):
        return True
    return "\\" in line and bool(matches.search(_ESCAPED.sub(lambda one: _plain(one[1]), line)))


def _plain(escaped: str) -> str:
    """Return the character that JSON escapes so."""
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _CONTROLS.get(escaped, escaped)


def _said(content: Redaction) -> str:
    seqs = some_of([str(one.seq) for one in content.records], _SHOWN)
    what = [f"{pluralize(len(content.records), 'record')} ({seqs})"] if seqs else []
    what += [f"the facts of {pluralize(len(content.snapshots), 'snapshot')}"] if content.snapshots else []
    what = what or ["files that the store did not use"]
    chain = f" The chain was computed again from record {content.first} on." if content.records else ""
    return f"Something was taken out of {' and '.join(what)}.{chain}"
