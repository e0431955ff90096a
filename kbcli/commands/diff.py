"""``kb diff``: what changed between two points of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import Actor, SessionName, Source

if TYPE_CHECKING:
    from kbcli.invocation.context import Opened
    from kbcli.invocation.points import Filters
    from kbcore.store.history.moment import Meant
    from kbcore.store.history.when import When
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    a: Annotated[
        str | None, typer.Argument(metavar="A|A..B", help="A point of the history, or from one to another.")
    ] = None,
    b: Annotated[str | None, typer.Argument(metavar="B", help="Another point; by default the head.")] = None,
    *,
    since: Annotated[
        str, typer.Option("--since", metavar="POINT", help="What changed since then.", show_default=False)
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="POINT", help="Up to then, not up to the head.", show_default=False)
    ] = "",
    actor: Actor = "",
    source: Source = "",
    session_: SessionName = "",
) -> None:
    """Show what changed between two points of the history, going from the first to the second.

    A point is a seq (12), a time (2026-01-31, yesterday, 2 hours ago) or a revision of git (HEAD~2, v1): the record
    that was the last one then, or while that commit was checked out. A date is its whole day. A time without a zone is
    a local one. `kb branch diff` compares branches.
    """
    from kbcli.invocation.points import Filters, open_range, refuse_empty
    from kbcli.messages.changes import show_difference
    from kbcore.store.history.when import range_of
    from kbcore.text.escaping import escape_controls, escaped_sentence

    session = session_of(ctx)
    refuse_empty(ctx)
    filters = Filters(actor, source, session_)
    ends = range_of(a) if a and b is None else None
    if a is None and not since:
        raise typer.BadParameter("A is missing: name a point of the history, or use --since.")
    if a is not None and (since or until):
        raise typer.BadParameter(f"{a} says since when; leave out it, or --since and --until.")
    if ends:
        opened, first, last = open_range(session, ends)
    else:
        opened, first, last = session.open_to_read(), a or since, (until if a is None else b) or ""
        _refuse_branches(opened, *filter(None, (a, b)))
    found = _found(opened, first, last, filters, is_since=a is None)
    near = found.pop("near_actors")
    if session.output.is_json:
        session.output.document({"branch": opened.branch, **found})
        return
    for said in found.get("points", ()):
        session.output.note(f"note: {escaped_sentence(said)}")
    show_difference(session.output, found["entities"], found["edges"])
    if not found["entities"] and not found["edges"]:
        between = f"between seq {found['from']} and seq {found['to']}"
        if filters.named():
            matches = " and ".join(filters.named())
            session.output.note(escape_controls(f"Nothing that matches {matches} differs {between}. {near}".rstrip()))
        else:
            session.output.note(f"Nothing differs {between}.")


def _refuse_branches(opened: Opened, *points: str) -> None:
    """Refuse the names of other branches with a store. Raises: ``InvalidQuery``."""
    from kbcore.errors import InvalidQuery
    from kbcore.ids import check_branch_name
    from kbcore.store.history.when import when_of
    from kbcore.text.escaping import in_quotes

    for point in points:
        is_name = when_of(point) is None and check_branch_name(point) is None and point != opened.branch
        if is_name and opened.workspace.folders.has_store(point):
            hint = (
                f"`kb branch diff A B` compares branches; `kb diff {point}..` shows what changed since they diverged."
            )
            raise InvalidQuery(f"{in_quotes(point)} is another branch.", hint=hint)


def _found(opened: Opened, first: str, last: str, filters: Filters, *, is_since: bool) -> dict[str, Any]:
    """Return the difference; between two seqs also when the journal is damaged after both."""
    from kbcore.store.history.compare import add_origins, diff
    from kbcore.store.history.log import RecordFilter
    from kbcore.store.history.moment import Meant, after, beginning, clock_notes, meant, read_at, said_of

    begin, end = opened.point(first) if first else None, opened.point(last) if last else None

    def at(view: View, point: When | None) -> Meant:
        return meant(view, point) if point else Meant(view.recorded_seq)

    def read(view: View) -> dict[str, Any]:
        opened.session.notes += clock_notes(view, *filter(None, (begin, end)))
        low = Meant(after(view, begin)) if is_since and begin else beginning(view, begin) if begin else at(view, None)
        high = at(view, end)
        said = [one.said for one in (low, high) if one.said]
        said += [said_of(view, begin, is_since=True)] if is_since and begin and begin.seq is None else []
        selection = RecordFilter(filters.actor, filters.source, filters.session)
        found = diff(view, low.seq, high.seq, changed_by=selection)
        add_origins(view, found, selection.writer)
        near = "" if found["entities"] or found["edges"] else selection.near_actors(view)
        return found | ({"points": said} if said else {}) | {"near_actors": near}

    seqs = [point.seq if point else None for point in (begin, end)]
    if any(seq is None for seq in seqs):
        # The head is wanted, or a time or a commit, which may mean any record up to the head.
        return opened.store.read(read)
    return read_at(opened.store, str(max(seq or 0 for seq in seqs)), lambda view, _: read(view))
