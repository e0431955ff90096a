"""``kb diff``: what changed between two points of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A seq or a time.")],
    b: Annotated[str | None, typer.Argument(metavar="B", help="A seq or a time; by default the head.")] = None,
) -> None:
    """Show what changed between two points of the history, going from the first to the second.

    `kb branch diff` compares branches.
    """
    from kbcli.changes import tell_difference
    from kbcore.history.compare import diff
    from kbcore.history.moment import seq_at

    session = session_of(ctx)
    opened = session.open()

    def read(view: View) -> dict[str, Any]:
        return diff(view, seq_at(view, a), view.seq if b is None else seq_at(view, b))

    found = opened.store.read(read)
    if session.output.is_json:
        session.output.document({"branch": opened.branch, **found})
        return
    tell_difference(session.output, found["entities"], found["edges"])
    if not found["entities"] and not found["edges"]:
        session.output.note(f"Nothing differs between seq {found['from']} and seq {found['to']}.")
