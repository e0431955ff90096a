"""``kb rollback``: go back to an earlier state, by a new record."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.context import session_of


def run(
    ctx: typer.Context,
    *,
    to: Annotated[int, typer.Option("--to", metavar="SEQ", help="The seq whose state is wanted; 0 is the beginning.")],
) -> None:
    """Go back to an earlier state, by a new record; nothing is erased.

    What files state comes back with the next sync: check out the old files, too.
    """
    from kbcore.history.undo import rollback

    session = session_of(ctx)
    opened = session.open()
    follows_head = opened.choice.follows_head
    with session.output.waiting("Going back"):
        outcome = rollback(opened.workspace, opened.branch, session.author, to, follows_head=follows_head)
    session.tell_outcome(outcome)
