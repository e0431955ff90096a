"""``kb merge``: bring what clients wrote on another branch into this one."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message


def run(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="BRANCH", help="The branch whose changes are merged.")],
    *,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """Bring what clients wrote on another branch into this one.

    Documents come with `git merge`; this is for what is in no file. The changes stay what they are: merging again
    changes nothing. What both branches state differently is contested afterwards; `kb resolve` lists it.
    """
    from kbcli.messages.shared import merged_line
    from kbcore.share.merging import merge
    from kbcore.store import branches

    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    store, choice, ensured = branches.open_to_read(session.workspace, name)
    session.show_ensured(ensured)
    session.watch(store)
    merged = merge(opened.workspace, opened.branch, choice.branch, session.author, message=message, dry_run=dry_run)
    if session.output.is_json:
        changes = [
            {"change": one.id, "actor": one.actor, "at": one.at, "message": one.message} for one in merged.changes
        ]
        document = {"from": choice.branch, "changes": changes, "contested": merged.contested}
        session.output.document(merged.outcome.as_json() | document)
    else:
        session.output.say(merged_line(merged, choice.branch))
