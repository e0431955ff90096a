"""Proof of a whole store: every file that the head names, and every file that it does not. Never writes.

Invariant: what could not be looked at is reported as not checked, never as sound.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from kbcore import progress
from kbcore.errors import Damaged, HistoryPruned, Incompatible, KBError, SnapshotCorrupt, Unavailable
from kbcore.errors.remedies import shell
from kbcore.storage import files, head, layout, lock, quarantine, recovery, scan, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Segment, SnapshotRef
from kbcore.storage.places import MissingRecords, Position, record_range

Severity = Literal["damage", "note", "not_checked"]


class ProofFinding(msgspec.Struct, frozen=True):
    """One thing that a proof came upon. ``line`` counts from 1, ``offset`` from 0; -1 where there is none."""

    severity: Severity
    code: str
    """The code of KB's error for it, or a word for a note."""
    file: str
    message: str
    remedy: str = ""
    line: int = -1
    offset: int = -1


class Stats(msgspec.Struct, frozen=True):
    """The size of a store. Sizes in bytes, as the head states them."""

    records: int
    """Records that are there; pruned ones are not."""
    records_since_snapshot: int
    bytes_since_snapshot: int
    journal_bytes: int
    snapshot_bytes: int
    segments: int
    snapshots: int
    quarantined: int
    """Entries under ``quarantine/``."""


class Proof(msgspec.Struct, frozen=True):
    """The result of a proof. ``good_seq`` is the last record up to which everything was proven."""

    head: Head | None
    good_seq: int
    records_checked: int
    findings: tuple[ProofFinding, ...]

    @property
    def is_sound(self) -> bool:
        """True if everything was checked, and nothing is damaged."""
        return not self.damage

    @property
    def damage(self) -> str:
        """The message of the first thing that is wrong: an error of the storage, which names its file; "" for none."""
        return next((one.message for one in self.findings if one.severity != "note"), "")


def prove(fs: Fs, directory: Path) -> Proof:
    """Check head file, every record of every segment, every snapshot, and list what belongs to nothing.

    Takes no lock. Every problem is a finding; nothing is raised for the state of the store.

    Raises:
        UnknownBranch: there is no such directory.
    """
    findings: list[ProofFinding] = []
    try:
        of = head.read(fs, directory)
    except (Damaged, Incompatible, Unavailable) as error:
        findings.append(_finding(error, directory / layout.HEAD))
        findings.append(
            ProofFinding("not_checked", "no_head", str(directory), "Without a head, nothing else was checked.")
        )
        return Proof(None, 0, 0, tuple(findings))
    checked, good_seq, unbroken = 0, of.first_seq - 1, True
    hashes = {ref.seq: "" for ref in of.snapshots} | {of.first_seq - 1: of.segments[0].base_hash}
    for segment in of.segments:
        place, problem = prove_segment(fs, directory, of, segment, hashes)
        checked += place.seq - segment.first_seq + 1
        if unbroken:
            good_seq = place.seq
        if problem is not None:
            findings.append(_finding(problem, directory / segment.file))
            unbroken = False
    findings += _check_tail(fs, directory, of)
    findings += [ProofFinding("note", "hole", str(directory), hole_sentence(hole)) for hole in of.holes]
    findings += [found for ref in of.snapshots for found in _check_snapshot(fs, directory, of, ref, hashes)]
    findings += _list_others(fs, directory, of)
    return Proof(of, good_seq, checked, tuple(findings))


def hole_sentence(hole: MissingRecords) -> str:
    """Return which records are missing, and between which hashes."""
    one = f"{record_range(hole.first, hole.last)} {'is' if hole.first == hole.last else 'are'}"
    return f"{one} missing, between hash {hole.before[:12]} and hash {hole.after[:12]}: a salvage left them out"


def stats(fs: Fs, directory: Path, of: Head) -> Stats:
    """Return how large a store is, and how much a reader replays that starts from the newest snapshot.

    Raises:
        StorageError: ``quarantine/`` cannot be listed.
    """
    sizes = [part.sealed.length if part.sealed else of.head.length for part in of.segments]
    newest = of.snapshots[-1].seq if of.snapshots else of.first_seq - 1
    since = [size for part, size in zip(of.segments, sizes, strict=True) if part.first_seq > newest]
    with files.explained(directory / layout.QUARANTINE, "list", reading=True):
        kept = quarantine.listed(fs, directory)
    return Stats(
        records=of.seq - of.first_seq + 1 - sum(hole.last - hole.first + 1 for hole in of.holes),
        records_since_snapshot=of.seq - newest,
        bytes_since_snapshot=sum(since),
        journal_bytes=sum(sizes),
        snapshot_bytes=sum(ref.length for ref in of.snapshots),
        segments=len(sizes),
        snapshots=len(of.snapshots),
        quarantined=len(kept),
    )


def prove_segment(
    fs: Fs, directory: Path, of: Head, segment: Segment, hashes: dict[int, str]
) -> tuple[Position, KBError | None]:
    """Return how far a segment is good, and what stopped there; fill in the hashes that are asked for."""
    place = segment.start
    alone = scan.up_to_end_of(of, segment)
    try:
        entries = scan.scan(fs, directory, alone, after=place)
        for entry in progress.track(entries, alone.seq - place.seq, "records proven"):
            place = entry.end
            if place.seq in hashes:
                hashes[place.seq] = place.hash
    except (Damaged, Incompatible, Unavailable, HistoryPruned) as error:
        return place, error
    return place, None


def _check_tail(fs: Fs, directory: Path, of: Head) -> list[ProofFinding]:
    """Look at bytes beyond the head: the next writer deals with them, unless they show an old head."""
    path = directory / of.head.file
    try:
        recovery.refuse_unlisted(fs, directory, of)
        size = files.read_size(fs, path)
        if size is None or size <= of.head.length:
            return []
        writer = lock.live_holder(fs, directory / layout.LOCK)
        if writer:
            message = f"{size - of.head.length} bytes are beyond the head: {writer} is appending a record"
            return [ProofFinding("note", "append_in_progress", str(path), message, offset=of.head.length)]
        if head.read(fs, directory).seq > of.seq:
            return []  # the record that was being appended is acknowledged by now
        found = recovery.survey(fs, directory, of)
    except (Damaged, Unavailable) as error:
        return [_finding(error, path)]
    refusal = recovery.plan(directory, found).refusal
    if refusal is not None:
        # Damage was found by the proof of the segment already.
        return [_finding(refusal, path)] if isinstance(refusal, Incompatible) else []
    return [ProofFinding("note", "beyond_head", str(path), _fate(size - of.head.length, found), offset=of.head.length)]


def _fate(length: int, found: recovery.SegmentSurvey) -> str:
    """Return what bytes beyond the head are, and what the next write does with them."""
    fate = []
    if found.whole:
        fate.append(f"makes {len(found.whole)} complete record{'s' * (len(found.whole) > 1)} part of history")
    if found.torn is not None:
        fate.append(f"moves {found.torn.length} bytes of an unfinished write to quarantine")
    todo = f"the next write {' and '.join(fate)}"
    if len(found.whole) > 1:
        return (
            f"{length} bytes are beyond the head, which is older than the journal: no crash leaves more than one "
            f"record there, so a person or a tool restored an old one, and readers do not see the later records; {todo}"
        )
    return f"{length} bytes beyond the head were never acknowledged; {todo}"


def _check_snapshot(fs: Fs, directory: Path, of: Head, ref: SnapshotRef, hashes: dict[int, str]) -> list[ProofFinding]:
    """Check a snapshot in itself and against the chain; ``hashes`` has what the chain says at each seq."""
    try:
        snapshot.check(fs, directory, of, ref)
    except (SnapshotCorrupt, Incompatible, Unavailable, HistoryPruned) as error:
        return [_finding(error, directory / ref.file)]
    # Nothing is known of a record after a damaged one, and that is a finding of its own.
    if hashes[ref.seq] not in {"", ref.hash}:
        return [_finding(snapshot.foreign(directory, of, ref), directory / ref.file)]
    return []


def _list_others(fs: Fs, directory: Path, of: Head) -> list[ProofFinding]:
    """List what is in the directory and not named by the head."""
    try:
        with files.explained(directory, "list", reading=True):
            names = sorted(set(fs.listdir(directory)) - of.files)
            kept = quarantine.listed(fs, directory)
    except Unavailable as error:
        return [_finding(error, directory)]
    has_unfinished = any(layout.kind_of(name) == "unfinished" for name in names)
    writer = lock.live_holder(fs, directory / layout.LOCK) if has_unfinished else ""
    said = {
        "segment": f"nothing refers to this journal file; {shell('compact')} removes it if it has no records",
        "snapshot": f"nothing refers to this snapshot; {shell('compact')} removes it",
        "unfinished": f"{writer} is writing this file"
        if writer
        else f"an unfinished file of an earlier crash; the next write or {shell('compact')} removes it",
        "strange": "this file is not KB's",
    }
    others = [
        ProofFinding("note", "unreferenced", str(directory / name), said[layout.kind_of(name)])
        for name in names
        if layout.kind_of(name) in said
    ]
    others += _list_superseded(fs, directory, of)
    folder = str(directory / layout.QUARANTINE)
    return others + [
        ProofFinding("note", "quarantined", f"{folder}/{name}", "bytes kept by a recovery or a repair")
        for name in kept
        if not name.endswith(".json")
    ]


def _list_superseded(fs: Fs, directory: Path, of: Head) -> list[ProofFinding]:
    """List what holds what a redaction took out: it was interrupted."""
    try:
        found = recovery.superseded(fs, directory, of)
    except Unavailable as error:
        return [_finding(error, directory)]
    message = (
        "this file is from before a redaction and holds what that took out; the next write to the branch removes it"
    )
    return [ProofFinding("note", "redaction_unfinished", str(path), message) for path in found]


def _finding(error: KBError, path: Path) -> ProofFinding:
    severity: Severity = "damage" if isinstance(error, Damaged) else "not_checked"
    data = error.data
    return ProofFinding(
        severity,
        error.code,
        str(data.get("file", path)),
        error.message,
        error.remedy,
        line=int(data.get("line", -1)),
        offset=int(data.get("offset", -1)),
    )
