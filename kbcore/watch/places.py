"""Folders that a watcher listens to, and the meaning of a change at a path there.

Below the fixed part of a glob everything matters; above it, only whether the folders on the way are there. Of git's own
files those count that say what is checked out, of KB's the settings, and the head of the branch that is followed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore.storage import layout
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG, RULES, SCHEMA
from kbcore.store.workspace import Workspace
from kbcore.text.globs import fixed_part, glob_set, looks_deeper, parents

Meaning = Literal["file", "folder", "layout", "settings", "checkout", "store", "nothing"]

_GIT: Final = ".git"
_CHECKOUT: Final = frozenset({"HEAD", "index", "index.lock", "HEAD.lock", "reftable/tables.list"})
_SETTINGS: Final = frozenset({SCHEMA, RULES})


class Places(msgspec.Struct, frozen=True):
    """Folders where changes matter. ``deep`` ones are watched with all below them, of ``flat`` ones the entries alone.

    ``root`` is the worktree, ``settings`` the ``.kb`` whose configuration applies, ``store`` the directory of the
    branch.
    """

    root: Path
    git_dir: Path
    settings: Path
    store: Path
    globs: tuple[str, ...]
    deep: tuple[Path, ...]
    flat: tuple[Path, ...]

    def is_listened(self, path: Path) -> bool:
        """Return whether a path is one of the folders that are watched."""
        return path in self.deep or path in self.flat

    def meaning(self, path: Path) -> Meaning:
        """Return what it means that something changed at this path."""
        if path.is_relative_to(self.store):
            return "store" if path == self.store / layout.HEAD else "nothing"
        if path.is_relative_to(self.git_dir):
            return "checkout" if path.relative_to(self.git_dir).as_posix() in _CHECKOUT else "nothing"
        for folder in {self.settings, self.root / KB}:
            if path.is_relative_to(folder):
                return _meaning_of_setting(path.relative_to(folder).parts)
        if not path.is_relative_to(self.root):
            return "nothing"
        parts = path.relative_to(self.root).parts
        if not parts or _GIT in parts:
            return "nothing"
        return self._meaning_of_document("/".join(parts))

    def _meaning_of_document(self, name: str) -> Meaning:
        if glob_set(self.globs).first(name) is not None:
            return "file"
        on_the_way, deep = _folders_of(self.globs)
        if name in on_the_way:
            return "layout"
        return "folder" if any(one in deep for one in parents(name)) else "nothing"


def places_of(workspace: Workspace, globs: Sequence[str], branch: str) -> Places:
    """Return the places of a worktree for the globs that its extractors look for, as its folders are now."""
    root, settings, git_dir = workspace.repo.worktree, workspace.settings_dir, workspace.repo.git_dir
    store = workspace.folders.directory_of(branch)
    deep: set[Path] = set()
    flat = {root, root / KB, settings, settings / SCHEMA, settings / RULES, git_dir, git_dir / "reftable", store}
    _, deep_parts = _folders_of(tuple(globs))
    for fixed in {fixed_part(glob) for glob in globs}:
        folder = root / fixed
        (deep if fixed in deep_parts else flat).add(folder)
        flat.update(parent for parent in folder.parents if parent.is_relative_to(root))
    deep = {one for one in deep if not any(_reaches(parent, one) for parent in one.parents if parent in deep)}
    there = [one for one in sorted(deep) if _is_inside(one, root)]
    shallow = [one for one in sorted(flat - deep) if _is_folder(one)]
    return Places(root, git_dir, settings, store, tuple(globs), tuple(there), tuple(shallow))


@lru_cache(maxsize=8)
def _folders_of(globs: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the fixed parts of globs with the folders that lead there, and those below which they look deeper."""
    fixed = {fixed_part(glob) for glob in globs}
    deep = frozenset(fixed_part(glob) for glob in globs if looks_deeper(glob))
    return frozenset(fixed.union(*map(parents, fixed)) - {""}), deep


def _is_inside(folder: Path, root: Path) -> bool:
    """Return whether a folder is there, and no link leads out of the repository."""
    return _is_folder(folder) and Path(os.path.realpath(folder)).is_relative_to(root)


def _reaches(above: Path, folder: Path) -> bool:
    """Return whether no link is between the two: watching everything below a folder ends at links."""
    return Path(os.path.realpath(folder)) == Path(os.path.realpath(above)) / folder.relative_to(above)


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - not to be seen is not to be a folder


def _meaning_of_setting(parts: tuple[str, ...]) -> Meaning:
    is_file = parts in {(), (CONFIG,)} or (parts[0] in _SETTINGS and len(parts) <= 2)  # noqa: PLR2004 - a folder and its file
    return "settings" if is_file else "nothing"
