"""One request's surroundings: the repository, its KB, its settings, and the branch that is meant.

Made anew for every request, because HEAD, the configuration and the schema may change between two. Only the branch
stores outlive a request, in a ``StorePool``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from kbcore import git, ids, limits
from kbcore.clock import Clock
from kbcore.config import DEFAULT, Config, parse_config
from kbcore.errors import BranchMoved, InvalidConfig, NotInitialised, UnknownBranch
from kbcore.git import HeadCache, HeadState, Repository
from kbcore.schema import Schema
from kbcore.schema_files import load_schema
from kbcore.storage.fs import Fs
from kbcore.store import BranchStore
from kbcore.viewcache import ViewCache

KB: Final = ".kb"
CONFIG: Final = "config.json"
SCHEMA: Final = "schema"
RULES: Final = "rules"
BRANCHES: Final = "branches"
CACHE: Final = "cache"
REPOSITORY_LOCK: Final = ".lock"
_YAML: Final = frozenset({".yaml", ".yml"})


class Machine:
    """What KB takes from its machine: files, time, and the environment for git. Tests pass their own."""

    def __init__(self, fs: Fs, clock: Clock, env: Mapping[str, str]) -> None:
        self.fs = fs
        self.clock = clock
        self.env = env


class StorePool:
    """The branch stores that one process has open, by directory; a long-lived process keeps its views warm."""

    def __init__(self) -> None:
        self._stores: dict[Path, BranchStore] = {}
        self.heads = HeadCache()

    def get(self, machine: Machine, directory: Path, cache: Path, lock_wait_s: float) -> BranchStore:
        """Return the store of a branch directory, the same one every time."""
        store = self._stores.get(directory)
        if store is None:
            views = ViewCache(machine.fs, cache)
            store = BranchStore(machine.fs, machine.clock, directory, views, lock_wait_s=lock_wait_s)
            self._stores[directory] = store
        return store

    def close(self) -> None:
        """Let go of every view."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()


class Workspace:
    """A repository with a KB, as one request finds it."""

    def __init__(self, repo: Repository, machine: Machine, pool: StorePool) -> None:
        self.repo = repo
        self.machine = machine
        self.pool = pool
        self.kb_dir = repo.kb_root / KB
        """Holds the stores; shared by all worktrees."""

    @cached_property
    def settings_dir(self) -> Path:
        """The ``.kb`` whose configuration and schema apply: the worktree's own, if it has one checked out."""
        own = self.repo.worktree / KB
        return own if (own / CONFIG).is_file() else self.kb_dir

    @cached_property
    def config(self) -> Config:
        """The configuration in force. Raises ``InvalidConfig``."""
        text = _read_text(self.settings_dir / CONFIG)
        return DEFAULT if text is None else _config_of(text)

    @cached_property
    def schema(self) -> Schema:
        """The schema in force: KB's own and the project's. Raises ``InvalidConfig``."""
        return load_schema(self.texts_in(SCHEMA))

    def texts_in(self, folder: str) -> dict[str, str]:
        """Return the YAML files of a settings folder, by the path that messages name. Raises ``InvalidConfig``."""
        directory = self.settings_dir / folder
        paths = sorted(path for path in directory.iterdir() if path.suffix in _YAML) if directory.is_dir() else []
        return {f"{KB}/{folder}/{path.name}": _read_text(path) or "" for path in paths}

    @cached_property
    def default_branch(self) -> str:
        """The branch that new stores are copied from."""
        return git.default_branch(self.repo, self.machine.env, self.config.default_branch)

    def head(self) -> HeadState:
        """Return what is checked out at this moment."""
        return git.read_head(self.repo, self.machine.env, cache=self.pool.heads)

    def guard(self, branch: str) -> Callable[[], None]:
        """Return a check that HEAD still names this branch; it raises ``BranchMoved``."""

        def guard() -> None:
            now = self.head().branch
            if now != branch:
                raise BranchMoved(
                    f"HEAD moved from {branch} to {now} while the request ran. Nothing was written.",
                    data={"old": branch, "new": now},
                )

        return guard

    def directory_of(self, branch: str) -> Path:
        """Return where the store of a branch is, whether it exists or not."""
        return self.kb_dir / BRANCHES / ids.encode_branch(branch)

    def cache_of(self, branch: str) -> Path:
        """Return where the views of a branch are cached."""
        return self.kb_dir / CACHE / ids.encode_branch(branch)

    def store(self, branch: str) -> BranchStore:
        """Return the store of a branch; opening it fails with ``UnknownBranch`` when there is none."""
        wait_s = self.config.lock_wait_s
        return self.pool.get(self.machine, self.directory_of(branch), self.cache_of(branch), wait_s)

    def check_branch(self, branch: str) -> None:
        """Refuse the name of a branch that exists neither in git nor as a store.

        Raises: ``UnknownBranch``.
        """
        fault = ids.check_branch_name(branch)
        is_detached = ids.is_detached_name(branch)
        if fault and not is_detached:
            raise UnknownBranch(f"{branch!r} cannot be a branch: {fault}.")
        if self.directory_of(branch).is_dir() or branch in {self.head().branch, self.default_branch}:
            return
        if is_detached or branch not in git.local_branches(self.repo, self.machine.env):
            raise UnknownBranch(f"There is no branch {branch!r}, neither in git nor as a store.")


def open_workspace(
    start: Path,
    machine: Machine,
    pool: StorePool,
    *,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
) -> Workspace:
    """Return the workspace of the repository that holds ``start``.

    Raises: ``NotARepository``, ``GitUnusable``, ``NotInitialised``.
    """
    repo = git.find_repository(start, git_dir=git_dir, work_tree=work_tree)
    workspace = Workspace(repo, machine, pool)
    if workspace.kb_dir.is_symlink():
        raise NotInitialised(f"{workspace.kb_dir} is a link; KB keeps its stores only in a directory of its own.")
    if not (workspace.kb_dir / BRANCHES).is_dir() and not (workspace.settings_dir / CONFIG).is_file():
        raise NotInitialised(f"There is no {KB} in {repo.kb_root}.")
    return workspace


@lru_cache(maxsize=8)
def _config_of(text: str) -> Config:
    """Return what a configuration says. The text is read for every request; only what it means is remembered."""
    return parse_config(text, f"{KB}/{CONFIG}")


@lru_cache(maxsize=8)
def _schema_of(texts: tuple[tuple[str, str], ...]) -> Schema:
    """Return what schema files say, given as paths and texts; remembered in the same way."""
    return load_schema(dict(texts))


def _read_text(path: Path) -> str | None:
    """Return a settings file as text, None when it is absent. Raises ``InvalidConfig`` when it cannot be read."""
    try:
        if path.stat().st_size > limits.MAX_CONFIG_BYTES:
            raise InvalidConfig(f"{path.name} is larger than {limits.MAX_CONFIG_BYTES} bytes.")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path.name} is not UTF-8 at byte {error.start}.", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise InvalidConfig(f"{path.name} cannot be read: {error.strerror}.") from error
