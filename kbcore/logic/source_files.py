"""Files of Prolog that may be imported: which folders they lie in, how they are named, and their text.

Invariant: a file is read only below the working tree or a folder that the user named, by its real path, and never in a
folder of the system such as /etc, nor in a ``.git`` below such a folder. No setting of a repository adds a folder.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import PrologFailed
from kbcore.text.escaping import escape_and_cut, in_quotes

ROOTS_VARIABLE: Final = "KB_LOGIC_ROOTS"
_SHOWN_CHARS: Final = 200
"""The characters of a path in a message."""
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_NEVER: Final = tuple(map(Path, ("/etc", "/proc", "/sys", "/dev", "/boot")))
"""Folders that are not read, whatever the user names."""
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - nothing is written there
"""The one folder below those in which a working tree may be, as in the folder of temporary files."""
_SYSTEM: Final = tuple(map(Path, ("/root", "/run", "/var", "/usr", "/bin", "/sbin", "/lib")))
"""Folders that are not read, unless the working tree or a folder that the user named is below one of them."""


class Roots(msgspec.Struct, frozen=True):
    """The folders whose files may be read: the working tree first. None at all where the user named an empty list."""

    worktree: Path | None
    folders: tuple[Path, ...]


class FileToImport(msgspec.Struct, frozen=True):
    """A file: its name in records, its absolute path, and its text."""

    name: str
    path: Path
    text: str


def roots_of(worktree: Path | None, env: Mapping[str, str], given: Iterable[str] = ()) -> Roots:
    """Return the worktree and the folders of ``KB_LOGIC_ROOTS`` and of ``given``; each is a list as PATH is.

    Where the variable is set and empty, and none is given, no file may be read.
    """
    texts = [*([env[ROOTS_VARIABLE]] if ROOTS_VARIABLE in env else []), *given]
    named = [Path(part).expanduser() for text in texts for part in text.split(os.pathsep) if part]
    if texts and not named:
        return Roots(worktree, ())
    real = [*([worktree] if worktree else []), *(folder for folder in named if folder.is_absolute())]
    return Roots(worktree, tuple(Path(os.path.realpath(folder)) for folder in real))


def name_of(roots: Roots, given: str) -> tuple[str, Path]:
    """Return the name of a file in records, and its real path; a relative path begins at the working tree.

    Raises: ``PrologFailed`` of the kind ``file_path_violation``.
    """
    if "\0" in given or not given:
        raise _failed("file_path_violation", f"{in_quotes(_shown(given))} is no path of a file.")
    base = roots.worktree or Path("/")
    path = Path(os.path.realpath(base / given))
    root = next((one for one in roots.folders if path.is_relative_to(one)), None)
    if root is None or _is_of_system(path, root) or _is_of_git(path, root):
        hint = f"Import a file below the working tree, or below a folder that `{ROOTS_VARIABLE}` or --kb-roots names."
        message = f"{_shown(given)} is outside of the folders whose files may be read."
        raise _failed("file_path_violation", message, hint)
    tree = Path(os.path.realpath(roots.worktree)) if roots.worktree else None
    name = path.relative_to(tree).as_posix() if tree and path.is_relative_to(tree) else str(path)
    return name, path


def recorded_name(roots: Roots, recorded: Collection[str], *given: str) -> str | None:
    """Return the name in records that any of the paths means, None where no record has it.

    The file need not be there, nor be in a folder whose files may be read: nothing is read.
    """
    base = roots.worktree or Path("/")
    paths = {os.path.normpath(base / one) for one in given}
    meant = {*given, *paths, *(os.path.realpath(path) for path in paths if "\0" not in path)}
    found = (name for name in recorded if name in meant or os.path.normpath(absolute(roots, name)) in meant)
    return next(found, None)


def read_file(roots: Roots, given: str) -> FileToImport:
    """Return a file that may be read.

    Raises: ``PrologFailed`` of the kinds ``file_path_violation``, ``file_not_found``, ``is_directory``,
    ``permission_denied``, ``too_large`` and ``encoding``.
    """
    name, path = name_of(roots, given)
    try:
        # Not through a link that was put there since, and not a device or a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(name, error) from error
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise _failed("is_directory", f"{_shown(name)} is a folder.", "Name a file in it.")
        if not stat.S_ISREG(found.st_mode):
            raise _failed("permission_denied", f"{_shown(name)} is not a regular file.")
        if found.st_size > MAX_FILE_BYTES:
            message = f"{_shown(name)} has {found.st_size:,} bytes; {MAX_FILE_BYTES:,} are allowed."
            raise _failed("too_large", message, "Split it.")
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise _unreadable(name, error) from error
    finally:
        os.close(descriptor)
    try:
        return FileToImport(name, path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _failed("encoding", f"{_shown(name)} is not UTF-8 (line {line}).", "Save it as UTF-8.") from error


def _shown(given: str) -> str:
    """Return a path as messages name it."""
    return escape_and_cut(given, _SHOWN_CHARS)


def _is_of_system(path: Path, root: Path) -> bool:
    if any(path.is_relative_to(one) for one in _NEVER):
        return _IN_MEMORY not in root.parents
    return any(path.is_relative_to(one) and one not in root.parents for one in _SYSTEM)


def _is_of_git(path: Path, root: Path) -> bool:
    return any(part.casefold() == ".git" for part in path.relative_to(root).parts)


def _unreadable(given: str, error: OSError) -> PrologFailed:
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return _failed("file_not_found", f"There is no file {_shown(given)}.")
    if error.errno == errno.EISDIR:
        return _failed("is_directory", f"{_shown(given)} is a folder.", "Name a file in it.")
    return _failed("permission_denied", f"{_shown(given)} cannot be read: {error.strerror}.")


def _failed(kind: str, message: str, hint: str = "") -> PrologFailed:
    return PrologFailed(message, hint=hint, data={"kind": kind})


def absolute(roots: Roots, name: str) -> str:
    """Return the absolute path of a file by its name in records."""
    return str((roots.worktree or Path("/")) / name)
