"""``kb sync``: record what the files of the worktree say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.sync.answer import SyncAnswer
    from kbcore.sync.faults import Faults


def run(
    ctx: typer.Context,
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH", help="Only these files and folders.")] = None,
    *,
    dry_run: DryRun = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read every file again, changed or not.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with status 3 when a file could not be read completely.")
    ] = False,
) -> int:
    """Record what the files of the worktree say.

    Runs the extractors over the configured files and commits the difference as one changeset. Unchanged files write
    no record. A file that cannot be read is reported; what was known from it is kept.
    """
    from kbcli.invocation import exits

    session = session_of(ctx)
    answer = None if paths or dry_run or rebuild else _answer_at_rest(session)
    if answer is None:
        answer = _take_in(session, paths or [], dry_run=dry_run, rebuild=rebuild)
    if session.output.is_json:
        session.output.document(answer.as_json())
    else:
        is_brief = answer.is_idle and not (paths or strict or rebuild)
        _show(session, answer, named=paths or [], is_strict=strict, is_brief=is_brief)
    return exits.UNREADABLE if strict and answer.bad else exits.DONE


def _answer_at_rest(session: Session) -> SyncAnswer | None:
    """Return what there is to answer when nothing has changed since the last sync, which needs no database."""
    from kbcore.sync import noop_cache

    workspace = session.workspace
    return noop_cache.lookup(workspace, session.named_branch or workspace.head().branch)


def _take_in(session: Session, paths: list[str], *, dry_run: bool, rebuild: bool) -> SyncAnswer:
    from kbcore.sync.paths import normal_paths
    from kbcore.sync.run import SyncOptions, check_worktree, sync

    workspace = session.workspace
    check_worktree(workspace, session.named_branch)
    options = SyncOptions(normal_paths(paths, session.start, workspace.repo.worktree), dry_run, rebuild)
    opened = session.open(dry_run=dry_run)
    with session.output.waiting("Syncing"):
        return sync(workspace, opened.branch, session.author, options)


def _show(session: Session, answer: SyncAnswer, *, named: list[str], is_strict: bool, is_brief: bool) -> None:
    from kbcli.messages import sync_result
    from kbcore.sync.active_extractors import document_extractors
    from kbcore.sync.answer import globs_line, not_read_line
    from kbcore.sync.pending import nothing_read
    from kbcore.text.escaping import escape_controls, escaped_sentence

    output = session.output
    output.say(sync_result.sync_line(answer))
    if is_brief:
        if said := _faults(session, answer, is_strict=False).line:
            output.note(said)
    else:
        _show_faults(session, answer, is_strict=is_strict)
    if not answer.is_idle and (left := not_read_line(answer.not_read)):
        output.note(escape_controls(left))
    if waiting := sync_result.unresolved_line(answer):
        output.note(waiting)
    for warning in answer.outcome.warnings:
        output.warn(escaped_sentence(warning))
    elsewhere = sync_result.elsewhere_line(answer.problems_elsewhere, answer.unresolved_elsewhere)
    if elsewhere:
        output.note(elsewhere)
    if not answer.scanned and not answer.removed:
        globs = [glob for want in document_extractors(session.workspace) for glob, _ in want.globs]
        said = f"No file below {', '.join(named)} is where the extractors look: {globs_line(globs)}." if named else ""
        if said := said or nothing_read(session.workspace):
            output.note(escaped_sentence(said))


def _show_faults(session: Session, answer: SyncAnswer, *, is_strict: bool) -> None:
    """List what is wrong in files, and what is only noted."""
    from kbcli.messages import lines, sync_result

    output = session.output
    found = _faults(session, answer, is_strict=is_strict)
    for fault in found.lines:
        output.fault(fault.severity, fault.text)
    for note in answer.notes:
        output.note(sync_result.note_line(note))
    if found.unread:
        said = lines.unread(found.unread, is_recorded=found.is_recorded)
        output.note(f"{said} What could not be read stays as it was known.")


def _faults(session: Session, answer: SyncAnswer, *, is_strict: bool) -> Faults:
    """Return what is wrong in files: with --strict all, else without what the project accepts."""
    from kbcore.sync import faults
    from kbcore.text.escaping import escaped_sentence

    if not faults.has_faults(answer):  # nothing that reads rules is imported
        return faults.Faults([], 0, 0, 0)
    from kbcore.checks import known_to
    from kbcore.git.operations import operation_of

    known = None
    if not is_strict:
        known, broken = known_to(
            session.workspace, answer.outcome.branch, faults.about(answer.problems, answer.unresolved)
        )
        if broken:
            session.output.warn(escaped_sentence(broken))
    is_recorded = bool(operation_of(session.workspace.repo))  # while git is in a merge, files are not judged
    return faults.faults(answer, session.workspace.config.rules, known, is_recorded=is_recorded)
