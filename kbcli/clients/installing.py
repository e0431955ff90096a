"""Changes a client's file: planned as a text, shown as a difference, written when asked.

All other bytes of the file stay. A file that cannot be parsed is not changed, and so
is one that is reached through a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import msgspec

from kbcli.clients import toml_text
from kbcli.clients.difference import diff_lines
from kbcli.clients.kinds import TABLES, ClientKind
from kbcli.clients.marked_block import Mangled
from kbcore.errors import InvalidConfig, StorageError
from kbcore.errors.remedies import shell
from kbcore.storage import files, scratch
from kbcore.storage.lock import held
from kbcore.storage.replacing import replace_file
from kbcore.store.pool import Machine
from kbcore.text.json_reader import NotJson, read_spans

_MAX_BYTES: Final = 16 * 1024 * 1024
_NEW_MODE: Final = 0o644
_PRIVATE_MODE: Final = 0o600
"""Of a new file of the user: clients keep keys there as well."""
_BOM: Final = "\ufeff"
_KEY_CHARS: Final = 32
_COMMAND: Final = "kb agents"


class ClientFile(msgspec.Struct, frozen=True):
    """A file below a folder that it must not leave: the worktree, or the user's home."""

    base: Path
    below: PurePosixPath
    is_private: bool = False

    @property
    def path(self) -> Path:
        """Return the file."""
        return self.base / self.below


class ClientFileChange(msgspec.Struct, frozen=True):
    """The planned change: none where ``before`` and ``after`` are the same; None is a file that is not there."""

    place: ClientFile
    before: bytes | None
    after: bytes | None
    mode: int

    @property
    def state(self) -> Literal["absent", "current", "other"]:
        """Return the state of the file: absent, with the entry as wanted, or other."""
        if self.before is None:
            return "absent"
        return "current" if self.before == self.after else "other"

    @property
    def diff(self) -> list[str]:
        """Return the difference that writing makes, as lines of a unified diff without anything that stays."""
        before = None if self.before is None else _text(self.before)
        return diff_lines(str(self.place.path), before, self.text)

    @property
    def text(self) -> str:
        """Return the text of the file after the change, without a byte order mark; "" where there is none then."""
        return _text(self.after)


def servers(kind: ClientKind, place: ClientFile) -> dict[str, dict[str, Any]]:
    """Return the servers of each table that some client reads, as they are in a client's file; none without a file.

    Raises: as ``plan``.
    """
    _check_way(place)
    before, _ = _read(place)
    try:
        text = _text(before)
        held: Any = toml_text.parse(text) if kind.format == "toml" else read_spans(text or "{}").root
    except (UnicodeDecodeError, NotJson, toml_text.NotToml) as error:
        raise _refused(f"{place.path} cannot be read: {error}", "Correct it, then") from error
    found = {table: held.get(table) for table in TABLES} if isinstance(held, dict) else {}
    return {table: listed for table, listed in found.items() if isinstance(listed, dict)}


@contextlib.contextmanager
def alone(machine: Machine, place: ClientFile, repository_cache: Path) -> Iterator[None]:
    """Hold the lock of a client's file from planning to writing: two at once would lose the entry of one.

    The lock is in the caches of the user, which all repositories share, or where there is no home in that of this
    repository.

    Raises: ``LockTimeout``; ``StorageError`` and its kin.
    """
    folder = scratch.user_folder(machine.env, "XDG_CACHE_HOME", ".cache")
    try:
        if folder is not None:
            folder /= "kb"
            scratch.make_private(machine.fs, folder)
    except (OSError, StorageError):
        folder = None
    if folder is None:
        folder = scratch.cache_place(machine.fs, repository_cache, machine.env)
        for one in (folder.parent, folder):
            files.make_directory(machine.fs, one)
    key = hashlib.sha256(os.fsencode(os.path.realpath(place.path))).hexdigest()[:_KEY_CHARS]
    with held(machine.fs, machine.clock, folder / f"client-{key}.lock", command=_COMMAND):
        yield


def text_of(place: ClientFile) -> str:
    """Return what a client's file says, "" where there is none. Raises: as ``plan``."""
    return plan(place, lambda text: text).text


def plan(place: ClientFile, change: Callable[[str], str]) -> ClientFileChange:
    """Return what a change of its text makes of a client's file. A new file that would be empty is not made.

    Raises: ``InvalidConfig`` for a file that is damaged, or reached through a link; ``StorageError``.
    """
    _check_way(place)
    before, mode = _read(place)
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(f"{place.path} is not UTF-8 (byte {error.start})", "Save it as UTF-8, then") from error
    bom = _BOM if text.startswith(_BOM) else ""
    try:
        after = bom + change(text.removeprefix(_BOM))
    except NotJson as error:
        where = f"{place.path}:{error.line}:{error.column}"
        raise _refused(f"{where}: {error}", "Correct the file at that place, then") from error
    except toml_text.NotToml as error:
        raise _refused(f"{place.path}{toml_text.line_of(error)}: {error}", "Correct that, then") from error
    except Mangled as error:
        what = f"{place.path}: the marks kb:begin and kb:end are not one pair"
        raise _refused(what, "Remove what is left of the block of KB, then") from error
    encoded = None if before is None and not after else after.encode("utf-8")
    return ClientFileChange(place, before, encoded, mode)


def write(planned: ClientFileChange) -> None:
    """Write what was planned, unless another program has written meanwhile. Raises: as ``plan``."""
    place = planned.place
    _check_way(place)
    if _read(place)[0] != planned.before:
        raise _refused(f"{place.path} was changed meanwhile", "To take that into account,")
    try:
        if planned.after is None:
            place.path.unlink(missing_ok=True)
        else:
            replace_file(place.path, planned.after, planned.mode)
    except OSError as error:
        raise StorageError(f"{place.path} cannot be written: {error.strerror}. It is as it was.") from error


def followed(place: ClientFile) -> ClientFile:
    """Return the file next to it to which a link in its place leads: `CLAUDE.md` is often one to `AGENTS.md`."""
    if place.path.is_symlink():
        target = place.path.readlink()
        if len(target.parts) == 1 and not target.is_absolute():
            return ClientFile(place.base, place.below.with_name(target.name), place.is_private)
    return place


def link_on_the_way(place: ClientFile) -> Path | None:
    """Return the first of a file and the folders on the way to it that is a link; None where none is."""
    parts = place.below.parts
    ways = (place.base.joinpath(*parts[:at]) for at in range(1, len(parts) + 1))
    return next((way for way in ways if way.is_symlink()), None)


def _check_way(place: ClientFile) -> None:
    """Refuse a file to which a link leads: its target may be anywhere."""
    if link := link_on_the_way(place):
        hint = f"Change the target of the link by hand; {shell('agents', 'print')} with the client shows what is meant."
        raise InvalidConfig(f"{link} is a symbolic link, and KB follows none.", hint=hint)


def _read(place: ClientFile) -> tuple[bytes | None, int]:
    """Return what the file holds, None where there is none, and the mode that it has or gets."""
    try:
        fd = os.open(place.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None, _PRIVATE_MODE if place.is_private else _NEW_MODE
    except OSError as error:
        raise StorageError(f"{place.path} cannot be read: {error.strerror}.") from error
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
        os.close(fd)  # here: Python makes no file object of a folder
        raise _refused(f"{place.path} is no file that a client could read", "Move it away, then")
    with os.fdopen(fd, "rb") as file:
        return file.read(), stat.S_IMODE(found.st_mode)


def _text(data: bytes | None) -> str:
    """Return what a file says, without a byte order mark. Raises: ``UnicodeDecodeError``."""
    return (data or b"").decode("utf-8").removeprefix(_BOM)


def _refused(what: str, remedy: str) -> InvalidConfig:
    return InvalidConfig(f"{what}.", hint=f"{remedy} run the command again.")
