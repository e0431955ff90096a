"""``kb sync``: take in what the files of the worktree say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.sync.answer import SyncAnswer


def run(
    ctx: typer.Context,
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH", help="Only these files and folders.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and write nothing.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read every file again, changed or not.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with status 3 when a file could not be read whole.")
    ] = False,
) -> int:
    """Take in what the files of the worktree say.

    Runs the extractors over the configured files and commits the difference as one changeset. Unchanged files write
    no record. A file that cannot be read is reported; what was known from it is kept.
    """
    from kbcli import exits
    from kbcore.sync.paths import normal_paths
    from kbcore.sync.run import SyncOptions, check_worktree, sync

    session = session_of(ctx)
    workspace = session.workspace
    check_worktree(workspace, session.named_branch)
    options = SyncOptions(normal_paths(paths or [], session.start, workspace.repo.worktree), dry_run, rebuild)
    opened = session.open()
    with session.output.waiting("Reading files"):
        answer = sync(workspace, opened.branch, session.author, options)
    if session.output.is_json:
        session.output.document(answer.as_json())
    else:
        _tell(session, answer, named=paths or [])
    return exits.UNREADABLE if strict and answer.bad else exits.DONE


def _tell(session: Session, answer: SyncAnswer, *, named: list[str]) -> None:
    from kbcli import syncwords, wording
    from kbcore.sync.pending import wanted
    from kbcore.visible import visible

    output = session.output
    output.say(syncwords.sync_line(answer))
    for path, problem in answer.problems:
        if problem.severity != "note":
            output.warn(wording.problem_line(path, problem.line, problem.message, problem.hint))
    for note in answer.notes:
        output.note(syncwords.note_line(note))
    for warning in answer.outcome.warnings:
        output.warn(visible(warning))
    for from_id, target, source in answer.unresolved:
        output.note(visible(f"unresolved: {from_id} -> {target} (stated in {source})"))
    if answer.bad:
        output.note(f"{wording.unread(answer.bad)} What could not be read stays as it was known.")
    elsewhere = syncwords.elsewhere_line(answer.problems_elsewhere, answer.unresolved_elsewhere)
    if elsewhere:
        output.note(elsewhere)
    if not answer.scanned and not answer.removed:
        place = f"below {', '.join(named)} is" if named else "is"
        globs = [glob for want in wanted(session.workspace) for glob, _ in want.globs]
        output.note(visible(f"No file {place} where the extractors look: {syncwords.globs_line(globs)}."))
