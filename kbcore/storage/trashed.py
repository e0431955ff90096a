"""The stores in the trash: whose each was, when it came there, and what KB put in its place.

That is in the name of its folder, so one rename moves a store and states why. What a name does not state proves
nothing: only a store that KB deleted, or that the present one replaced, is no loss.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import KBError
from kbcore.storage import files, head
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head

TRASH: Final = ".trash"
ASIDE: Final = ".aside-"
"""Begins the name of a store that makes room; the name of its directory follows."""
MAX_ENTRIES: Final = 200
"""Stores of one branch that are searched, the newest ones, to find one of them."""
_DELETED: Final = "deleted"
_BY: Final = "by-"
_ID_CHARS: Final = 16
"""Characters of a store id in a name: with all of it, the name of a folder could be longer than 255 bytes."""
_NAME: Final = re.compile(
    r"(?P<name>.+)~(?P<when>\d{8}T\d{6}\.\d{6}Z)(?:~(?P<fate>deleted|by-[0-9a-f]{16}))?", re.ASCII
)


class TrashedStore(msgspec.Struct, frozen=True):
    """One store in the trash: the name of the directory that it had, and when it came there.

    ``fate`` says why: ``deleted``, or ``by-`` and the beginning of the id of the store that took its place; "" where
    that is not known. The times sort as text, and those of one name are all different.
    """

    path: Path
    name: str
    when: str
    fate: str

    @property
    def is_deleted(self) -> bool:
        """True when KB deleted it, and has put no other store in its place since."""
        return self.fate == _DELETED

    def is_replaced_by(self, of: Head) -> bool:
        """Tell whether a store took its place; that may have got another id since."""
        ids = [of.store_id, *(one.store_id for one in of.epochs)]
        return any(self.fate == _fate_of(one) for one in ids)


def aside_of(directory: Path) -> Path:
    """Return where the store of a directory lies while it makes room."""
    return directory.with_name(ASIDE + directory.name)


def stores_in_trash(fs: Fs, parent: Path) -> list[TrashedStore]:
    """Return the stores in the trash of a folder of stores, those that came there first first.

    Raises: ``StorageError`` when the trash cannot be listed.
    """
    folder = parent / TRASH
    if not files.is_directory(fs, folder):
        return []
    with files.explained(folder, "list", reading=True):
        found = [(_NAME.fullmatch(name), folder / name) for name in fs.listdir(folder)]
    made = [TrashedStore(path, said["name"], said["when"], said["fate"] or "") for said, path in found if said]
    return sorted(made, key=lambda one: (one.when, one.name))


def trash_path(fs: Fs, directory: Path, when: str, *, is_vacated: bool) -> Path:
    """Return the place in the trash of the store of a directory; with ``is_vacated`` no other store takes its place."""
    return _path(directory, when, _DELETED if is_vacated else _fate_at(fs, directory))


def state_successor(fs: Fs, directory: Path, new: Path) -> None:
    """State for the deleted stores of a directory that another one is about to take their place.

    Without that, the new one could vanish without notice: a deleted store may be a copy of it. The caller holds the
    lock of the repository. Raises: ``StorageError`` and its kin.
    """
    fate = _fate_at(fs, new)
    for entry in stores_in_trash(fs, directory.parent):
        if entry.name == directory.name and entry.is_deleted and entry.path != new:
            with files.explained(entry.path, "move"):
                fs.replace(entry.path, _path(directory, entry.when, fate))
                fs.fsync_dir(entry.path.parent)


def accounts_for(fs: Fs, directory: Path, of: Head | None, is_wanted: Callable[[Path, Head], bool]) -> bool:
    """Tell whether KB itself moved a store out of a directory, and what it put there since is there.

    Args:
        fs: the file system.
        directory: of the branch.
        of: the store that it has now, None for none.
        is_wanted: tells whether the store in a folder, with this head, is the one that is looked for.

    Raises: ``StorageError`` when the trash cannot be listed.
    """
    aside = aside_of(directory)
    making_room = _head_of(fs, aside)
    if making_room is not None and is_wanted(aside, making_room):
        return True
    known = [one for one in (making_room, of) if one is not None]
    # From the newest on: a store is accounted for if it was deleted, or replaced by one that is accounted for.
    entries = [one for one in stores_in_trash(fs, directory.parent) if one.name == directory.name]
    for entry in entries[: -MAX_ENTRIES - 1 : -1]:
        if entry.is_deleted or any(map(entry.is_replaced_by, known)):
            there = _head_of(fs, entry.path)
            if there is not None:
                if is_wanted(entry.path, there):
                    return True
                known.append(there)
    return False


def _head_of(fs: Fs, place: Path) -> Head | None:
    with contextlib.suppress(KBError):
        return head.read(fs, place)
    return None


def _path(directory: Path, when: str, fate: str) -> Path:
    return directory.parent / TRASH / "~".join(filter(None, [directory.name, when, fate]))


def _fate_at(fs: Fs, place: Path) -> str:
    """Return the fate of a store whose place the one in a folder takes; "" where its id cannot be read."""
    of = _head_of(fs, place)
    return _fate_of(of.store_id) if of else ""


def _fate_of(store_id: str) -> str:
    fate = f"{_BY}{store_id[:_ID_CHARS]}"
    return fate if re.fullmatch(r"by-[0-9a-f]{16}", fate, re.ASCII) else ""
