"""Compact one branch: write the snapshot of its state, seal its journal, and on request give up old history.

The snapshot is folded from the journal itself, never from the view: what is pruned afterwards is kept in it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import kb
from kbcore.extract.changes import OF_CHANGES, is_change_file
from kbcore.model import canonical
from kbcore.model.graph import Node
from kbcore.model.record import MERGE
from kbcore.model.schema import Schema
from kbcore.process import interrupting
from kbcore.storage import compaction
from kbcore.storage.head import Head
from kbcore.store.branches import lost
from kbcore.store.workspace import Workspace
from kbcore.sync.fields import stated_by_clients
from kbcore.text.wording import some_of
from kbcore.view import replay
from kbcore.view.sync_facts import removed_with_files, statuses_by_sync
from kbcore.view.view import View

_SHOWN: Final = 10


class CompactAnswer(msgspec.Struct, frozen=True):
    """The result of a compaction.

    ``snapshot`` and ``sealed`` are file names, "" if there was nothing to do; ``history_from`` is the seq from which
    on history can be asked for. ``not_pruned`` says why records before the seq that was named are still there.
    ``removed`` were leftovers; ``stuck`` could not be removed; ``unlisted`` hold records that the head does not name.
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
    not_pruned: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


@interrupting.maintenance()
def compact(workspace: Workspace, branch: str, *, prune_before: int | None = None) -> CompactAnswer:
    """Compact a branch; doing it again changes nothing.

    ``prune_before`` gives up the parts of the journal that end before that seq, the one that is sealed now among them:
    the state is kept, with the ids of all changesets, but what happened there cannot be queried any more.

    Raises: ``InvalidQuery`` for ``prune_before`` where changes are shared or merged; ``StoreWentBack``; what
    ``storage.compaction.compact`` raises; ``SnapshotCorrupt``, ``FormatTooNew`` when the journal or an older snapshot
    cannot be folded. Nothing was changed then.
    """
    fs, clock = workspace.machine.fs, workspace.machine.clock
    if prune_before is not None:
        compaction.check_seq(workspace.store(branch).head(), prune_before)
        _refuse_shared(workspace, branch)
    workspace.made(branch)
    directory = workspace.folders.directory_of(branch)
    lost.refuse(workspace, branch)
    former = {} if prune_before is None else _with_clients_facts(workspace, branch)

    def fold(head: Head) -> Iterator[bytes]:
        folded = replay.folded(fs, directory, head)
        return canonical.lines(folded.state, folded.known)

    done = compaction.compact(
        fs, directory, clock, fold, prune_before=prune_before, wait_s=workspace.config.lock_wait_s, command="kb compact"
    )
    interrupting.note_change()
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
        warnings=(*done.recovery.sentences(), *_given_up(workspace, branch, former)),
        not_pruned="" if prune_before is None else _not_pruned(done.head, prune_before),
    )


def _refuse_shared(workspace: Workspace, branch: str) -> None:
    """Refuse to give up records that the changes of a branch are derived from. Raises: ``InvalidQuery``."""

    def has_changes(view: View) -> bool:
        merged = view.rows("select count(*) from record where source = ?", [MERGE])[0][0]
        return bool(merged or view.cells("source", ("path",), OF_CHANGES, lambda one: is_change_file(one.path)))

    if workspace.config.share.mode != "off" or workspace.store(branch).read(has_changes):
        raise InvalidQuery(
            f"The records of {branch} say what its changes are, which are shared or merged: none is given up.",
            hint=f"{kb('compact')} without --prune-before keeps them all.",
        )


def _not_pruned(head: Head, before: int) -> str:
    """Say why records before a seq were kept: only whole parts of the journal are given up."""
    first = head.segments[0]
    if first.first_seq >= before or first.sealed is None:
        return ""
    last = first.sealed.last_seq
    return (
        f"records {first.first_seq} to {last} are one part of the journal, which is given up as a whole or not at all; "
        f"--prune-before {last + 1} gives it up."
    )


def _with_clients_facts(workspace: Workspace, branch: str) -> dict[str, Node]:
    """Return the entities that went with their files and would come back with what clients had stated of them."""

    def ask(view: View) -> tuple[dict[str, Node], frozenset[str], Schema]:
        gone = removed_with_files(view)
        return gone, statuses_by_sync(view, gone), view.schema(workspace.schema)

    gone, unsaid, schema = workspace.store(branch).read(ask)
    types = schema.entities
    return {key: node for key, node in gone.items() if stated_by_clients(node, types.get(node.type), unsaid)}


def _given_up(workspace: Workspace, branch: str, former: Mapping[str, Node]) -> Iterator[str]:
    """Say of which of these entities the history is gone, and with it what clients had stated."""
    left = _with_clients_facts(workspace, branch) if former else {}
    lost = sorted(former.keys() - left.keys())
    if lost:
        yield (
            f"What clients had stated of {some_of(lost, _SHOWN)}, gone with their files earlier, went with "
            "the history: should the ids come back, it does not."
        )
