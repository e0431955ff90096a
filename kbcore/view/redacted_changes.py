"""The changes that were redacted, here or in a clone whose copy came in: their ids, and where in them.

A whole copy that comes in, from whatever branch, is taken without it. The note is beside the stores, for all branches.
It has no value and no digest of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.clock import Clock
from kbcore.errors import StorageError
from kbcore.model.redaction.changes import TakenOut
from kbcore.storage import files, lock
from kbcore.storage.fs import Fs

NOTED: Final = ".redacted-changes.json"
_LOCK: Final = ".redacted-changes.lock"
_MOST_BYTES: Final = 64 * limits.MIB

_decode = msgspec.json.Decoder(dict[str, TakenOut]).decode


def noted(fs: Fs, branches_dir: Path) -> dict[str, TakenOut]:
    """Return what was taken out of changes, by their ids. Raises: ``StorageError``, also for a damaged note."""
    path = branches_dir / NOTED
    data = files.read_file(fs, path, _MOST_BYTES)
    try:
        return _decode(data) if data is not None else {}
    except (msgspec.DecodeError, UnicodeError) as error:
        hint = "Remove it, and give each redaction again: without it, other branches bring back what was redacted."
        raise StorageError(f"{path} is damaged.", hint=hint) from error


def note(fs: Fs, clock: Clock, branches_dir: Path, found: Mapping[str, TakenOut]) -> None:
    """Note what is taken out of changes. Who holds the lock of a store may: none is taken under that of the note.

    Raises: ``LockTimeout``, ``StorageError``, also for a damaged note.
    """
    if _with(noted(fs, branches_dir), found) is None:
        return
    with lock.held(fs, clock, branches_dir / _LOCK):
        new = _with(noted(fs, branches_dir), found)
        if new is not None:
            files.publish_file(fs, branches_dir / NOTED, msgspec.json.encode(new))


def _with(known: Mapping[str, TakenOut], found: Mapping[str, TakenOut]) -> dict[str, TakenOut] | None:
    """Return what is known with what is found, None where that is all known."""
    new = {**known, **{key: known[key] | one if key in known else one for key, one in found.items()}}
    return new if new != known else None
