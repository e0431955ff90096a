"""Folders of the stores and caches of a repository, the reason for them, and who may write there."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from kbcore import ids
from kbcore.config.user import UserSettings, user_settings_path
from kbcore.errors import KBError, ReadOnlyStore, StorageError
from kbcore.errors.remedies import shell
from kbcore.git import Repository
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.storage import files
from kbcore.storage.files import below
from kbcore.storage.head import GIT_DIRECTORY
from kbcore.storage.scratch import cache_place
from kbcore.store.kb_folder import KB, fault_of, is_folder, is_used, kind_of, pointer_text, relative_path
from kbcore.store.pool import Machine

DATA: Final = "kb"
"""The folder in the common git directory that holds stores and caches."""
_ASIDE: Final = f"{DATA}-moved"
"""The name to give the folder by hand, so that its stores can be taken over elsewhere; numbers may follow."""
BRANCHES: Final = "branches"
CACHE: Final = "cache"
REPOSITORY_LOCK: Final = "lock"
KEPT_ANSWERS: Final = "kb-prime"
"""The folder in the git directory of a worktree with answers of `kb prime` that are kept."""


class Folders:
    """The stores and caches of a repository for one request, by the settings of its user."""

    def __init__(
        self, repo: Repository, machine: Machine, user: Callable[[], UserSettings], *, settles: bool = True
    ) -> None:
        """``settles`` is False for a request that writes nothing: it reads stores in an older place where they are."""
        self.repo = repo
        self.machine = machine
        self.settles = settles
        self.kb_dir = below(repo.kb_root, KB)
        """Holds settings, schema and rules as the main worktree has them."""
        self._user = user

    @cached_property
    def data_dir(self) -> Path:
        """The folder of the stores and caches, shared by all worktrees; only ``data_dir_of`` knows where it is."""
        return self.kb_dir if self.is_in_worktree else data_dir_of(self.repo)

    @cached_property
    def is_in_worktree(self) -> bool:
        """True when the user wants stores in ``.kb`` of the main worktree, and the git directory holds none yet.

        Not where something else than KB's own pointer lies in their place.
        """
        if not self.wants_worktree or is_used(self.machine.fs, self.git_branches_dir):
            return False
        kind = kind_of(self.machine.fs, self.shown_branches)
        return kind in {"absent", "folder"} or self.has_own_pointer()

    @property
    def is_pointed(self) -> bool:
        """True while KB's pointer to the git directory lies in the place of the stores; the next write removes it."""
        if not self.is_in_worktree:
            return False
        return kind_of(self.machine.fs, self.shown_branches) not in {"absent", "folder"}

    def has_branches_dir(self) -> bool:
        """Tell whether there is a folder of stores. Raises ``StorageError`` when something else lies in its place."""
        return not self.is_pointed and files.is_directory(self.machine.fs, self.branches_dir)

    @cached_property
    def wants_worktree(self) -> bool:
        """True when the user's settings ask for stores in the worktree, and there is one to keep them in."""
        return self._user().store == "worktree" and self.repo.kb_root != self.repo.common_dir

    @cached_property
    def branches_dir(self) -> Path:
        """The folder that holds one directory for the store of each branch."""
        return self.shown_branches if self.is_unmoved else self.usual_branches_dir

    @property
    def git_branches_dir(self) -> Path:
        """The folder of the stores in the git directory, whether or not they are there."""
        return below(data_dir_of(self.repo), BRANCHES)

    def folders_moved_aside(self) -> list[Path]:
        """Return the folders of stores that a user renamed as ``place_of_stores`` says; the last one comes first."""
        fs, git_dir = self.machine.fs, self.repo.common_dir
        try:
            found = [git_dir / name / BRANCHES for name in fs.listdir(git_dir) if name.startswith(_ASIDE)]
            stores = [one for one in found if is_folder(fs, one)]
            return sorted(stores, key=lambda one: fs.lstat(one.parent).st_ctime_ns, reverse=True)
        except OSError:  # it is only a hint
            return []

    @property
    def usual_branches_dir(self) -> Path:
        """The folder of the stores once those of an older place were moved."""
        return below(self.data_dir, BRANCHES)

    @cached_property
    def is_unmoved(self) -> bool:
        """True when a request that only reads finds the stores in ``.kb/branches``; the next write moves them."""
        return not self.settles and self.has_older_stores()

    def has_older_stores(self) -> bool:
        """Tell whether the stores are in ``.kb/branches`` and the next request that may write moves them from there.

        Raises: ``GitUnusable``.
        """
        fs, shown = self.machine.fs, self.shown_branches
        if shown == self.usual_branches_dir or kind_of(fs, shown) != "folder":
            return False
        if is_used(fs, self.usual_branches_dir):
            return False
        try:
            return fault_of(self.machine, self.repo, self.kb_dir, shown) is None
        except StorageError:  # ``find_unread`` reports what cannot be read
            return False

    def has_own_pointer(self) -> bool:
        """Tell whether ``.kb/branches`` is what KB makes to point to the git directory: it holds no store.

        A link or a file with another target is not KB's.
        """
        fs, shown = self.machine.fs, self.shown_branches
        kind = kind_of(fs, shown)
        if kind not in {"link", "file"}:
            return kind == "guard"
        target = relative_path(str(self.git_branches_dir), str(self.kb_dir))
        with contextlib.suppress(KBError, OSError):
            if kind == "link":
                return fs.readlink(shown) == target
            return files.read_file(fs, shown, MAX_CONFIG_BYTES) == pointer_text(target)
        return False

    def place_of_stores(self) -> PlaceOfStores:
        """Return where the stores are, why they are there, and what to do where that is not what the user set."""
        return _place_of_stores(self)

    @cached_property
    def cache_dir(self) -> Path:
        """The folder of everything that may be deleted at any time: next to the stores, where that can be written."""
        return cache_place(self.machine.fs, self.usual_cache_dir, self.machine.env)

    @property
    def usual_cache_dir(self) -> Path:
        """The folder of caches next to the stores, whether or not it can be written."""
        return below(self.data_dir, CACHE)

    @cached_property
    def shown_branches(self) -> Path:
        """The visible place of the stores, where an older KB kept them; nothing is read there."""
        return below(self.kb_dir, BRANCHES)

    @property
    def shown_cache(self) -> Path:
        """The place where an older KB kept its cache; nothing is read there."""
        return below(self.kb_dir, CACHE)

    @property
    def store_features(self) -> tuple[str, ...]:
        """The features that a reader must know because of the place of the store, from ``head.KNOWN_FEATURES``.

        An older KB locks the repository elsewhere. So it must refuse a store of the git directory, however it gets to
        one: also a copy at the old place, which a program made that replaces a link by what it leads to.
        """
        return () if self.is_in_worktree else (GIT_DIRECTORY,)

    def git_dirs(self) -> list[Path]:
        """Return the git directories of all worktrees. Raises: ``StorageError``."""
        common, linked = self.repo.common_dir, self.repo.common_dir / "worktrees"
        with files.explained(linked, "list", reading=True):
            names = self.machine.fs.listdir(linked) if files.is_directory(self.machine.fs, linked) else []
        return [common, *(linked / name for name in sorted(names))]

    @property
    def repository_lock(self) -> Path:
        """The lock file of the repository, next to the stores."""
        # The ignore file of `.kb` covers what is in the folder of the stores.
        return self.branches_dir / f".{REPOSITORY_LOCK}" if self.is_in_worktree else self.data_dir / REPOSITORY_LOCK

    def lock_path(self, name: str) -> Path:
        """Return the lock file of those who change a kind of files, such as change files or the reservations of ids.

        It is with the stores, since a cache may be deleted at any time; in the cache where no folder of KB can be
        written, or the worktree that is to hold the stores has none yet.
        """
        if self.is_in_worktree:  # the ignore file of `.kb` covers what is in the folder of the stores
            folder, file = self.branches_dir, f".{name}.lock"
            is_there = self.has_branches_dir()
        else:
            folder, file = self.data_dir, f"{name}.lock"
            is_there = True
        return folder / file if is_there and self.refusal_to_write() is None else self.cache_dir / f"{name}.lock"

    def directory_of(self, branch: str) -> Path:
        """Return where the store of a branch is, whether it exists or not."""
        return below(self.branches_dir, ids.encode_branch(branch))

    def cache_of(self, branch: str) -> Path:
        """Return where the views of a branch are cached."""
        return self.cache_dir / ids.encode_branch(branch)

    def has_store(self, branch: str) -> bool:
        """Tell whether a branch has a store. Raises ``StorageError`` when something else lies in its place."""
        return not self.is_pointed and files.is_directory(self.machine.fs, self.directory_of(branch))

    def refusal_to_write(self) -> tuple[Path, int] | None:
        """Return the folder that keeps every branch from being written, with the ``errno``; None where there is none.

        A folder of the stores that does not exist is made in the one above it.

        Raises: ``StorageError`` when a folder cannot be looked at.
        """
        fs = self.machine.fs
        for folder in (self.data_dir, self.usual_branches_dir):
            with files.explained(folder, "look at", reading=True):
                there = folder if os.path.lexists(folder) and not self.is_pointed else folder.parent
                code = fs.refusal_to_write(there) if os.path.lexists(there) else 0
            if code:
                return there, code
        return None

    def refused(self, error: ReadOnlyStore) -> ReadOnlyStore:
        """Return the error of a write to the stores that the system refused, with all ways in which one can write.

        One about another file, or about a file of another user, stays as it is.
        """
        root, settings = self.data_dir, user_settings_path(self.machine.env)
        path = Path(str(error.data.get("file", "")))
        is_of_stores = path.is_relative_to(root) or root.is_relative_to(path)
        if not is_of_stores or (error.has_own_remedy and files.WRITABLE_ROOT not in error.data):
            return error
        place = self.place_of_stores()
        ways = files.ways_to_write(root)
        if place.place == "git" and place.remedy:
            ways += f" {place.sentence()}"
        elif place.place == "git" and settings and self.repo.kb_root != self.repo.common_dir:
            then = (
                f", after which {shell('status')} says how to move them"
                if os.path.lexists(self.git_branches_dir)
                else ""
            )
            ways += f' Or keep the stores in the worktree: {{"store": "worktree"}} in {settings}{then}.'
        ways += " docs/mcp.md says more."
        data = {**error.data, files.WRITABLE_ROOT: str(root)}
        return ReadOnlyStore(error.message, hint=ways, data=data)


class PlaceOfStores(NamedTuple):
    """The place of the stores, and why; ``remedy`` is empty unless the user's settings ask for another place."""

    place: str
    """``git`` or ``worktree``."""
    folder: Path
    why: str
    remedy: str

    def message(self) -> str:
        """Return where the stores are and why, as a sentence."""
        return f"The stores are in {self.folder}: {self.why}."

    def sentence(self) -> str:
        """Return all of it as text."""
        return " ".join(filter(None, [self.message(), self.remedy]))


def _place_of_stores(folders: Folders) -> PlaceOfStores:
    folder, settings = folders.branches_dir, user_settings_path(folders.machine.env)
    asked = f'{settings} says "store": "worktree"'
    if folders.is_in_worktree:
        return PlaceOfStores("worktree", folder, asked, "")
    if folders.is_unmoved:
        why = "they were not moved to the git directory yet"
        return PlaceOfStores(
            "worktree", folder, why, f"The next command that may write moves them to {folders.usual_branches_dir}."
        )
    if not folders.wants_worktree:
        return PlaceOfStores("git", folder, "that is where stores are unless your own settings say otherwise", "")
    data = data_dir_of(folders.repo)
    if not is_used(folders.machine.fs, folder):
        why = f"{asked}, but {folders.shown_branches} is neither a folder nor a pointer that KB made"
        return PlaceOfStores("git", folder, why, "Remove it, and stores are kept there from the next command on.")
    aside = _unused(data.with_name(_ASIDE))
    here, there, adopted = (shlex.quote(str(path)) for path in (data, aside, aside / BRANCHES))
    remedy = (
        "To move them, where the git directory can be written and while no other process of KB runs: "
        f"`mv {here} {there}`, then {shell('doctor', '--adopt', adopted)}."
    )
    return PlaceOfStores(
        "git", folder, f"{asked}, but that counts only where the git directory has no stores yet", remedy
    )


def _unused(path: Path) -> Path:
    """Return the path, or the first one with a number after it that nothing has: ``mv`` moves into a folder."""
    names = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(one for one in itertools.chain([path], names) if not os.path.lexists(one))


def data_dir_of(repo: Repository) -> Path:
    """Return the folder of a repository's stores and caches: in the common git directory, which all worktrees share.

    git's own commands on the worktree (clean, checkout, stash) do not reach it, and a clone does not bring one.
    """
    return below(repo.common_dir, DATA)
