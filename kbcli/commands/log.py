"""``kb log``: what changed, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import Actor, SessionName, Source

if TYPE_CHECKING:
    from kbcli.invocation.context import Opened, Session
    from kbcli.terminal.output import Output
    from kbcli.views.listing import Rows
    from kbcore.errors import NotFound
    from kbcore.store.branch_store import BranchStore
    from kbcore.store.history.log import RecordFilter
    from kbcore.view.gaps import Earlier
    from kbcore.view.view import View


MAX_TOUCHED: Final = 10_000
"""The number of entities and edges of a record that are named by --stat."""


class _Asked(NamedTuple):
    """The requested records, at most how many (None for all), and how much of the changes of each.

    ``detail`` is ``patch`` for field by field, ``stat`` for all of it by name, ``names`` for some of it, else "".
    """

    selection: RecordFilter
    id: str
    before: int | None
    most: int | None
    detail: str


class _Read(NamedTuple):
    """The answer of the history: records, newest first, some of the changes of each, and the head of the branch."""

    rows: Rows
    """Each a record, and what it changed: some or all of it by name, or field by field."""
    head: int
    rest: Earlier
    last: int
    """The seq of the last of the records; 0 where there is none."""
    has_more: bool
    notes: list[str]
    """The instants or records that the points mean."""
    warnings: list[str]
    called: dict[str, str]
    """The present id of a former one that was asked for."""
    near: str = ""
    """A question for an actor who was meant, where nothing is by the one that was named."""


def run(
    ctx: typer.Context,
    id_: Annotated[
        str | None,
        typer.Argument(
            metavar="ID|A..B", help="Only what changed this entity or its edges, or was recorded after A up to B."
        ),
    ] = None,
    *,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", metavar="N", help="At most so many. [default: 50 at a terminal, else all]"),
    ] = None,
    actor: Actor = "",
    source: Source = "",
    session_: SessionName = "",
    since: Annotated[
        str, typer.Option("--since", metavar="POINT", help="Only what was written since then.", show_default=False)
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="POINT", help="Only what was written until then.", show_default=False)
    ] = "",
    patch: Annotated[
        bool, typer.Option("--patch", "-p", help="Show what each record changed, field by field.")
    ] = False,
    stat: Annotated[bool, typer.Option("--stat", help="Name all that each record changed.")] = False,
    oneline: Annotated[bool, typer.Option("--oneline", help="A table with one line for each record.")] = False,
    format_: Annotated[
        Literal["table", "tsv"] | None, typer.Option("--format", help="How to write the table of --oneline.")
    ] = None,
    before: Annotated[int | None, typer.Option("--before", metavar="SEQ", help="Only records before it.")] = None,
) -> None:
    """Show what changed, newest first: when, who, through what, and why.

    A POINT is a seq, a time or a revision of git, as `kb diff --help` says.
    """
    from kbcli.invocation.bounds import rows_of, table_format
    from kbcli.invocation.points import Filters, open_range, refuse_empty
    from kbcore.errors import InvalidQuery, NotFound
    from kbcore.store.history.when import range_of
    from kbcore.text.escaping import escaped_sentence

    session = session_of(ctx)
    output = session.output
    most = rows_of(limit, output)
    if format_ and (output.is_json or not oneline):
        raise InvalidQuery("--format is of the table that --oneline shows.", hint="Leave it out, or add --oneline.")
    table_format(format_, output)
    if id_ == "":
        raise InvalidQuery("The id is empty.", hint="Leave it out for the records of the whole branch.")
    refuse_empty(ctx)
    if oneline and (patch or stat):
        raise typer.BadParameter("--oneline shows a line for each record; leave out --oneline, --patch or --stat.")
    filters = Filters(actor, source, session_, since, until)
    given = [*[id_ or ""] * bool(id_), *filters.named(), *["--before"] * (before is not None)]
    ends = range_of(id_) if id_ else None
    if ends and (since or until):
        raise typer.BadParameter(f"{id_} says since and until when; leave out it, or --since and --until.")
    if ends:
        opened, first, last = open_range(session, ends)
        filters, id_ = filters._replace(since=first, until=last), None
    else:
        opened = session.open_to_read()
    detail = "patch" if patch else "stat" if stat else "" if oneline or output.is_json else "names"
    asked = _Asked(filters.read(opened), id_ or "", before, most, detail)
    try:
        found = opened.store.read(lambda view: _read(opened.store, view, asked))
    except NotFound as error:
        raise _with_range(opened, id_ or "", error) from error
    session.notes += found.warnings
    session.show_called(found.called)
    if output.is_json:
        name = {"patch": "operations", "stat": "touched"}.get(detail)
        records = (record | ({name: changes} if name else {}) for record, changes in found.rows)
        points = {"points": found.notes} if found.notes else {}
        output.document_of({"branch": opened.branch, **points}, {"records": records}, found.rest.as_json())
        return
    for said in found.notes:
        output.note(f"note: {escaped_sentence(said)}")
    output.is_paged = True
    if oneline:
        _show_table(output, found)
    else:
        _show_pages(output, found, detail, session.machine.clock.now())
    _show_rest(session, found, given, limit)


def _with_range(opened: Opened, word: str, error: NotFound) -> NotFound:
    """Return an error of an id that is unknown, with the ranges to write where it is a point of the history."""
    from kbcore.errors import InvalidQuery, NotFound

    try:
        opened.point(word)
    except InvalidQuery:
        return error
    hint = f"For a point of the history write a range: `kb log {word}..` is what follows it, `kb log ..{word}` before."
    return NotFound(error.message, hint=hint, details=error.details, data=error.data, says_first=error.says_first)


def _read(store: BranchStore, view: View, asked: _Asked) -> _Read:
    """Return the records that are asked for, at most so many."""
    from kbcli.views.listing import PAGE_ROWS, Rows
    from kbcore.query.former_ids import called
    from kbcore.store.history.log import ids_of, log, operations_of
    from kbcore.store.history.reach import not_listed

    former = called(view, [asked.id])
    asked = asked._replace(id=former.get(asked.id, asked.id))
    ids = ids_of(view, asked.id) if asked.id else ()
    rows, count, has_more, before = Rows(), asked.most or PAGE_ROWS, True, asked.before
    while has_more:
        found = log(view, asked.selection, id=asked.id, limit=count + 1, before_seq=before)
        has_more = len(found) > count
        del found[count:]
        seqs = [record["seq"] for record in found]
        named = _named(view, asked, seqs, ids)
        for record in found:
            seq = record["seq"]
            is_whole = asked.detail == "patch"
            rows.add((record, operations_of(store, view, seq, ids=ids) if is_whole else named.get(seq, [])))
        before = seqs[-1] if seqs else before
        if asked.most:
            break
    last = (before or 0) if len(rows) else 0
    notes, warnings = asked.selection.notes(view), asked.selection.warnings(view)
    near = "" if rows else asked.selection.near_actors(view)
    return _Read(rows, view.seq, not_listed(view), last, has_more, notes, warnings, former, near)


def _named(view: View, asked: _Asked, seqs: Sequence[int], ids: Sequence[str]) -> dict[int, Any]:
    """Return what each of these records changed by name, as far as that is requested; with only these ids."""
    import msgspec

    from kbcli.messages.records import NAMED
    from kbcore.store.history.touched import touched

    if asked.detail not in {"names", "stat"} or not seqs:
        return {}
    limit = MAX_TOUCHED if asked.detail == "stat" else NAMED
    return {seq: msgspec.to_builtins(one) for seq, one in touched(view, seqs, limit=limit, ids=ids).items()}


def _show_table(output: Output, found: _Read) -> None:
    from kbcli.messages.records import HEAD, rows
    from kbcli.terminal import tables

    shown = rows(record for record, _ in found.rows)
    if not output.aligns:
        output.stream(f"{line}\n" for line in tables.tab_separated(HEAD, shown))
    elif found.rows:
        output.stream(f"{line}\n" for line in output.table(HEAD, shown))


def _show_pages(output: Output, found: _Read, detail: str, now: str) -> None:
    import msgspec

    from kbcli.messages.changes import show_change
    from kbcli.messages.records import changed, page, summary
    from kbcore.store.history.touched import TouchedElement

    for place, (record, changes) in enumerate(found.rows):
        lines = page(output, record, head=found.head, now=now)
        if detail == "patch":
            for operation in changes:
                lines += [*show_change(output, operation), ""]
            lines.append(f"    {summary(record['summary'])}")
        else:
            lines += changed(output, record, msgspec.convert(changes, list[TouchedElement]))
        output.data("\n" * (place > 0) + "".join(f"{output.flowed(line)}\n" for line in lines))


def _show_rest(session: Session, read: _Read, narrowing: Sequence[str], limit: int | None) -> None:
    """Say why nothing is shown, and how to see what is not."""
    from kbcore.text.escaping import escape_controls

    output, said = session.output, read.rest.sentences()
    if not read.rows and (narrowing or not said):
        why = _nothing(narrowing, read.head, session.sync_command(), is_whole=not said)
        output.note(escape_controls(f"{why} {read.near}".rstrip()))
    if read.has_more:
        say = output.note if limit else output.note_always
        say(f"There are more: {_ways_on(len(read.rows), read.last)}.")
    else:
        for sentence in said:
            output.note(sentence)


def _nothing(narrowing: Sequence[str], head: int, sync: str, *, is_whole: bool) -> str:
    """Return why no record is shown, and what to do; ``sync`` is the command that reads the files."""
    if not head:
        return f"Nothing was written yet: {sync} reads the documents, and `kb apply` a changeset."
    if not is_whole:
        return "No record matches."
    options = " and ".join(narrowing)
    return f"No record matches {options}; `kb log` without {'it' if len(narrowing) == 1 else 'them'} shows all {head}."


def _ways_on(shown: int, last: int) -> str:
    """Return how to see the records before the last one of these."""
    from kbcore.limits import MAX_PAGE_ROWS

    most = min(shown * 10, MAX_PAGE_ROWS)
    return f"--before {last}" + (f", or --limit {most}" if shown < most else "")
