"""Proof of redactions: changed records are those that a later record names, and are as it left them; no other changed.

The chain proves that no byte was changed since. This proves that nothing else was changed by the redactions themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from kbcore.model import record
from kbcore.model.record import Redaction
from kbcore.storage import journal
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.places import record_range


def contradictions(fs: Fs, directory: Path, of: Head) -> Iterator[tuple[str, str]]:
    """Yield the code and the words of each contradiction between the records of a store and its redactions.

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
