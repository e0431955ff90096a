"""``kb log``: what changed, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.render import Output
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Only what changed this entity or its edges.")] = None,
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="So many at most.")] = 50,
    actor: Annotated[
        str, typer.Option("--actor", metavar="A", help="Only what this person or agent did.", show_default=False)
    ] = "",
    source: Annotated[
        str,
        typer.Option("--source", metavar="S", help="Only what came through it: cli, sync, mcp, …", show_default=False),
    ] = "",
    since: Annotated[
        str, typer.Option("--since", metavar="T", help="Only what was written since then.", show_default=False)
    ] = "",
    before: Annotated[int | None, typer.Option("--before", metavar="SEQ", help="Only what came before it.")] = None,
) -> None:
    """Show what changed, newest first: when, who, through what, and why."""
    from kbcore.errors import InvalidQuery
    from kbcore.history.log import log
    from kbcore.history.reach import first_record, is_pruned

    session = session_of(ctx)
    if limit < 1:
        raise InvalidQuery("The limit must be 1 or more.", hint="Leave --limit out for the last 50 records.")
    if id_ == "":
        raise InvalidQuery("The id is empty.", hint="Leave it out for the records of the whole branch.")
    opened = session.open_to_read()

    def read(view: View) -> tuple[list[dict[str, Any]], int]:
        asked = {"actor": actor, "source": source, "since": since}
        found = log(view, id=id_ or "", limit=limit + 1, before_seq=before, **asked)
        return found, first_record(view) if is_pruned(view) else 0

    found, pruned_before = opened.store.read(read)
    records, has_more = found[:limit], len(found) > limit
    if session.output.is_json:
        pruned = {"pruned_before": pruned_before} if pruned_before else {}
        session.output.document({"branch": opened.branch, "records": records, **pruned})
        return
    is_narrowed = bool(id_ or actor or source or since or before is not None)
    output = session.output
    _list(output, records)
    if not records and (is_narrowed or not pruned_before):
        output.note("No record matches." if is_narrowed else "Nothing was written yet.")
    if has_more:
        output.note(f"There are more: {_ways_on(limit, records)}.")
    elif pruned_before:
        output.note(f"Records before seq {pruned_before} were pruned.")


def _ways_on(limit: int, records: list[dict[str, Any]]) -> str:
    """Return how to see the records after these."""
    from kbcore.limits import MAX_PAGE_ROWS

    most = min(limit * 10, MAX_PAGE_ROWS)
    return f"--before {records[-1]['seq']}" + (f", or --limit {most}" if limit < most else "")


def _list(output: Output, records: list[dict[str, Any]]) -> None:
    from kbcli.changes import record_rows
    from kbcli.tables import aligned

    output.is_paged = True
    if records:
        output.data("\n".join(aligned(*record_rows(records), output.width)) + "\n")
