"""Prove one branch: every byte of the store, every record as facts, every snapshot by replay, and the cached view.

Writes nothing, takes no lock, and raises nothing for the state of the store: every problem is a finding.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import msgspec

from kbcore import progress
from kbcore.errors import Damaged, HistoryPruned, Incompatible, KBError, Unavailable, ViewDamaged
from kbcore.errors.remedies import shell
from kbcore.maintenance.caches import views_set_aside
from kbcore.maintenance.findings import DoctorFinding, Severity, as_json, is_sound, of_error, of_proof, way_out
from kbcore.model import canonical, record
from kbcore.model.record import Redaction
from kbcore.process import interrupting
from kbcore.storage import files, journal, snapshot, verify
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, SnapshotRef
from kbcore.storage.places import record_range
from kbcore.store.branches import lost
from kbcore.store.workspace import Workspace
from kbcore.view import replay
from kbcore.view.base import open_view
from kbcore.view.cache_files import VIEW
from kbcore.view.opening import is_ahead, is_usable
from kbcore.view.record_rows import FoldStart, fold
from kbcore.view.tables import ELEMENTS, WHOLE
from kbcore.view.view import View

_TABLES = (*ELEMENTS, *(f"{table}_history" for table in ELEMENTS), "record")


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a proof, and whether it could be carried out."""

    name: Literal["journal", "replay", "snapshots", "view"]
    status: Literal["ran", "not_run"]
    reason: str = ""


class Verified(msgspec.Struct, frozen=True):
    """The result of a proof. ``good_seq`` is the last record up to which everything was proven."""

    branch: str
    seq: int | None
    good_seq: int
    history_from: int
    records: int
    snapshots: int
    hash: str
    checks: tuple[Check, ...]
    findings: tuple[DoctorFinding, ...]

    @property
    def is_sound(self) -> bool:
        """True when everything that was asked for was checked, and nothing is wrong."""
        return is_sound(self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the proof as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return {**shown, "findings": as_json(self.findings), "ok": self.is_sound}


class _Proof:
    """A proof while it is carried out."""

    def __init__(self, workspace: Workspace, branch: str) -> None:
        self.workspace = workspace
        self.branch = branch
        self.fs = workspace.machine.fs
        self.directory = workspace.folders.directory_of(branch)
        self.findings: list[DoctorFinding] = []
        self.checks: list[Check] = []
        self.snapshots = 0

    def found(self, severity: Severity, code: str, message: str, remedy: str = "", file: str = "") -> None:
        self.findings.append(DoctorFinding("journal", severity, code, message, remedy, self.branch, file))

    def failed(self, error: KBError) -> None:
        """Note an error, unless proving the store has found the same already."""
        found = of_error("journal", error, self.branch)
        if not any((one.code, one.file, one.line) == (found.code, found.file, found.line) for one in self.findings):
            self.findings.append(found)

    def ran(self, name: Literal["journal", "replay", "snapshots", "view"]) -> None:
        self.checks.append(Check(name, "ran"))

    def not_run(self, name: Literal["journal", "replay", "snapshots", "view"], reason: str) -> None:
        self.checks.append(Check(name, "not_run", reason))


@interrupting.maintenance()
def verify_branch(workspace: Workspace, branch: str, *, with_view: bool = False) -> Verified:
    """Prove a branch; ``with_view`` compares the cached view with a rebuilt one, row by row.

    Raises: ``UnknownBranch`` when there is no store, ``StoreWentBack`` when there was one.
    """
    proof = _Proof(workspace, branch)
    lost.refuse_gone(workspace, branch)
    stored = verify.prove(proof.fs, proof.directory)
    head, good_seq = stored.head, stored.good_seq
    if head is not None and not stored.is_sound:
        good_seq = intact_seq(proof.fs, proof.directory, head)
    loss = workspace.witness(branch).check(head) if head else None
    proof.findings += of_proof(stored, proof.directory, branch, loss)
    if head is None:
        for name in ("journal", "replay", "snapshots"):
            proof.not_run(name, "The head file cannot be read.")
    else:
        if loss:
            proof.failed(lost.error_of(workspace, loss, way_out(stored, proof.directory, branch, loss)))
        proof.ran("journal")
        good_seq = _replay(proof, head, good_seq)
        if good_seq == head.seq:
            _check_redactions(proof, head)
        if with_view:
            proof.findings += views_set_aside(workspace, branch)
            _check_view(proof, head, good_seq)
    return Verified(
        branch=branch,
        seq=head.seq if head else None,
        good_seq=good_seq,
        history_from=head.first_seq - 1 if head else 0,
        records=max(stored.records_checked, good_seq - head.first_seq + 1 if head and not head.holes else 0),
        snapshots=proof.snapshots,
        hash=head.hash if head else "",
        checks=tuple(proof.checks),
        findings=tuple(proof.findings),
    )


def _replay(proof: _Proof, head: Head, good_seq: int) -> int:
    """Fold every good record, compare each snapshot on the way, and return how far that went."""
    try:
        start = replay.start(proof.fs, proof.directory, head)
    except (Damaged, Incompatible, Unavailable, HistoryPruned) as error:
        proof.failed(error)
        proof.not_run("replay", "What the history begins with cannot be read.")
        proof.not_run("snapshots", "Nothing could be replayed.")
        return 0
    reached, stopped = start.seq, None
    snapshots = {ref.seq: ref for ref in head.snapshots if ref.seq > start.seq}
    if start.seq:
        reason = "cannot be replayed, because records are missing" if head.holes else "was pruned"
        message = f"What happened up to seq {start.seq} {reason}: the snapshot there is not proven by replay."
        proof.found("note", "history_pruned", message)
    try:
        for seq in _folding(proof, head, start, good_seq):
            reached = seq
            if seq in snapshots:
                _compare_snapshot(proof, head, snapshots.pop(seq), start)
    except (Damaged, Incompatible, Unavailable, HistoryPruned) as error:
        stopped = error
        proof.failed(error)
    if reached < head.seq:
        proof.not_run("replay", f"Only the records up to seq {reached} are good{_why(stopped)}.")
    else:
        proof.ran("replay")
    if snapshots:
        proof.not_run("snapshots", f"{', '.join(ref.file for ref in snapshots.values())}: no replay leads there.")
    else:
        proof.ran("snapshots")
    return reached


def _check_redactions(proof: _Proof, head: Head) -> None:
    remedy = (
        "Restore a backup of the store as it was after that redaction; what was taken out is not in that one either."
    )
    with contextlib.suppress(Damaged):  # a journal that cannot be read is reported with its own place
        for code, message in redaction_contradictions(proof.fs, proof.directory, head):
            is_note = code == "redaction_unchecked"
            proof.found("note" if is_note else "error", code, message, "" if is_note else remedy)


def _why(stopped: KBError | None) -> str:
    return f" ({stopped.code})" if stopped else ""


def _folding(proof: _Proof, head: Head, start: FoldStart, until: int) -> Iterator[int]:
    """Fold the records after ``start`` into its state, and yield each seq once its record is in."""
    if until <= start.seq:
        return
    entries = replay.entries(proof.fs, proof.directory, head, until=until, skip=start.seq)
    for entry in progress.track(entries, until - start.seq, "records replayed"):
        fold(start.state, entry)
        start.known.append(replay.known_of(entry))
        yield entry.seq


def _compare_snapshot(proof: _Proof, head: Head, ref: SnapshotRef, start: FoldStart) -> None:
    """Compare a snapshot with the state that replay came to, byte by byte."""
    path = str(proof.directory / ref.file)
    replayed = canonical.lines(start.state, start.known)
    try:
        kept = snapshot.read(proof.fs, proof.directory, head, ref)
        for number, (one, other) in enumerate(zip_longest(replayed, kept), start=1):
            if one != other:
                message = f"Fact {number} of {ref.file} differs from the replay up to seq {ref.seq}."
                remedy = "Keep the store as it is and report this: the snapshot or the journal is not what KB wrote."
                proof.found("error", "snapshot_differs", message, remedy, path)
                return
    except (Damaged, Incompatible, Unavailable, HistoryPruned) as error:
        proof.failed(error)
        return
    proof.snapshots += 1


def _check_view(proof: _Proof, head: Head, good_seq: int) -> None:
    """Compare the published view with one that is rebuilt up to the same seq."""
    path = proof.workspace.folders.cache_of(proof.branch) / VIEW
    if files.read_size(proof.fs, path) is None:
        proof.not_run("view", "There is no cached view.")
        return
    remedy = f"Delete {path}; it is rebuilt when it is needed."
    try:
        with open_view(proof.fs, path) as cached:
            if is_ahead(cached.basis, head):
                message = f"The cached view has seen record {cached.seq}, which the journal does not have."
                proof.found(
                    "error",
                    "view_ahead",
                    message,
                    f"Records may be lost; {shell('doctor', lead='see')}.",
                    str(path),
                )
                return
            if cached.seq > good_seq or not is_usable(cached.basis, head):
                proof.not_run("view", "The cached view is of another or an older history; it is rebuilt when needed.")
                return
            with proof.workspace.store(proof.branch).view_until(cached.seq) as rebuilt:
                differing = [table for table in _TABLES if _rows(cached, table) != _rows(rebuilt, table)]
    except ViewDamaged as error:
        proof.found("warning", "view_damaged", f"The cached view cannot be read: {error}", remedy, str(path))
        return
    if differing:
        message = f"The cached view differs from a rebuilt one, in {', '.join(differing)}."
        proof.found("error", "view_differs", message, remedy, str(path))
    proof.ran("view")


def _rows(view: View, table: str) -> list[tuple[Any, ...]]:
    return view.rows(f"select * from {WHOLE.get(table, table)} order by all")  # noqa: S608 - a constant


def intact_seq(fs: Fs, directory: Path, head: Head) -> int:
    """Return the last record that is proven: before the damage, or the head itself where there is none.

    Where the files of different times were mixed, that is none: they follow each other, and it is not known which of
    them were acknowledged.
    """
    last, seq = head.lineage, head.first_seq - 1
    try:
        for entry in journal.scan(fs, directory, head, until=head.seq):
            seq, last = entry.frame.seq, entry.frame.sum
    except (Damaged, Incompatible, Unavailable, HistoryPruned) as error:
        return min(seq, int(error.data.get("good_seq", seq)))
    return seq if seq < head.seq or last == head.hash or head.seq < head.first_seq else head.first_seq - 1


def redaction_contradictions(fs: Fs, directory: Path, of: Head) -> Iterator[tuple[str, str]]:
    """Yield the code and the words of each contradiction between the records of a store and its redactions.

    Changed records are those that a later record names, and are as it left them; no other changed. The chain proves
    that no byte was changed since.

    The code is ``redaction_unchecked`` where records that a redaction left as they were are not there any more.

    Raises: as ``journal.scan``; ``FormatTooNew``.
    """
    made, marked, digests = list[tuple[int, Redaction]](), set[int](), dict[int, str]()
    for entry in journal.scan(fs, directory, of):
        seq, rec = entry.frame.seq, entry.frame.rec
        said = record.decode(rec, seq=seq)
        if said.redacted:
            marked.add(seq)
            digests[seq] = hashlib.sha256(rec).hexdigest()
        if said.redaction is not None:
            made.append((seq, said.redaction))
    if made and of.redacted is None:
        yield "redaction_unknown", "A record documents a redaction, and the head does not know of any."
    if of.redacted is not None and of.redacted.seq not in {seq for seq, _ in made}:
        yield "redaction_unknown", f"The head names record {of.redacted.seq} for a redaction, and that documents none."
    named = {one.seq: (seq, one.digest) for seq, redaction in made for one in redaction.records}
    for seq in sorted(marked - named.keys()):
        yield "redaction_unnamed", f"Record {seq} says that it was redacted, and no later record documents that."
    for seq, (by, digest) in sorted(named.items()):
        if of.first_seq <= seq and not _is_missing(of, seq) and digests.get(seq) != digest:
            yield "redaction_differs", f"Record {seq} is not as the redaction left it that record {by} documents."
    yield from _kept(fs, directory, of, made)


def _kept(fs: Fs, directory: Path, of: Head, made: list[tuple[int, Redaction]]) -> Iterator[tuple[str, str]]:
    """Compare all records that the redactions left as they were."""
    totals = {}
    for by, redaction in made:
        if not redaction.kept:
            continue
        if redaction.since != of.first_seq or any(hole.first < by for hole in of.holes):
            where = record_range(redaction.since, by - 1)
            yield "redaction_unchecked", f"Of {where}, which a redaction left as they were, not all are there any more."
            continue
        totals[by] = hashlib.sha256(), frozenset(one.seq for one in redaction.records), redaction.kept
    for entry in journal.scan(fs, directory, of) if totals else ():
        for by, (total, left_out, _) in totals.items():
            if entry.frame.seq < by and entry.frame.seq not in left_out:
                total.update(entry.frame.rec + b"\n")
    for by, (total, _, kept) in totals.items():
        if total.hexdigest() != kept:
            yield (
                "redaction_differs",
                f"A record before {by} is not as the redaction left it that record {by} documents.",
            )


def _is_missing(of: Head, seq: int) -> bool:
    return any(hole.first <= seq <= hole.last for hole in of.holes)
