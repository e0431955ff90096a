"""``kb revert``: undo records by new ones."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.options import session_of


def run(
    ctx: typer.Context,
    seqs: Annotated[list[int], typer.Argument(metavar="SEQ", help="The records to undo, as `kb log` shows them.")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Take the old values, also where someone changed the same since.")
    ] = False,
) -> None:
    """Undo records by new ones; nothing is erased.

    Refused where a later record changed the same field or edge, unless --force. What files state comes back with the
    next sync: edit the files. Reverting the revert brings the change back.
    """
    from kbcore.history.undo import UndoOptions, revert

    session = session_of(ctx)
    opened = session.open()
    options = UndoOptions(force=force)
    follows_head = opened.choice.follows_head
    with session.output.waiting("Undoing"):
        outcome = revert(opened.workspace, opened.branch, session.author, seqs, options, follows_head=follows_head)
    session.tell_outcome(outcome)
