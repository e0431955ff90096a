"""Gives each writer an id of its own: the next number of a series, reserved for all branches and worktrees of a clone.

An id that was given out is reserved for an hour, in a file in the cache, so that another writer who needs one before it
is used gets the next one. From its first use on the store has it. Other clones know nothing of a reservation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import KBError, LimitExceeded
from kbcore.process import interrupting
from kbcore.storage import files
from kbcore.storage.lock import held
from kbcore.store.workspace import Workspace
from kbcore.view.numbering import next_id

RESERVED_S: Final = 3600
"""Time for which an allocated id is reserved. A person may be writing a document meanwhile."""

MOST_RESERVED: Final = 10_000
_MOST_BYTES: Final = 8 * 1024 * 1024
_NAME: Final = "ids.json"
_LOCK: Final = "ids"
"""The name of the lock of those who reserve ids (``Folders.lock_path``)."""
_FORMAT: Final = 1
_COMMAND: Final = "kb id"


class _Reserved(msgspec.Struct, frozen=True):
    """The ids that are reserved, each with the time until which it is, in seconds since 1970."""

    format: int
    until_s: dict[str, int]


def known_next(workspace: Workspace, prefix: str, used: Sequence[str]) -> str:
    """Return the id that ``reserved`` would give out at this moment. Nothing is reserved.

    ``used`` are ids of the series that are in use, the highest among them.

    Raises: as ``numbering.next_id``.
    """
    return next_id(prefix, [*used, *_read(workspace)])


@contextlib.contextmanager
def reserved(workspace: Workspace, wanted: Sequence[tuple[str, Sequence[str]]]) -> Iterator[list[str]]:
    """Reserve an id for each prefix, with the ids of its series that are in use; the block gets them in this order.

    They are free again if the block raises, except where that leaves open whether something was written.

    Raises: as ``numbering.next_id``; ``LimitExceeded`` for too many reservations; ``LockTimeout``; ``StorageError``.
    """
    taken = _reserve(workspace, wanted)
    try:
        yield taken
    except BaseException as error:
        is_unused = error.applied == "no" if isinstance(error, KBError) else not interrupting.is_writing()
        if is_unused:
            # They are free again after an hour anyway: what failed in the block is what the caller must know.
            with contextlib.suppress(KBError):
                _release(workspace, taken)
        raise


def _reserve(workspace: Workspace, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    taken: list[str] = []
    with _locked(workspace) as path:
        now_s = _now_s(workspace)
        until_s = _read(workspace)
        for prefix, used in wanted:
            taken.append(next_id(prefix, [*used, *until_s]))
            until_s[taken[-1]] = now_s + RESERVED_S
        if len(until_s) > MOST_RESERVED:
            message = f"{len(until_s)} ids are reserved and not used yet; the limit is {MOST_RESERVED}."
            raise LimitExceeded(message, hint="Use those that were given out; each is free again after an hour.")
        _write(workspace, path, until_s)
    return taken


def _release(workspace: Workspace, taken: Sequence[str]) -> None:
    with _locked(workspace) as path:
        _write(workspace, path, {key: until for key, until in _read(workspace).items() if key not in taken})


@contextlib.contextmanager
def _locked(workspace: Workspace) -> Iterator[Path]:
    """Hold the lock of the reservations; the block gets the path of their file.

    The lock is not in the cache: where that is deleted while one process holds a lock in it, another one gets a second.
    """
    fs, lock, folder = workspace.machine.fs, workspace.folders.lock_path(_LOCK), workspace.folders.cache_dir
    for one in dict.fromkeys((lock.parent.parent, lock.parent, folder.parent, folder)):
        files.make_directory(fs, one)
    with held(fs, workspace.machine.clock, lock, wait_s=workspace.config.lock_wait_s, command=_COMMAND):
        yield folder / _NAME


def _read(workspace: Workspace) -> dict[str, int]:
    """Return the reservations that have not expired. A file that cannot be read, as anything in a cache, has none."""
    data = files.read_file(workspace.machine.fs, workspace.folders.cache_dir / _NAME, _MOST_BYTES)
    try:
        kept = msgspec.json.decode(data, type=_Reserved) if data else _Reserved(_FORMAT, {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    now_s = _now_s(workspace)
    if kept.format != _FORMAT:
        return {}
    # A clock that was set back does not prolong a reservation.
    return {key: until for key, until in kept.until_s.items() if now_s < until <= now_s + RESERVED_S}


def _write(workspace: Workspace, path: Path, until_s: dict[str, int]) -> None:
    files.publish_file(workspace.machine.fs, path, msgspec.json.encode(_Reserved(_FORMAT, until_s)))


def _now_s(workspace: Workspace) -> int:
    return workspace.machine.clock.epoch_ns() // 1_000_000_000
