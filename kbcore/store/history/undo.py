"""Undo as a new record: revert what some records did, or roll back to the state at a seq.

Nothing is erased: the inverse is planned from the view's history and committed like any other changeset.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kbcore import gc_pause, limits
from kbcore.errors import InvalidChangeset, InvalidQuery, NotFound, of_problems
from kbcore.model.changeset import digest_of, parse
from kbcore.model.concepts import DEFINING, extended
from kbcore.model.folding import apply
from kbcore.model.read_set import needs
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Draft, Stamp, StateReads
from kbcore.remedies import kb
from kbcore.store.answers import Outcome
from kbcore.store.apply import defines, users
from kbcore.store.history.planned import Restoration, operations, refuse, sentences, undone_already
from kbcore.store.history.reach import check_record, first_record
from kbcore.store.history.reverting import reverted
from kbcore.store.planning.definitions import missed
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Planner, Request
from kbcore.view.branch_definitions import definitions
from kbcore.view.history import changes_between
from kbcore.view.view import View


class UndoOptions(msgspec.Struct, frozen=True):
    """Options of an undo: why, the client's id for retries, a dry run, and whether old values replace newer ones."""

    message: str = ""
    changeset_id: str = ""
    dry_run: bool = False
    force: bool = False


def revert(
    workspace: Workspace,
    branch: str,
    author: Author,
    seqs: Sequence[int],
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    *,
    follows_head: bool,
    note: Callable[[Draft], None] | None = None,
) -> Outcome:
    """Undo, field by field, what these records did, as one new record; ``note`` gets each draft that is made of it.

    Raises: ``RevertConflict`` when a later record changed the same, or renamed again what one of these renamed, when
    edges would be left without an end, or a use of it without its definition;
    ``InvalidChangeset``, ``NotFound``, ``HistoryPruned``; what ``BranchStore.commit`` raises.
    """
    ordered = sorted(set(seqs), reverse=True)
    if not ordered:
        raise InvalidQuery(
            "No record is named.", hint=f"Name the seq of each record to revert; {kb('log', lead='see')}."
        )
    members = {"seqs": ordered, "force": options.force}
    message = options.message or f"revert {', '.join(map(str, ordered))}"
    plan = revert_planner(ordered, workspace.schema, force=options.force)
    request = _request("revert", members, message, options)
    return _commit(workspace, branch, author, request, _noted(plan, note), follows_head=follows_head)


def rollback(
    workspace: Workspace,
    branch: str,
    author: Author,
    to_seq: int,
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    *,
    follows_head: bool,
    note: Callable[[Draft], None] | None = None,
) -> Outcome:
    """Restore the state at a seq, as one new record; ``note`` is as in ``revert``.

    Raises: ``NotFound`` for a seq that is not there yet; ``InvalidChangeset``, ``HistoryPruned``; what
    ``BranchStore.commit`` raises.
    """
    request, plan = rollback_request(to_seq, options), rollback_planner(to_seq)
    return _commit(workspace, branch, author, request, _noted(plan, note), follows_head=follows_head)


def rollback_request(to_seq: int, options: UndoOptions) -> Request:
    """Return what frames the record of a rollback. Raises: ``InvalidChangeset``."""
    return _request("rollback", {"to": to_seq}, options.message or f"rollback to {to_seq}", options)


def _noted(planner: Planner, note: Callable[[Draft], None] | None) -> Planner:
    """Return what plans the same and hands out each draft."""

    def plan(view: View, stamp: Stamp) -> Draft:
        draft = planner(view, stamp)
        if note is not None:
            note(draft)
        return draft

    return plan


def _request(asked: str, members: Mapping[str, Any], message: str, options: UndoOptions) -> Request:
    _check(options)
    return Request(
        changeset_id=options.changeset_id,
        digest=digest_of(asked, {**members, "message": options.message}),
        message=message,
        dry_run=options.dry_run,
        limit_bytes=limits.MAX_RECORD_BYTES,
        plans_ahead=True,
    )


def _check(options: UndoOptions) -> None:
    """Refuse a message or an id that no changeset may have. Raises: ``InvalidChangeset``."""
    frame = parse({"changeset_id": options.changeset_id or None, "message": options.message})
    problems = [problem for problem in frame.problems if problem.code != "empty"]  # it names no items, and need not
    if problems:
        raise of_problems(InvalidChangeset, "The undo is not valid", problems)


def _commit(
    workspace: Workspace, branch: str, author: Author, request: Request, plan: Planner, *, follows_head: bool
) -> Outcome:
    guard = workspace.guard(branch) if follows_head else None
    request = msgspec.structs.replace(request, lock_wait_s=workspace.config.lock_wait_s)
    return workspace.store(branch).commit(
        author, request, plan, guard=guard, head_commit=workspace.head_commit(branch), branch=branch
    )


def revert_planner(seqs: Sequence[int], schema: Schema, *, force: bool = False) -> Planner:
    """Return the function that plans the revert of records; the newest is undone first."""

    def plan(view: View, stamp: Stamp) -> Draft:
        for seq in seqs:
            check_record(view, seq)
        with gc_pause.paused():
            found = reverted(view, sorted(set(seqs), reverse=True), force=force)
            way = operations(view, found, stamp, view.schema(schema), min(seqs))
        if force:
            refuse(seqs, found, [], [])
        else:
            used = missed(way.changes, _schema_after(view, schema, way.changes), partial(users, view))
            refuse(seqs, found, way.broken, [*used])
        # The records themselves do not change. Of what they changed, all that others may change since is loaded; what
        # uses a type that is defined otherwise is looked for everywhere.
        reads = None if any(map(defines, way.changes.nodes)) else StateReads(way.loaded, frozenset())
        said = (*sentences(found), *undone_already(seqs, found, way.ops))
        return Draft(way.ops, way.changes, way.loaded, warnings=said, reads=reads)

    return plan


def _schema_after(view: View, project: Schema, changes: Changes) -> Schema:
    """Return the schema of a branch as these changes leave it."""
    after = {change.key: change.after for change in changes.nodes}
    standing = filter(None, {**view.definitions(), **after}.values())
    return extended(project, definitions(node for node in standing if node.type in DEFINING))


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
