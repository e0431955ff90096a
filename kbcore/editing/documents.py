"""Changed documents: written into the worktree, and what they say then recorded as one record.

A file is written only when an extractor reads from the new text what was meant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kbcore import limits
from kbcore.checks.introduced import written
from kbcore.editing.file_edits import FileEdit, put_back, read_file, write_all
from kbcore.errors import (
    DerivedFact,
    IntegrityViolation,
    Interrupted,
    InvalidChangeset,
    InvalidQuery,
    KBError,
    NotFound,
    NotSynced,
    Problem,
    StaleBase,
)
from kbcore.errors.remedies import kb, shell
from kbcore.extract.facts import SYNTAX_FAULTS, Facts, StatedEntity, StatedLink
from kbcore.extract.markdown import NAME as MARKDOWN
from kbcore.model.changeset import Changeset
from kbcore.model.graph import NOTES_OF_RULES, UNKNOWN_STATUS, NoteOnFile
from kbcore.model.record import SYNC
from kbcore.model.state import Draft, Stamp
from kbcore.process import interrupting
from kbcore.rules import unknown_status
from kbcore.store.answers import Outcome
from kbcore.store.apply import Reading
from kbcore.store.history import undo
from kbcore.store.history.undo import UndoOptions
from kbcore.store.workspace import Workspace, head_moved
from kbcore.store.write_request import Author, Planner, Request
from kbcore.sync.active_extractors import as_defined
from kbcore.sync.begun_renames import BegunRename, forget_begun
from kbcore.sync.checkout import Checkout, settled
from kbcore.sync.pending import PendingFiles, place_of
from kbcore.sync.planned import FilePlan
from kbcore.sync.run import IN_WORKTREE
from kbcore.sync.scan import FoundFile, Scan, content_of, wanted_at
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.text.escaping import problem_line
from kbcore.text.problems import added
from kbcore.text.wording import some_of
from kbcore.view.view import View

_MOST_NAMED: Final = 10
_RECORDED_BESIDE: Final = (
    "Another process recorded changes while the files were written; what the files say is recorded."
)


Point = TypeVar("Point")


class WriteTarget(NamedTuple):
    """The branch that is written to, and by whom; ``read`` gives a view of it with what the files say."""

    workspace: Workspace
    branch: str
    author: Author
    read: Reading
    follows_head: bool

    def apply(self, changeset: Changeset) -> Outcome:
        """Commit a changeset, with the warnings of ``written.apply_changeset``. Raises: as ``writes.apply``."""
        return written.apply_changeset(
            self.workspace, self.branch, self.author, changeset, follows_head=self.follows_head, read=self.read
        )

    def revert(self, seqs: Sequence[int], options: UndoOptions) -> Outcome:
        """Undo records, with the warnings of ``written.undone``. Raises: as ``undo.revert`` and ``written.undone``."""
        return self._undone(undo.revert, seqs, options)

    def roll_back(self, to_seq: int, options: UndoOptions) -> Outcome:
        """Go back to a seq, with the warnings of ``written.undone``. Raises: as ``undo.rollback``; as ``revert``."""
        return self._undone(undo.rollback, to_seq, options)

    def _undone(self, how: written.Undo[Point], point: Point, options: UndoOptions) -> Outcome:
        return written.undone(
            how,
            self.workspace,
            self.branch,
            self.author,
            point,
            options=options,
            follows_head=self.follows_head,
            read=self.read,
        )


Extractors = Sequence[ActiveExtractor]
"""The extractors in force, of ``sync.pending.wanted``: an operation asks for them once, not for each file."""

More = Callable[[View, Stamp, Draft], Draft]
"""Adds to what the files come to what else belongs into the same record."""


def refused(
    path: str, line: int, message: str, hint: str, *, subject: str = "", field: str = "", values: Sequence[str] = ()
) -> DerivedFact:
    """Return the error for a fact that KB does not change in its file: it names the file and the line.

    ``subject``, ``field`` and ``values`` are those of ``Problem``.
    """
    place = f"{path}:{line}" if line else path
    said = f"{place}: {message}"
    problem = Problem("$", DerivedFact.code, said, hint, path, line, subject, field, tuple(values))
    return DerivedFact(problem.message, hint=hint, details=[problem], says_first=True)


def read_document(workspace: Workspace, path: str) -> bytes:
    """Return the content of a document. Raises: ``NotSynced`` when it is gone, else as ``read_file``."""
    data = read_file(workspace.repo.worktree / path, workspace.repo.worktree, path)
    if data is None:
        raise NotSynced(f"{path} is not there any more.", hint=f"{kb('sync')} records that it is gone.")
    return data


def facts_of(extractors: Extractors, path: str, data: bytes) -> Facts:
    """Return what a document would state with this content; nothing where no extractor wants the path."""
    found = wanted_at(extractors, path)
    facts = content_of(found, data).facts if found else None
    return facts or Facts()


def require_whole(path: str, facts: Facts) -> None:
    """Refuse to edit a file of which not all can be read, whether or not that is known: an edit may do harm there.

    Raises: ``DerivedFact`` with the line of the first fault.
    """
    for one in facts.problems:
        if one.code in SYNTAX_FAULTS and one.severity == "error":
            raise refused(path, one.line, f"{one.message}; KB edits no file that cannot be read whole.", one.hint)


def is_markdown(extractors: Extractors, path: str) -> bool:
    """Return whether a file is read as a Markdown document."""
    found = wanted_at(extractors, path)
    return found is not None and found.wanted.extractor.name == MARKDOWN


def entity_in(facts: Facts, key: str) -> StatedEntity | None:
    """Return the entity of an id that a file states."""
    return next((one for one in facts.entities if one.id == key), None)


def meaning(facts: Facts, swap: Mapping[str, str] | None = None) -> list[Any]:
    """Return what facts say, without the lines that say it; ``swap`` maps ids to others that take their place."""
    names = swap or {}

    def link(one: StatedLink) -> list[Any]:
        target = one.target if one.is_path else names.get(one.target, one.target)
        return [names.get(one.subject, one.subject), target, one.type, one.kind, one.fields, one.is_path, one.reverse]

    entities = [[names.get(one.id, one.id), one.type, one.fields] for one in facts.entities]
    problems = [[one.code, one.severity] for one in facts.problems]
    encode = msgspec.json.Encoder(order="sorted").encode
    return [entities, sorted(encode(link(one)) for one in facts.links), sorted(problems), facts.is_complete]


def framed(target: WriteTarget, *, message: str, dry_run: bool) -> Request:
    """Return what frames the record of changed documents."""
    return Request(
        digest=hashlib.sha256(target.branch.encode()).hexdigest(),
        message=message,
        dry_run=dry_run,
        limit_bytes=limits.MAX_RECORD_BYTES,
        lock_wait_s=target.workspace.config.lock_wait_s,
    )


def commit(
    target: WriteTarget,
    edits: Sequence[FileEdit],
    request: Request,
    *,
    more: More | None = None,
    plan: Planner | None = None,
    begun: Sequence[BegunRename] = (),
) -> Outcome:
    """Write files and record what they say, as one record; where the request is a dry run neither.

    The answer warns of the rules that this newly breaks, as ``written.apply_changeset`` does; that of a ``plan`` does
    not.

    What would refuse the record is found before a file is written. If something refuses it afterwards, the files are
    written, as the error says, and the next sync records them; if the work is stopped before the record is begun, they
    are put back. ``plan`` plans the record in place of what a sync of the
    files would; where it does not fit any more because of what was recorded meanwhile, the files are synced instead.
    ``begun`` are the renames in it, noted for the sync that comes after a crash.

    Raises: ``InvalidQuery`` for a branch that is not checked out; ``StaleBase`` when a file is not what was read;
    ``InvalidChangeset`` for a file that could not be read completely any more; ``StorageError``; ``BranchMoved``; what
    ``more`` and ``BranchStore.commit`` raise.
    """
    if plan:
        return _committed(target, edits, request, plan, begun)
    drafts: list[Draft] = []

    def noted(view: View, stamp: Stamp, draft: Draft) -> Draft:
        _require_whole(draft)
        drafts.append(more(view, stamp, draft) if more else draft)
        return drafts[-1]

    workspace = target.workspace
    target = target._replace(author=msgspec.structs.replace(target.author, source=SYNC))
    outcome = _committed(target, edits, request, _planner(target, edits, noted))
    draft = drafts[-1] if drafts[-1].changes else drafts[0]  # a watcher may have recorded it once it was written
    if not draft.changes:
        return outcome
    seq = None if request.dry_run else outcome.seq
    said = written.warnings_of(workspace, target.branch, target.author, draft, seq=seq, read=target.read)
    said += _statuses(workspace, draft)
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *said))


def _committed(
    target: WriteTarget,
    edits: Sequence[FileEdit],
    request: Request,
    planner: Planner,
    begun: Sequence[BegunRename] = (),
) -> Outcome:
    workspace, branch = target.workspace, target.branch
    checkout = _checked_out(target)
    tried = msgspec.structs.replace(request, dry_run=True)
    head_commit = workspace.head_commit(branch)
    outcome = workspace.store(branch).commit(
        target.author, tried, planner, guard=checkout.guard, head_commit=head_commit, branch=branch
    )
    if request.dry_run:
        return outcome
    return _written_and_recorded(target, edits, request, planner, begun=begun, head_commit=head_commit)


def _written_and_recorded(
    target: WriteTarget,
    edits: Sequence[FileEdit],
    request: Request,
    planner: Planner,
    *,
    begun: Sequence[BegunRename],
    head_commit: Callable[[], str],
) -> Outcome:
    workspace, branch, author = target.workspace, target.branch, target.author
    store = workspace.made(branch)
    fs, cache_dir, root = workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree

    def record(by: Author, planner: Planner) -> Outcome:
        guard = settled(workspace).guard
        return store.commit(by, request, planner, guard=guard, head_commit=head_commit, branch=branch)

    def finished(outcome: Outcome) -> Outcome:
        if begun:
            forget_begun(fs, cache_dir, root, begun)
        return outcome

    begun_edits: list[FileEdit] = []
    is_written = False
    try:
        write_all(workspace, edits, begun, begun_edits)
        is_written = True
        try:
            return finished(record(author, planner))
        except (NotFound, StaleBase, IntegrityViolation):
            if not begun:
                raise
            # Another process recorded something in between, such as a watcher that saw some of the files: what they
            # say now is recorded as a sync records it.
            author = msgspec.structs.replace(author, source=SYNC)
            outcome = record(author, _planner(target, edits, None))
            return finished(msgspec.structs.replace(outcome, warnings=(*outcome.warnings, _RECORDED_BESIDE)))
    except KBError as error:
        if is_written:
            _say_written(error, edits)
        raise
    except BaseException as error:  # the work was stopped, or there is a bug
        if not (is_written and interrupting.is_writing()):
            _put_back_all(workspace, begun_edits, begun, error)
        raise


def _say_written(error: KBError, edits: Sequence[FileEdit]) -> None:
    """Add to an error that the files were written, although their record was refused."""
    paths = some_of([edit.path for edit in edits], _MOST_NAMED)
    were = "was" if len(edits) == 1 else "were"
    error.add(f"{paths} {were} written; {shell('sync')} records it.")
    error.applied = "yes"


def _put_back_all(
    workspace: Workspace, edits: Sequence[FileEdit], begun: Sequence[BegunRename], error: BaseException
) -> None:
    """Put files back, as far as they were written, after what ended the write of their record.

    Raises: ``Interrupted`` when not all of them are as they were; it names those.
    """
    left = put_back(workspace, edits)
    if left:
        message = f"KB was interrupted after it had written {some_of(left, _MOST_NAMED)}, and could not put that back."
        stopped = Interrupted(
            message, hint=f"`git diff` shows what was written. {kb('sync')} records it, or put it right."
        )
        stopped.applied = "yes"
        raise stopped from error
    if begun:
        forget_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree, begun)


def _new_notes(draft: Draft) -> Iterator[tuple[str, NoteOnFile]]:
    """Yield each problem, with its file, that a file has after a draft and did not have before."""
    for change in draft.changes.sources:
        if change.after:
            known = change.before.problems if change.before else ()
            yield from ((change.key, note) for note in added(known, change.after.problems))


def _require_whole(draft: Draft) -> None:
    """Refuse an edit that leaves something in its file that cannot be read. Raises: ``InvalidChangeset``."""
    found = [
        Problem("$", note.code, f"{path}:{note.line}: {note.message}", note.hint, path, note.line)
        for path, note in _new_notes(draft)
        if note.severity == "error" and note.code not in NOTES_OF_RULES
    ]
    if found:
        raise InvalidChangeset(found[0].message, hint=found[0].remedy, details=found, says_first=True)


def _statuses(workspace: Workspace, draft: Draft) -> Iterator[str]:
    """Yield a sentence for each status that no entity of its type has: the rule of it looks at everything."""
    level = workspace.config.rules.get(UNKNOWN_STATUS, unknown_status.RULE.severity)
    for path, note in _new_notes(draft):
        if NOTES_OF_RULES.get(note.code) == UNKNOWN_STATUS and level != "off":
            yield f"{UNKNOWN_STATUS} ({level}): {problem_line(path, note.line, note.message, note.hint)}"


def require_checked_out(target: WriteTarget) -> None:
    """Refuse to change documents of another branch than the one that is checked out.

    Raises: ``InvalidQuery``, ``BranchMoved``.
    """
    if not target.workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no documents.", hint=IN_WORKTREE)
    _require_current(target, target.workspace.head().branch)


def _require_current(target: WriteTarget, current: str) -> None:
    branch = target.branch
    if branch == current:
        return
    if target.follows_head:
        error = head_moved(branch, current)
        error.remedy = f"Documents are changed on the branch that is checked out. Check out {branch} first."
        raise error
    raise InvalidQuery(
        f"KB changes documents of {current}, which is checked out; it does not change those of {branch}.",
        hint=f"Check out {branch}, or run it in a worktree of {branch} without naming a branch.",
    )


def _checked_out(target: WriteTarget) -> Checkout:
    """Return what is checked out, which is the branch that is written to. Raises: as ``require_checked_out``."""
    require_checked_out(target)
    checkout = settled(target.workspace)
    _require_current(target, checkout.head.branch)
    return checkout


def _planner(target: WriteTarget, edits: Sequence[FileEdit], more: More | None) -> Callable[[View, Stamp], Draft]:
    workspace, claims = target.workspace, target.workspace.store(target.branch).claims
    place = place_of(workspace)
    place = msgspec.structs.replace(place, named=tuple(edit.path for edit in edits))
    now_ns = workspace.machine.clock.epoch_ns()

    def plan(view: View, stamp: Stamp) -> Draft:
        changed: list[FoundFile] = []
        wants = as_defined(place.wants, view)
        for edit in edits:
            found = wanted_at(wants, edit.path)
            if found:
                changed.append(content_of(found, edit.after))
        scan = Scan({one.path: one for one in changed}, {})
        pending = PendingFiles(view.seq, scan, len(changed), tuple(changed), (), ())
        compared = FilePlan(place, workspace.schema, pending, now_ns, claims=claims).on(view, stamp)
        last = compared.last
        draft = Draft(last.ops, last.changes, compared.loaded, warnings=last.warnings, reads=compared.reads)
        return more(view, stamp, draft) if more else draft

    return plan
