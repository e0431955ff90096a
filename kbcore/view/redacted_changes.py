"""The changes that were redacted in this clone: their ids, and where in them. A copy that comes in is taken without it.

The note is beside the stores, for all branches. It has no value and no digest of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import StorageError
from kbcore.model.redaction.changes import TakenOut
from kbcore.storage import files
from kbcore.storage.fs import Fs

NOTED: Final = ".redacted-changes.json"
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


def note(fs: Fs, branches_dir: Path, found: Mapping[str, TakenOut]) -> None:
    """Note what is taken out of changes. The caller holds the lock of the repository. Raises: ``StorageError``."""
    known = noted(fs, branches_dir)
    new = known | {key: known[key] | one if key in known else one for key, one in found.items()}
    if new != known:
        files.publish_file(fs, branches_dir / NOTED, msgspec.json.encode(new))
