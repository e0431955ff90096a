"""A note next to the cached view that a journal file is damaged.

By it writers refuse that do not read that file, and readers say so.

Invariant: the note decides nothing by itself. A writer proves the named file again: it refuses damage that is there,
and removes a note that is not true any more. Whoever deletes the note loses nothing but the early refusal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import Damaged, JournalCorrupt, JournalTruncated, KBError
from kbcore.errors.remedies import kb
from kbcore.storage import files, head, verify
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Segment

NOTE: Final = "damaged.json"
_MAX_NOTE_BYTES: Final = 64 * 1024
_CODES: Final = frozenset({JournalCorrupt.code, JournalTruncated.code})


class NotedDamage(msgspec.Struct, frozen=True):
    """Known damage: the store's id, the name of the damaged file, and the code of the error."""

    store_id: str
    file: str
    code: str


def note(fs: Fs, cache: Path, of: Head, code: str, path: str) -> None:
    """Note that a journal file is damaged. Only a help: where the cache cannot be written, there is no note."""
    name = Path(path).name
    if code not in _CODES or name not in of.files:
        return
    with contextlib.suppress(KBError, OSError):
        if not files.is_directory(fs, cache):
            fs.mkdir(cache)
        files.publish_file(fs, cache / NOTE, msgspec.json.encode(NotedDamage(of.store_id, name, code)))


def renew(fs: Fs, directory: Path, cache: Path, damaged: Sequence[tuple[str, str]]) -> None:
    """Note the first damage that a proof of a store found, each a code and a path; without any, remove the note."""
    if not damaged:
        forget(fs, cache)
        return
    with contextlib.suppress(KBError):
        note(fs, cache, head.read(fs, directory), *damaged[0])


def forget(fs: Fs, cache: Path) -> None:
    """Remove the note of a journal that was proven sound."""
    files.remove_quietly(fs, cache / NOTE)


def refuse(fs: Fs, directory: Path, of: Head, cache: Path) -> None:
    """Refuse to write to a journal of which damage is noted and still there. One system call where there is no note.

    Raises:
        JournalCorrupt, JournalTruncated: the damage, as it is found now.
        StorageError: the named file cannot be read.
    """
    is_there, named = _read(fs, of, cache)
    if not is_there:
        return
    problem = verify.prove_segment(fs, directory, of, named, {})[1] if named else None
    if isinstance(problem, Damaged):
        raise problem
    forget(fs, cache)


def warning(fs: Fs, of: Head, cache: Path) -> str:
    """Return a sentence on the damage that is noted, for readers, "" for none. The file is not proven again."""
    named = _read(fs, of, cache)[1]
    if named is None:
        return ""
    proof = kb("verify", "--branch", of.branch)
    return (
        f"{named.file} of the journal of {of.branch} is damaged. Answers come from the cached view, and nothing can "
        f"be written. {proof} says what is wrong and how to repair it."
    )


def _read(fs: Fs, of: Head, cache: Path) -> tuple[bool, Segment | None]:
    """Return whether there is a note, and the journal file of this store that it names."""
    path = files.below(cache, NOTE)
    try:
        data = files.read_file(fs, path, _MAX_NOTE_BYTES) if files.read_size(fs, path) is not None else None
    except KBError:  # something else lies there: it is not KB's note
        return False, None
    if data is None:
        return False, None
    with contextlib.suppress(msgspec.DecodeError, UnicodeError):
        noted = msgspec.json.decode(data, type=NotedDamage)
        named = [part for part in of.segments if part.file == noted.file and noted.store_id == of.store_id]
        return True, named[0] if named else None
    return True, None
