"""Change files without what is taken out, in all worktrees. The changes keep their ids.

Packs take the place of the files: git finds no renamed file in them, which another branch may have packed or redacted
as well, and a whole copy that a merge brings back is one of which a pack holds all changes (``kb share pack``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore import git, limits
from kbcore.errors import KBError, StorageError
from kbcore.extract.changes import FOLDER, is_pack
from kbcore.git import blobs
from kbcore.git.repository import find_repository
from kbcore.model.claims import change_file
from kbcore.model.claims.change import SUFFIX, Change
from kbcore.model.redaction.changes import holders_in, without_claims
from kbcore.model.redaction.target import Target
from kbcore.model.redaction.texts import texts_of
from kbcore.remedies import shell
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.storage.replacing import remove_files
from kbcore.store.change_files import companion_files, locked, write_companion_files, write_file
from kbcore.store.workspace import Workspace

_MOST_BYTES: Final = 16 * limits.MIB
_INDEX: Final = "GIT_INDEX_FILE"


class RedactedFiles(msgspec.Struct, frozen=True):
    """The packs that were written, by their paths, and which of them are staged with the removal of the old files.

    Before a redaction the paths are those of the files that hold it. ``left`` and ``failed`` are sentences: on what
    cannot be taken out of a file, and on what could not be done now.
    """

    paths: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def __add__(self, other: RedactedFiles) -> RedactedFiles:
        """Return both together."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return RedactedFiles(*(one + more for one, more in pairs))


class _Found(msgspec.Struct, frozen=True):
    """The files of a worktree that hold it, by path, with their changes without it, and sentences on the others."""

    redacted: dict[str, tuple[Change, ...]]
    left: tuple[str, ...]
    failed: tuple[str, ...]


def find_change_files(workspace: Workspace, target: Target) -> RedactedFiles:
    """Return the change files that hold it, and what cannot be taken out of them. Writes nothing."""
    found = RedactedFiles()
    for root in _roots(workspace):
        one = _look(workspace.machine.fs, root, target)
        found += RedactedFiles(tuple(str(root / path) for path in one.redacted), (), one.left, one.failed)
    return found


def find_holders(workspace: Workspace, target: Target) -> set[str]:
    """Return the entities of which change files state a value that is taken out."""
    fs, found = workspace.machine.fs, set[str]()
    for root in _roots(workspace):
        for path in _change_files(fs, root):
            with contextlib.suppress(KBError, OSError):  # it is named when it is to be written again
                read = change_file.decode(_read(fs, root, path), path.removeprefix(f"{FOLDER}/"))
                found = found.union(*(holders_in(change, target) for change in read.changes))
    return found


def redact_change_files(workspace: Workspace, target: Target) -> RedactedFiles:
    """Write packs in the place of the change files that hold it, and stage that where the old files are in the index.

    What cannot be done is named. Each step can be repeated: old files go last.
    """
    roots = _roots(workspace)
    if not has_change_files(workspace):
        return RedactedFiles()
    found = RedactedFiles()
    try:
        with locked(workspace, roots, command="kb redact"):
            for root in roots:
                found += _redact(workspace, root, _look(workspace.machine.fs, root, target))
    except KBError as error:
        found += RedactedFiles(failed=(f"Change files were not written again: {error.message}",))
    return found


def has_change_files(workspace: Workspace) -> bool:
    """Tell whether a worktree has change files."""
    return any(True for root in _roots(workspace) for _ in _change_files(workspace.machine.fs, root))


def _roots(workspace: Workspace) -> list[Path]:
    heads = git.worktree_heads(workspace.repo, workspace.machine.env)
    return [*dict.fromkeys([workspace.repo.worktree, *(one.path for one in heads)])]


def _change_files(fs: Fs, root: Path) -> Iterator[str]:
    """Yield the paths of the change files of a worktree; nothing where a link is in the place of a folder."""
    with contextlib.suppress(StorageError):
        if not files.is_directory(fs, root / FOLDER):
            return
        for month in sorted(fs.listdir(root / FOLDER)):
            if is_pack(f"{FOLDER}/{month}"):
                yield f"{FOLDER}/{month}"
                continue
            with contextlib.suppress(StorageError):
                if files.is_directory(fs, root / FOLDER / month):
                    names = sorted(fs.listdir(root / FOLDER / month))
                    yield from (f"{FOLDER}/{month}/{name}" for name in names if name.endswith(SUFFIX))


def _read(fs: Fs, root: Path, path: str) -> bytes:
    return files.read_file(fs, root / path, _MOST_BYTES) or b""


def _look(fs: Fs, root: Path, target: Target) -> _Found:
    found = _Found({}, (), ())
    redacted, left, failed = found.redacted, list[str](), list[str]()
    for path in _change_files(fs, root):
        try:
            data = _read(fs, root, path)
        except (KBError, OSError) as error:
            failed.append(f"{root / path} was not looked at: {error}.")
            continue
        read = change_file.decode(data, path.removeprefix(f"{FOLDER}/"))
        if read.problem is not None:
            if _is_in(target, data.decode(errors="replace")):
                left.append(f"{root / path} holds it, and is not readable: {read.problem.message}")
            continue
        changes = tuple(without_claims(change, target) for change in read.changes)
        if any(_keeps(change, target) for change in changes):
            left.append(
                f"{root / path} holds it in an id, a name or an author, of which the id of the change is taken."
            )
        if changes != read.changes:
            redacted[path] = changes
    return _Found(redacted, tuple(left), tuple(failed))


def _redact(workspace: Workspace, root: Path, found: _Found) -> RedactedFiles:
    loose = [one for path, changes in found.redacted.items() if not is_pack(path) for one in changes]
    packs = change_file.packs(loose)
    for path, changes in found.redacted.items():
        if is_pack(path):  # one by one: another clone that takes out the same has the same
            packs |= change_file.packs(changes)
    new = {f"{FOLDER}/{name}": data for name, data in packs.items()}
    gone = found.redacted.keys() - new.keys()
    try:
        for path, data in new.items():
            write_file(root, path, data)
        failed = [*found.failed]
        is_staged = False
        if new:
            try:
                is_staged = _stage(workspace, root, new, gone)
            except KBError as error:
                failed.append(
                    f"The index of {root} may hold the old change files: {error.message} {shell('share', 'pack')} there"
                    " stages what is in their place."
                )
        remove_files(root / path for path in gone)
    except (KBError, OSError) as error:
        return RedactedFiles(left=found.left, failed=(*found.failed, f"{root} has change files that hold it: {error}."))
    paths = tuple(str(root / path) for path in new)
    return RedactedFiles(paths, paths if is_staged else (), found.left, tuple(failed))


def _stage(workspace: Workspace, root: Path, new: Mapping[str, bytes], gone: set[str]) -> bool:
    """Have the index of a worktree hold new files in the place of old ones, where it has any; return whether it has."""
    repo, env = workspace.repo, workspace.machine.env
    if root != repo.worktree:
        repo, env = find_repository(root), {name: value for name, value in env.items() if name != _INDEX}
    tracked = gone & blobs.staged_below(repo, env, FOLDER).keys()
    if tracked:
        others = companion_files(tracked)
        write_companion_files(root, others)
        blobs.stage(repo, env, others)
        blobs.replace_staged(repo, env, new, tracked)
    return bool(tracked)


def _keeps(change: Change, target: Target) -> bool:
    """Tell whether a change holds it in a place that its id is taken of as it is."""
    return _is_in(target, msgspec.json.encode(change).decode()) or any(
        _is_in(target, text) for text in texts_of(msgspec.to_builtins(change))
    )


def _is_in(target: Target, text: str) -> bool:
    return target.matches is not None and target.matches.search(text) is not None
