"""Files that a command is asked to write: whole, and never over a file that somebody else made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from kbcli.invocation.context import Session
from kbcore.errors import InvalidQuery, StorageError
from kbcore.storage.replacing import replace_file
from kbcore.text.escaping import escape_controls

STDOUT: Final = "-"
"""The name of standard output, in place of a file's."""
_MOST_LOOKED_AT_BYTES: Final = 64 * 1024


def write_files(
    session: Session,
    contents: list[tuple[str, bytes]],
    *,
    force: bool,
    makes_folders: bool = False,
    is_own: Callable[[bytes], bool] = lambda _: False,
) -> None:
    """Write files, named from where the command was started. With ``force`` all that exist are replaced.

    Otherwise only those are whose first bytes ``is_own`` recognizes as what the command wrote before.

    Raises: ``InvalidQuery`` where one exists that may not be overwritten; ``StorageError``.
    """
    paths = [(session.start / name, data) for name, data in contents if name != STDOUT]
    for path, _ in paths:
        if path.is_file() and not force and not is_own(_beginning(path)):
            message = f"{escape_controls(str(path))} exists already. Nothing was written."
            raise InvalidQuery(message, hint="Name another file, or overwrite it with --force.")
        if path.is_symlink() and not path.exists():
            message = f"{escape_controls(str(path))} is a link that leads to no file. Nothing was written."
            raise InvalidQuery(message, hint="Name another file, or remove the link.")
    for path, data in paths:
        try:
            if path.is_file():
                whole = path.resolve()
                replace_file(whole, data, whole.stat().st_mode & 0o7777)
            else:
                if makes_folders:
                    path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb" if path.exists() else "xb") as file:
                    file.write(data)
        except OSError as error:
            raise StorageError(f"{escape_controls(str(path))} cannot be written: {error.strerror}.") from error
    session.output.stream(data.decode() for name, data in contents if name == STDOUT)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_LOOKED_AT_BYTES)
    except OSError:
        return b""
