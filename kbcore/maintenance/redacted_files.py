"""Change files without what is taken out, in all worktrees. The changes keep their ids.

Packs take the place of the files: git finds no renamed file in them, which another branch may have packed or redacted
as well, and a whole copy that a merge brings back is one of which a pack holds all changes (``kb share pack``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore import git, limits
from kbcore.errors import KBError
from kbcore.errors.remedies import shell
from kbcore.extract.changes import FOLDER, is_change_file, is_pack_file
from kbcore.git import blobs, staging
from kbcore.git.repository import Repository, find_repository
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change
from kbcore.model.claims.change_file import ReadChanges
from kbcore.model.redaction.changes import holders_in, without_claims
from kbcore.model.redaction.target import RedactionTarget
from kbcore.model.redaction.texts import texts_of
from kbcore.storage import files
from kbcore.storage.replacing import remove_files
from kbcore.store.change_files import locked, write_companion_files, write_file
from kbcore.store.workspace import Workspace
from kbcore.sync.change_sources import change_paths

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
    """The files that hold it, of a worktree and of its index, by path with their changes without it.

    ``places`` says which file of the worktree has a change, by its id; ``left`` and ``failed`` are as in
    ``RedactedFiles``.
    """

    redacted: dict[str, tuple[Change, ...]]
    staged: dict[str, tuple[Change, ...]]
    places: dict[str, str]
    left: tuple[str, ...]
    failed: tuple[str, ...]


_File = tuple[str, bytes | str]
"""A change file: its path, and its content, or why it cannot be read."""

Decoded = dict[tuple[str, bytes], ReadChanges]
"""The changes of files, by path and content: what was decoded once, of whatever worktree or index, is not again."""


def find_change_files(workspace: Workspace, target: RedactionTarget) -> RedactedFiles:
    """Return the change files that hold it, and what cannot be taken out of them. Writes nothing."""
    found, decoded = RedactedFiles(), Decoded()
    for root in _roots(workspace):
        one = _look(workspace, root, target, decoded)
        paths = dict.fromkeys([*one.redacted, *one.staged])
        found += RedactedFiles(tuple(str(root / path) for path in paths), (), one.left, one.failed)
    return found


def find_holders(workspace: Workspace, target: RedactionTarget, decoded: Decoded) -> set[str]:
    """Return the entities of which change files state a value that is taken out; ``decoded`` gets what these hold."""
    found = set[str]()
    for root in _roots(workspace):
        with contextlib.suppress(KBError):  # an index that cannot be read is named when it is to be written
            for path, data in (*_files(workspace, root), *_staged_files(workspace, root)):
                for change in _changes_in(path, data, decoded).changes:
                    found |= holders_in(change, target)
    return found


def copies_of(workspace: Workspace, id_: str) -> list[Change]:
    """Return the copies of a change that the change files of worktrees and indexes have. Raises: ``GitUnusable``."""
    decoded = Decoded()
    held = (one for root in _roots(workspace) for one in (*_files(workspace, root), *_staged_files(workspace, root)))
    return [change for path, data in held for change in _changes_in(path, data, decoded).changes if change.id == id_]


def redact_change_files(workspace: Workspace, target: RedactionTarget, decoded: Decoded) -> RedactedFiles:
    """Write packs in the place of the change files that hold it, and stage that where the index has such files.

    ``decoded`` has what was decoded before. What cannot be done is named. Each step can be repeated: old files go last,
    and an index that has them still, after they are gone, gets what is in their place.
    """
    roots = _roots(workspace)
    if not has_change_files(workspace):
        return RedactedFiles()
    found = RedactedFiles()
    try:
        with locked(workspace, roots, command="kb redact"):
            for root in roots:
                found += _redact(workspace, root, _look(workspace, root, target, decoded))
    except KBError as error:
        found += RedactedFiles(failed=(f"Change files were not written again: {error.message}",))
    return found


def has_change_files(workspace: Workspace) -> bool:
    """Tell whether a worktree or its index has change files; so it counts where an index cannot be read."""
    try:
        return any(change_paths(root) or _staged_names(workspace, root) for root in _roots(workspace))
    except KBError:
        return True


def _roots(workspace: Workspace) -> list[Path]:
    heads = git.worktree_heads(workspace.repo, workspace.machine.env)
    return [*dict.fromkeys([workspace.repo.worktree, *(one.path for one in heads)])]


def _files(workspace: Workspace, root: Path) -> Iterator[_File]:
    """Yield the change files of a worktree."""
    for path in sorted(change_paths(root)):
        try:
            yield path, files.read_file(workspace.machine.fs, root / path, _MOST_BYTES) or b""
        except (KBError, OSError) as error:
            yield path, str(error)


def _staged_files(workspace: Workspace, root: Path) -> Iterator[_File]:
    """Yield the change files of the index of a worktree. Raises: ``GitUnusable``."""
    paths: dict[str, list[str]] = {}
    for path, name in _staged_names(workspace, root).items():
        paths.setdefault(name, []).append(path)
    if not paths:
        return
    for name, data in blobs.contents(*_git_at(workspace, root), paths):
        yield from ((path, "it is too large" if data is None else data) for path in paths[name])


def _staged_names(workspace: Workspace, root: Path) -> dict[str, str]:
    """Return the names of the contents of the change files of an index by path. Raises: ``GitUnusable``."""
    if not root.is_dir():
        return {}
    repo, env = _git_at(workspace, root)
    found = staging.staged_below(repo, env, FOLDER) if repo.has_worktree else {}
    return {path: name for path, name in found.items() if is_change_file(path)}


def _git_at(workspace: Workspace, root: Path) -> tuple[Repository, Mapping[str, str]]:
    """Return what git is asked with about the index of a worktree."""
    repo, env = workspace.repo, workspace.machine.env
    if root == repo.worktree:
        return repo, env
    return find_repository(root), {name: value for name, value in env.items() if name != _INDEX}


def _changes_in(path: str, data: bytes | str, decoded: Decoded) -> ReadChanges:
    if isinstance(data, str):
        return ReadChanges()
    if (path, data) not in decoded:
        decoded[path, data] = change_file.decode(data, path.removeprefix(f"{FOLDER}/"))
    return decoded[path, data]


def _look(workspace: Workspace, root: Path, target: RedactionTarget, decoded: Decoded) -> _Found:
    redacted, places, left = _without(_files(workspace, root), target, decoded)
    staged, staged_left, failed = dict[str, tuple[Change, ...]](), dict[str, str](), tuple[str, ...]()
    try:
        staged, _, staged_left = _without(_staged_files(workspace, root), target, decoded)
    except KBError as error:
        failed = (f"The index of {root} was not looked at: {error.message}",)
    said = [f"{root / path} {sentence}" for path, sentence in left.items()]
    said += [f"{path} in the index of {root} {staged_left[path]}" for path in staged_left.keys() - left.keys()]
    return _Found(redacted, staged, places, tuple(said), failed)


def _without(
    held: Iterable[_File], target: RedactionTarget, decoded: Decoded
) -> tuple[dict[str, tuple[Change, ...]], dict[str, str], dict[str, str]]:
    """Return the files that hold it with their changes without it, which file has a change, and what stays, by path."""
    redacted, places, left = dict[str, tuple[Change, ...]](), dict[str, str](), dict[str, str]()
    for path, data in held:
        if isinstance(data, str):
            left[path] = f"was not looked at: {data}."
            continue
        read = _changes_in(path, data, decoded)
        if read.problem is not None:
            if _is_in(target, data.decode(errors="replace")):
                left[path] = f"holds it, and is not readable: {read.problem.message}"
            continue
        changes = tuple(without_claims(change, target) for change in read.changes)
        if any(_keeps(change, target) for change in changes):
            left[path] = "holds it in an id, a name or an author, of which the id of the change is taken."
        if changes != read.changes:
            redacted[path] = changes
        else:
            places |= {change.id: path for change in changes}
    return redacted, places, left


def _redact(workspace: Workspace, root: Path, found: _Found) -> RedactedFiles:
    new, failed = _packs(found.redacted), [*found.failed]
    written, staged = list[str](), list[str]()
    try:
        for path, data in new.items():
            write_file(workspace.machine.fs, root, path, data)
            written.append(path)
        try:
            staged = _stage(workspace, root, found, new)
        except KBError as error:
            failed.append(
                f"The index of {root} may hold the old change files: {error.message} The same command again, or"
                f" {shell('share', 'pack')} there, stages what is in their place."
            )
        remove_files(root / path for path in found.redacted.keys() - new.keys())
    except (KBError, OSError) as error:
        failed.append(f"{root} has change files that hold it: {error}")
    paths = tuple(str(root / path) for path in dict.fromkeys([*written, *staged]))
    return RedactedFiles(paths, tuple(str(root / path) for path in staged), found.left, tuple(failed))


def _packs(redacted: Mapping[str, tuple[Change, ...]]) -> dict[str, bytes]:
    """Return the packs in the place of files, by path, from the top of the worktree."""
    packs = change_file.encode_packs(
        one for path, changes in redacted.items() if not is_pack_file(path) for one in changes
    )
    for path, changes in redacted.items():
        if is_pack_file(path):  # one by one: another clone that takes out the same has the same
            packs |= change_file.encode_packs(changes)
    return {f"{FOLDER}/{name}": data for name, data in packs.items()}


def _stage(workspace: Workspace, root: Path, found: _Found, new: Mapping[str, bytes]) -> list[str]:
    """Have the index of a worktree hold other files in the place of those that hold it; return their paths.

    These are the files of the worktree that have the same changes; where it has none, packs that it does not get.
    Raises: ``GitUnusable``, ``StorageError``.
    """
    if not found.staged:
        return []
    places = dict(found.places)
    for path, data in new.items():
        places |= {change.id: path for change in _changes_in(path, data, {}).changes}
    changed = {one.id for changes in found.staged.values() for one in changes}
    rest = {path: tuple(one for one in kept if one.id not in places) for path, kept in found.staged.items()}
    contents = _packs(rest)
    for path in {places[one] for one in changed & places.keys()}:
        data = new.get(path) or files.read_file(workspace.machine.fs, root / path, _MOST_BYTES) or b""
        contents[path] = data.replace(b"\r\n", b"\n")  # as ``change_file.decode`` reads it
    repo, env = _git_at(workspace, root)
    gone = found.staged.keys() - contents.keys()
    staging.stage(repo, env, write_companion_files(repo, env, gone))
    staging.replace_staged(repo, env, contents, gone)
    return sorted(contents)


def _keeps(change: Change, target: RedactionTarget) -> bool:
    """Tell whether a change holds it in a place that its id is taken of as it is."""
    return _is_in(target, msgspec.json.encode(change).decode()) or any(
        _is_in(target, text) for text in texts_of(msgspec.to_builtins(change))
    )


def _is_in(target: RedactionTarget, text: str) -> bool:
    return target.matches is not None and target.matches.search(text) is not None
