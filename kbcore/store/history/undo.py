"""Undo as a new record: revert what some records did, or roll back to the state at a seq.

Nothing is erased: the inverse is planned from the view's history and committed like any other changeset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from kbcore import gc_pause, limits
from kbcore.errors import ContentRedacted, InvalidQuery, LimitExceeded, NotFound
from kbcore.errors.remedies import kb
from kbcore.model.changeset import check_frame, digest_of
from kbcore.model.concepts import DEFINING, extended
from kbcore.model.folding import apply
from kbcore.model.read_set import needs
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Draft, Stamp, StateReads
from kbcore.storage.places import record_range
from kbcore.store.answers import Outcome
from kbcore.store.apply import Noting, defines, users
from kbcore.store.history.log import RecordFilter
from kbcore.store.history.reach import check_record, first_record
from kbcore.store.history.reverting import reverted
from kbcore.store.history.undo_plan import (
    Restoration,
    check_expected,
    keep_vocabulary,
    operations,
    refuse,
    sentences,
    undone_already,
)
from kbcore.store.history.writers import WriterFilter
from kbcore.store.planning.definitions import missed
from kbcore.store.proposing import proposing
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Planner, Request
from kbcore.text.wording import pluralize, some_of
from kbcore.view.branch_definitions import definitions
from kbcore.view.history import changes_between
from kbcore.view.view import View

_MOST_NAMED: Final = 100
"""The most records that the message of a revert names."""


class UndoOptions(msgspec.Struct, frozen=True):
    """Options of an undo: why, the client's id for retries, a dry run, and whether old values replace newer ones.

    With ``writer``, only the writer's changes are undone of records that brought changes of others. With
    ``expected_seq``, nothing is where a record after it changed what the undo would change; a rollback does not use it.
    """

    message: str = ""
    changeset_id: str = ""
    dry_run: bool = False
    force: bool = False
    writer: WriterFilter = WriterFilter()
    expected_seq: int | None = None


def revert(
    workspace: Workspace,
    branch: str,
    author: Author,
    seqs: Sequence[int],
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    *,
    follows_head: bool,
    note: Noting | None = None,
) -> Outcome:
    """Undo, field by field, what these records did, as one new record; ``note`` gets each draft that is made of it.

    Raises: ``RevertConflict`` when a later record changed the same, or renamed again what one of these renamed, when
    edges would be left without an end, or a use of it without its definition; ``StaleBase`` by ``expected_seq``;
    ``InvalidChangeset``, ``NotFound``, ``HistoryPruned``, ``ContentRedacted``; what ``BranchStore.commit`` raises.
    """
    request = revert_request(seqs, options)
    refuse_redacted(workspace, branch, seqs)
    plan = revert_planner(sorted(set(seqs), reverse=True), workspace.schema, options)
    plan = _noted(proposing(workspace, author, plan), note)
    return _commit(workspace, branch, author, request, plan, follows_head=follows_head)


def rollback(
    workspace: Workspace,
    branch: str,
    author: Author,
    to_seq: int,
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    *,
    follows_head: bool,
    note: Noting | None = None,
) -> Outcome:
    """Restore the state at a seq, as one new record; ``note`` is as in ``revert``.

    Raises: ``NotFound`` for a seq that is not there yet; ``InvalidChangeset``, ``HistoryPruned``; what
    ``BranchStore.commit`` raises.
    """
    request = rollback_request(to_seq, options)
    plan = _noted(proposing(workspace, author, rollback_planner(to_seq)), note)
    return _commit(workspace, branch, author, request, plan, follows_head=follows_head)


def records_of(view: View, selection: RecordFilter) -> list[int]:
    """Return the selected records that clients wrote, to undo them as one, and those that brought changes of theirs.

    What a sync recorded of documents is undone in files.

    Raises: ``NotFound`` where there is none; ``LimitExceeded``; as ``RecordFilter.bounds``.
    """
    seqs = msgspec.structs.replace(selection, of_clients=True).seqs(view)
    if not seqs:
        hint = f"{selection.near_actors(view)} {kb('log', lead='See')}; records of a sync are undone in the files."
        raise NotFound("No record of a client is selected: there is nothing to undo.", hint=hint.lstrip())
    if len(seqs) > limits.MAX_REVERTED:
        hint = (
            f"Undo the newest first, with a later point; or roll back, which takes everything back: {kb('rollback')}."
        )
        raise LimitExceeded(f"{len(seqs)} records are selected; the limit is {limits.MAX_REVERTED}.", hint=hint)
    return seqs


def message_of(selection: RecordFilter, count: int) -> str:
    """Return the message of the record that undoes so many selected records, where the caller gives none."""
    since, until = (point.text if point else "" for point in (selection.since, selection.until))
    given = {"actor": selection.actor, "session": selection.session, "since": since, "until": until}
    words = [f"{name} {value}" for name, value in given.items() if value]
    return f"revert {' '.join(words)} ({pluralize(count, 'record')})"


def refuse_redacted(workspace: Workspace, branch: str, seqs: Sequence[int]) -> None:
    """Refuse to undo records from whose operations something was taken out. Raises: ``ContentRedacted``."""
    store = workspace.store(branch)

    def find(view: View) -> list[int]:
        there = [seq for seq in sorted(set(seqs)) if 0 < seq <= view.recorded_seq]
        records = [(seq, store.record_at(view, seq)) for seq in there]
        return [seq for seq, record in records if record and any(map(_is_of_value, record.redacted))]

    found = store.read(find)
    if found:
        raise ContentRedacted(
            f"What {record_range(found[0], found[0])} wrote was redacted: it cannot be undone.",
            hint=f"{kb('show', found[0])} names the fields. Set them to what they are to be.",
            data={"seqs": found},
        )


def _is_of_value(place: str) -> bool:
    return place.startswith("ops.") and not place.endswith(".hash")


def revert_request(seqs: Sequence[int], options: UndoOptions) -> Request:
    """Return what frames the record of a revert. Raises: ``InvalidChangeset``, ``InvalidQuery`` without any record."""
    ordered = sorted(set(seqs), reverse=True)
    if not ordered:
        raise InvalidQuery(
            "No record is named.", hint=f"Name the seq of each record to revert; {kb('log', lead='see')}."
        )
    message = options.message or f"revert {some_of([*map(str, ordered)], _MOST_NAMED)}"
    by = options.writer
    named = {"actor": by.actor, "session": by.session} if by else {}
    asked = {"seqs": ordered, "force": options.force, "expected_seq": options.expected_seq, **named}
    return _request("revert", asked, message, options)


def rollback_request(to_seq: int, options: UndoOptions) -> Request:
    """Return what frames the record of a rollback. Raises: ``InvalidChangeset``."""
    return _request("rollback", {"to": to_seq}, options.message or f"rollback to {to_seq}", options)


def _noted(planner: Planner, note: Noting | None) -> Planner:
    """Return what plans the same and hands out each draft."""

    def plan(view: View, stamp: Stamp) -> Draft:
        draft = planner(view, stamp)
        if note is not None:
            note(draft)
        return draft

    return plan


def _request(asked: str, members: Mapping[str, Any], message: str, options: UndoOptions) -> Request:
    check_frame(options.changeset_id, options.message)
    return Request(
        changeset_id=options.changeset_id,
        digest=digest_of(asked, {**members, "message": options.message}),
        message=message,
        dry_run=options.dry_run,
        limit_bytes=limits.MAX_RECORD_BYTES,
        restores=True,
        plans_ahead=True,
    )


def _commit(
    workspace: Workspace, branch: str, author: Author, request: Request, plan: Planner, *, follows_head: bool
) -> Outcome:
    guard = workspace.guard(branch) if follows_head else None
    request = msgspec.structs.replace(request, lock_wait_s=workspace.config.lock_wait_s)
    return workspace.store(branch).commit(
        author, request, plan, guard=guard, head_commit=workspace.head_commit(branch), branch=branch
    )


def revert_planner(
    seqs: Sequence[int],
    schema: Schema,
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    *,
    restored: Collection[str] = (),
) -> Planner:
    """Return the function that plans the revert of records; the newest is undone first.

    ``restored`` are files that become again as they were before the records.
    """
    force = options.force

    def plan(view: View, stamp: Stamp) -> Draft:
        for seq in seqs:
            check_record(view, seq)
        with gc_pause.paused():
            found = reverted(view, sorted(set(seqs), reverse=True), force=force, writer=options.writer)
            if found.sources and not (found.nodes or found.links or restored):
                raise _only_files(seqs)
            way = operations(view, found, stamp, view.schema(schema), min(seqs))
            if keep_vocabulary(found, way.broken):
                way = operations(view, found, stamp, view.schema(schema), min(seqs))
        if options.expected_seq is not None:
            check_expected(found, way.broken, options.expected_seq, head=stamp.seq - 1)
        if force:
            refuse(seqs, found, [], [])
        else:
            used = missed(way.changes, _schema_after(view, schema, way.changes), partial(users, view))
            refuse(seqs, found, way.broken, [*used])
        # The records themselves do not change. Of what they changed, all that others may change since is loaded; what
        # uses a type that is defined otherwise is looked for everywhere.
        reads = None if any(map(defines, way.changes.nodes)) else StateReads(way.loaded, frozenset())
        said = (*sentences(found, restored), *undone_already(seqs, found, way.ops))
        return Draft(way.ops, way.changes, way.loaded, warnings=said, reads=reads)

    return plan


def _only_files(seqs: Sequence[int]) -> NotFound:
    """Return the error about records that noted files, and changed nothing that the files do not state themselves."""
    named = f"Record {seqs[0]}" if len(seqs) == 1 else f"Records {', '.join(map(str, sorted(seqs)))}"
    return NotFound(
        f"{named} changed no entity and no edge, only what is known of files: there is nothing to undo.",
        hint=f"{kb('show', seqs[0])} names the files. What they state is undone in them.",
    )


def _schema_after(view: View, project: Schema, changes: Changes) -> Schema:
    """Return the schema of a branch as these changes leave it."""
    after = {change.key: change.after for change in changes.nodes}
    present = filter(None, {**view.definitions(), **after}.values())
    return extended(project, definitions(node for node in present if node.type in DEFINING))


def check_seq(view: View, to_seq: int) -> None:
    """Refuse a seq that no record has. Raises: ``NotFound``."""
    if not 0 <= to_seq <= view.seq:
        hint = f"Give a seq from {first_record(view) - 1} to {view.seq}."
        raise NotFound(f"There is no seq {to_seq} to go back to.", hint=hint)


def rollback_planner(to_seq: int, restored: Collection[str] = ()) -> Planner:
    """Return the function that plans the way back to a seq; ``restored`` are files that become again as they were then.

    It reads whatever was changed since that seq, so that each later record makes another plan of it.
    """

    def plan(view: View, stamp: Stamp) -> Draft:
        check_seq(view, to_seq)
        changes = changes_between(view, to_seq, view.seq)
        found = Restoration(
            nodes={change.key: (change.after, change.before) for change in changes.nodes},
            links={change.key: (change.after, change.before) for change in changes.links},
            sources={change.key: (change.after, change.before) for change in changes.sources},
        )
        with gc_pause.paused():
            ops = found.operations()
            state = view.gather(needs(ops))
            loaded = msgspec.structs.replace(state.loaded, enough_for=ops)
            return Draft(ops, apply(state, stamp, ops), loaded, warnings=sentences(found, restored))

    return plan
