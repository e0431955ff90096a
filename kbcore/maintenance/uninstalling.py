"""The removal of what KB has made in a repository and in its user's folders.

Invariant: unless asked to delete everything, it deletes nothing of which there is no other copy: journals, and settings
and change files that git does not have as they are. Files that KB derives, and settings as KB wrote them, always go.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore import git
from kbcore.config.json_schema import FILE_NAME, schema_text
from kbcore.config.schema_files import CORE_FILE
from kbcore.config.settings import parse_config
from kbcore.config.template import is_default_config
from kbcore.errors import KBError
from kbcore.git.commands import run_git
from kbcore.git.uncommitted import uncommitted
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.model.schema_text import core_schema_text
from kbcore.storage import files, lock
from kbcore.storage.files import below
from kbcore.storage.fs import Fs
from kbcore.storage.scratch import user_folder
from kbcore.store.folders import BRANCHES, CACHE, KEPT_ANSWERS, data_dir_of
from kbcore.store.init import default_ignore_text
from kbcore.store.settings_files import CONFIG, IGNORE, SCHEMA
from kbcore.store.workspace import Workspace

Reason = Literal["journals", "not_in_git", "other_repositories"]

_USER_FOLDERS: Final = (("XDG_CACHE_HOME", ".cache"), ("XDG_STATE_HOME", ".local/state"))
_KB: Final = "kb"
_IN_GIT_DIR: Final = ("kb-hook", KEPT_ANSWERS)
"""Files in the git directory of each worktree: the note of git's hooks, and kept answers."""
_WAIT_S: Final = 10.0
_COMMAND: Final = "kb uninstall"


class Kept(msgspec.Struct, frozen=True):
    """A file or folder that stays, and the reason."""

    path: Path
    reason: Reason


class Removal(msgspec.Struct, frozen=True):
    """The paths to remove, in order, and those to keep. ``emptied`` are folders that go if nothing is left in them."""

    paths: tuple[Path, ...]
    emptied: tuple[Path, ...]
    kept: tuple[Kept, ...]
    takes_id: bool
    """The id of the repository goes too: no note of the user's state folder refers to it any more."""


def plan(workspace: Workspace, *, deletes_all: bool, is_last: bool) -> Removal:
    """Return what is to be removed of a repository's KB. ``is_last`` is False where the user has more that KB noted.

    Raises: ``GitUnusable``; ``StorageError`` and its kin.
    """
    fs = workspace.machine.fs
    found, kept = list[Path](), list[Kept]()
    data = data_dir_of(workspace.repo)
    if files.is_directory(fs, data):
        stores = workspace.folders.git_branches_dir
        if deletes_all or not _has_entries(fs, stores):
            found.append(data)
        else:
            found += [data / name for name in fs.listdir(data) if data / name != stores]
            kept.append(Kept(stores, "journals"))
    found += [
        one for folder in workspace.folders.git_dirs() for name in _IN_GIT_DIR if _is_there(fs, one := folder / name)
    ]
    for folder in dict.fromkeys([workspace.settings_dir, workspace.folders.kb_dir]):
        goes, stays = _settings(workspace, folder, deletes_all=deletes_all)
        found += goes
        kept += stays
    has_journals = any(one.reason == "journals" for one in kept)
    homes, stays = _of_user(workspace, has_journals=has_journals, is_last=is_last)
    return Removal(
        (*found, *homes), (*_emptied(workspace, found), *_user_places(workspace)), (*kept, *stays), not has_journals
    )


def carry_out(workspace: Workspace, removal: Removal) -> None:
    """Remove what was planned; what is gone already is no failure.

    Raises: ``LockTimeout`` while another process of KB works on the repository; ``StorageError`` and its kin.
    """
    fs, machine = workspace.machine.fs, workspace.machine
    with contextlib.ExitStack() as held:
        if files.is_directory(fs, workspace.folders.repository_lock.parent):
            path = workspace.folders.repository_lock
            held.enter_context(lock.held(fs, machine.clock, path, wait_s=_WAIT_S, command=_COMMAND))
        for path in removal.paths:
            with files.explained(path, "remove"), contextlib.suppress(FileNotFoundError):
                _remove(fs, path)
    for path in removal.emptied:
        with contextlib.suppress(OSError):  # somebody keeps something there
            fs.rmdir(path)
    if removal.takes_id:
        git.remove_id(workspace.repo, machine.env)


def _remove(fs: Fs, path: Path) -> None:
    if stat.S_ISDIR(fs.lstat(path).st_mode):
        files.remove_tree(fs, path)
    else:
        fs.unlink(path)


def _settings(workspace: Workspace, folder: Path, *, deletes_all: bool) -> tuple[list[Path], list[Kept]]:
    """Return what goes of a folder of settings, files first, and what stays in it."""
    fs = workspace.machine.fs
    if not files.is_directory(fs, folder):
        return [], []
    recoverable = _recoverable(workspace)
    goes, stays = list[Path](), list[Kept]()
    branches, caches = folder / BRANCHES, folder / CACHE
    for path, is_folder in _walk(fs, folder, {branches, caches}):
        if path == caches:
            goes.append(path)
        elif path == branches:
            is_store = is_folder and not workspace.folders.is_pointed and workspace.folders.is_in_worktree
            if is_store and not deletes_all and _has_entries(fs, path):
                stays.append(Kept(path, "journals"))
            else:
                goes.append(path)
        elif not is_folder:
            goes_now = deletes_all or path in recoverable or _is_as_written(workspace, folder, path)
            if goes_now:
                goes.append(path)
            else:
                stays.append(Kept(path, "not_in_git"))
    return goes, stays


def _walk(fs: Fs, folder: Path, whole: Collection[Path] = ()) -> Iterator[tuple[Path, bool]]:
    """Yield what is below a folder, each with whether it is a folder; those in ``whole`` are not looked into."""
    for name in sorted(fs.listdir(folder)):
        path = folder / name
        is_folder = stat.S_ISDIR(fs.lstat(path).st_mode)
        if is_folder and path not in whole:
            yield from _walk(fs, path, whole)
        yield path, is_folder


def _recoverable(workspace: Workspace) -> set[Path]:
    """Return the files of the worktree that HEAD has as they are. Raises: ``GitUnusable``."""
    repo, env = workspace.repo, workspace.machine.env
    if not repo.has_worktree:
        return set()
    tracked = run_git(repo, env, ["ls-files", "-z", "--full-name", "--", ":/.kb"]).output.split(b"\0")
    changed = {one.path for one in uncommitted(repo, env)}
    named = {one.decode("utf-8", "surrogateescape") for one in tracked if one}
    return {repo.worktree / one for one in named - changed}


def _is_as_written(workspace: Workspace, folder: Path, path: Path) -> bool:
    """Return whether a file of settings says what KB writes by itself."""
    data = files.read_file(workspace.machine.fs, path, MAX_CONFIG_BYTES) or b""
    with contextlib.suppress(UnicodeDecodeError, KBError):
        text = data.decode()
        if path == folder / CONFIG:
            return is_default_config(text, parse_config(text, CONFIG).default_branch)
        own: dict[Path, Callable[[], str]] = {
            folder / SCHEMA / CORE_FILE: core_schema_text,
            folder / FILE_NAME: schema_text,
            folder / IGNORE: default_ignore_text,
        }
        return path in own and text == own[path]()
    return False


def _of_user(workspace: Workspace, *, has_journals: bool, is_last: bool) -> tuple[list[Path], list[Kept]]:
    """Return what goes of the folders that all repositories of a user share.

    The notes on journals stay with them. What is for all repositories goes with the last one.
    """
    fs, env = workspace.machine.fs, workspace.machine.env
    own = workspace.place.folder()
    found = [own] if own and not has_journals and files.is_directory(fs, own) else []
    cache = workspace.folders.cache_dir
    if not cache.is_relative_to(workspace.folders.data_dir) and files.is_directory(fs, cache):
        found.append(cache)
    root = workspace.place.root
    noted = [one for one in _listed(fs, root) for one in _listed(fs, one)]
    others = [one for one in noted if one != own]
    shared = [folder / _KB for name, below_home in _USER_FOLDERS if (folder := user_folder(env, name, below_home))]
    there = [one for one in shared if files.is_directory(fs, one)]
    if others or not is_last:
        return found, [Kept(one, "other_repositories") for one in there]
    if has_journals:
        return [*found, *(one for one in there if not (root and root.is_relative_to(one)))], []
    return there, []


def _user_places(workspace: Workspace) -> list[Path]:
    """Return the folders of a user's that may be empty now, the innermost first."""
    env = workspace.machine.env
    found = list[Path]()
    for name, below_home in _USER_FOLDERS:
        folder = user_folder(env, name, below_home)
        if folder:
            above = [folder, *folder.parents][: len(Path(below_home).parts)] if not env.get(name) else []
            found += [folder / _KB / "witness", folder / _KB, *above]
    return found


def _emptied(workspace: Workspace, found: Iterable[Path]) -> list[Path]:
    """Return the folders of the settings, and those in them, the innermost first."""
    tops = {workspace.settings_dir, workspace.folders.kb_dir, data_dir_of(workspace.repo)}
    fs, folders = workspace.machine.fs, {one for path in found for one in path.parents}
    folders |= {path for top in tops if files.is_directory(fs, top) for path, is_one in _walk(fs, top) if is_one}
    within = {one for one in folders | tops if any(one.is_relative_to(top) for top in tops)}
    return sorted(within, key=lambda one: len(one.parts), reverse=True)


def _listed(fs: Fs, folder: Path | None) -> list[Path]:
    if folder is None or not files.is_directory(fs, folder):
        return []
    return [one for name in sorted(fs.listdir(folder)) if files.is_directory(fs, one := below(folder, name))]


def _has_entries(fs: Fs, folder: Path) -> bool:
    return files.is_directory(fs, folder) and any(True for _ in fs.listdir(folder))


def _is_there(fs: Fs, path: Path) -> bool:
    return files.is_there(fs, path)
