"""Decides which folder of hooks KB uses, and whether it may write there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kbcli.hooks import script
from kbcore.errors.remedies import kb
from kbcore.git import Repository, SharedModes, hooks_dir


class HookFolder(msgspec.Struct, frozen=True):
    """A folder of hooks and what is known about it."""

    folder: Path
    active: Path
    """The folder from which git itself runs hooks."""
    is_husky: bool = False
    """The scripts are run by husky: they need not be executable."""
    fallback: Path | None = None
    """The program for when PATH has no ``kb``."""
    is_outside: bool = False
    """The folder serves other repositories as well."""
    worktree: Path = Path()
    """Top of the worktree, where programs that write hooks are configured."""
    is_shared: bool = False
    """The folder is in no git directory: its files are tracked, or may be, or serves other repositories."""

    shared_modes: SharedModes | None = None
    """Those of a folder in a git directory; git is asked when a file is written."""

    @property
    def is_run(self) -> bool:
        """Git runs the files of the folder, or lets husky run them."""
        if self.is_husky:
            return self.active.is_dir()
        return os.path.realpath(self.folder) == os.path.realpath(self.active)

    def shared_bits(self) -> int:
        """Return what ``core.sharedRepository`` says of files in the folder, as ``storage.fs.shared_mode`` takes it.

        Raises: ``GitUnusable`` for a value that git refuses.
        """
        return self.shared_modes(Path(os.path.realpath(self.folder))) if self.shared_modes else 0

    def lines(self, event: str) -> bytes:
        """Return KB's lines for a hook in this folder."""
        return script.block(event, self.fallback)


def own_program() -> Path | None:
    """Return the ``kb`` that belongs to the running Python, or None when there is no such script."""
    program = Path(sys.executable).with_name("kb")
    return program if program.is_file() else None


def find_place(
    repo: Repository, env: Mapping[str, str], hooks_path: Path | None, fallback: Path | None = None
) -> HookFolder:
    """Return the folder that hooks belong in: ``hooks_path`` if given, else where they are run.

    ``fallback`` is kept in git directories only: files elsewhere are tracked, or may be, and what is tracked
    names no path of this machine.

    Raises:
        GitUnusable: git does not report where its hooks are.
    """
    active = hooks_dir(repo, env)
    husky = active.parent if active.name == "_" and _looks_like_husky(active) else None
    folder = Path(os.path.abspath(hooks_path)) if hooks_path is not None else husky or active  # noqa: PTH100  keeps links
    real = Path(os.path.realpath(folder))
    is_in_git_dir = _is_within(real, repo.common_dir, repo.git_dir)
    return HookFolder(
        folder=folder,
        active=active,
        is_husky=husky is not None and os.path.realpath(husky) == str(real),
        fallback=fallback if is_in_git_dir else None,
        is_outside=hooks_path is None and not is_in_git_dir and not _is_within(real, repo.worktree, repo.kb_root),
        worktree=repo.worktree,
        is_shared=not is_in_git_dir,
        shared_modes=SharedModes(env) if is_in_git_dir else None,
    )


def remedy_outside(place: HookFolder, event: str) -> str:
    """Say how to run KB from a hooks folder that is not this repository's own."""
    if place.active == place.active.parent:
        return (
            f"git looks for hooks in {place.active}, as where core.hooksPath is empty, so it runs none here; unset it."
        )
    if place.active.exists() and not place.active.is_dir():
        return f"core.hooksPath is {place.active}, which is no folder, so git runs no hooks here; unset it."
    if not place.active.exists():
        return (
            f"core.hooksPath is {place.active}, which is not there, so git runs no hooks here; unset it"
            " (`git config --unset core.hooksPath`), or make the folder."
        )
    return (
        f"git runs hooks from {place.active}, which serves other repositories as well. If that is fine,"
        f" {kb('hooks', 'install', '--hooks-path', str(place.active), lead='run')}, or add this line to its {event}:"
        f" {script.snippet(event)}"
    )


def _looks_like_husky(folder: Path) -> bool:
    return folder.parent.name == ".husky" or (folder / "h").is_file() or (folder / "husky.sh").is_file()


def _is_within(path: Path, *folders: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
