"""Views of random histories: folded at once, or grown step by step in every way in which a process does that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kbcore.model.folding import apply
from kbcore.model.read_set import needs
from kbcore.model.state import Stamp, State
from kbcore.view import base
from kbcore.view.database import Room
from kbcore.view.record_rows import FoldedRecord, FoldStart
from kbcore.view.view import View
from tests.support.generators.histories import LINEAGE, basis_at

WAYS = ("extend", "extend", "adopt", "adopt", "publish", "reopen")
"""The way in which a step of ``grown`` takes records in."""


def built(entries: Sequence[FoldedRecord], seq: int, room: Room | None = None) -> View:
    """Return a view that was folded from the first ``seq`` entries at once."""
    start = FoldStart(0, LINEAGE, State(), [])
    return base.build(":memory:", room or Room(), start, entries[:seq], basis_at(entries, seq))


def adopt(view: View, entries: Sequence[FoldedRecord], entry: FoldedRecord) -> None:
    """Take a record in as the process does that has just committed it."""
    record = entry.record
    state = view.gather(needs(record.ops))
    changes = apply(state, Stamp(entry.seq, record.at, record.actor, record.source), record.ops)
    view.adopt(entry, changes, basis_at(entries, entry.seq))


def grown(entries: Sequence[FoldedRecord], steps: Sequence[tuple[str, int]], folder: Path) -> View:
    """Return a view that took the entries in by these steps: (how, how many)."""
    position = min(steps[0][1], len(entries))
    room = Room(folders=(str(folder),))
    view = built(entries, position, room)
    for number, (how, size) in enumerate(steps[1:]):
        part = entries[position : position + size]
        position += len(part)
        if how == "adopt":
            for entry in part:
                adopt(view, entries, entry)
        elif part:
            view.extend(iter(part), basis_at(entries, position))
        if how == "publish":
            path = str(folder / f"{number}.duckdb")
            view.write_base(path)
            view.rebase(path)
        if how == "reopen":
            path = str(folder / f"{number}.duckdb")
            view.write_base(path)
            view.close()
            view = base.open_base(path, room, Path(path).stat().st_size)
    view.extend(iter(entries[position:]), basis_at(entries, len(entries)))
    return view
