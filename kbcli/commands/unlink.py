"""``kb unlink``: remove an edge."""

from __future__ import annotations

import typer

from kbcli.commands.link import HINTS, Edge, From, To, edge_named
from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message

_OPTIONS = {"edges": "EDGE"}


def run(
    ctx: typer.Context,
    from_id: From,
    edge: Edge,
    to_id: To,
    *,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """Remove an edge that a client stated. One that a file states is removed in that file, which the refusal names."""
    from kbcli.messages.options import placed
    from kbcore.model import changeset

    session = session_of(ctx)
    target = session.open(dry_run=dry_run).target
    with placed(session.output, _OPTIONS, HINTS):
        said = message or f"unlink {from_id} {edge} {to_id}"
        request = {"edges": [edge_named(from_id, edge, to_id)], "message": said, "dry_run": dry_run}
        session.show_outcome(target.apply(changeset.parse_deletion(request)))
