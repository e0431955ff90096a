"""Compact one branch: write the snapshot of its state, seal its journal, and on request give up old history.

The snapshot is folded from the journal itself, never from the view: what is pruned afterwards lives on in it alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kbcore import canonical, replay
from kbcore.storage import compaction
from kbcore.storage.head import Head
from kbcore.workspace import Workspace


class CompactAnswer(msgspec.Struct, frozen=True):
    """What a compaction did.

    ``snapshot`` and ``sealed`` are file names, "" if there was nothing to do; ``history_from`` is the seq from which
    on history can be asked for. ``removed`` were leftovers; ``stuck`` could not be removed; ``unlisted`` hold records
    that the head does not name.
    """

    branch: str
    seq: int
    snapshot: str
    snapshot_bytes: int
    sealed: str
    history_from: int
    pruned: tuple[str, ...]
    removed: tuple[str, ...]
    stuck: tuple[str, ...]
    unlisted: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def compact(workspace: Workspace, branch: str, *, prune_before: int | None = None) -> CompactAnswer:
    """Compact a branch; doing it again changes nothing.

    ``prune_before`` gives up the parts of the journal that end before that seq: what stood is kept, with the ids of
    all changesets, but nobody can ask any more what happened there.

    Raises: what ``storage.compaction.compact`` raises; ``SnapshotCorrupt``, ``FormatTooNew`` when the journal or an
    older snapshot cannot be folded. Nothing was changed then.
    """
    fs, clock, directory = workspace.machine.fs, workspace.machine.clock, workspace.directory_of(branch)

    def fold(head: Head) -> Iterator[bytes]:
        folded = replay.folded(fs, directory, head)
        return canonical.lines(folded.state, folded.known)

    done = compaction.compact(
        fs, directory, clock, fold, prune_before=prune_before, wait_s=workspace.config.lock_wait_s, command="kb compact"
    )
    return CompactAnswer(
        branch=branch,
        seq=done.head.seq,
        snapshot=done.snapshot.file if done.snapshot else "",
        snapshot_bytes=done.snapshot.length if done.snapshot else 0,
        sealed=done.sealed,
        history_from=replay.history_from(done.head),
        pruned=done.pruned,
        removed=done.removed,
        stuck=done.stuck,
        unlisted=done.unlisted,
        warnings=tuple(done.recovery.sentences()),
    )
