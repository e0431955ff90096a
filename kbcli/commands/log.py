"""``kb log``: what changed, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kbcli.options import session_of
from kbcore.limits import DEFAULT_PAGE_ROWS

if TYPE_CHECKING:
    from kbcli.render import Output
    from kbcore.gaps import Earlier
    from kbcore.history.touched import Touched
    from kbcore.view.view import View


class _Read(NamedTuple):
    """What the history answers: records, newest first, some of what each changed, and where the branch stands."""

    records: list[dict[str, Any]]
    named: Mapping[int, Sequence[Touched]]
    head: int
    rest: Earlier


def run(
    ctx: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Only what changed this entity or its edges.")] = None,
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="So many at most.")] = DEFAULT_PAGE_ROWS,
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
    before: Annotated[int | None, typer.Option("--before", metavar="SEQ", help="Only what came before it.")] = None,
) -> None:
    """Show what changed, newest first: when, who, through what, and why."""
    from kbcli.bounds import check_bounds
    from kbcore.errors import InvalidQuery
    from kbcore.limits import MAX_PAGE_ROWS

    session = session_of(ctx)
    output = session.output
    check_bounds("--limit", limit, MAX_PAGE_ROWS, DEFAULT_PAGE_ROWS)
    if id_ == "":
        raise InvalidQuery("The id is empty.", hint="Leave it out for the records of the whole branch.")
    opened = session.open_to_read()
    asked = {"id": id_ or "", "actor": actor, "source": source, "since": since, "before_seq": before}
    is_named = not (oneline or output.is_json)
    found = opened.store.read(lambda view: _read(view, asked, limit, is_named=is_named))
    records = found.records[:limit]
    if output.is_json:
        output.document({"branch": opened.branch, "records": records, **found.rest.as_json()})
        return
    output.is_paged = True
    if oneline:
        _tell_table(output, records)
    else:
        _tell_pages(output, found, records, session.machine.clock.now())
    given = {"ID": id_, "--actor": actor, "--source": source, "--since": since, "--before": before}
    _tell_rest(output, found, [name for name, value in given.items() if value], limit)


def _read(view: View, asked: Mapping[str, Any], limit: int, *, is_named: bool) -> _Read:
    """Return the records that are asked for, and one more where there are more."""
    from kbcli.words.records import NAMED
    from kbcore.history.log import log
    from kbcore.history.reach import not_listed
    from kbcore.history.touched import touched

    found = log(view, limit=limit + 1, **asked)
    seqs = [record["seq"] for record in found[:limit]]
    named = touched(view, seqs, limit=NAMED, id=asked["id"]) if is_named and seqs else {}
    return _Read(found, named, view.seq, not_listed(view))


def _tell_table(output: Output, records: Sequence[dict[str, Any]]) -> None:
    from kbcli.words.records import HEAD, rows

    if records:
        output.data("".join(f"{line}\n" for line in output.table(HEAD, rows(records))))


def _tell_rest(output: Output, read: _Read, narrowing: Sequence[str], limit: int) -> None:
    """Say why nothing is shown, and how to see what is not."""
    said = read.rest.sentences()
    if not read.records and (narrowing or not said):
        output.note(_nothing(narrowing, read.head, is_whole=not said))
    if len(read.records) > limit:
        output.note(f"There are more: {_ways_on(limit, read.records[:limit])}.")
    else:
        for sentence in said:
            output.note(sentence)


def _tell_pages(output: Output, read: _Read, records: Sequence[dict[str, Any]], now: str) -> None:
    from kbcli.words.records import changed, page

    for place, record in enumerate(records):
        lines = page(output, record, head=read.head, now=now)
        lines += changed(output, record, read.named.get(record["seq"], ()))
        output.data("\n" * (place > 0) + "".join(f"{output.flowed(line)}\n" for line in lines))


def _nothing(narrowing: Sequence[str], head: int, *, is_whole: bool) -> str:
    """Return why no record is shown, and what to do."""
    if not head:
        return "Nothing was written yet: `kb sync` takes in the documents, and `kb apply` a changeset."
    if not is_whole:
        return "No record matches."
    options = " and ".join(narrowing)
    return f"No record matches {options}; `kb log` without {'it' if len(narrowing) == 1 else 'them'} shows all {head}."


def _ways_on(limit: int, records: list[dict[str, Any]]) -> str:
    """Return how to see the records after these."""
    from kbcore.limits import MAX_PAGE_ROWS

    most = min(limit * 10, MAX_PAGE_ROWS)
    return f"--before {records[-1]['seq']}" + (f", or --limit {most}" if limit < most else "")
