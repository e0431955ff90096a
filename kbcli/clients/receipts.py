"""Receipts of what was written into the files of clients, so that it can be taken out again to the byte.

A receipt has the digest of a file as KB left it, and how to get back from there: the places of what was put in, and
what was there before. It holds no other text of the file. While the file is as KB left it, it goes back exactly; a file
that was changed since loses KB's parts alone. A lost receipt costs exactness and nothing else.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from kbcli.clients.installing import ClientFile, ClientFileChange
from kbcore.errors import InvalidConfig
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.storage import scratch
from kbcore.storage.replacing import replace_file
from kbcore.text.token_diff import shared_length

NAME: Final = "kb-clients.json"
"""The file of the receipts of a repository's own files, in the common git directory."""
_USER_NAME: Final = "clients.json"
_MODE: Final = 0o600
_MOST_LINES: Final = 2000
"""Beyond it a change is kept as one piece."""


class Splice(msgspec.Struct, frozen=True):
    """Going back: at a byte of the file, so many bytes are replaced by these, which are in latin-1."""

    at: int
    length: int
    text: str


class Receipt(msgspec.Struct, frozen=True):
    """The receipt of one file. ``back`` is None where the file was changed between two writes of KB."""

    after: str
    """The SHA-256 of the file as KB left it."""
    back: tuple[Splice, ...] | None
    was_absent: bool
    folders: tuple[str, ...] = ()
    """The folders that were made for the file, the innermost first."""
    written: Mapping[str, str] = {}
    """By ``CLIENT PART NAME``, what was written of each part."""
    repositories: tuple[str, ...] = ()
    """The git directories of the repositories that had it written."""

    def before(self, data: bytes | None) -> bytes | None:
        """Return the file as it was before KB, None where there was none. Raises: ``FileChanged``."""
        if data is None or self.back is None or _digest(data) != self.after:
            raise FileChanged
        if self.was_absent:
            return None
        for one in reversed(self.back):
            data = data[: one.at] + one.text.encode("latin-1") + data[one.at + one.length :]
        return data


class FileChanged(Exception):
    """The file is not as KB left it."""


class Receipts:
    """The receipts of one scope, by the path of the file. The caller holds the lock of the file of receipts."""

    def __init__(self, place: ClientFile | None) -> None:
        """Read them. ``place`` is None where there is no home: then nothing is kept. Raises: ``InvalidConfig``."""
        self._place = place
        self._all = _read(place.path) if place else {}

    def of(self, path: Path) -> Receipt | None:
        """Return the receipt of a file."""
        return self._all.get(str(path))

    def paths(self) -> list[Path]:
        """Return the files that there are receipts of."""
        return [Path(one) for one in self._all]

    def made_for(self, place: ClientFile) -> tuple[str, ...]:
        """Return the folders above a file that are not there, or were made for another file; the innermost first."""
        made = {folder for one in self._all.values() for folder in one.folders}
        above = [str(one) for one in place.path.parents if one.is_relative_to(place.base)]
        return tuple(one for one in above if one in made or not Path(one).exists())

    def keep(self, path: Path, receipt: Receipt | None) -> None:
        """Keep the receipt of a file, or forget it; on the disk before this returns. Raises: ``OSError``."""
        if receipt is None:
            self._all.pop(str(path), None)
        else:
            self._all[str(path)] = receipt
        if self._place is None:
            return
        if self._all:
            text = msgspec.json.format(msgspec.json.encode(self._all, order="sorted"), indent=1)
            replace_file(self._place.path, text + b"\n", _MODE)
        else:
            self._place.path.unlink(missing_ok=True)


def place_of(env: Mapping[str, str], common_dir: Path, *, is_user: bool) -> ClientFile | None:
    """Return the file of receipts for a scope; None for the user's files where the environment names no home."""
    if not is_user:
        return ClientFile(common_dir, PurePosixPath(NAME), is_private=True)
    state = scratch.user_folder(env, "XDG_STATE_HOME", ".local/state")
    return ClientFile(state, PurePosixPath("kb", _USER_NAME), is_private=True) if state else None


def receipt_of(
    change: ClientFileChange, kept: Receipts, written: Mapping[str, str | None], repository: str
) -> Receipt | None:
    """Return the receipt of a file after a change; None where no part of KB is left in it.

    ``written`` is what the change says of parts, None for one that was taken out. It is called before the change is
    written: folders that are missing now are those that it makes.
    """
    earlier = kept.of(change.place.path)
    parts = {**(earlier.written if earlier else {}), **written}
    left = {key: text for key, text in parts.items() if text is not None}
    if change.after is None or not left:
        return None
    back: tuple[Splice, ...] | None = None
    was_absent, folders = change.before is None, kept.made_for(change.place)
    if earlier is None:
        back = _back(change.before or b"", change.after)
    else:
        was_absent, folders = earlier.was_absent, earlier.folders or folders
        # A part that no receipt knows was there before: taken out, it must not come back.
        is_known = all(text is not None or key in earlier.written for key, text in written.items())
        with contextlib.suppress(FileChanged):
            back = _back(earlier.before(change.before) or b"", change.after) if is_known else None
    names = {*(earlier.repositories if earlier else ()), repository}
    return Receipt(_digest(change.after), back, was_absent, folders, left, tuple(sorted(names)))


def remove_folders(folders: Iterable[str]) -> None:
    """Remove the folders that are empty, the innermost first."""
    for folder in folders:
        try:
            Path(folder).rmdir()
        except OSError:  # it is gone, or somebody keeps something there
            return


def _read(path: Path) -> dict[str, Receipt]:
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_CONFIG_BYTES * 16 else b""
        return msgspec.json.decode(data, type=dict[str, Receipt])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "Remove it: what KB wrote is then known by its content, and taken out without it."
        raise InvalidConfig(
            f"{path}, the notes on what KB wrote for clients, cannot be read: {error}", hint=hint
        ) from error


def _back(before: bytes, after: bytes) -> tuple[Splice, ...]:
    """Return how to get from a text to the one before it, as pieces in the order of their places."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = shared_length(old, new)
    olds, news = old[start:], new[start:]
    end = shared_length(olds[::-1], news[::-1])
    olds, news = olds[: len(olds) - end], news[: len(news) - end]
    at = [0, *accumulate(map(len, new))]
    codes = [("replace", 0, len(olds), 0, len(news))]
    if max(len(olds), len(news)) <= _MOST_LINES:
        codes = [
            one for one in difflib.SequenceMatcher(None, olds, news, autojunk=False).get_opcodes() if one[0] != "equal"
        ]
    return tuple(
        _narrowed(at[start + j1], b"".join(olds[i1:i2]), b"".join(news[j1:j2]))
        for _, i1, i2, j1, j2 in codes
        if i1 != i2 or j1 != j2
    )


def _narrowed(at: int, old: bytes, new: bytes) -> Splice:
    """Return the replacement of one piece by another without what both begin and end with."""
    start = shared_length(old, new)
    old, new = old[start:], new[start:]
    end = shared_length(old[::-1], new[::-1])
    return Splice(at + start, len(new) - end, old[: len(old) - end].decode("latin-1"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
