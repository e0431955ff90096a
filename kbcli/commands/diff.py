"""``kb diff``: what changed between two points of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Opened
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A seq or a time.")],
    b: Annotated[str | None, typer.Argument(metavar="B", help="A seq or a time; by default the head.")] = None,
) -> None:
    """Show what changed between two points of the history, going from the first to the second.

    `kb branch diff` compares branches.
    """
    from kbcli.words.changes import tell_difference
    from kbcore.errors import InvalidQuery

    session = session_of(ctx)
    opened = session.open_to_read()
    try:
        found = _found(opened, a, b, session.machine.clock.now())
    except InvalidQuery as wrong:
        if any(point and opened.workspace.has_store(point) for point in (a, b)):
            raise InvalidQuery(wrong.message, hint="`kb branch diff A B` compares branches.") from wrong
        raise
    if session.output.is_json:
        session.output.document({"branch": opened.branch, **found})
        return
    tell_difference(session.output, found["entities"], found["edges"])
    if not found["entities"] and not found["edges"]:
        session.output.note(f"Nothing differs between seq {found['from']} and seq {found['to']}.")


def _found(opened: Opened, a: str, b: str | None, now: str) -> dict[str, Any]:
    """Return the difference; between two seqs also when the journal is damaged behind both."""
    from kbcore.history.compare import diff
    from kbcore.history.moment import clock_notes, is_seq, read_at, seq_at

    def read(view: View) -> dict[str, Any]:
        opened.session.notes += clock_notes(view, a, b or "")
        return diff(view, seq_at(view, a, now=now), view.seq if b is None else seq_at(view, b, now=now))

    if b is None or not (is_seq(a) and is_seq(b)):
        # The head is wanted, or a time, which may mean any record up to the head.
        return opened.store.read(read)
    return read_at(opened.store, max(a, b, key=int), lambda view, _: read(view))
