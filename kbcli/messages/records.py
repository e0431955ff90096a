"""Records in words: the pages of ``kb log``, its table with a line for each, and the head of ``kb show SEQ``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from kbcli.messages.changes import BARE, SIGNS, short_time
from kbcore.text.escaping import escape_controls, escape_lines
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.store.history.touched import TouchedElement

Json = Mapping[str, Any]

NAMED: Final = 6
"""The number of entities and edges of a record that are named in the log."""
HEAD: Final = ("SEQ", "AT", "ACTOR", "SOURCE", "CHANGES", "MESSAGE")
_INDENT: Final = " " * 6
"""The column of the names, after the sign for the change."""
_UNITS: Final = ((60, "minute"), (3600, "hour"), (86400, "day"), (604800, "week"), (2629800, "month"))
_YEAR_S: Final = 31557600


def rows(records: Iterable[Json]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table of records."""
    for record in records:
        yield (
            *(str(record["seq"]), short_time(record["at"]), record["actor"], record["source"]),
            *(summary(record["summary"]), why(record)),
        )


def why(record: Json) -> str:
    """Return the message of a record, and what was found and repaired when it was written."""
    repair = f"[{record['repair']}]" if record.get("repair") else ""
    return f"{record['message']} {repair}".strip()


def summary(counts: Json) -> str:
    """Return what a record changed, as counts."""
    parts = [f"{counts[verb]} {verb}" for verb in SIGNS if counts.get(verb)]
    parts += [pluralize(counts["edges"], "edge")] if counts["edges"] else []
    return ", ".join(parts) or "nothing"


def page(output: Output, record: Json, *, head: int, now: str) -> list[str]:
    """Return the lines that name a record: seq, who through what, when, and why.

    ``head`` is the seq of the branch's last record; a person at a terminal reads how long ago it was before ``now``.
    """
    mark = f" {output.styled('(head)', 'cyan')}" if record["seq"] == head else ""
    ago = f" ({_ago(record['at'], now)})" if output.is_terminal else ""
    message = escape_lines(record["message"]).expandtabs().splitlines()
    return [
        output.styled(f"record {record['seq']}", "yellow") + mark,
        escape_controls(f"Actor:  {record['actor']} through {record['source']}"),
        *([escape_controls(f"Changes of: {', '.join(record['changes_by'])}")] if record.get("changes_by") else []),
        *([escape_controls(f"Session: {record['session']}")] if record.get("session") else []),
        f"Date:   {short_time(record['at'])}{ago}",
        *([f"Clock:  {short_time(record['clock'])}, which was behind"] if record.get("clock") else []),
        "",
        *([*(f"    {line}" for line in message), ""] if message else []),
        *([escape_controls(f"    repair: {record['repair']}"), ""] if record.get("repair") else []),
        *([escape_controls(f"    redacted: {', '.join(record['redacted'])}"), ""] if record.get("redacted") else []),
    ]


def changed(output: Output, record: Json, named: Sequence[TouchedElement]) -> Iterator[str]:
    """Yield what a record changed: some of it by name, all of it as counts."""
    counts = record["summary"]
    for verb, (sign, style) in SIGNS.items():
        names = [name(one) for one in named if one.change == verb]
        if names:
            first, *rest = output.wrapped(escape_controls(", ".join(names)), _INDENT)
            yield f"    {output.styled(sign, style)} {first.removeprefix(_INDENT)}"
            yield from rest
    rest = sum(counts.values()) - len(named)
    yield f"    {summary(counts)}" + (f"; {rest} not named here: kb show {record['seq']}" if rest > 0 else "")


def name(one: TouchedElement) -> str:
    """Return an entity, or an edge with its ends, as a log names it."""
    if one.was:
        return f"{one.was} -> {one.id}"
    if not one.to_id:
        return one.id
    return f"{one.id} {one.type or BARE}{f':{one.kind}' if one.kind else ''} {one.to_id}"


def _ago(at: str, now: str) -> str:
    """Return how long before ``now`` a time was, in the largest unit that it fills."""
    passed_s = int((datetime.fromisoformat(now) - datetime.fromisoformat(at)).total_seconds())
    if passed_s < 0:
        return "in the future"
    if passed_s < _UNITS[0][0]:
        return "less than a minute ago"
    if passed_s >= _YEAR_S:
        return f"{pluralize(passed_s // _YEAR_S, 'year')} ago"
    unit_s, noun = next(one for one in reversed(_UNITS) if passed_s >= one[0])
    return f"{pluralize(passed_s // unit_s, noun)} ago"


def changes(moved: Sequence[Mapping[str, Any]], total: int) -> Iterator[str]:
    """Yield where the changes are from that came with a record, and which went."""
    for one in moved:
        file = f" {one['file']}" if "file" in one else " the store of another branch"
        if "gone" in one:
            yield f"change {one['change']} went with{file}"
        elif "own" in one:
            yield f"change {one['change']}, recorded here before, is in{file}"
        else:
            said = f": {one['message']}" if "message" in one else ""
            yield f"change {one['change']} by {one['actor']}, {str(one['at'])[:10]}, from{file}{said}"
    if total > len(moved):
        yield f"and {total - len(moved)} more changes"
