"""Finds the repository that a folder belongs to, and where its ``.kb`` is.

All worktrees of a repository give the same ``kb_root``: it follows from the common git directory alone.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec

from kbcore.errors import GitUnusable, NotARepository
from kbcore.git.files import is_true, read_settings, read_small, refused
from kbcore.storage.files import refusal

_Marks = tuple[tuple[int, ...], ...]


class Repository(msgspec.Struct, frozen=True):
    """The paths of one worktree of a repository; every path is absolute and free of symlinks.

    ``kb_root`` is the directory that holds ``.kb``:

    - next to the common git directory when that is called ``.git``: the main worktree, which all linked
      worktrees share;
    - for a submodule, or a git directory kept elsewhere whose ``core.worktree`` names the tree: the top of
      that tree, if the tree's ``.git`` leads back there. A submodule is a repository of its own: KB binds to
      the nearest ``.git``;
    - otherwise, as for a bare repository with or without worktrees, inside the git directory itself, the only
      place that all its worktrees know.
    """

    worktree: Path
    """Top of the working tree; without one, the folder that was taken for the repository."""
    git_dir: Path
    """The place of HEAD: of this worktree alone."""
    common_dir: Path
    """The place of branches and configuration: of all worktrees."""
    kb_root: Path
    has_worktree: bool
    """False in a bare repository: there are no files to read."""


def find_repository(start: Path, *, git_dir: Path | None = None, work_tree: Path | None = None) -> Repository:
    """Return the repository that holds ``start``, as git finds it: the nearest ``.git`` upwards.

    ``git_dir`` and ``work_tree`` are what a user set as GIT_DIR and GIT_WORK_TREE, relative to ``start``; the
    second counts only with the first. Nothing is spawned, so git's ``safe.directory`` is not asked.

    Raises:
        NotARepository: there is none, or ``.git`` leads nowhere.
        GitUnusable: a file of the git directory cannot be read.
    """
    here = Path(os.path.realpath(start))
    try:
        here.stat()
    except FileNotFoundError as error:
        raise NotARepository(f"{start} does not exist") from error
    except OSError as error:
        raise NotARepository(f"{start} cannot be looked at: {error.strerror}") from error
    if git_dir is not None:
        return _of_git_dir(here, here / git_dir, work_tree)
    for folder in (here, *here.parents):
        try:
            found = _found_at(folder)
        except PermissionError as error:
            raise NotARepository(f"{folder} cannot be looked into: {refusal(error, folder)[0]}") from error
        if found is not None:
            return found
    raise NotARepository(f"{here} is in no git repository")


def _found_at(folder: Path) -> Repository | None:
    """Return the repository that begins in a folder, if one does."""
    found = _git_dir_at(folder)
    if found is not None:
        common_dir = _common_dir(found)
        has_worktree = found != common_dir or not _is_bare(common_dir)
        return _repository(folder, found, common_dir, has_worktree=has_worktree)
    return _of_git_dir(None, folder, None) if _is_git_dir(folder) else None


class RepositoryCache:
    """The repositories that a long-lived process has found, for folders whose ``.git`` is a directory of its own.

    Nothing nearer can come to such a folder, and nothing outside of it has a say: what was found holds for as long as
    ``.git`` and the configuration in it look the same from outside.
    """

    def __init__(self) -> None:
        self._found: dict[Path, tuple[Repository, _Marks]] = {}

    def find(self, start: Path) -> Repository:
        """Return the repository that holds ``start``. Raises: as ``find_repository``."""
        marks = _marks_of(start)
        known = self._found.get(start)
        if known and known[1] == marks:
            return known[0]
        found = find_repository(start)
        if found.worktree == start and found.git_dir == found.common_dir == start / ".git":
            self._found[start] = (found, marks)  # as they were before it was looked at
        return found


def _marks_of(folder: Path) -> _Marks:
    """Return what changes whenever another repository, or another configuration of it, comes to lie in a folder."""
    git_dir = os.path.join(folder, ".git")  # noqa: PTH118 - for every request: a Path costs as much as the call
    marks: list[tuple[int, ...]] = []
    for name, look in (("", os.lstat), ("/config", os.stat), ("/config.worktree", os.stat)):
        try:
            status = look(git_dir + name)
        except OSError as error:
            marks.append((error.errno or 0,))
        else:
            marks.append((status.st_mode, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(marks)


def points_to(folder: Path, git_dir: Path) -> bool:
    """Tell whether the ``.git`` of ``folder`` is, or leads to, ``git_dir``."""
    try:
        return _git_dir_at(folder) == git_dir
    except (NotARepository, GitUnusable):
        return False


def admin_worktree(git_dir: Path) -> Path | None:
    """Return the folder of the linked worktree that ``git_dir`` administers, which may be gone.

    None when ``git_dir`` does not say.
    """
    back = read_small(git_dir / "gitdir")
    return _target(git_dir, back).parent if back else None


def _repository(folder: Path, git_dir: Path, common_dir: Path, *, has_worktree: bool) -> Repository:
    return Repository(
        worktree=folder,
        git_dir=git_dir,
        common_dir=common_dir,
        kb_root=_main_worktree(common_dir) or common_dir,
        has_worktree=has_worktree,
    )


def _of_git_dir(here: Path | None, named: Path, work_tree: Path | None) -> Repository:
    """Return the repository of a known git directory; ``here`` is what git would take for the tree."""
    git_dir = _follow(named) if named.is_file() else Path(os.path.realpath(named))
    if not _is_git_dir(git_dir):
        raise NotARepository(f"{named} is not a git directory", hint="Correct GIT_DIR, or unset it.")
    common_dir = _common_dir(git_dir)
    if here is not None and work_tree is not None:
        tree: Path | None = Path(os.path.realpath(here / work_tree))
    elif git_dir != common_dir:
        tree = admin_worktree(git_dir)
        tree = tree if tree is not None and points_to(tree, git_dir) else here
    elif _is_bare(common_dir):
        tree = None
    else:
        tree = _main_worktree(common_dir) or here
    return _repository(tree or git_dir, git_dir, common_dir, has_worktree=tree is not None)


def _main_worktree(common_dir: Path) -> Path | None:
    """Return the tree of the main worktree, as far as the common git directory tells.

    A configured ``core.worktree`` is believed only if that tree leads back: a repository that somebody handed
    over must not make KB write into another folder.
    """
    if common_dir.name == ".git":
        return common_dir.parent
    configured = read_settings(common_dir).get("core.worktree")
    if not configured:
        return None
    tree = Path(os.path.realpath(common_dir / configured))
    return tree if points_to(tree, common_dir) else None


def _is_bare(common_dir: Path) -> bool:
    return is_true(read_settings(common_dir).get("core.bare", "false"))


def _git_dir_at(folder: Path) -> Path | None:
    """Return the git directory that ``folder/.git`` is or names, or None when there is no usable ``.git``."""
    entry = folder / ".git"
    if entry.is_dir():
        git_dir = Path(os.path.realpath(entry))
        if not os.access(git_dir, os.X_OK):
            raise refused("look into", git_dir, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
        return git_dir if _is_git_dir(git_dir) else None
    return _follow(entry) if entry.is_file() else None


def _follow(entry: Path) -> Path:
    content = read_small(entry) or b""
    if not content.startswith(b"gitdir:"):
        raise NotARepository(
            f"{entry} is a file without a 'gitdir:' line", hint="Remove it, or run `git worktree repair`."
        )
    git_dir = _target(entry.parent, content.removeprefix(b"gitdir:").lstrip(b" "))
    if not _is_git_dir(git_dir):
        raise NotARepository(
            f"{entry} leads to {git_dir}, which is not a git directory",
            hint="Run `git worktree repair` in the main worktree, or `git submodule update --init` above it.",
        )
    return git_dir


def _common_dir(git_dir: Path) -> Path:
    content = read_small(git_dir / "commondir")
    return _target(git_dir, content) if content else git_dir


def _target(base: Path, content: bytes) -> Path:
    """Return the path that a pointer file holds, relative to ``base``; its newline is not part of it."""
    return Path(os.path.realpath(base / os.fsdecode(content.rstrip(b"\r\n"))))


def _is_git_dir(path: Path) -> bool:
    """Tell whether ``path`` is a git directory by the same marks that git looks for."""
    if not os.path.lexists(path / "HEAD"):
        return False
    common_dir = _common_dir(path)
    return (common_dir / "objects").is_dir() and (common_dir / "refs").is_dir()
