"""The context of one call of ``kb``: its folder, its environment, its options, and the repository that they select.

The only module of the command line that reads the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from kbcli.invocation.signals import Signals
from kbcli.terminal.output import Output
from kbcore import __version__
from kbcore.errors import GitUnusable, InvalidQuery, KBError, ReadOnlyStore, StoreWentBack
from kbcore.errors.remedies import for_shell, kb
from kbcore.limits import FILES_S
from kbcore.text.escaping import escape_controls, escape_lines, escaped_sentence

if TYPE_CHECKING:
    from kbcore.editing.documents import WriteTarget
    from kbcore.editing.file_edits import FileEdit
    from kbcore.storage.fs import RealFs
    from kbcore.store.answers import Outcome
    from kbcore.store.branch_store import BranchStore
    from kbcore.store.branches import Choice, Ensured
    from kbcore.store.history.when import When
    from kbcore.store.pool import Machine, StorePool
    from kbcore.store.workspace import Workspace
    from kbcore.store.write_request import Author
    from kbcore.sync.overlay import FileState, WorktreeFiles
    from kbcore.text.code_owners import CodeOwners
    from kbcore.view.view import View

T = TypeVar("T")
TOOL: Final = f"kb/{__version__}"
SOURCE: Final = "cli"
_MOST_NAMED: Final = 10
"""The most files that an answer names."""
_MAX_ACTOR_CHARS: Final = 100


class Opened(msgspec.Struct, frozen=True):
    """The branch that a command uses, with its store and the files of its worktree."""

    workspace: Workspace
    store: BranchStore
    choice: Choice
    session: Session

    @property
    def files(self) -> WorktreeFiles:
        """Return the files of the worktree."""
        return self.session.files

    @property
    def branch(self) -> str:
        """Return the branch's name."""
        return self.choice.branch

    @property
    def target(self) -> WriteTarget:
        """Return what a command that edits entities needs: the branch, its author, and how it is read."""
        from kbcore.editing.documents import WriteTarget

        return WriteTarget(
            self.workspace,
            self.branch,
            self.session.author,
            self.files.reading(self.workspace, self.branch),
            self.choice.follows_head,
        )

    def point(self, text: str) -> When:
        """Return the point of the branch's history that a text means; a time without a zone is a local one.

        Raises: as ``when.point_in``.
        """
        from kbcore.store.history.when import point_in

        return point_in(self.workspace, self.branch, text, is_local=True)

    def code_owners(self) -> CodeOwners:
        """Return the owners of the files of the branch, and say which lines of their file give none.

        Raises: ``InvalidConfig``, ``GitUnusable``.
        """
        from kbcore.sync.code_owners import code_owners, fault_lines

        found = code_owners(self.workspace, self.branch)
        for line in fault_lines(found):
            self.session.output.warn(line)
        return found

    def read(self, use: Callable[[View], T], *, time_s: float = FILES_S) -> tuple[T, FileState]:
        """Return ``use(view)`` on a view with what the files say, and how the answer relates to them.

        Raises: as ``WorktreeFiles.read``.
        """
        return self.files.read(self.workspace, self.branch, lambda view, state: (use(view), state), time_s=time_s)


class Session:
    """One call of ``kb``. The options before and after the command are gathered here as they are read."""

    def __init__(self, env: Mapping[str, str], output: Output, signals: Signals | None = None) -> None:
        self.env = env
        self.output = output
        self.directories: list[str] = []
        """Every ``-C``, in order; each is relative to the one before."""
        self.branch = ""
        self.words: Sequence[str] = ()
        """The words of the command line after the name of the program."""
        self.is_read_only = False
        """Set by commands that promise to write nothing, before they open anything."""
        self.writes = False
        """The command was asked to write: where it fails before, the error says so."""
        self.has_reported_losses = False
        """Missing stores were reported already, by the command or in an error."""
        self.notes: list[str] = []
        """Warnings about the answer, shown at the end."""
        self.called: dict[str, None] = {}
        """Notes on ids of renamed entities, shown at the end."""
        self._watched: list[BranchStore] = []
        self._last_of_files = ""
        self._reported_faults: set[str] = set()
        self._reported: set[str] = set()
        """Notices that were shown: each is shown once."""
        self._reported_losses: set[str] = set()
        """Branches of which an error has said that records are missing."""
        self._due: dict[BranchStore, None] = {}
        """The stores whose views are to be published when the answer is written."""
        self.signals = signals or Signals()
        self._has_looked = False

    def be_silent(self) -> None:
        """Promise to write nothing, and to show nothing but the answer."""
        self.is_read_only = self.output.is_quiet = self.has_reported_losses = True

    @property
    def start(self) -> Path:
        """Return the folder that the command runs in, as if started there.

        Raises: ``InvalidQuery`` when ``-C`` names no folder, or the current folder no longer exists.
        """
        try:
            here = Path.cwd()
        except FileNotFoundError as error:
            here = Path().joinpath(*self.directories)
            if not here.is_absolute():
                hint = "Change to another one, or name one by its full path with -C."
                raise InvalidQuery("The current folder no longer exists.", hint=hint) from error
        folder = here.joinpath(*self.directories)
        if self.directories and not folder.is_dir():
            raise InvalidQuery(
                f"-C: there is no folder {escape_controls(str(folder))}.", hint="Name a folder that exists."
            )
        return folder

    @property
    def named_branch(self) -> str | None:
        """Return the branch that the user names: ``--branch``, else KB_BRANCH; None leaves it to HEAD."""
        return self.branch or self.env.get("KB_BRANCH") or None

    @cached_property
    def real_fs(self) -> RealFs:
        """Return the file system on which something can be written, also for a command that only reads the store."""
        from kbcore.git import SharedModes
        from kbcore.storage.fs import RealFs

        return RealFs(shared=SharedModes(self.env))

    @cached_property
    def machine(self) -> Machine:
        """Return what KB takes from this machine."""
        from kbcore.clock import SystemClock
        from kbcore.store.pool import Machine

        fs: Any = self.real_fs
        if self.is_read_only:
            from kbcli.invocation.read_only import ReadOnlyFs

            fs = ReadOnlyFs(fs)
        return Machine(fs, SystemClock(), self.env)

    @property
    def git_places(self) -> dict[str, Any]:
        """Return what GIT_DIR and GIT_WORK_TREE say."""
        names = {"git_dir": "GIT_DIR", "work_tree": "GIT_WORK_TREE"}
        return {key: Path(self.env[name]) if self.env.get(name) else None for key, name in names.items()}

    @cached_property
    def workspace(self) -> Workspace:
        """Return the repository's workspace.

        Raises: ``NotARepository``, ``GitUnusable``, ``NotInitialised``.
        """
        from kbcore.store.workspace import open_workspace

        settles = not self.is_read_only
        workspace = open_workspace(self.start, self.machine, self._pool, settles=settles, **self.git_places)
        for said in filter(None, [workspace.user.notice, workspace.moved]):
            self.output.note(f"note: {escaped_sentence(said)}")
        return workspace

    def workspace_as_it_is(self) -> Workspace:
        """Return the workspace of a repository that need not have a KB.

        Raises: ``NotARepository``, ``GitUnusable``.
        """
        from kbcore import git
        from kbcore.store.workspace import Workspace

        repo = git.find_own_repository(self.start, self.env, **self.git_places)
        self._has_looked = True
        return Workspace(repo, self.machine, self._pool, settles=not self.is_read_only)

    @cached_property
    def _pool(self) -> StorePool:
        """Return what the workspaces of this call share: what is open, and what git has said."""
        from kbcore.store.pool import StorePool

        return StorePool("late", self._due.setdefault)

    def publish_views(self) -> None:
        """Publish the views that are due. For when the answer is written: the caller flushes the output before."""
        while self._due:
            store, _ = self._due.popitem()
            store.publish_when_due()

    def begin_request(self, *, writes: bool) -> None:
        """Note whether the request writes: the failures of one that only reads do not mention writing."""
        self.writes = writes
        self.signals.work.only_reads = not writes

    def open(self, *, dry_run: bool = False) -> Opened:
        """Return the branch that is meant. A dry run makes no store of it, and a write only for its first record.

        Raises: as ``branches.choose`` and ``branches.for_writing``; for a dry run as ``branches.open_to_try``.
        """
        from kbcore.store import branches

        self.begin_request(writes=not dry_run)
        if dry_run:
            return self._opened(*branches.open_to_try(self.workspace, self.named_branch))
        choice = branches.choose(self.workspace, self.named_branch)
        self.open_to_write(self.workspace, choice)
        return Opened(self.workspace, self.workspace.store(choice.branch), choice, self)

    def open_to_write(self, workspace: Workspace, choice: Choice) -> None:
        """Have ``workspace`` make the store of a branch for the first record, and say so then.

        Raises: as ``branches.for_writing``.
        """
        from kbcore.store import branches

        def report(ensured: Ensured) -> None:
            self.show_ensured(ensured)
            self.note_answering(workspace, choice.branch)
            self.watch(workspace.store(choice.branch))

        branches.for_writing(workspace, choice, report)
        self.note_answering(workspace, choice.branch)

    def open_to_read(self, branch: str | None = None) -> Opened:
        """Return what answers for the branch that is meant: its store, or what that will be made of.

        ``branch`` is one that the command itself names, None for that of the options.

        Raises: as ``branches.open_to_read``.
        """
        from kbcore.store import branches

        self.begin_request(writes=False)
        return self._opened(*branches.open_to_read(self.workspace, branch or self.named_branch))

    def _opened(self, store: BranchStore, choice: Choice, ensured: Ensured) -> Opened:
        self.show_ensured(ensured)
        self.note_answering(self.workspace, choice.branch)
        self.watch(store)
        return Opened(self.workspace, store, choice, self)

    @cached_property
    def files(self) -> WorktreeFiles:
        """Return the files of the worktree, as this call reads them."""
        from kbcore.sync.overlay import WorktreeFiles

        return WorktreeFiles()

    def show_files(self, branch: str, state: FileState) -> None:
        """Say that an answer includes changed files, or why it does not; the same only once in a row."""
        from kbcli.messages.lines import files_line

        said = files_line(branch, state)
        if said and said != self._last_of_files:
            self.output.note(f"note: {escaped_sentence(said)}")
        self._last_of_files = said
        if not state.point and state.freshness != "unknown":
            self.show_settings(self.workspace)

    def show_settings(self, workspace: Workspace) -> None:
        """Warn that an answer lacks what a configuration or an extractor is missing for."""
        from kbcore.sync.active_extractors import settings_faults

        for said in (f"{fault.message} {fault.hint}" for fault in settings_faults(workspace)):
            if said not in self._reported_faults:
                self._reported_faults.add(said)
                self.output.warn(escaped_sentence(said))

    def show_point(self, state: FileState) -> None:
        """Say which record an answer is as of, where a time or a commit was asked for; JSON has it in its answer."""
        if not self.output.is_json and state.point:
            self.output.note(f"note: {escape_controls(state.point)}")

    def show_called(self, called: Mapping[str, str], at: int | None = None) -> None:
        """Note what ids that were typed are called, now or as of a seq, to say it with the answer."""
        from kbcore.query.former_ids import said

        self.called.update(dict.fromkeys(said(called, at) if called else ()))

    def show_ensured(self, ensured: Ensured) -> None:
        """Say that a branch has just got its store, and warn when it had one before that is missed."""
        from kbcli.messages.lines import ensured_line

        said = ensured_line(ensured)
        if ensured.is_warning:
            self.output.warn(said)
        elif said:
            self.output.note(f"note: {said}")

    def note_answering(self, workspace: Workspace, branch: str) -> None:
        """Have a document of the answer name the branch whose store answers, where that is another one."""
        self.output.around = workspace.answered_from(branch)

    def watch(self, store: BranchStore) -> None:
        """Warn the user of what reading this store comes upon; ``open`` does it for the stores it opens."""
        if store not in self._watched:
            self._watched.append(store)

    def sync_command(self) -> str:
        """Return the command that reads the files, with the place to run it where that is not this one."""
        return for_shell(self.located(kb("sync")))

    def located(self, text: str) -> str:
        """Return a text whose commands concern the branch that is meant, as ``remedies.located``."""
        return self.workspace.located(text, self.named_branch) if "workspace" in self.__dict__ else text

    def show_error(self, error: KBError) -> int:
        """Report an error, and return the status to end with. A loss that it names is not warned of again."""
        from kbcli.invocation import exits

        if "workspace" in self.__dict__:
            if isinstance(error, ReadOnlyStore):
                error = self.workspace.folders.refused(error)
            error.locate_remedies(self.located)
        if isinstance(error, StoreWentBack):
            self.has_reported_losses = True
            self._reported_losses.add(error.data.get("branch", ""))
        return exits.show(self.output, error, writes=self.writes)

    def show_notices(self) -> None:
        """Warn of problems found while reading the stores, at the end of the command: of each once.

        A command that reads no store warns of what is missing from the one that is meant.
        """
        said = [notice for store in self._watched for notice in self._faults_of(store)] + self.notes
        if not self._watched and not self.has_reported_losses:
            said += self._losses()
        while self.called:
            self.output.note(f"note: {escape_controls(self.called.popitem()[0])}")
        for notice in dict.fromkeys(said):
            if notice not in self._reported:
                self._reported.add(notice)
                self.output.warn(escaped_sentence(self.located(notice)))

    def _faults_of(self, store: BranchStore) -> Iterable[str]:
        is_reported = store.loss is not None and store.loss.branch in self._reported_losses
        return (*store.warnings_of(names_loss=not is_reported), *store.notices)

    def _losses(self) -> list[str]:
        """Return what is missing from the selected store, where a repository with a KB was opened."""
        if "workspace" not in self.__dict__ and not self._has_looked:
            return []
        try:
            loss = self.workspace.loss_of(self.named_branch or self.workspace.head().branch)
        except KBError:  # the command itself has said what is wrong
            return []
        if loss is None:
            return []
        from kbcore.store.branches import lost

        return [lost.warning(self.workspace, loss)]

    @cached_property
    def author(self) -> Author:
        """Return who writes, through what, and with which program."""
        from kbcore.store.write_request import Author, session_name

        return Author(self._actor(), SOURCE, TOOL, session_name(self.env.get("KB_SESSION", "")))

    def _actor(self) -> str:
        """Return the user's name: KB_ACTOR, else git's name for authors, else the login name."""
        given = self.env.get("KB_ACTOR") or self.env.get("GIT_AUTHOR_NAME") or self._git_user()
        name = given or next((self.env[key] for key in ("USER", "LOGNAME") if self.env.get(key)), "unknown")
        return escape_controls(name.strip())[:_MAX_ACTOR_CHARS] or "unknown"

    def _git_user(self) -> str:
        from kbcore.git.commands import run_git

        try:
            answer = run_git(self.workspace.repo, self.env, ["config", "--get", "user.name"], allowed=(0, 1))
        except GitUnusable:  # the name is only a courtesy; a write must not depend on git
            return ""
        return answer.output.decode("utf-8", "replace").strip()

    def show_outcome(self, outcome: Outcome, edits: Sequence[FileEdit] = (), points: Sequence[str] = ()) -> None:
        """Answer what a write did, and which files it edited; a dry run shows how it would edit them.

        ``points`` say which records are meant where a time or a commit was given.
        """
        from kbcli.messages.lines import outcome_line
        from kbcore.text.wording import some_of

        if self.output.is_json:
            files = {"files": [edit.as_json() for edit in edits]} if edits else {}
            self.output.document(outcome.as_json() | files | ({"points": list(points)} if points else {}))
            return
        for said in points:
            self.output.note(f"note: {escaped_sentence(said)}")
        if outcome.dry_run:
            for edit in edits:
                self.output.data(escape_lines(edit.diff()))
        self.output.say(outcome_line(outcome))
        if edits and not outcome.dry_run:
            paths = some_of([edit.path for edit in edits], _MOST_NAMED)
            self.output.say(escape_controls(f"Written: {paths}"))
        for warning in outcome.warnings:
            self.output.warn(escaped_sentence(self.located(warning)))

    def cache(self) -> Path | None:
        """Return the cache folder of this repository's KB, for a report of a bug; None where there is none."""
        from kbcore import git
        from kbcore.store.folders import CACHE, data_dir_of

        try:
            folder = data_dir_of(git.find_own_repository(self.start, self.env, **self.git_places)) / CACHE
            return folder if folder.is_dir() else None
        except (KBError, OSError):
            return None

    def close(self) -> None:
        """Release every view."""
        if "_pool" in self.__dict__:  # a pool that was not used was never made
            self._pool.close()


def session_of(ctx: Any) -> Session:
    """Return the session that a command runs in; ``ctx`` is its ``typer.Context``."""
    session: Session | None = ctx.find_object(Session)
    if session is None:
        raise LookupError("a command was run outside of kbcli.app.main")
    return session
