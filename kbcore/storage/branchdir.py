"""Creation of a branch's directory: built next to its place, then renamed into it.

Invariant: under its name a branch exists whole or not at all; a copy holds exactly one head of its source.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore.clock import Clock
from kbcore.errors import CommitUncertain, KBError, StorageError
from kbcore.storage import damage, files, head, layout, scan, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import CopiedFrom, Head, Segment, SnapshotRef, Tip

_NO_LINK: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""Errors of ``link`` where there are no hard links, or no more of them."""
_EXISTS: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})
_EMPTY_LOCK: Final = b" " * 1023 + b"\n"


def create(
    fs: Fs, directory: Path, clock: Clock, *, branch: str, lineage: str = "", features: tuple[str, ...] = ()
) -> Head:
    """Create an empty store and return its head. The caller holds the repository lock.

    Args:
        fs: the file system.
        directory: where; its parent must exist, and it must not hold a store.
        clock: for the time of creation.
        branch: the branch's real name.
        lineage: 64 hex digits to begin the history with; by default random ones, so that no two stores mix.
        features: what a reader must know, from ``head.KNOWN_FEATURES``.

    Raises:
        StorageError: there is a store already, or a call failed; nothing exists then.
        StorageFull, ReadOnlyStore: nothing exists.
        CommitUncertain: the store may be there, and may not survive a power failure.
    """
    chain = lineage or head.new_lineage()
    first = Segment(layout.segment_name(1), 1, chain)
    new = Head(
        format=head.FORMAT,
        features_required=features,
        store_id=head.new_store_id(),
        lineage=chain,
        branch=branch,
        origin=None,
        pruned=None,
        snapshots=(),
        segments=(first,),
        head=Tip(0, chain, first.file, 0, clock.now()),
    )
    with _building(fs, directory) as place:
        files.make_empty(fs, place / first.file)
        _finish(fs, place, new)
    return new


def copy(fs: Fs, source: Path, target: Path, *, branch: str) -> Head:
    """Copy one head of a branch, history and snapshots included, and return the copy's head.

    Takes constant time apart from the active segment: all else is hard-linked where possible. The source is
    not locked. The caller holds the repository lock.

    Args:
        fs: the file system.
        source: directory of the branch to copy.
        target: directory of the new branch; its parent must exist, and it must not hold a store.
        branch: the new branch's real name.

    Raises:
        UnknownBranch, HeadDamaged, FormatTooNew: the source has no usable head.
        JournalCorrupt, JournalTruncated, SnapshotCorrupt: the source is damaged; nothing was copied.
        StorageFull, ReadOnlyStore, StorageError: nothing was copied; also when the target exists.
        CommitUncertain: the copy may be there, and may not survive a power failure.
    """
    return scan.reading(fs, source, lambda of: _copy(fs, source, of, target, branch))


def clear_unfinished(fs: Fs, parent: Path) -> list[str]:
    """Remove what a crash left of branches being built; return their names.

    The caller holds the repository lock, so no other process is building.

    Raises:
        ReadOnlyStore, StorageError: something could not be removed.
    """
    with files.explained(parent, "clear"):
        left = sorted(name for name in fs.listdir(parent) if name.startswith(layout.BUILDING_PREFIX))
        for name in left:
            files.remove_tree(fs, parent / name)
        return left


def _copy(fs: Fs, source: Path, of: Head, target: Path, branch: str) -> Head:
    new = msgspec.structs.replace(
        of, store_id=head.new_store_id(), branch=branch, origin=CopiedFrom(of.branch, of.seq, of.hash)
    )
    with _building(fs, target) as place:
        for segment in of.segments[:-1]:
            _share(fs, source, place, of, segment)
        for ref in of.snapshots:
            _share(fs, source, place, of, ref)
        active = of.head.file
        scan.check_length(fs, source, of)
        try:
            files.copy_range(fs, source / active, place / active, 0, of.head.length)
        except StorageError as error:
            # It may have been sealed and pruned since.
            raise (
                scan.vanished(fs, source, active) if isinstance(error.__cause__, FileNotFoundError) else error
            ) from error
        _finish(fs, place, new)
        # Damage is found here rather than in the new branch, where its origin would not be known.
        for _ in scan.scan(fs, place, new, after=new.active.start):
            continue
    return new


def _share(fs: Fs, source: Path, place: Path, of: Head, part: Segment | SnapshotRef) -> None:
    """Link an immutable file into the copy, or copy it where that cannot be."""
    path, target = source / part.file, place / part.file
    size = files.read_size(fs, path)
    if isinstance(part, SnapshotRef):
        length = part.length
        if size is None:
            raise snapshot.missing(fs, source, of, part)
        if size != length:
            raise snapshot.resized(source, of, part, size)
    else:
        length = part.sealed.length if part.sealed else 0
        if size is None:
            raise scan.vanished(fs, source, part.file)
        if size < length or (size > length and not of.ends_at_hole(part)):
            raise (damage.truncated if size < length else damage.grown)(source, part, length, size)
    try:
        fs.link(path, target)
    except FileNotFoundError as error:
        raise scan.vanished(fs, source, part.file) from error
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise files.explain(error, target, "make") from error
        files.copy_range(fs, path, target, 0, length)


def _finish(fs: Fs, place: Path, new: Head) -> None:
    path = place / layout.LOCK
    # Not synced: its content is only for messages, and it is created again when needed.
    with files.explained(path, "write"), files.opened(fs, path, os.O_WRONLY | os.O_CREAT) as fd:
        files.write_all(fs, fd, _EMPTY_LOCK)
    files.write_synced(fs, place / layout.HEAD, head.encode(new))


@contextlib.contextmanager
def _building(fs: Fs, target: Path) -> Iterator[Path]:
    """Yield a directory to fill; it becomes ``target`` when the block ends well, and is removed otherwise."""
    parent, place = target.parent, building_place(target)
    if not files.is_directory(fs, parent):
        raise StorageError(f"cannot make {target}: there is no directory {parent}")
    with files.explained(place, "make"):
        fs.mkdir(place)
    try:
        yield place
        with files.explained(place, "sync"):
            fs.fsync_dir(place)
        _move_in(fs, place, target)
    except BaseException:
        with contextlib.suppress(OSError):
            files.remove_tree(fs, place)
        raise
    try:
        fs.fsync_dir(parent)
    except OSError as error:
        raise not_durable(target, files.explain(error, parent, "sync").message) from error


def _move_in(fs: Fs, place: Path, target: Path) -> None:
    """Rename a finished directory. After a failure look: over a network the answer may be lost, and not the rename."""
    try:
        fs.replace(place, target)
    except OSError as error:
        if error.errno in _EXISTS:
            raise StorageError(f"{target} exists already") from error
        failure = files.explain(error, target, "make")
        try:
            is_made = files.read_size(fs, target / layout.HEAD) is not None and not files.is_directory(fs, place)
        except KBError:
            raise _uncertain(target, failure.message) from error
        if not is_made:
            raise failure from error


def not_durable(target: Path, reason: str) -> CommitUncertain:
    """Return the error for a directory that was renamed, and whose name could not be synced for this reason."""
    return _uncertain(target, f"{target} is in place, but may not survive a power failure: {reason}")


def _uncertain(target: Path, message: str) -> CommitUncertain:
    hint = "Look at the system log; running the command again is safe."
    return CommitUncertain(message, hint=hint, data={"file": str(target)})


def building_place(target: Path) -> Path:
    """Return a free place to build a branch directory in; ``clear_unfinished`` clears what is left there."""
    return target.parent / f"{layout.BUILDING_PREFIX}{secrets.token_hex(8)}"
