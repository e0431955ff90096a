"""What holds a secret outside of the stores: change files, which are written again, and what is only named.

A change keeps its id without a value, so its file can be redacted. Documents belong to people, and the history of git
cannot be changed without those who have it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore import git, limits
from kbcore.errors import KBError, StorageError
from kbcore.git import worktree_content
from kbcore.model.claims import change_file
from kbcore.model.claims.change import SUFFIX, Change
from kbcore.model.redaction.changes import without_claims
from kbcore.model.redaction.target import Target
from kbcore.model.redaction.texts import texts_of
from kbcore.remedies import shell
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.store.kb_folder import KB
from kbcore.store.workspace import Workspace
from kbcore.text.wording import some_of

CHANGES: Final = "changes"
_MOST_BYTES: Final = 16 * limits.MIB
_SHOWN: Final = 10
_SETTINGS: Final = (f"{KB}/config.json",)
_GIT: Final = (
    "The history of git holds what was committed: `git filter-repo` rewrites it, together with all who have a clone. A "
    "forge may keep old commits until it is asked to remove them."
)
_MORE: Final = (
    "Logs, transcripts of agents, the history of the shell and of the prompts of KIP and Prolog, and free blocks of "
    "the disk may hold it."
)


class SharedChanges(msgspec.Struct, frozen=True):
    """The change files that are written again, by their paths, and what cannot be taken out of them."""

    paths: tuple[str, ...]
    left: tuple[str, ...]


def redact_change_files(workspace: Workspace, target: Target, *, dry_run: bool = False) -> SharedChanges:
    """Write each change file that holds it again, without the values, under its new name; the old one is removed.

    A file that cannot be read is named. With ``dry_run`` nothing is written, and the present names are returned.
    """
    paths, left = list[str](), list[str]()
    for folder in _folders(workspace):
        for path in _change_files(workspace.machine.fs, folder):
            try:
                written, stays = _redact_file(workspace, folder, path, target, dry_run=dry_run)
            except (KBError, OSError) as error:
                written, stays = "", f"{path} was not looked at or not written: {error}."
            paths.append(written)
            left.append(stays)
    return SharedChanges(tuple(filter(None, paths)), tuple(filter(None, left)))


def places(workspace: Workspace, target: Target, sources: Iterable[str], is_found: bool) -> tuple[str, ...]:
    """Return, a sentence each, what holds it and is not changed, and what may hold it."""
    said = [*_documents(workspace, target, sources)]
    if is_found or said:
        said += [
            "Revoke the secret and make a new one: who has read it, has it. Only that ends the leak.",
            _GIT,
            f"Other clones have stores of their own: run {shell('redact')} in each.",
            f"Backups from before hold it: make a new one with {shell('backup')}, then remove the old ones.",
            _MORE,
        ]
    return tuple(said)


def has_change_files(workspace: Workspace) -> bool:
    """Tell whether a worktree has change files."""
    return any(True for folder in _folders(workspace) for _ in _change_files(workspace.machine.fs, folder))


def _folders(workspace: Workspace) -> list[Path]:
    """Return the folders of change files in all worktrees."""
    heads = git.worktree_heads(workspace.repo, workspace.machine.env)
    roots = dict.fromkeys([workspace.repo.worktree, *(one.path for one in heads)])
    return [root / KB / CHANGES for root in roots]


def _change_files(fs: Fs, folder: Path) -> Iterator[Path]:
    """Yield the change files of a folder; nothing where a link is in the place of a folder."""
    with contextlib.suppress(StorageError):
        if not files.is_directory(fs, folder):
            return
        for month in sorted(fs.listdir(folder)):
            if change_file.is_pack(month):
                yield folder / month
                continue
            with contextlib.suppress(StorageError):
                if files.is_directory(fs, folder / month):
                    names = sorted(fs.listdir(folder / month))
                    yield from (folder / month / name for name in names if name.endswith(SUFFIX))


def _redact_file(workspace: Workspace, folder: Path, path: Path, target: Target, *, dry_run: bool) -> tuple[str, str]:
    """Return the path of a file that is written again, "" for none, and a sentence on what stays in it."""
    fs = workspace.machine.fs
    data = files.read_file(fs, path, _MOST_BYTES) or b""
    read = change_file.decode(data, path.relative_to(folder).as_posix())
    if read.problem is not None:
        is_in = _is_in(target, data.decode(errors="replace"))
        return "", f"{path} holds it, and is not readable: {read.problem.message}" if is_in else ""
    changes = tuple(without_claims(change, target) for change in read.changes)
    stays = f"{path} holds it in an id, a name or an author, of which the id of the change is taken."
    left = stays if any(_keeps(change, target) for change in changes) else ""
    if changes == read.changes:
        return "", left
    name, new = change_file.rewritten(path.relative_to(folder).as_posix(), changes)
    written = folder / name
    if not dry_run:
        files.publish_file(fs, written, new)
        fs.unlink(path)
        fs.fsync_dir(path.parent)
    return str(path if dry_run else written), left


def _keeps(change: Change, target: Target) -> bool:
    """Tell whether a change holds it in a place that its id is taken of as it is."""
    return _is_in(target, msgspec.json.encode(change).decode()) or any(
        _is_in(target, text) for text in texts_of(msgspec.to_builtins(change))
    )


def _is_in(target: Target, text: str) -> bool:
    return target.matches is not None and target.matches.search(text) is not None


def _documents(workspace: Workspace, target: Target, sources: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on the documents of the worktree that hold it: the next sync would record it again."""
    root, found = workspace.repo.worktree, []
    for name in sorted({*sources, *_SETTINGS}) if target.matches else sorted(sources):
        try:
            place = root / name
            data, about = worktree_content.read(str(place))
            worktree_content.check(str(place), about, root, is_direct=False)
        except (OSError, ValueError, worktree_content.Unfit):  # not there, or not to be read: a sync does not read it
            continue
        text = data.decode(errors="replace")
        match = target.matches.search(text) if target.matches else None
        if match:
            found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}")
        elif target.matches is None:
            found.append(name)
    if found:
        holds = "Documents hold it" if target.matches else "Documents state what is taken out"
        yield f"{holds}: {some_of(found, _SHOWN)}. Take it out there, or {shell('sync')} records it again."
