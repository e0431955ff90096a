"""One tool call's surroundings: the workspace and the branch as this request finds them, and who asks.

Only the branch stores, with their views, outlive a call. Everything of the core that is costly to import is imported by
the first call, not before: the first reply of the server waits for none of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from anyio import from_thread

from kbcore import __version__
from kbcore.errors import BranchMoved, UnknownBranch
from kbmcp.replies import visible

if TYPE_CHECKING:
    from kbcore.schema import Schema
    from kbcore.store import Author, BranchStore
    from kbcore.workspace import Machine, StorePool, Workspace

_MAX_CLIENT_CHARS: Final = 80


class Options(msgspec.Struct, frozen=True):
    """How the server was started. ``branch`` is the one to serve, None for the one that is checked out."""

    start: Path
    branch: str | None = None
    is_dotted: bool = False
    is_read_only: bool = False
    env: Mapping[str, str] = {}


class Client(msgspec.Struct, frozen=True):
    """Who is at the other end, as it says itself."""

    name: str = ""
    version: str = ""


class Call(msgspec.Struct, frozen=True):
    """An open call. ``notice`` is what the first use of a branch has to say."""

    workspace: Workspace
    store: BranchStore
    branch: str
    follows_head: bool
    author: Author
    notice: str


class Service:
    """What all calls of one process share: the stores that are open, and whose turn it is on each."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._gate = threading.Lock()
        self._turns: dict[Path, threading.Lock] = {}
        self._machine: Machine | None = None
        self._pool: StorePool | None = None
        self._told: dict[Path, int] = {}

    @contextmanager
    def open(self, client: Client, expect_branch: str = "") -> Iterator[Call]:
        """Give the call's surroundings, and the branch's store to this call alone.

        Runs in a worker thread; a call that was cancelled while it waited for its turn ends here, before it has
        changed anything.

        Raises: ``BranchMoved`` when the branch is not the expected one, and what opening a branch raises.
        """
        with self._gate:
            call = self._open(client, expect_branch)
            turn = self._turns.setdefault(call.store.directory, threading.Lock())
        with turn:
            from_thread.check_cancelled()
            yield call

    def news(self, call: Call) -> str:
        """Return what is to be said beside the answer of a call, and was not said before.

        That is how the branch got its store, and what reading it came upon, such as a loss of records.
        """
        with self._gate:
            notices = call.store.notices
            first = self._told.get(call.store.directory, 0)
            self._told[call.store.directory] = len(notices)
            return " ".join([call.notice, *notices[first:]]).strip()

    def schema(self) -> Schema:
        """Return the schema in force. Raises: as opening a workspace, and ``InvalidConfig``."""
        with self._gate:
            return self._workspace().schema

    def close(self) -> None:
        """Let go of every view."""
        with self._gate:
            if self._pool is not None:
                self._pool.close()

    def _workspace(self) -> Workspace:
        from kbcore.clock import SystemClock
        from kbcore.storage.fs import RealFs
        from kbcore.workspace import Machine, StorePool, open_workspace

        if self._machine is None or self._pool is None:
            self._machine = Machine(RealFs(), SystemClock(), self.options.env)
            self._pool = StorePool()
        return open_workspace(self.options.start, self._machine, self._pool)

    def _open(self, client: Client, expect_branch: str) -> Call:
        from kbcore import branches

        workspace = self._workspace()
        choice = branches.choose(workspace, self.options.branch)
        if expect_branch and choice.branch != expect_branch:
            raise BranchMoved(
                f"The branch is {choice.branch}, not {expect_branch} as expected. Nothing was written.",
                data={"old": expect_branch, "new": choice.branch},
            )
        branch, notice = self._settled(workspace, choice.branch)
        return Call(workspace, workspace.store(branch), branch, choice.follows_head, author(client), notice)

    def _settled(self, workspace: Workspace, branch: str) -> tuple[str, str]:
        """Return the branch to work on, now that it has a store, and what is to be said about that."""
        from kbcore import branches

        if not self.options.is_read_only:
            ensured = branches.ensure(workspace, branch)
            if ensured.is_new and ensured.copied_from:
                return (
                    branch,
                    f"This is the first use of {branch}: its store is a copy of that of {ensured.copied_from}.",
                )
            return branch, ensured.notice
        default = workspace.default_branch
        if workspace.directory_of(branch).is_dir():
            return branch, ""
        if not workspace.directory_of(default).is_dir():
            raise UnknownBranch(f"{branch} has no store yet, and this server only reads.", hint="Run `kb sync` there.")
        return (
            default,
            f"{branch} has no store yet, and this server only reads: this is {default}, which it comes from.",
        )


def author(client: Client) -> Author:
    """Return who writes on behalf of a client: its name is foreign text, and is escaped and cut."""
    from kbcore.store import Author

    name = visible(client.name, _MAX_CLIENT_CHARS) or "unknown"
    version = visible(client.version, _MAX_CLIENT_CHARS)
    return Author(actor=f"{name}/{version}" if version else name, source=f"mcp:{name}", tool=f"kb/{__version__}")
