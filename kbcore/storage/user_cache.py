"""Texts that are costly to make, kept by a key in the cache folder of the user. Losing one costs only time.

Invariant: a text is read only from a folder that this user owns and no other may write to.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from kbcore.errors import StorageError
from kbcore.storage.fs import RealFs
from kbcore.storage.replacing import replace_file
from kbcore.storage.scratch import is_private, make_private, user_folder

_MODE = 0o600


class UserCache:
    """The texts of one kind, of which the ``most`` newest are kept. Where there is no such folder it is empty."""

    def __init__(self, env: Mapping[str, str], kind: str, most: int) -> None:
        folder = user_folder(env, "XDG_CACHE_HOME", ".cache")
        self._folder = None if folder is None else folder / "kb" / kind
        self._most = most

    def read(self, key: str) -> str | None:
        """Return the text of a key, None where it is not kept, or cannot be read."""
        if self._folder is None or not is_private(RealFs(), self._folder):
            return None
        try:
            return (self._folder / key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def keep(self, key: str, text: str) -> None:
        """Keep a text, where the folder can be written; the oldest ones make room."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError, StorageError):
            make_private(RealFs(), self._folder)
            replace_file(self._folder / key, text.encode("utf-8"), _MODE)
            kept = sorted(self._folder.iterdir(), key=_age)
            for one in kept[: -self._most]:
                one.unlink(missing_ok=True)


def key_of(parts: Iterable[str]) -> str:
    """Return the key of what is made out of these texts, and of nothing else."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _age(path: Path) -> tuple[int, str]:
    with contextlib.suppress(FileNotFoundError):
        return path.lstat().st_mtime_ns, path.name
    return 0, path.name
