"""Puts KB's entry into a client's file: planned as a text, shown as a difference, written when asked.

All other bytes of the file stay. A file that cannot be parsed is not changed, and so
is one that is reached through a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import msgspec

from kbcli.clients import toml_text
from kbcli.clients.difference import difference
from kbcli.clients.kinds import TABLES, Kind
from kbcore.errors import InvalidConfig, StorageError
from kbcore.storage import files, scratch
from kbcore.storage.lock import held
from kbcore.storage.replacing import replace_file
from kbcore.store.pool import Machine
from kbcore.text.json_edit import with_member
from kbcore.text.json_reader import NotJson, read_spans

_MAX_BYTES: Final = 16 * 1024 * 1024
_NEW_MODE: Final = 0o644
_PRIVATE_MODE: Final = 0o600
"""Of a new file of the user: clients keep keys there as well."""
_BOM: Final = "\ufeff"
_KEY_CHARS: Final = 32
_COMMAND: Final = "kb mcp install"


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
    """The planned change: none where ``before`` and ``after`` are the same; None is a file that does not exist."""

    place: ClientFile
    before: bytes | None
    after: bytes
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
        before = None if self.before is None else self.before.decode("utf-8")
        return difference(str(self.place.path), before, self.after.decode("utf-8"))


def servers(kind: Kind, place: ClientFile) -> dict[str, dict[str, Any]]:
    """Return the servers of each table that some client reads, as they are in a client's file; none without a file.

    Raises: as ``plan``.
    """
    _check_way(place)
    before, _ = _read(place)
    try:
        text = (before or b"").decode("utf-8").removeprefix(_BOM)
        held: Any = toml_text.parse(text) if kind.format == "toml" else read_spans(text or "{}").root
    except (UnicodeDecodeError, NotJson, toml_text.NotToml) as error:
        raise _refused(f"{place.path} cannot be read: {error}", "Correct it, then") from error
    found = {table: held.get(table) for table in TABLES} if isinstance(held, dict) else {}
    return {table: listed for table, listed in found.items() if isinstance(listed, dict)}


def snippet(kind: Kind, name: str, entry: Mapping[str, Any], roots: Sequence[Path] = ()) -> str:
    """Return a file that holds the entry, the folders that commands may write to, and nothing else."""
    return _changed(kind, "", name, entry, roots)


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


def plan(
    kind: Kind, place: ClientFile, name: str, entry: Mapping[str, Any], roots: Sequence[Path] = ()
) -> ClientFileChange:
    """Return what puts the entry into the file, and folders into its list of those that commands may write to.

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
        after = bom + _changed(kind, text.removeprefix(_BOM), name, entry, roots)
    except NotJson as error:
        where = f"{place.path}:{error.line}:{error.column}"
        raise _refused(f"{where}: {error}", "Correct the file at that place, then") from error
    except toml_text.NotToml as error:
        raise _refused(f"{place.path}{toml_text.line_of(error)}: {error}", "Correct that, then") from error
    return ClientFileChange(place, before, after.encode("utf-8"), mode)


def write(planned: ClientFileChange) -> None:
    """Write what was planned, unless another program has written meanwhile. Raises: as ``plan``."""
    place = planned.place
    _check_way(place)
    if _read(place)[0] != planned.before:
        raise _refused(f"{place.path} was changed meanwhile", "To take that into account,")
    try:
        replace_file(place.path, planned.after, planned.mode)
    except OSError as error:
        raise StorageError(f"{place.path} cannot be written: {error.strerror}. It is as it was.") from error


def _changed(kind: Kind, text: str, name: str, entry: Mapping[str, Any], roots: Sequence[Path]) -> str:
    if kind.format == "toml":
        changed = toml_text.with_table(text, (kind.table, name), entry)
        if kind.roots:
            table, key = kind.roots
            for root in roots:
                changed = toml_text.with_listed(changed, (table,), key, str(root))
        return changed
    changed = text if text.strip() else "{}\n"
    old: Any = read_spans(changed).root
    there = (old.get(kind.table) or {}) if isinstance(old, dict) else {}
    if isinstance(there, dict) and isinstance(there.get(name), dict):
        for key, value in entry.items():
            if there[name].get(key) != value:
                changed = with_member(changed, (kind.table, name, key), value)
        return changed
    return with_member(changed, (kind.table, name), dict(entry))


def _check_way(place: ClientFile) -> None:
    """Refuse a file, or a folder on the way to it, that is a link: its target may be anywhere."""
    way = place.base
    for part in place.below.parts:
        way /= part
        if way.is_symlink():
            hint = "Add the entry by hand to the target of the link; without --write it is printed."
            raise InvalidConfig(f"{way} is a symbolic link, and KB follows none.", hint=hint)


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
        raise _refused(f"{place.path} is no file that a client could read", "Put it aside, then")
    with os.fdopen(fd, "rb") as file:
        return file.read(), stat.S_IMODE(found.st_mode)


def _refused(what: str, remedy: str) -> InvalidConfig:
    return InvalidConfig(f"{what}.", hint=f"{remedy} run the command again.")
