"""``kb sync``: take in what the files of the worktree say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.sync.run import SyncAnswer
    from kbcore.workspace import Workspace


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
    from kbcore.sync.run import SyncOptions, normal_paths, sync

    session = session_of(ctx)
    workspace = session.workspace
    _check_worktree(session, workspace)
    options = SyncOptions(normal_paths(paths or [], session.inside), dry_run, rebuild)
    opened = session.open()
    with session.output.waiting("Reading files"):
        answer = sync(workspace, opened.branch, session.author, options)
    if session.output.is_json:
        session.output.document(answer.as_json())
    else:
        _tell(session, answer, named=paths or [])
    return exits.UNREADABLE if strict and answer.bad else exits.DONE


def _check_worktree(session: Session, workspace: Workspace) -> None:
    """Refuse to write one branch's files into another branch's store.

    Raises: ``InvalidQuery``.
    """
    from kbcore.errors import InvalidQuery

    current, named = workspace.head().branch, session.named_branch
    if named and named != current:
        raise InvalidQuery(
            f"The files here are those of {current}, so they cannot be taken in for {named}.",
            hint=f"Check out {named}, or run it in a worktree of {named}, without --branch and KB_BRANCH.",
        )
    if not workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no files to take in.", hint="Run it in a worktree.")


def _tell(session: Session, answer: SyncAnswer, *, named: list[str]) -> None:
    from kbcli import wording
    from kbcli.render import visible

    output, outcome = session.output, answer.outcome
    output.say(wording.sync_line(answer))
    for path, problem in answer.problems:
        line = wording.problem_line(path, problem.line, problem.message, problem.hint)
        output.note(line) if problem.severity == "note" else output.warn(line)
    for warning in outcome.warnings:
        output.warn(visible(warning))
    for from_id, target, source in answer.unresolved:
        output.note(visible(f"unresolved: {from_id} -> {target} (stated in {source})"))
    if answer.bad:
        output.note(f"{wording.unread(answer.bad)} What was known is kept.")
    if not answer.scanned and not answer.removed:
        place = f"below {', '.join(named)} is" if named else "is"
        hint = "docs/requirements, docs/tests, … as .kb/config.json lists them"
        output.note(visible(f"No file {place} where the extractors look: {hint}."))
