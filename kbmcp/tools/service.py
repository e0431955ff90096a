"""The state that the calls of one server share: its options, the open stores, the call queue, and the threads.

Only the branch stores, with their views, outlive a call. Everything of the core that is costly to import is imported by
the first call, not before: the first reply of the server waits for none of it.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from anyio import Lock

from kbcore import __version__, limits
from kbcore.errors import KBError, UnexpectedBranch
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork
from kbcore.text.escaping import escape_and_cut
from kbmcp.protocol.call_queue import CallQueue
from kbmcp.protocol.worker_threads import WorkerThreads
from kbmcp.tools.answers import Payload
from kbmcp.tools.call import Call, Client
from kbmcp.tools.entities_read import EntitiesRead
from kbmcp.tools.notices import ConnectionNotices
from kbmcp.tools.publishing import StorePublisher

if TYPE_CHECKING:
    from kbcore.logic.clauses import Clause
    from kbcore.model.schema import Schema
    from kbcore.store.branches import Choice
    from kbcore.store.pool import Machine, StorePool
    from kbcore.store.workspace import Workspace
    from kbcore.store.write_request import Author
    from kbcore.sync.overlay import WorktreeFiles
    from kbcore.view.view import View
    from kbmcp.tools.prolog_connection import PrologConnection

T = TypeVar("T")

_MAX_CLIENT_CHARS: Final = 80
_MAX_REPOSITORY_CHARS: Final = 60
_CALLS_AT_ONCE: Final = 24
"""Threads for calls. Only a call that is admitted at its branch keeps one for long: a writer and
``MAX_VIEWS`` readers."""


class ServerOptions(msgspec.Struct, frozen=True):
    """The options of the server. ``branch`` is the one to serve, None for the one that is checked out."""

    start: Path
    branch: str | None = None
    is_dotted: bool = False
    is_read_only: bool = False
    env: Mapping[str, str] = {}
    toolsets: tuple[str, ...] = ("core",)
    """The groups of tools, and of prompts and resources, that are offered."""
    libraries: tuple[str, ...] = ()
    """The libraries of Prolog that the options name, each text a list."""
    roots: tuple[str, ...] = ()
    """The folders of Prolog files that the options name, each text a list as PATH is."""

    @property
    def has_core(self) -> bool:
        """Return whether the tools of the toolset core are offered, so that remedies may name them."""
        return "core" in self.toolsets


class Arrival(msgspec.Struct, frozen=True):
    """The repository and branch of a call that has arrived."""

    workspace: Workspace
    choice: Choice

    @property
    def directory(self) -> Path:
        """The directory where the store of its branch is, or will be."""
        return self.workspace.folders.directory_of(self.choice.branch)

    def renewed(self) -> Arrival:
        """Return the same with settings and schema as they are now, for a call that has waited since."""
        return Arrival(self.workspace.renewed(), self.choice)


class Service:
    """The state that all calls of one process share: the open stores, the call queue, and the threads."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.session = options.env.get("KB_SESSION", "").strip() or secrets.token_hex(8)
        """The session id of the records of this connection."""
        self._lock = threading.Lock()
        """Held for a moment at a time, never while a file is copied, a journal read or a program run."""
        self.queue = CallQueue()
        self.running: set[CurrentWork] = set()
        """The work of the calls that are carried out now."""
        self.is_stopped = False
        self._opened: Workspace | None = None
        """The repository that was last opened, which remedies are for."""
        self.publisher = StorePublisher()
        self.after_read: Callable[[Call, Payload], None] | None = None
        """Looks at each call that read, and at its answer, while the call is open."""
        self.threads = WorkerThreads(_CALLS_AT_ONCE)
        self.prolog_turn = Lock()
        """Held by the call that works on the Prolog workspace, in the order in which they were sent."""
        self._prolog: PrologConnection | None = None
        self._shared: tuple[Machine, StorePool] | None = None
        self._files: WorktreeFiles | None = None
        self._last: Path | None = None
        """The store of the call before: when it changes, files that git has left next to the store are searched for."""
        self.notices = ConnectionNotices(
            has_core=options.has_core, is_read_only=options.is_read_only, is_dotted=options.is_dotted
        )
        self.reads = EntitiesRead()
        """The entities that the client was shown."""

    def arrive(self, expect_branch: str = "") -> Arrival:
        """Return what a call concerns, as it is found when the call has come.

        Raises: ``UnexpectedBranch`` when it is not the expected one; as opening a workspace and choosing a branch.
        """
        from kbcore.store import branches

        workspace = self.workspace()
        choice = branches.choose(workspace, self.options.branch)
        if expect_branch and choice.branch != expect_branch:
            raise UnexpectedBranch(
                f"The branch is {choice.branch}, not {expect_branch} as expected.",
                data={"expected": expect_branch, "branch": choice.branch},
            )
        return Arrival(workspace, choice)

    @contextmanager
    def open(self, client: Client, arrival: Arrival, *, writes: bool, dry_run: bool) -> Iterator[Call]:
        """Yield the context of a call that is admitted at its branch.

        A call that only reads makes no store: it is answered from what that of the branch will be copied from. On the
        same is planned what a call writes, and the store is made for its first record; a dry run makes none.

        Runs in a worker thread; a call that was cancelled meanwhile ends here, before it has changed anything. The
        first use of a branch, which copies a store, holds up that branch and no other. Settings and schema are those
        of the arrival, which is renewed for a call that has waited.

        Raises: what opening a branch raises.
        """
        from kbcore.store import branches

        interrupting.check()
        workspace, choice = arrival.workspace, arrival.choice
        notice, notes = "", list[str]()
        if writes and not dry_run:
            branches.for_writing(workspace, choice, lambda ensured: notes.append(self.notices.first_use(ensured)))
        else:
            notice = self._served(workspace, choice, writes=writes, dry_run=dry_run)
        used = workspace.answering(choice.branch)
        with ExitStack() as stack:
            if used != choice.branch:
                # It has a store, so no admitted call waits for another.
                stack.enter_context(self.queue.taken(workspace.folders.directory_of(used), reads=True))
            yield Call(
                workspace=workspace,
                files=self.files,
                branch=choice.branch,
                follows_head=choice.follows_head,
                author=client.author or author(client, self.session),
                notice=notice or self._left_over(workspace, choice.branch),
                is_dotted=self.options.is_dotted,
                repository=repository_name(workspace),
                is_read_only=self.options.is_read_only,
                has_core=self.options.has_core,
                notes=notes,
                prolog=self.prolog,
                confirmed=client.confirmed,
                reads=self.reads,
            )

    def _left_over(self, workspace: Workspace, branch: str) -> str:
        """Return a notice on files that git has left next to a store, when the call before used another."""
        from kbcore.store import branches

        with self._lock:
            directory = workspace.folders.directory_of(branch)
            is_new, self._last = directory != self._last, directory
        return branches.left_over(workspace, branch) if is_new else ""

    def answering(self, workspace: Workspace) -> str:
        """Return the branch whose store answers what is read now, without making one; ``workspace`` gives that store.

        Raises: ``GitUnusable``; as ``branches.for_reading``.
        """
        from kbcore.store import branches

        branch = self.options.branch or workspace.head().branch
        if workspace.folders.has_store(branch) and workspace.verdict_on(branch) != "made_again":
            return branch
        self._served(workspace, branches.Choice(branch, follows_head=False), writes=False, dry_run=False)
        return workspace.answering(branch)

    def read_view(self, use: Callable[[View], T]) -> T:
        """Return ``use(view)`` on a view of what answers now, with what its files say; makes no store.

        Raises: as opening a workspace, ``answering`` and reading a store.
        """
        workspace = self.workspace()
        branch = self.options.branch or workspace.head().branch
        with self.queue.taken(workspace.folders.directory_of(self.answering(workspace)), reads=True):
            return self.files.read(workspace, branch, lambda view, _: use(view), time_s=limits.FILES_S)

    def read_clauses(self) -> tuple[Clause, ...]:
        """Return the clauses of the Prolog workspace as they are now; makes no store. Raises: as ``read_view``."""
        if self.prolog is None:
            return ()
        workspace = self.workspace()
        branch = self.options.branch or workspace.head().branch
        with self.queue.taken(workspace.folders.directory_of(self.answering(workspace)), reads=True):
            store = self.prolog.pool.store(workspace, branch, author(Client(), self.session), follows_head=False)
            return store.read().clauses

    @property
    def files(self) -> WorktreeFiles:
        """Return the files of the worktree, as this process follows them."""
        from kbcore.sync.overlay import WorktreeFiles
        from kbcore.watch.changed_paths import listen

        with self._lock:
            if self._files is None:
                self._files = WorktreeFiles(listen)
            return self._files

    @property
    def prolog(self) -> PrologConnection | None:
        """Return the Prolog workspace of this connection, None where the server does not offer it."""
        if "logic" not in self.options.toolsets:
            return None
        from kbmcp.tools.prolog_connection import PrologConnection

        with self._lock:
            if self._prolog is None:
                self._prolog = PrologConnection(self.options.env, self.options.libraries, self.options.roots)
            return self._prolog

    def place(self) -> dict[str, Any]:
        """Return the repository and the branch that a call is about, and its seq, as far as they can be known."""
        from kbcore.store import branches

        found: dict[str, Any] = {}
        with suppress(KBError):
            workspace = self.workspace()
            found["repository"] = repository_name(workspace)
            found["branch"] = branches.choose(workspace, self.options.branch).branch
            found["seq"] = workspace.store(found["branch"]).head().seq
        return found

    def workspace(self) -> Workspace:
        """Return the workspace as it is now. Raises: as opening a workspace."""
        from kbcore.clock import SystemClock
        from kbcore.git import SharedModes
        from kbcore.storage.fs import RealFs
        from kbcore.store.pool import Machine, StorePool
        from kbcore.store.workspace import open_workspace

        with self._lock:
            if self._shared is None:
                env = self.options.env
                machine = Machine(RealFs(shared=SharedModes(env)), SystemClock(), env)
                self._shared = machine, StorePool("in_background", self.publisher.add)
            machine, pool = self._shared
        workspace = open_workspace(self.options.start, machine, pool)
        self._opened = workspace
        if workspace.moved:
            self.notices.add_moved(workspace.moved)
        return workspace

    def located(self, text: str) -> str:
        """Return a text whose commands concern the branch that is served, as ``remedies.located``."""
        return self._opened.located(text, self.options.branch) if self._opened else text

    def schema(self) -> Schema:
        """Return the schema in force. Raises: as opening a workspace, and ``InvalidConfig``."""
        return self.workspace().schema

    def stop(self) -> None:
        """Stop the calls that are carried out now, and those that begin from now on."""
        self.is_stopped = True
        for work in self.running:
            work.stop()

    def close(self) -> None:
        """Stop publishing, close every view, and end the Prolog engine."""
        self.publisher.stop()
        if self._prolog is not None:
            self._prolog.close()
        with self._lock:
            if self._files is not None:
                self._files.close()
            if self._shared is not None:
                self._shared[1].close()

    def _served(self, workspace: Workspace, choice: Choice, *, writes: bool, dry_run: bool) -> str:
        """Have ``workspace`` give the store that answers, and return what is to be said about it.

        A call that writes makes the store of its branch.

        Raises: as ``branches.ensure``, or ``branches.for_reading``.
        """
        from kbcore.store import branches

        if writes and dry_run:
            return self.notices.first_use(branches.for_trying(workspace, choice))
        if writes:
            return self.notices.first_use(branches.ensure(workspace, choice.branch, follows_head=choice.follows_head))
        return self.notices.first_use(branches.for_reading(workspace, choice))


def repository_name(workspace: Workspace) -> str:
    """Return what answers call the repository: the folder of the worktree, or of the repository that has none."""
    repo = workspace.repo
    folder = repo.worktree if repo.has_worktree else repo.common_dir
    return escape_and_cut(folder.name, _MAX_REPOSITORY_CHARS)


def author(client: Client, session: str) -> Author:
    """Return who writes on behalf of a client: its name is foreign text, and is escaped and cut."""
    return _author(client.name, client.version, session)


@lru_cache(maxsize=8)
def _author(client_name: str, client_version: str, session: str) -> Author:
    from kbcore.store.write_request import Author, session_name

    name = escape_and_cut(client_name, _MAX_CLIENT_CHARS) or "unknown"
    version = escape_and_cut(client_version, _MAX_CLIENT_CHARS)
    return Author(
        actor=f"{name}/{version}" if version else name,
        source=f"mcp:{name}",
        tool=f"kb/{__version__}",
        session=session_name(session),
    )
