"""``kb rollback``: go back to an earlier state, by a new record."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun

_NO_FILES: Final = "--files changed no file: none names an entity that was renamed since and whose earlier id is free."


def run(
    ctx: typer.Context,
    point: Annotated[
        str | None, typer.Argument(metavar="POINT", help="The point whose state is wanted; 0 is the beginning.")
    ] = None,
    *,
    to: Annotated[str, typer.Option("--to", metavar="POINT", help="The same.", show_default=False)] = "",
    files: Annotated[
        bool, typer.Option("--files", help="Where an entity was renamed since, change the files back too.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Go back to an earlier state, by a new record; nothing is erased.

    A POINT is a seq, a time or a revision of git, as `kb diff --help` says. What files state comes back with the next
    sync: check out the old files, too. Where an entity that files name was renamed since, the change of the files is
    shown, and --files makes it.
    """
    import msgspec

    from kbcli.invocation.points import record_meant, refuse_empty
    from kbcore.editing.undoing import in_files_since, roll_back
    from kbcore.store.history.undo import UndoOptions
    from kbcore.text.escaping import escape_lines, escaped_sentence

    session = session_of(ctx)
    refuse_empty(ctx)
    if bool(point) == bool(to):
        raise typer.BadParameter("Name one point: `kb rollback POINT`.")
    opened = session.open(dry_run=dry_run)
    meant = record_meant(opened, point or to)
    points = [meant.said] if meant.said else []
    options = UndoOptions(dry_run=dry_run)
    with session.output.waiting("Going back"):
        asked = options if files else UndoOptions(dry_run=True)
        written = roll_back(opened.target, meant.seq, asked)
    if written is not None and not files:
        if not session.output.is_json:
            for said in points:
                session.output.note(f"note: {escaped_sentence(said)}")
            session.output.data("".join(escape_lines(edit.diff()) for edit in written.edits))
            session.output.flush()
        raise in_files_since(meant.seq, written.edits)
    if written is not None:
        session.show_outcome(written.outcome, written.edits, points)
        return
    with session.output.waiting("Going back"):
        outcome = opened.target.roll_back(meant.seq, options)
    if files:
        outcome = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, _NO_FILES))
    session.show_outcome(outcome, points=points)
