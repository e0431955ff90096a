"""Setting up a repository for a fleet: the place in its settings, and what a user has to know of that place.

A setting that is there is never replaced.
"""

from __future__ import annotations

import os.path
import shlex
import stat
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore.config.fleet import setting_fault
from kbcore.errors import InvalidQuery, KBError
from kbcore.fleet.exporting import usual_repo_name
from kbcore.fleet.head import check_name
from kbcore.fleet.place import check_place, place_at
from kbcore.git.commands import run_git
from kbcore.store.settings_edit import set_setting
from kbcore.store.settings_files import CONFIG
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import with_full_stop

PLACE: Final = "fleet.place"
REPO: Final = "fleet.repo"
Readers = Literal["everybody", "group", "owner", "unknown"]


class SetUp(msgspec.Struct, frozen=True):
    """The fleet of a repository as it is set up.

    ``written`` are the settings that were written now. ``readers`` is who may read a folder on this machine, by the
    mode of it or of the one above that is there; "unknown" of a URL. ``fault`` is why the place could not be reached,
    "" where it could. A place in the worktree that git does not ignore ``needs_ignoring``.
    """

    place: str
    repo: str
    written: tuple[str, ...]
    readers: Readers
    fault: str
    needs_ignoring: bool


def set_up(workspace: Workspace, place: str | None, repo: str | None, start: Path) -> SetUp:
    """Write the place, and the name where one is given, into the settings, unless they are there.

    ``place`` is a URL, or a folder from ``start``; None is the one of the settings.

    Raises: ``InvalidQuery`` where the settings have another one, or none is named; as ``set_setting``.
    """
    stated, root = workspace.config.fleet, root_of(workspace)
    if place is not None:
        check_place(place)
        if fault := setting_fault(place):
            raise InvalidQuery(f"{in_quotes(place)} {fault}.", hint="Name a folder, or a URL as s3://acme-kb/fleet.")
        place = place if "://" in place else _from_root(start / place, root)
    if place is None and stated.place is None:
        raise InvalidQuery("No place is named.", hint="Name a folder or a URL, as `kb fleet init s3://acme-kb/fleet`.")
    if repo is not None:
        check_name("repository", repo)
    wanted = {PLACE: (stated.place, place), REPO: (stated.repo, repo)}
    for name, (there, given) in wanted.items():
        if None not in {there, given} and there != given:
            message = (
                f"{name} is {in_quotes(there or '')} in {workspace.settings_name}/{CONFIG}, and was left as it is."
            )
            raise InvalidQuery(message, hint=f"`kb config set {name} {shlex.quote(given or '')}` changes it.")
    used, fault = place or stated.place or "", ""
    try:
        place_at(used, root, workspace.machine.fs, workspace.machine.clock).check()
    except KBError as error:
        if isinstance(error, InvalidQuery) and "://" not in used:
            raise
        fault = f"{with_full_stop(error.message)} {error.hint}".rstrip()
    written = tuple(
        name
        for name, (there, given) in wanted.items()
        if there is None and given is not None and set_setting(workspace, name, given)
    )
    is_url, folder = "://" in used, Path(os.path.normpath(root / used))
    return SetUp(
        used,
        repo or stated.repo or usual_repo_name(workspace),
        written,
        "unknown" if is_url else _readers(folder),
        fault,
        not is_url and _needs_ignoring(workspace, folder),
    )


def root_of(workspace: Workspace) -> Path:
    """Return the folder that a place in the settings begins at: the one with the folder of settings."""
    return workspace.settings_dir.parent


def _from_root(folder: Path, root: Path) -> str:
    """Return a folder as settings name it: from the root where it is below or next to that, else in full."""
    relative = os.path.relpath(folder, root)
    return relative if not relative.startswith("../../") else os.path.normpath(folder)


def _readers(folder: Path) -> Readers:
    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    mode = there.stat().st_mode
    return "everybody" if mode & stat.S_IROTH else "group" if mode & stat.S_IRGRP else "owner"


def _needs_ignoring(workspace: Workspace, folder: Path) -> bool:
    repo = workspace.repo
    if not repo.has_worktree or not folder.is_relative_to(repo.worktree):
        return False
    asked = ["check-ignore", "--quiet", "--", f"{folder}/heads"]
    return run_git(repo, workspace.machine.env, asked, allowed=(0, 1)).status == 1
