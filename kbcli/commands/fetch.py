"""``kb fetch``: take over what clients wrote on a branch from its ref in a git remote."""

from __future__ import annotations

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Remote


def run(ctx: typer.Context, remote: Remote = "origin", *, dry_run: DryRun = False) -> None:
    """Take over what `kb push` backed up of the branch in a git remote.

    All changes of the ref that this branch never had come into its store, as one record, with who wrote them. Fetching
    again changes nothing. What was withdrawn stays so. What both sides state differently is contested afterwards;
    `kb resolve` lists it. What is redacted in the ref and not here is named, with the command that redacts it.
    """
    from kbcli.messages.shared import fetched_line, redacted_line
    from kbcore.share.backup_ref import fetch

    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    fetched = fetch(opened.workspace, opened.branch, remote, session.author, dry_run=dry_run)
    if not session.output.is_json:
        session.output.say(fetched_line(fetched, remote))
        for one in fetched.redacted:
            session.output.warn(redacted_line(one))
        return
    merged = fetched.merged
    changes = [{"change": one.id, "actor": one.actor, "at": one.at, "message": one.message} for one in merged.changes]
    document = {"remote": remote, "ref": fetched.ref, "changes": changes, "withdrawn": fetched.withdrawn}
    redacted = [{"change": one.change, "actor": one.actor, "fields": [*one.fields]} for one in fetched.redacted]
    numbers = {"contested": merged.contested, "redacted": redacted}
    session.output.document(merged.outcome.as_json() | document | numbers)
