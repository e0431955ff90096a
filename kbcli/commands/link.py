"""``kb link``: state an edge."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message

From = Annotated[str, typer.Argument(metavar="FROM", help="The entity that it leads from.")]
Edge = Annotated[str, typer.Argument(metavar="EDGE", help="Its type; TYPE:KIND where it has a kind.")]
To = Annotated[str, typer.Argument(metavar="TO", help="The entity that it leads to.")]

_OPTIONS = {"edges": "EDGE"}
HINTS = {
    ("missing_field", "kind"): "Say how the two relate with EDGE as TYPE:KIND, such as relates_to:see_also.",
    ("unknown_field", "kind"): "Write EDGE without the colon and what follows it.",
    ("missing_field", "type"): "Give the type of the edge as EDGE, such as depends_on.",
}
"""Remedies in the words of this command, by code and member of the edge."""


def run(
    ctx: typer.Context,
    from_id: From,
    edge: Edge,
    to_id: To,
    *,
    confidence: Annotated[str, typer.Option("--confidence", metavar="0..1", help="How sure that is.")] = "",
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """State an edge between two entities, in the store; one that is stated already is confirmed."""
    from kbcli.messages.options import placed
    from kbcore.errors import InvalidQuery
    from kbcore.model import changeset

    session = session_of(ctx)
    session.writes = True
    asked: dict[str, Any] = edge_named(from_id, edge, to_id)
    if confidence:
        try:
            asked["confidence"] = float(confidence)
        except ValueError as error:
            raise InvalidQuery("--confidence must be a number from 0 to 1.", hint="For example 0.8.") from error
    target = session.open(dry_run=dry_run).target
    with placed(session.output, _OPTIONS, HINTS):
        said = message or f"link {from_id} {edge} {to_id}"
        request = {"edges": [asked], "message": said, "dry_run": dry_run}
        session.show_outcome(target.apply(changeset.parse(request)))


def edge_named(from_id: str, edge: str, to_id: str) -> dict[str, Any]:
    """Return an edge as a changeset names it; ``edge`` is TYPE or TYPE:KIND."""
    name, _, kind = edge.partition(":")
    return {"type": name, "from": from_id, "to": to_id} | ({"kind": kind} if kind else {})
