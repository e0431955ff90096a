"""``kb unlink``: remove an edge."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.options import session_of

_OPTIONS = {"edges": "EDGE"}


def run(
    ctx: typer.Context,
    from_id: Annotated[str, typer.Argument(metavar="FROM", help="The entity that it leads from.")],
    edge: Annotated[str, typer.Argument(metavar="EDGE", help="Its type; TYPE:KIND where it has a kind.")],
    to_id: Annotated[str, typer.Argument(metavar="TO", help="The entity that it leads to.")],
    *,
    message: Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why, for the record.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and write nothing.")] = False,
) -> None:
    """Remove an edge that a client stated. One that a file states is removed in that file, which the refusal names."""
    from kbcli.commands.link import edge_named
    from kbcli.words.options import placed
    from kbcore import changeset

    session = session_of(ctx)
    session.writes = True
    target = session.open().target
    with placed(session.output, _OPTIONS):
        said = message or f"unlink {from_id} {edge} {to_id}"
        request = {"edges": [edge_named(from_id, edge, to_id)], "message": said, "dry_run": dry_run}
        session.tell_outcome(target.carry_out(changeset.parse_deletion(request)))
