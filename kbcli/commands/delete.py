"""``kb delete``: remove entities or edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.answers import Outcome

_SHOWN = 20


def run(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Entities to remove.")] = None,
    *,
    edge: Annotated[
        list[Any] | None,
        typer.Option("--edge", metavar="FROM TYPE TO", help="An edge to remove; TYPE:KIND where it has a kind."),
    ] = None,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Remove the edges of others to these entities too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove entities or edges.

    Refused while other entities point at them, unless --cascade. A terminal is asked first. `kb revert` brings back
    what was removed.
    """
    from kbcli import exits
    from kbcore import changeset, writes
    from kbcore.errors import InvalidQuery

    session = session_of(ctx)
    request = _request(ids or [], edge or [], cascade=cascade)
    if not request["entities"] and not request["edges"]:
        raise InvalidQuery("Nothing is named.", hint="Name ids, or edges with --edge FROM TYPE TO.")
    opened = session.open()

    def carry_out(*, is_dry: bool) -> Outcome:
        wanted = changeset.parse_deletion({**request, "dry_run": is_dry})
        follows_head = opened.choice.follows_head
        return writes.carry_out(opened.workspace, opened.branch, session.author, wanted, follows_head=follows_head)

    if session.output.is_interactive and not (yes or dry_run) and not _confirmed(session, carry_out(is_dry=True)):
        session.output.note("Nothing was removed.")
        return exits.INTERRUPTED
    session.tell_outcome(carry_out(is_dry=dry_run))
    return exits.DONE


def _request(ids: Sequence[str], edges: Sequence[Sequence[str]], *, cascade: bool) -> dict[str, Any]:
    named = []
    for from_id, type_, to_id in edges:
        name, _, kind = type_.partition(":")
        named.append({"type": name, "from": from_id, "to": to_id} | ({"kind": kind} if kind else {}))
    return {"entities": [{"id": one} for one in ids], "edges": named, "cascade": cascade}


def _confirmed(session: Session, planned: Outcome) -> bool:
    """Ask at the terminal whether to go on with what was planned."""
    from kbcli.render import visible
    from kbcli.wording import counted

    output = session.output
    for key in planned.deleted[:_SHOWN]:
        output.error_detail(visible(f"  {key}"))
    if len(planned.deleted) > _SHOWN:
        output.error_detail(f"  … and {len(planned.deleted) - _SHOWN} more")
    parts = [counted(len(planned.deleted), "entity"), counted(planned.edges.deleted, "edge")]
    return typer.confirm(f"Remove {' and '.join(parts)} from {visible(planned.branch)}?", err=True)
