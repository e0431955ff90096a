"""Sources of the facts of a damaged snapshot: the journal, the same file elsewhere, or a cached view.

What does not come from the journal counts only if it has the very digest that the head names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kbcore.errors import KBError, ResourceLimit, SnapshotCorrupt, StatementTimeout, ViewDamaged
from kbcore.model import canonical
from kbcore.model.canonical import KnownChangeset
from kbcore.storage import files, journal, layout, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, SnapshotRef, Tip
from kbcore.store import branches
from kbcore.store.workspace import Workspace
from kbcore.view import replay
from kbcore.view.base import open_view
from kbcore.view.cache_files import VIEW
from kbcore.view.history import state_at
from kbcore.view.view import View

Facts = Sequence[bytes]


class FactSource(msgspec.Struct, frozen=True):
    """The source of the facts of one damaged snapshot; ``facts`` only if they were found as a copy."""

    ref: SnapshotRef
    kind: Literal["journal", "copy", "nowhere"]
    place: str = ""
    """The file that the copy is in, below ``workspace.folders.data_dir``."""
    facts: Facts = ()


def damaged(fs: Fs, directory: Path, of: Head) -> list[SnapshotRef]:
    """Return the snapshots that are missing, are not what was written, or are of no record of this history.

    Each comes with the hash that the journal has at its seq.

    Raises: what ``journal.scan`` raises, ``StorageError``.
    """
    hashes = {part.first_seq - 1: part.base_hash for part in of.segments}
    wanted = {ref.seq for ref in of.snapshots}
    for entry in journal.scan(fs, directory, of):
        if entry.frame.seq in wanted:
            hashes[entry.frame.seq] = entry.frame.sum
    found = []
    for ref in of.snapshots:
        try:
            snapshot.check(fs, directory, of, ref)
        except SnapshotCorrupt:
            is_whole = False
        else:
            is_whole = hashes.get(ref.seq, ref.hash) == ref.hash
        if not is_whole:
            found.append(msgspec.structs.replace(ref, hash=hashes.get(ref.seq, ref.hash)))
    return found


def sources(workspace: Workspace, branch: str, whole: Head, wanted: Iterable[SnapshotRef]) -> list[FactSource]:
    """Return where each damaged snapshot can be had from, the oldest first; ``whole`` names only the sound ones.

    Raises: ``SnapshotCorrupt`` when nothing would replace pruned history any more.
    """
    found: list[FactSource] = []
    for ref in wanted:
        source = FactSource(ref, "journal") if _leads_to(whole, ref) else _copied(workspace, branch, whole, ref)
        found.append(source)
        if source.kind != "nowhere":
            whole = with_snapshot(whole, ref)
    if whole.pruned is not None and not _leads_to(whole, whole.head):
        directory = workspace.folders.directory_of(branch)
        raise SnapshotCorrupt(
            f"{directory / found[0].ref.file} replaced the records before {whole.first_seq}, which were pruned, and "
            "neither another branch nor a cached view has the same facts. Nothing was changed.",
            hint=f"If there is a backup, {layout.restore_command(directory, branch)} brings the branch back as it was "
            f"then. Without one, run {layout.salvage_command(branch)}: it keeps what the records from "
            f"{whole.first_seq} on state.",
            data={"file": str(directory / found[0].ref.file)},
        )
    return found


def head_at(of: Head, ref: SnapshotRef) -> Head:
    """Return a head that ends at a snapshot."""
    return msgspec.structs.replace(of, head=msgspec.structs.replace(of.head, seq=ref.seq, hash=ref.hash))


def with_snapshot(of: Head, ref: SnapshotRef) -> Head:
    """Return a head that names this snapshot too."""
    return msgspec.structs.replace(of, snapshots=tuple(sorted((*of.snapshots, ref), key=lambda one: one.seq)))


def _leads_to(whole: Head, place: SnapshotRef | Tip) -> bool:
    """Tell whether the journal, from what its beginning depends on, leads to a seq."""
    try:
        return replay.history_from(whole) <= place.seq
    except SnapshotCorrupt:
        return False


def _copied(workspace: Workspace, branch: str, of: Head, ref: SnapshotRef) -> FactSource:
    fs, own, top = workspace.machine.fs, workspace.folders.directory_of(branch), workspace.folders.data_dir
    for name, directory in branches.stores(workspace):
        if directory != own and (facts := _same_file(fs, directory, of, ref)):
            return FactSource(ref, "copy", str((directory / ref.file).relative_to(top)), facts)
        path = workspace.folders.cache_of(name) / VIEW
        if facts := _in_view(fs, path, of, ref):
            return FactSource(ref, "copy", str(path.relative_to(top)), facts)
    return FactSource(ref, "nowhere")


def _same_file(fs: Fs, directory: Path, of: Head, ref: SnapshotRef) -> Facts:
    try:
        return tuple(snapshot.read(fs, directory, of, ref))
    except KBError:  # whatever is wrong with another branch: the facts are not to be had there
        return ()


def _in_view(fs: Fs, path: Path, of: Head, ref: SnapshotRef) -> Facts:
    try:
        if files.read_size(fs, path) is None:
            return ()
        with open_view(fs, path) as cached:
            if cached.basis.lineage != of.lineage or not cached.basis.history_from <= ref.seq <= cached.seq:
                return ()
            facts = tuple(canonical.lines(state_at(cached, ref.seq), _known(cached, ref.seq)))
    except (StatementTimeout, ResourceLimit):  # it may hold the facts, and was not looked at
        raise
    except (KBError, ViewDamaged):  # a cache is never more than a chance
        return ()
    return facts if snapshot.reference(head_at(of, ref), facts) == ref else ()


def _known(view: View, seq: int) -> Iterator[KnownChangeset]:
    for row in view.rows("select changeset_id, seq, digest from record where seq <= ? order by seq", [seq]):
        yield KnownChangeset(*row)
