"""The workspace of one call of ``kb prolog``: each request is about the branch that is meant when it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kbcore.errors import InvalidQuery
from kbcore.limits import FILES_S
from kbcore.logic import source_files
from kbcore.logic.engine.libraries import LISTED, chosen
from kbcore.logic.pool import ClausePool
from kbcore.logic.source import BranchSource
from kbcore.logic.unrecorded_clauses import RunClauses, numbered
from kbcore.logic.workspace import PrologWorkspace
from kbcore.text.escaping import escape_controls, escaped_sentence, in_quotes

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.logic.clauses import ClauseStore, NewClause
    from kbcore.store.branch_store import BranchStore
    from kbcore.store.branches import Ensured
    from kbcore.store.history.when import When
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

T = TypeVar("T")


class Fault(NamedTuple):
    """A clause of a file that cannot be used."""

    file: str
    line: int
    message: str

    @property
    def shown(self) -> str:
        """Return it as compilers write it."""
        return escape_controls(f"{self.file}:{self.line}: {self.message}")


class Asking:
    """An engine, and what it is asked about. ``close`` ends the engine; the next request starts another one."""

    def __init__(self, session: Session, *, at: str | None, libraries: Sequence[str], roots: Sequence[str]) -> None:
        """Take the options of the command, and warn of libraries that cannot be loaded.

        Raises: ``InvalidQuery`` for a point that there is not.
        """
        wanted = chosen(session.env, libraries)
        for name in wanted.refused:
            known = f"these can be: {', '.join(LISTED)}"
            session.output.warn(f"The library {in_quotes(name)} cannot be loaded; {known}.")
        self.session = session
        self.prolog = PrologWorkspace(session.env, wanted)
        self.files: FileState | None = None
        """The relation of the facts of the graph to the files; None where no goal asked for the graph."""
        self._ensured: Ensured | None = None
        """The origin of the last request's store that was named to the user."""
        self._branch = ""
        """The branch of the last request."""
        self._roots = roots
        self._pool = ClausePool()
        self._of_run: RunClauses | None = None
        self._at = self._seq_of(at) if at is not None else None

    @property
    def is_past(self) -> bool:
        """Tell whether an earlier state is asked about."""
        return self._at is not None

    def close(self) -> None:
        """End the engine, and with it the open query."""
        self.prolog.close()

    def roots(self) -> source_files.Roots:
        """Return the folders whose files may be imported."""
        repo = self.session.workspace.repo
        given = [str(self.session.start / folder) for folder in self._roots]
        return source_files.roots_of(repo.worktree if repo.has_worktree else None, self.session.env, given)

    def source(self, *, writes: bool = False) -> BranchSource:
        """Return the branch that is meant now; one request of a prompt is one source.

        Raises: as opening a branch; ``InvalidQuery`` for a change of an earlier state.
        """
        from kbcore.store import branches

        session = self.session
        if writes and self.is_past:
            raise InvalidQuery(
                f"The workspace is shown as of seq {self._at}, which cannot be changed.", hint="Leave out --at."
            )
        session.begin_request(writes=writes)
        workspace = session.workspace.renewed()
        if writes:
            choice = branches.choose(workspace, session.named_branch)
            session.open_to_write(workspace, choice)
            store = workspace.store(choice.branch)
        else:
            store, choice, ensured = branches.open_to_read(workspace, session.named_branch)
            if ensured != self._ensured:
                session.show_ensured(ensured)
            self._ensured = ensured
            session.note_answering(workspace, choice.branch)
            session.watch(store)
        self._branch = choice.branch
        clauses: ClauseStore = self._pool.store(
            workspace, choice.branch, session.author, follows_head=choice.follows_head
        )
        if self._of_run is not None:
            self._of_run.recorded = clauses
            clauses = self._of_run

        def read_now(use: Callable[[View], T]) -> T:
            found, self.files = session.files.read(
                workspace, choice.branch, lambda view, state: (use(view), state), time_s=FILES_S
            )
            return found

        read = read_now if self._at is None else self._reader_of(store, self._at)
        return BranchSource(workspace, choice.branch, clauses, read, self._at)

    def add_of_run(self, files: Sequence[tuple[str, str]]) -> list[Fault]:
        """Add the clauses of files, each a name and a text, for this run; return those that cannot be used.

        Raises: as a request to the engine.
        """
        source = self.source()
        found: list[NewClause] = []
        faults: list[Fault] = []
        for name, text in files:
            taken, errors = self.prolog.clauses_of_file(source, name, text)
            found += taken
            faults += [Fault(name, line, message) for line, message in errors]
        self._of_run = RunClauses(numbered(found))
        return faults

    def head(self) -> dict[str, Any]:
        """Return the members that begin a document: the branch, and the files where a goal asked for the graph."""
        return {"branch": self._branch} | (self.files.as_json() if self.files else {}) | self.prolog.held_back

    def show_notices(self) -> None:
        """Warn of what is to be said of the engine, and note how the graph relates to the files."""
        for said in dict.fromkeys(self.prolog.notices):
            self.session.output.warn(escaped_sentence(said))
        self.prolog.notices.clear()
        if self.files is not None and not self.session.output.is_json:
            self.session.show_files(self._branch, self.files)

    def _seq_of(self, at: str) -> int:
        from kbcore.store.history.moment import read_meant
        from kbcore.sync.overlay import as_of

        opened = self.session.open_to_read()
        self._branch = opened.branch
        notes = self.session.notes
        found = read_meant(opened.store, opened.point(at), lambda _, found: found, notes=notes)
        self.files = as_of(found.seq, found.said)
        self.session.show_point(self.files)
        return found.seq

    @staticmethod
    def _reader_of(store: BranchStore, seq: int) -> Callable[[Callable[[View], Any]], Any]:
        from kbcore.store.history.moment import read_at

        point: When | str = str(seq)
        return lambda use: read_at(store, point, lambda view, _: use(view))
