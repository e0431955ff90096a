"""``kb log``: what changed, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.listing import Rows
    from kbcli.render import Output
    from kbcore.gaps import Earlier
    from kbcore.view.view import View


class _Read(NamedTuple):
    """What the history answers: records, newest first, some of what each changed, and where the branch stands."""

    rows: Rows
    """Each a record, and some of what it changed."""
    head: int
    rest: Earlier
    last: int
    """The seq of the last of the records; 0 where there is none."""
    has_more: bool


def run(
    ctx: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Only what changed this entity or its edges.")] = None,
    *,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="So many at most. [default: 50 at a terminal, else all]"),
    ] = None,
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
    oneline: Annotated[bool, typer.Option("--oneline", help="A table with one line for each record.")] = False,
    format_: Annotated[
        Literal["table", "tsv"] | None, typer.Option("--format", help="How to write the table of --oneline.")
    ] = None,
    before: Annotated[int | None, typer.Option("--before", metavar="SEQ", help="Only what came before it.")] = None,
) -> None:
    """Show what changed, newest first: when, who, through what, and why."""
    from kbcli.bounds import rows_of, table_format
    from kbcore.errors import InvalidQuery

    session = session_of(ctx)
    output = session.output
    most = rows_of(limit, output)
    if format_ and (output.is_json or not oneline):
        raise InvalidQuery("--format is of the table that --oneline shows.", hint="Leave it out, or add --oneline.")
    table_format(format_, output)
    if id_ == "":
        raise InvalidQuery("The id is empty.", hint="Leave it out for the records of the whole branch.")
    opened = session.open_to_read()
    asked = {"id": id_ or "", "actor": actor, "source": source, "since": since}
    is_named = not (oneline or output.is_json)
    found = opened.store.read(lambda view: _read(view, asked, before, most, is_named=is_named))
    records = (record for record, _ in found.rows)
    if output.is_json:
        output.document_of({"branch": opened.branch}, {"records": records}, found.rest.as_json())
        return
    output.is_paged = True
    if oneline:
        _tell_table(output, found)
    else:
        _tell_pages(output, found, session.machine.clock.now())
    given = {"ID": id_, "--actor": actor, "--source": source, "--since": since, "--before": before}
    _tell_rest(output, found, [name for name, value in given.items() if value], limit)


def _read(view: View, asked: Mapping[str, Any], before: int | None, most: int | None, *, is_named: bool) -> _Read:
    """Return the records that are asked for, at most so many."""
    from kbcli.listing import PAGE_ROWS, Rows
    from kbcli.words.records import NAMED
    from kbcore.history.log import log
    from kbcore.history.reach import not_listed
    from kbcore.history.touched import touched

    rows, count, has_more = Rows(), most or PAGE_ROWS, True
    while has_more:
        found = log(view, limit=count + 1, before_seq=before, **asked)
        has_more = len(found) > count
        del found[count:]
        seqs = [record["seq"] for record in found]
        named = touched(view, seqs, limit=NAMED, id=asked["id"]) if is_named and seqs else {}
        for record in found:
            rows.add((record, named.get(record["seq"], ())))
        before = seqs[-1] if seqs else before
        if most:
            break
    return _Read(rows, view.seq, not_listed(view), (before or 0) if len(rows) else 0, has_more)


def _tell_table(output: Output, found: _Read) -> None:
    from kbcli.terminal import tables
    from kbcli.words.records import HEAD, rows

    shown = rows(record for record, _ in found.rows)
    if not output.aligns:
        output.stream(f"{line}\n" for line in tables.tab_separated(HEAD, shown))
    elif found.rows:
        output.stream(f"{line}\n" for line in output.table(HEAD, shown))


def _tell_pages(output: Output, found: _Read, now: str) -> None:
    import msgspec

    from kbcli.words.records import changed, page
    from kbcore.history.touched import Touched

    for place, (record, named) in enumerate(found.rows):
        lines = page(output, record, head=found.head, now=now)
        lines += changed(output, record, msgspec.convert(named, list[Touched]))
        output.data("\n" * (place > 0) + "".join(f"{output.flowed(line)}\n" for line in lines))


def _tell_rest(output: Output, read: _Read, narrowing: Sequence[str], limit: int | None) -> None:
    """Say why nothing is shown, and how to see what is not."""
    said = read.rest.sentences()
    if not read.rows and (narrowing or not said):
        output.note(_nothing(narrowing, read.head, is_whole=not said))
    if read.has_more:
        say = output.note if limit else output.note_always
        say(f"There are more: {_ways_on(len(read.rows), read.last)}.")
    else:
        for sentence in said:
            output.note(sentence)


def _nothing(narrowing: Sequence[str], head: int, *, is_whole: bool) -> str:
    """Return why no record is shown, and what to do."""
    if not head:
        return "Nothing was written yet: `kb sync` takes in the documents, and `kb apply` a changeset."
    if not is_whole:
        return "No record matches."
    options = " and ".join(narrowing)
    return f"No record matches {options}; `kb log` without {'it' if len(narrowing) == 1 else 'them'} shows all {head}."


def _ways_on(shown: int, last: int) -> str:
    """Return how to see the records before the last one of these."""
    from kbcore.limits import MAX_PAGE_ROWS

    most = min(shown * 10, MAX_PAGE_ROWS)
    return f"--before {last}" + (f", or --limit {most}" if shown < most else "")
