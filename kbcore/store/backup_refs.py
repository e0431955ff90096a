"""The refs of remotes that hold changes of this clone, as far as it has pushed or fetched them: a redaction names them.

The ids of changes that a ref holds are known to others, so a redaction keeps them.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kbcore.storage import files
from kbcore.store.branches.stores import repository_lock
from kbcore.store.workspace import Workspace

NOTED: Final = "backup-refs.json"
_NAME: Final = re.compile(r"[\w.-]+")
_MOST_BYTES: Final = 1 << 20


class BackupRef(msgspec.Struct, frozen=True):
    """The ref of a branch in a remote; "" for a remote that was named by its address, which may hold a password."""

    remote: str
    branch: str
    ref: str


UNKNOWN: Final = BackupRef("", "", "")
"""In the place of refs whose note is damaged."""

_decode = msgspec.json.Decoder(tuple[BackupRef, ...]).decode


def note(workspace: Workspace, remote: str, branch: str, ref: str) -> None:
    """Note that a ref holds changes of this clone, or will. Raises: ``LockTimeout``, ``StorageError``."""
    one = BackupRef(remote if _NAME.fullmatch(remote) else "", branch, ref)
    if one not in noted(workspace):
        with repository_lock(workspace):
            data = msgspec.json.encode([*dict.fromkeys([*noted(workspace), one])])
            files.publish_file(workspace.machine.fs, workspace.folders.data_dir / NOTED, data)


def noted(workspace: Workspace) -> tuple[BackupRef, ...]:
    """Return the refs that were noted, or ``UNKNOWN`` where the note is damaged. Raises: ``StorageError``."""
    data = files.read_file(workspace.machine.fs, workspace.folders.data_dir / NOTED, _MOST_BYTES)
    if data is None:
        return ()
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return (UNKNOWN,)
