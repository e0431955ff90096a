"""The open resources of one process: its machine, and the stores of branches with their caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kbcore import git
from kbcore.clock import Clock
from kbcore.errors import ReadOnlyStore
from kbcore.git import BirthCache, HeadCache, IdCache, Repository, RepositoryCache
from kbcore.storage.fs import Fs
from kbcore.storage.witness import BranchWitness
from kbcore.storage.witness_notes import NotedRepository, NotesFolder

if TYPE_CHECKING:
    from kbcore.config.settings import ShareSettings
    from kbcore.store.branch_store import BranchStore, Publishing
    from kbcore.view.claim_index_cache import BranchClaims

MAX_WARM_VIEWS: Final = 4
"""A warm view takes about 8 MiB and a thread; few people and agents go back and forth between more branches."""


class Machine:
    """The machine of KB: files, time, and the environment for git. Tests pass their own."""

    def __init__(self, fs: Fs, clock: Clock, env: Mapping[str, str]) -> None:
        self.fs = fs
        self.clock = clock
        self.env = env


class CachePlaces(NamedTuple):
    """The cache of a branch's views, its usual place, and the memory limit of one."""

    own: Path
    usual: Path
    memory_bytes: int


class StoreNeeds(NamedTuple):
    """The arguments of opening a store; ``refused`` completes the error of a write that the system refused."""

    cache: CachePlaces
    witness: BranchWitness | None
    refused: Callable[[ReadOnlyStore], ReadOnlyStore]


class StorePool:
    """The branch stores that one process has open, for all its threads; a long-lived one keeps its last views warm.

    A store that was opened once stays known, so that what it noticed is shown once. Its view costs memory and threads
    (``MAX_WARM_VIEWS``), and is closed when that many other branches were asked for after it.
    """

    def __init__(
        self, publishing: Publishing = "at_once", on_due: Callable[[BranchStore], object] = lambda _: None
    ) -> None:
        """``publishing`` says when views are published; ``on_due`` is called for a store when its view is to be."""
        self._publishing: Publishing = publishing
        self._on_due = on_due
        self._lock = threading.Lock()
        self._stores: dict[Path, BranchStore] = {}
        """The one asked for last comes last."""
        self.heads = HeadCache()
        self.repositories = RepositoryCache()
        self.trusted: set[Repository] = set()
        """Those that are this user's, or that git took for safe when it was asked."""
        self.empty_stores: dict[Path, Path] = {}
        """Empty stores of this process, by the place where the store would be that can neither be found nor made."""
        self.pointed: set[tuple[Path, str]] = set()
        """The identity of `.kb/branches`, which is to stay, for ``relocation``; git is asked once."""
        self.births: BirthCache = {}
        self.share_settings: dict[str, ShareSettings | None] = {}
        """The settings of sharing at commits, None at one that has none."""
        self.change_paths: dict[Path, tuple[str, frozenset[str]]] = {}
        """By repository: the last commit whose change files were listed, and their paths."""
        self.staged_settings: dict[Path, tuple[object, dict[str, str]]] = {}
        """By the index of a worktree: how it looked from outside, and the settings files in it."""
        self._ids = IdCache()
        self._places: dict[Path, NotesFolder] = {}
        self._witnesses: dict[Path, BranchWitness] = {}
        self.settled: dict[Path, tuple[object, ...]] = {}
        """The stamp of `.kb` when there was nothing to do for ``relocation``."""

    def place(self, machine: Machine, repo: Repository) -> NotesFolder:
        """Return where the branches of a repository are noted, the same one every time."""
        place = self._places.get(repo.common_dir)
        if place is None:
            about = NotedRepository(repo.common_dir, self._ids.read, lambda made: git.write_id(repo, machine.env, made))
            place = self._places.setdefault(repo.common_dir, NotesFolder(machine.fs, machine.env, about))
        return place

    def witness(self, machine: Machine, repo: Repository, directory: Path) -> BranchWitness:
        """Return the witness of a branch directory, the same one every time."""
        found = self._witnesses.get(directory)
        if found is None:
            made = BranchWitness(machine.fs, directory, self.place(machine, repo))
            found = self._witnesses.setdefault(directory, made)
        return found

    def get(self, machine: Machine, directory: Path, about: Callable[[], StoreNeeds]) -> BranchStore:
        """Return the store of a branch directory, the same one every time; only the first request is asked for needs.

        It keeps ``refused`` of that request, which therefore must not use what was read for it.
        """
        from kbcore.store.branch_store import BranchStore  # noqa: PLC0415 - they import duckdb, and a hook with nothing to do needs none
        from kbcore.view.cache_files import CacheFiles  # noqa: PLC0415 - as above

        with self._lock:
            store = self._stores.pop(directory, None)
            if store is None:
                cache, witness, refused = about()
                files = CacheFiles(machine.fs, cache.own, cache.memory_bytes, usual=cache.usual)
                store = BranchStore(
                    machine.fs,
                    machine.clock,
                    directory,
                    files,
                    witness,
                    refused=refused,
                    publishing=self._publishing,
                    on_due=self._on_due,
                )
            self._stores[directory] = store
            for outdated in [*self._stores.values()][:-MAX_WARM_VIEWS]:
                # Does nothing to a view that some request is using: its turn to go comes with the next request.
                outdated.close()
            return store

    def changes(self, machine: Machine, directory: Path, about: Callable[[], StoreNeeds]) -> BranchClaims:
        """Return the index of the changes of a branch directory, that of its store where it is open."""
        from kbcore.view.cache_files import CacheFiles  # noqa: PLC0415 - as above
        from kbcore.view.claim_index_cache import BranchClaims  # noqa: PLC0415 - most branches have none

        with self._lock:
            store = self._stores.get(directory)
        if store is not None:
            return store.changes
        cache = about().cache
        files = CacheFiles(machine.fs, cache.own, cache.memory_bytes, usual=cache.usual)
        return BranchClaims(machine.fs, directory, files)

    def close(self) -> None:
        """Close every view that no request is using."""
        with self._lock:
            for store in self._stores.values():
                store.close()
            self._stores.clear()
