"""The place of a fleet: a folder, or a URL that fsspec knows. Files there are written whole, and only heads replaced.

A folder is locked while a branch is written to it. Object stores have no locks: of two exports of the same branch at
once the later head holds, and both heads name parts that are there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os.path
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

from kbcore.clock import Clock
from kbcore.config.fleet import OBJECT_STORES, place_fault
from kbcore.errors import InvalidQuery, KBError, StorageError
from kbcore.fleet.head import AGAIN, HEADS, MAX_HEAD_BYTES, PartFile, is_head
from kbcore.limits import MIB
from kbcore.storage import files, layout, lock
from kbcore.storage.fs import Fs
from kbcore.text.escaping import in_quotes

MAX_PART_BYTES: Final = 4096 * MIB
_LOCK_WAIT_S: Final = 60.0
_KEYS: Final = "The key is that of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of ~/.aws."
_REACHABLE: Final = "Check that the place is reachable, and that you may read and write there."
_S3: Final = frozenset({"s3", "s3a"})
_PATIENCE: Final = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"total_max_attempts": 2}}}
"""Seconds and attempts of a request to S3; s3fs makes up to five of what these are."""


class Place(Protocol):
    """Reads and writes files by their path below the place."""

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the content of a file, None where there is none. Raises: ``StorageError``."""
        ...

    def size(self, path: str) -> int | None:
        """Return the length of a file in bytes, None where there is none. Raises: ``StorageError``."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file as a whole. Raises: ``StorageError``."""
        ...

    def heads(self) -> list[str]:
        """Return the paths of all head files, sorted. Raises: ``StorageError``."""
        ...

    def check(self) -> None:
        """Look whether the place can be read. Raises: ``StorageError`` where it cannot."""
        ...

    def writing(self, head: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from writing the branch of a head file meanwhile, if the place can. Raises: ``LockTimeout``."""
        ...


class FolderPlace:
    """A folder of this machine, or one that is mounted."""

    def __init__(self, fs: Fs, clock: Clock, folder: Path) -> None:
        self._fs = fs
        self._clock = clock
        self._folder = folder

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the content of a file, None where there is none."""
        return files.read_file(self._fs, self._folder / path, limit_bytes)

    def size(self, path: str) -> int | None:
        """Return the length of a file in bytes, None where there is none."""
        return files.read_size(self._fs, self._folder / path)

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file as a whole, durably."""
        self._make_folders(path)
        file = self._folder / path
        try:
            files.publish_file(self._fs, file, data)
        except KBError:
            files.remove_quietly(self._fs, layout.tmp_path(file))  # nothing else would: its name may not come again
            raise

    def heads(self) -> list[str]:
        """Return the paths of all head files, sorted."""
        top = self._folder / HEADS
        if not files.is_directory(self._fs, top):
            return []
        found = []
        with files.explained(top, "list", reading=True):
            for repo in self._fs.listdir(top):
                # A foreign file, or a folder that went away.
                with contextlib.suppress(NotADirectoryError, FileNotFoundError):
                    found += [f"{HEADS}/{repo}/{name}" for name in self._fs.listdir(top / repo)]
        return sorted(filter(is_head, found))

    def check(self) -> None:
        """Look whether the folder is there, or can be made."""
        self._check_parent()
        self.heads()

    @contextlib.contextmanager
    def writing(self, head: str) -> Iterator[None]:
        """Hold the lock file next to a head file."""
        self._make_folders(head)
        path = self._folder / f"{head.removesuffix('.json')}.lock"
        with lock.held(self._fs, self._clock, path, wait_s=_LOCK_WAIT_S, command="kb export"):
            yield

    def _make_folders(self, path: str) -> None:
        self._check_parent()
        folder = self._folder
        for name in ("", *PurePosixPath(path).parent.parts):
            folder = folder / name if name else folder
            files.make_directory(self._fs, folder)

    def _check_parent(self) -> None:
        if not files.is_directory(self._fs, self._folder.parent):
            message = f"{self._folder.parent} is no folder, so nothing can be exported to {self._folder}."
            raise StorageError(message, hint="Make it first, or name another place.")


class UrlPlace:
    """A URL such as ``s3://bucket/kb``, by way of fsspec, which is an extra."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # type: ignore[import-untyped] # noqa: PLC0415 - an extra
        except ImportError as error:
            message = f"{url} is not reached: the package fsspec is not installed."
            raise InvalidQuery(message, hint=_how_to_install(url)) from error
        url = f"{_protocol(url)}://{url.partition('://')[2]}"
        self._url = url.rstrip("/")
        self._has_buckets = _protocol(url) in OBJECT_STORES
        try:
            # Its own instance: fsspec keeps those of before, with the keys that were in force then.
            self._system, self._root = fsspec.core.url_to_fs(
                url, skip_instance_cache=True, **(_PATIENCE if _protocol(url) in _S3 else {})
            )
        except (ImportError, ValueError) as error:
            raise InvalidQuery(f"{url} is not reached: {_sentence(error)}", hint=_how_to_install(url)) from error
        except Exception as error:  # some protocols connect at once, and each has errors of its own
            raise StorageError(f"{url} is not reached: {_sentence(error)}", hint=_REACHABLE) from error

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        """Return the content of a file, None where there is none."""
        self._system.invalidate_cache()
        try:
            with self._explained(path):
                data: bytes = self._system.cat_file(self._at(path), start=0, end=limit_bytes + 1)
        except FileNotFoundError:
            return None
        except StorageError:
            if self.size(path) == 0:  # S3 refuses every range of an empty file
                return b""
            raise
        if len(data) > limit_bytes:
            raise StorageError(f"{self._url}/{path} is larger than {limit_bytes} bytes.")
        return data

    def size(self, path: str) -> int | None:
        """Return the length of a file in bytes, None where there is none."""
        self._system.invalidate_cache()
        try:
            with self._explained(path):
                return int(self._system.info(self._at(path))["size"])
        except FileNotFoundError:
            return None

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file as a whole, as object stores do."""
        try:
            with self._explained(path):
                if not self._has_buckets:
                    self._system.makedirs(self._at(str(PurePosixPath(path).parent)), exist_ok=True)
                self._system.pipe_file(self._at(path), data)
        except FileNotFoundError as error:
            raise self._missing(error) from error

    def heads(self) -> list[str]:
        """Return the paths of all head files, sorted."""
        self._system.invalidate_cache()
        try:
            with self._explained(HEADS):
                found: list[Any] = self._system.find(self._at(HEADS))
        except FileNotFoundError as error:
            if self._has_buckets:
                raise self._missing(error) from error
            return []
        marker = f"/{HEADS}/"
        return sorted(filter(is_head, (f"{HEADS}/{one.rpartition(marker)[2]}" for one in found)))

    def check(self) -> None:
        """Look whether the place can be read."""
        self.heads()

    @contextlib.contextmanager
    def writing(self, head: str) -> Iterator[None]:  # noqa: ARG002 - the protocol's
        """Do nothing: there are no locks."""
        yield

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"

    def _missing(self, error: FileNotFoundError) -> StorageError:
        what = "Make the bucket" if self._has_buckets else "Make it"
        return StorageError(
            f"{self._url} is not there: {_sentence(error)}", hint=f"{what} first, or name another place."
        )

    @contextlib.contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Turn what a protocol raises into ``StorageError``; a missing file stays ``FileNotFoundError``."""
        try:
            yield
        except FileNotFoundError:
            raise
        except PermissionError as error:
            hint = f"Who asks must be allowed to read and list what is there, who exports to write too. {self._keys()}"
            raise StorageError(f"{self._url}/{path} is refused: {_sentence(error)}", hint=hint.rstrip()) from error
        except Exception as error:  # each protocol has errors of its own
            hint = f"{_REACHABLE} {self._keys()}"
            raise StorageError(f"{self._url}/{path}: {_sentence(error)}", hint=hint.rstrip()) from error

    def _keys(self) -> str:
        return _KEYS if _protocol(self._url) in _S3 else ""


def place_at(text: str, start: Path, fs: Fs, clock: Clock) -> Place:
    """Return the place that a text names: a URL, or a folder from ``start``, which links may lead to.

    Raises: ``InvalidQuery``; ``StorageError`` where something else than a folder is there.
    """
    check_place(text)
    if "://" in text:
        return UrlPlace(text)
    folder = Path(os.path.realpath(start / text))
    files.is_directory(fs, folder)
    return FolderPlace(fs, clock, folder)


def check_place(text: str) -> None:
    """Refuse a text that names no place, or has a password. Raises: ``InvalidQuery``."""
    if fault := place_fault(text):
        named = "The place" if "@" in text else in_quotes(text)
        raise InvalidQuery(f"{named} {fault}.", hint="Name a folder, or a URL such as s3://acme-kb/fleet.")


def _protocol(url: str) -> str:
    return url.partition("://")[0].lower()


def _how_to_install(url: str) -> str:
    if _protocol(url) in _S3:
        return 'Install it with `pip install "kb-memory[s3]"`.'
    return "Install `kb-memory[fleet]`, and the package that fsspec names for this protocol."


def _sentence(error: Exception) -> str:
    """Return what an error says, as the end of a sentence."""
    said = " ".join(str(error).split()) or type(error).__name__
    return f"{said.rstrip('.')}."


def read_part(place: Place, part: PartFile) -> bytes:
    """Return the content of a part. Raises: ``StorageError`` where it is missing, or has other bytes."""
    length = place.size(part.path)
    data = place.read(part.path, MAX_PART_BYTES) if length == part.bytes else None
    if data is None or hashlib.sha256(data).hexdigest() != part.sha256:
        what = "is missing" if length is None else "does not have the bytes that the head file states"
        raise StorageError(f"{part.path} {what}.", hint=AGAIN)
    return data


def read_head(place: Place, path: str) -> bytes | None:
    """Return the content of a head file, None where there is none. Raises: ``StorageError``."""
    return place.read(path, MAX_HEAD_BYTES)
