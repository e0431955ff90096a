"""One request of KIP: its commands carried out in order, each answered in KIP's own shape.

Each command that writes is one changeset, all of it or nothing; around a batch there is no transaction. The first
command that fails is the last one that is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import Interrupted, InvalidQuery, KBError
from kbcore.errors.remedies import for_shell, kb
from kbcore.ids import is_link_id
from kbcore.kip import kb_errors
from kbcore.kip import syntax as s
from kbcore.kip.binding import read as read_command
from kbcore.kip.errors import IMMUTABLE, NOT_FOUND, SYNTAX, envelope, placing, refused
from kbcore.kip.meta import describe, search
from kbcore.kip.request import CommandText, KipRequest
from kbcore.kip.run_statement import unknown_names, with_present_ids
from kbcore.process import interrupting
from kbcore.process.interrupting import Stopped
from kbcore.query.former_ids import said as said_of
from kbcore.store import dry_run
from kbcore.store.branch_store import BranchStore
from kbcore.store.history.moment import Meant, meant, read_head
from kbcore.store.history.when import When, point_in
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.sync.overlay import FileState, WorktreeFiles, as_of
from kbcore.text.escaping import in_quotes
from kbcore.view.branch_definitions import schema_at
from kbcore.view.view import View

Response = dict[str, Any]
Reading = s.FindCommand | s.SearchCommand | s.ExportCommand | s.Describe
_WHEN: Final = 'Write a seq, AT 12, or a time or revision in quotes: AT "2026-01-31T12:00:00Z", AT "HEAD~2".'
_WHERE_TO_WRITE: Final = (
    f"Send it where KIP may write: `execute_kip`, or {kb('kip')}; ask the user where there is none."
)


class KipContext(msgspec.Struct, frozen=True):
    """The branch of a request, and its author. With ``is_read_only`` nothing is written."""

    workspace: Workspace
    branch: str
    author: Author
    follows_head: bool
    is_read_only: bool = False
    files: WorktreeFiles | None = None
    """The files that a read includes; None for the records alone."""
    is_local: bool = False
    """A time in AT without a zone is one of the machine's own zone, else of UTC."""
    say: Callable[[str], str] = for_shell
    """Words a remedy for the client (``kbcore.errors.remedies``)."""

    def say_here(self, text: str) -> str:
        """Do as ``say``, with the place of what has to be run elsewhere."""
        return self.say(self.workspace.located(text, self.branch))

    @property
    def store(self) -> BranchStore:
        """Return what answers for the branch now: another store before the first record than after it."""
        return self.workspace.store(self.branch)


class Piece(msgspec.Struct, frozen=True):
    """The answer of one command that succeeded.

    ``again`` answers the command with so many rows at most; None for one whose answer has no rows to page through.
    """

    tree: s.Command
    response: Response
    seq: int
    again: Callable[[int], Piece] | None = None
    warnings: tuple[str, ...] = ()
    files: FileState | None = None
    """The relation of the answer to the files, where it was read with them."""
    point: str = ""
    """The way from AT to the seq of the answer, where it names a time or a commit."""


Fit = Callable[[Piece, int], Response]
"""Makes an answer fit where it goes; it is given how many commands of the batch are still to come."""


class KipAnswer(msgspec.Struct, frozen=True):
    """The answer to a request in KIP's shape; ``seq`` is the last one that it has read, None where it reads none.

    ``files`` says how the last answer that was read relates to the files, where they were looked at.
    """

    response: Response
    is_error: bool = False
    seq: int | None = None
    warnings: tuple[str, ...] = ()
    files: FileState | None = None


def run(
    around: KipContext, request: KipRequest, fit: Fit | None = None, *, answers_interruption: bool = False
) -> KipAnswer:
    """Carry out a request. What KB refuses or fails with is an answer too; a bug is raised as it is.

    With ``answers_interruption`` that is so as well of a work that was stopped: the answer says which commands were
    carried out before. Otherwise ``Stopped`` is raised.

    In a dry run of a batch each command sees what those before it would have written.
    """
    if not (request.dry_run and request.is_batch) or around.is_read_only:
        return _run(around, request, fit, answers_interruption=answers_interruption)
    view = dry_run.unshared_view(around.workspace, around.branch)
    try:
        head = around.store.head()
        return view.ask(
            head, lambda own: _run(around, request, fit, answers_interruption=answers_interruption, trial=own)
        )
    except KBError as failure:
        refusal = kb_errors.in_batch(kb_errors.in_kip(failure, writes=True), 0, len(request.commands), dry_run=True)
        return _answer(request, [envelope(refusal, around.say_here)], [], None, is_error=True)
    finally:
        view.close()


def _run(
    around: KipContext,
    request: KipRequest,
    fit: Fit | None,
    *,
    answers_interruption: bool,
    trial: View | None = None,
) -> KipAnswer:
    """Carry out a request, as a dry run of a batch on the view ``trial``."""
    responses: list[Response] = []
    warnings: list[str] = []
    head = trial.seq if trial else None
    seq: int | None = None
    files: FileState | None = None
    count = len(request.commands)
    for at, command in enumerate(request.commands):
        attempt = _Attempt(around, dry_run=request.dry_run, trial=trial)
        try:
            interrupting.begin_answer()
            piece = attempt.run(command)
            with placing(command.text):
                response = fit(piece, count - at - 1) if fit else piece.response
        except (KBError, Stopped) as failure:
            if isinstance(failure, Stopped) and (not answers_interruption or interrupting.is_writing()):
                raise
            error = failure if isinstance(failure, KBError) else Interrupted("The command was interrupted.")
            refusal = kb_errors.in_kip(
                error, writes=attempt.writes or (isinstance(failure, Stopped) and request.writes)
            )
            if request.is_batch:
                refusal = kb_errors.in_batch(refusal, at, count, dry_run=request.dry_run)
            return _answer(request, [*responses, envelope(refusal, around.say_here)], warnings, seq, is_error=True)
        seq = piece.seq if head is None else head
        files = piece.files or files
        warnings += [warning for warning in piece.warnings if warning not in warnings]
        responses.append(response)
    return msgspec.structs.replace(_answer(request, responses, warnings, seq), files=files)


def _answer(
    request: KipRequest, responses: list[Response], warnings: list[str], seq: int | None, *, is_error: bool = False
) -> KipAnswer:
    response: Response = {"result": responses} if request.is_batch else responses[0]
    return KipAnswer(response, is_error, seq, tuple(warnings))


class _Attempt:
    """One command on its way."""

    def __init__(self, around: KipContext, *, dry_run: bool, trial: View | None = None) -> None:
        """``trial`` is the view of a dry run of a batch, None where the branch itself is asked."""
        self._around = around
        self._trial = trial
        self._dry_run = dry_run
        self.writes = False
        """True if the command would write, as far as it could be read."""

    def run(self, command: CommandText) -> Piece:
        """Parse, bind and run a command. Raises: ``KBError``."""
        tree = read_command(command.text, command.parameters, lead=command.lead)
        with placing(command.text):
            if isinstance(tree, Reading):
                return self._read(tree)
            self.writes = True
            if self._around.is_read_only:
                word = command.text[tree.at :].split("(")[0].split()[0]
                message = f"{word} writes, and this only reads: it was not run."
                raise refused(IMMUTABLE, message, at=tree.at, hint=_WHERE_TO_WRITE)
            return self._written(tree)

    def _written(self, tree: s.Upserts | s.Delete | s.Update | s.Merge) -> Piece:
        from kbcore.kip import kml  # noqa: PLC0415 - who only reads plans nothing

        around = self._around
        self._check_recorded(tree)
        if self._trial is not None:
            trial = self._trial
            result, warnings = kml.execute_on_view(around.workspace, around.branch, around.author, tree, trial)
            return Piece(tree, {"result": result}, trial.seq, warnings=warnings)
        options = kml.KmlOptions(dry_run=self._dry_run)
        done = kml.execute(
            around.workspace, around.branch, around.author, tree, options, follows_head=around.follows_head
        )
        return Piece(tree, {"result": done.result}, done.outcome.seq, warnings=done.outcome.warnings)

    def _check_recorded(self, tree: s.Upserts | s.Delete | s.Update | s.Merge) -> None:
        """Refuse a write that names what a file states and no record has, or what no file states any more.

        Raises: ``KipRefused`` (KIP_3002).
        """
        from kbcore.kip.names import type_names  # noqa: PLC0415 - as in _written
        from kbcore.kip.scoping import parts_of  # noqa: PLC0415
        from kbcore.sync import locate  # noqa: PLC0415

        around, files = self._around, self._around.files
        if files is None:
            return
        types = type_names(around.workspace.schema)
        places: dict[str, int] = {}
        for part in parts_of(tree):
            if isinstance(part, s.Matcher | s.LinkId) and part.id:
                places.setdefault(part.id.value, part.at)
            elif (
                isinstance(part, s.Matcher)
                and part.type
                and part.name
                and types.is_named_by_id(types.of_kip.get(part.type.value, ""))
            ):
                places.setdefault(part.name.value, part.at)
        read = partial(files.read, around.workspace, around.branch, time_s=limits.FILES_S)

        def overlaid(use: Callable[[View], Any]) -> Any:
            return read(lambda view, _: use(view))

        if not places or not overlaid(lambda view: bool(view.overlay_mark)):
            return
        said = {
            key: locate.unrecorded_words(in_quotes(key), path)
            for key, path in locate.unrecorded(overlaid, places).items()
        }
        recorded = around.workspace.store(around.branch).read
        entities = [key for key in places if not is_link_id(key)]
        said |= {key: locate.withdrawn_words(key) for key in locate.withdrawn(overlaid, recorded, entities)}
        for key, message in said.items():
            raise refused(NOT_FOUND, message, at=places[key], hint=locate.SYNC_FIRST)

    def _read(self, tree: Reading) -> Piece:
        around = self._around
        when = self._point(tree.when) if isinstance(tree, s.FindCommand) and tree.when else None
        if self._trial is not None:
            return self._answered(self._trial, tree, when)
        if around.files is None or isinstance(tree, s.ExportCommand):  # a capsule states records
            return read_head(around.store, lambda view: self._answered(view, tree, when))
        piece, files = around.files.read_page(
            around.workspace,
            around.branch,
            lambda view: self._answered(view, tree, when),
            lambda piece: piece.seq,
            time_s=limits.FILES_S,
        )
        files = as_of(piece.seq, piece.point) if piece.point else files
        return msgspec.structs.replace(piece, seq=files.seq, files=files)

    def _point(self, when: s.JsonValue) -> When:
        """Return the point that AT names. Raises: ``KipRefused`` (KIP_1001) for what is none."""
        if isinstance(when.json, bool) or not isinstance(when.json, int | str):
            raise refused(SYNTAX, "AT takes a seq, a time or a revision of git.", at=when.at, hint=_WHEN)
        around = self._around
        try:
            return point_in(around.workspace, around.branch, str(when.json), is_local=around.is_local)
        except InvalidQuery as error:
            raise refused(SYNTAX, error.message, at=when.at, hint=error.remedy) from error

    def _answered(self, view: View, tree: Reading, when: When | None) -> Piece:
        workspace = self._around.workspace
        schema = view.schema(workspace.schema)
        most = workspace.config.kip
        now = workspace.machine.clock.now()
        response: Response
        seq, said = view.seq, ""
        warnings = list[str]()
        match tree:
            case s.FindCommand():
                from kbcore.kip.find import find  # noqa: PLC0415 - META needs no compiler

                at = None
                if when and tree.when:
                    at, said, _ = _meant(view, when, tree.when.at)
                schema = schema if at is None else schema_at(view.rows, workspace.schema, at)
                query, former = with_present_ids(view, schema, tree, at)
                found = find(view, schema, query, at=at, limits=most, now=now)
                response, seq = paged(found.result, found.next_cursor), found.seq
                warnings = said_of(former, at)
                if not found.result and at is None:
                    warnings += unknown_names(view, schema, query)
            case s.ExportCommand():
                from kbcore.kip.kml.export import export  # noqa: PLC0415 - as above

                whole, former = with_present_ids(view, schema, tree, None)
                warnings = said_of(former)
                exported = export(view, schema, whole, most, now=now)
                response = paged(exported.result, exported.next_cursor)
            case s.SearchCommand():
                place = search.IndexLocation(workspace, self._around.store, self._around.branch)
                searched = search.search(place, view, schema, tree)
                response = paged(searched.result, searched.next_cursor)
                warnings = [*searched.notes]
            case _:
                around, former = with_present_ids(view, schema, tree, None)
                warnings = said_of(former)
                response = paged(*describe.describe(view, schema, around))

        def again(limit: int) -> Piece:
            return self._read(msgspec.structs.replace(tree, limit=s.Count(limit)))

        return Piece(tree, response, seq, again if hasattr(tree, "limit") else None, tuple(warnings), point=said)


def _meant(view: View, when: When, at: int) -> Meant:
    """Return the record that AT means. Raises: ``KipRefused`` (KIP_1001) where there is none; ``HistoryPruned``."""
    try:
        return meant(view, when)
    except InvalidQuery as error:
        raise refused(SYNTAX, error.message, at=at, hint=error.remedy) from error


def paged(result: Any, next_cursor: str) -> Response:
    """Return the answer of a command that succeeded; only one with more rows has a cursor."""
    return {"result": result} | ({"next_cursor": next_cursor} if next_cursor else {})
