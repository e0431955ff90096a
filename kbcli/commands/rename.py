"""``kb rename``: give an entity another id."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message


def run(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The entity.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new id; REQ-{n} is the next free number.")],
    *,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """Give an entity another id, wherever it is named, as one record.

    The documents and manifests that state it or link to it are changed, and so is what clients stated. Its history
    stays. The old id still names it, and no other entity can have it. `kb revert SEQ --files` undoes it.

    Where two branches created one id for two things, `ID@CHANGE` as OLD is the one that this change created; `ID@`
    lists them.
    """
    from kbcore.editing.renaming import rename
    from kbcore.share.separating import separate, separation_of

    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    target = opened.target
    if what := target.read(lambda view: separation_of(view, old, new)):
        found = separate(opened.workspace, opened.branch, what, session.author, message=message, dry_run=dry_run)
        session.show_outcome(found)
        return
    with session.output.waiting("Renaming"):
        outcome, edits = rename(target, old, new, message=message, dry_run=dry_run)
    session.show_outcome(outcome, edits)
