"""``kb confirm``: confirm suspect edges."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message


def run(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="ID", help="An entity, or the one that the edge leads from.")],
    edge: Annotated[
        str | None, typer.Argument(metavar="EDGE", help="The type of one edge; TYPE:KIND if it has a kind.")
    ] = None,
    to_id: Annotated[str | None, typer.Argument(metavar="TO", help="The entity that this edge leads to.")] = None,
    *,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """Confirm suspect edges.

    Their target has changed, and a person has checked that they are still correct.

    With only an id, all suspect edges of this entity are confirmed, in both directions; `kb check --rule suspect-edge`
    lists them. Nothing else of the edges changes.
    """
    from kbcore.editing.confirming import confirm
    from kbcore.errors import InvalidQuery

    if not (edge is None and to_id is None) and not (edge and to_id):
        raise InvalidQuery("An edge has two ends.", hint="`kb confirm FROM EDGE TO` names one edge.")
    session = session_of(ctx)
    one = None
    if edge and to_id:
        name, _, kind = edge.partition(":")
        one = (name, kind, to_id)
    target = session.open(dry_run=dry_run).target
    outcome = confirm(target, key, one, message=message, dry_run=dry_run)
    session.show_outcome(outcome)
