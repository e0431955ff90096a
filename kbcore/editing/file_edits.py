"""Edits of files in the worktree: all are written, each if it is still what was read, or all are put back."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import (
    KBError,
    Problem,
    StaleBase,
    StorageError,
)
from kbcore.git.worktree_content import Unfit, check, read
from kbcore.storage.replacing import create_file, not_written, remove_file, remove_leftovers, replace_file
from kbcore.store.workspace import Workspace
from kbcore.sync.begun_renames import BegunRename, forget_begun, note_begun
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of

_MAX_DIFF_LINES: Final = 400
_MOST_NAMED: Final = 10


class FileEdit(msgspec.Struct, frozen=True):
    """One file and its content before and after; None before is a file to be made. The path is from the worktree."""

    path: str
    before: bytes | None
    after: bytes

    def as_json(self) -> dict[str, str]:
        """Return the path and the diff as plain JSON values."""
        return {"path": self.path, "diff": self.diff()}

    def diff(self) -> str:
        """Return the change as a unified diff; bytes that are no UTF-8 are written out as escapes."""
        old, new = (
            (data or b"").decode("utf-8", "backslashreplace").splitlines(keepends=True)
            for data in (self.before, self.after)
        )
        name = f"a/{self.path}" if self.before is not None else "/dev/null"
        lines = [*difflib.unified_diff(old, new, name, f"b/{self.path}")]
        rest = len(lines) - _MAX_DIFF_LINES
        shown = lines[:_MAX_DIFF_LINES] + ([f"({rest} more lines)\n"] if rest > 0 else [])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shown)


def read_file(place: Path, root: Path, name: str) -> bytes | None:
    """Return the content of a file below a folder, None when it is absent.

    ``name`` is how messages name it.

    Raises: ``StorageError`` when it cannot be read.
    """
    try:
        check(str(place), os.stat(place), root, is_direct=False)  # noqa: PTH116 - as scanning does
        return read(str(place))[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Unfit as error:
        raise StorageError(f"{name} cannot be read: {error.args[0]}", hint=error.args[1]) from error
    except OSError as error:
        raise StorageError(f"{name} cannot be read: {error.strerror}.") from error


def write_all(
    workspace: Workspace, edits: Sequence[FileEdit], begun: Sequence[BegunRename], done: list[FileEdit]
) -> None:
    """Write the files, all of them if no system call refuses; a file that is not what was read refuses all.

    Each is added to ``done`` before it is replaced, so that it is known what a stop in between may have written.

    Renames are noted before the first file is written; the note is removed where all files are put back.

    Raises: ``StaleBase``, ``StorageError``.
    """
    for edit in edits:
        _require_unchanged(workspace, edit)
    _remove_leftovers(workspace, edits)
    fs, cache_dir, root = workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree
    if begun:
        note_begun(fs, cache_dir, root, begun)
    for edit in edits:
        try:
            # Again, directly before it is replaced: writing many files takes long enough for a person to save one.
            _require_unchanged(workspace, edit)
            done.append(edit)
            _write_one(workspace, edit, edit.after)
        except (KBError, OSError) as error:
            refusal = _refusal(edit, error)
            left = put_back(workspace, [one for one in done if one is not edit])
            if left:
                refusal.message += (
                    f" These were written before and could not be put back: {some_of(left, _MOST_NAMED)}."
                )
                refusal.remedy = "`git diff` shows what was written into them. Put them right and run it again."
            elif begun:
                forget_begun(fs, cache_dir, root, begun)
            raise refusal from error


def _remove_leftovers(workspace: Workspace, edits: Sequence[FileEdit]) -> None:
    """Remove what a killed process left next to these documents; the caller holds their lock.

    Raises: ``StorageError``.
    """
    root = os.path.realpath(workspace.repo.worktree)
    places = [Path(os.path.realpath(workspace.repo.worktree / edit.path)) for edit in edits]
    try:
        remove_leftovers(place for place in places if place.is_relative_to(root))
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be removed: {error.strerror}.") from error


def _require_unchanged(workspace: Workspace, edit: FileEdit) -> None:
    root = workspace.repo.worktree
    if edit.before is not None and read_file(root / edit.path, root, edit.path) != edit.before:
        raise _changed(edit.path)


def _refusal(edit: FileEdit, error: KBError | OSError) -> KBError:
    """Return the error that says why a file was not written."""
    if isinstance(error, KBError):
        return error
    if isinstance(error, FileExistsError):
        return _changed(edit.path)
    return not_written(edit.path, error)


def _leads_out(worktree: Path, path: str, place: Path) -> StorageError:
    """Return the error about a document that a link leads out of the repository, with the name of the link."""
    steps = [*reversed(Path(path).parents), Path(path)]
    root = os.path.realpath(worktree)
    out = [one for one in steps if not Path(os.path.realpath(worktree / one)).is_relative_to(root)]
    link = next((one for one in out if (worktree / one).is_symlink()), Path(path))
    return StorageError(
        f"{path} is not in the repository: the link {link} points to {os.path.realpath(worktree / link)}.",
        hint=f"KB writes no file outside the repository. Replace {link} with what belongs in its place, or remove it.",
        data={"file": str(place)},
    )


def place_to_write(workspace: Workspace, path: str) -> Path:
    """Return where a file of the worktree is that is to be written, its links resolved.

    Raises: ``StorageError`` where that is outside of the repository, or in a folder of git or of KB's own data.
    """
    root = os.path.realpath(workspace.repo.worktree)
    place = Path(os.path.realpath(workspace.repo.worktree / path))
    if not place.is_relative_to(root):
        raise _leads_out(workspace.repo.worktree, path, place)
    repo = workspace.repo
    closed = (repo.git_dir, repo.common_dir, workspace.folders.branches_dir, workspace.folders.cache_dir)
    is_closed = any(place.is_relative_to(os.path.realpath(folder)) for folder in closed)
    if is_closed or ".git" in place.relative_to(root).parts:
        message = f"{path} is in a folder of git or of KB's own data: {place}."
        raise StorageError(message, hint="Name a file in another folder.")
    return place


def _write_one(workspace: Workspace, edit: FileEdit, content: bytes) -> None:
    place = place_to_write(workspace, edit.path)
    if edit.before is None:
        create_file(place, content)
    else:
        replace_file(place, content, os.stat(place).st_mode & 0o7777)  # noqa: PTH116 - the path is resolved


def put_back(workspace: Workspace, done: Sequence[FileEdit]) -> list[str]:
    """Put files back as they were; return those for which that is refused, or which changed after they were written."""
    left = []
    root = workspace.repo.worktree
    for edit in done:
        try:
            now = read_file(root / edit.path, root, edit.path)
            if now == edit.before:
                continue
            if now != edit.after:
                left.append(edit.path)
            elif edit.before is None:
                remove_file(root / edit.path)
            else:
                _write_one(workspace, edit, edit.before)
        except (KBError, OSError):
            left.append(edit.path)
    return left


def _changed(path: str) -> StaleBase:
    message = f"{path} has changed since it was read."
    problem = Problem("$", "stale", message, "Run it again.", path)
    return StaleBase(
        message,
        hint=f"Nothing was written. Look at {in_quotes(path)} and run it again.",
        details=[problem],
        says_first=True,
    )
