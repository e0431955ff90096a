"""``kb show ID`` for people: an entity with its fields, its edges in both directions, violations and history."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcli.messages import records
from kbcli.messages.changes import BARE, SIGNS, element_pairs, field_lines, short_time, value
from kbcli.terminal import colours
from kbcli.terminal.tables import pairs
from kbcli.views.query import mark_of_proposed
from kbcore.limits import MAX_SEARCHED_CHARS
from kbcore.model.graph import FORMER_IDS
from kbcore.query.conflicts import actors
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.pages.entity import EdgeLine
    from kbcore.rules import CheckReport
    from kbcore.store.history.touched import TouchedElement

Json = Mapping[str, Any]

EDGES: Final = 20
"""Edges in each direction that the page shows."""
RECORDS: Final = 5
"""Records of its history that the page shows."""
VIOLATIONS: Final = 10
NAMED: Final = 3
"""Edges that are named of what one record changed."""
_HEADING: Final = frozenset({"stale", "stale_files", "status", "contested", "proposed"})
"""Members that are in the heading, or below it."""
_INDENT: Final = "  "
_HEAD: Final = ("EDGE", "ID", "STATUS", "TITLE", "CONFIDENCE", "STATED IN")


class Around:
    """The further parts of the page of an entity: the other ends of its edges, findings of rules, and history."""

    def __init__(
        self,
        not_listed: Sequence[str],
        edges: Sequence[EdgeLine],
        report: CheckReport | None,
        changes: Mapping[int, Json],
        touched: Mapping[int, Sequence[TouchedElement]],
    ) -> None:
        self.not_listed = not_listed
        """Facts that its history does not list, a sentence each."""
        self.edges = edges
        self.report = report
        """The findings of the rules; None for an entity as it was earlier, of which none is run."""
        self.changes = changes
        """Changes of the entity itself, by seq."""
        self.touched = touched
        """Edges of it that records changed, by seq; one more than is shown where there are more."""


def lines(output: Output, found: Json, around: Around) -> list[str]:
    """Return the page."""
    entity = found["entity"]
    return [
        *_heading(output, entity, found),
        *_edges(output, entity["id"], around.edges),
        *_violations(output, around.report),
        *_history(output, entity["id"], found, around),
        *(_body(output, found["body"]) if "body" in found else ()),
    ]


def _heading(output: Output, entity: Json, found: Json) -> Iterator[str]:
    key, status = escape_controls(entity["id"]), escape_controls(entity.get("status", ""))
    style = colours.of_status(status)
    title = escape_controls(entity.get("title", ""))
    yield output.styled(key, "bold")
    yield from output.wrapped(title, _INDENT) if title else ()
    shown = output.styled(status, style) if style else status
    parts = [escape_controls(entity["type"]), *([shown] if shown else []), f"version {entity['version']}"]
    lines, of_file = found.get("lines"), found.get("code_owners")
    if lines:
        parts.append(f"lines {lines['first']} to {lines['last']}")
    yield _INDENT + " · ".join(parts)
    for path in entity.get("stale_files", ()):
        yield (
            _INDENT
            + output.styled("stale:", "yellow")
            + escape_controls(f" may be older than {path}, which could not be read completely")
        )
    for field, values in entity.get("contested", {}).items():
        by = actors(values)
        resolve = f"kb resolve {shlex.quote(entity['id'])}"
        said = f" {field}, by {by}; `{resolve}` lists the values"
        yield _INDENT + output.styled("contested:", "red") + escape_controls(said)
    yield from _proposed(output, entity)
    kept = {name: member for name, member in entity.items() if name not in _HEADING and name != "version"}
    yield ""
    rows = [*element_pairs(kept, also=("created_at", "updated_at"))]
    if of_file:
        rows.append(("owner of file", f"{', '.join(of_file['owners'])} (by {', '.join(of_file['given_by'])})"))
    yield from pairs(rows, output.width, _INDENT)


def _proposed(output: Output, entity: Json) -> Iterator[str]:
    """Yield what of an entity nobody has accepted yet, and the command that decides it."""
    proposed = entity.get("proposed")
    if not proposed:
        return
    whole = "nobody has accepted it"
    fields = "" if proposed is True else ", ".join(f"{name} {value(one)}" for name, one in proposed.items())
    said = f" {fields or whole}; `kb review {shlex.quote(entity['id'])}` shows it"
    yield _INDENT + output.styled("proposed:", "yellow") + escape_controls(said)


def _edges(output: Output, key: str, edges: Sequence[EdgeLine]) -> Iterator[str]:
    going = [edge for edge in edges if edge.is_outgoing]
    coming = [edge for edge in edges if not edge.is_outgoing]
    for title, own, part in (("Edges from it", "from", going), ("Edges to it", "to", coming)):
        if part:
            yield from _section(output, title, len(part))
            yield from output.table(_HEAD, [_row(edge) for edge in part[:EDGES]], indent=_INDENT)
            command = f"kb query edge --where {own}={shlex.quote(key)}"
            yield from _more(len(part) - EDGES, f"{command} --limit {len(part)}")
    if not edges:
        yield from _section(output, "Edges", 0)
        yield f"{_INDENT}none, in either direction"


def _row(edge: EdgeLine) -> tuple[str, ...]:
    facts = edge.facts
    name = f"{edge.type}:{edge.kind}" if edge.kind else edge.type or BARE
    name = f"{name} {mark_of_proposed(facts)}".rstrip()
    title, status = (edge.other.title, edge.other.status) if edge.other else ("", "")
    status = colours.UNRESOLVED if facts.get("unresolved") else status
    confidence = "" if facts.get("confidence") is None else str(facts["confidence"])
    return name, edge.other_id, status, title, confidence, ", ".join(facts["sources"])


def _violations(output: Output, report: CheckReport | None) -> Iterator[str]:
    if report is None:
        return
    if report.violations:
        yield from _section(output, "Violations", len(report.violations))
    for one in report.violations[:VIOLATIONS]:
        severity = output.styled(one.severity, colours.SEVERITIES[one.severity])
        yield output.flowed(f"{_INDENT}{severity} {escape_controls(f'{one.message} [{one.rule}]')}")
        if one.hint:
            yield output.flowed(_INDENT * 2 + escape_controls(one.hint))
    yield from _more(len(report.violations) - VIOLATIONS, "kb check")


def _history(output: Output, key: str, found: Json, around: Around) -> Iterator[str]:
    history = found["history"]
    yield from _section(output, "History", len(history))
    if not (history or around.not_listed):
        yield f"{_INDENT}none: no record has it yet"
    for record in history[:RECORDS]:
        who = escape_controls(f"{record['actor']} through {record['source']}")
        seq = output.styled(str(record["seq"]), "yellow")
        said = f"{_INDENT}{seq}  {short_time(record['at'])}  {who}  {escape_controls(records.why(record))}"
        yield output.flowed(said.rstrip())
        yield from (f"{_INDENT}    {line}" for line in _changed(output, record["seq"], around))
    if len(history) > RECORDS:
        yield from _more(len(history) - RECORDS, f"kb log {shlex.quote(key)}")
    else:
        yield from (f"{_INDENT}{sentence}" for sentence in around.not_listed)


def _changed(output: Output, seq: int, around: Around) -> Iterator[str]:
    """Yield what one record changed of the entity and of its edges."""
    change = around.changes.get(seq)
    if change and change["change"] == "renamed":
        yield output.styled(escape_controls(f"{SIGNS['renamed'][0]} renamed from {change['was']}"), SIGNS["renamed"][1])
        change = {**change, "fields": {key: sides for key, sides in change["fields"].items() if key != FORMER_IDS}}
    if change and change["change"] in {"updated", "renamed"}:
        yield from field_lines(output, change)
    elif change:
        sign, style = SIGNS[change["change"]]
        yield output.styled(f"{sign} {change['change']}", style)
    edges = around.touched.get(seq, ())
    for one in edges[:NAMED]:
        sign, style = SIGNS[one.change]
        yield output.styled(escape_controls(f"{sign} {records.name(one)}"), style)
    if len(edges) > NAMED:
        yield f"… and more edges: kb show {seq}"


def _body(output: Output, body: str | None) -> Iterator[str]:
    if body is not None and not body.strip():
        return
    yield from _section(output, "Document", 0)
    if body is None:
        yield output.flowed(
            f"{_INDENT}not available: neither the worktree nor the last commit has it as it was recorded"
        )
        return
    for line in body.strip("\n").splitlines():
        yield output.flowed(f"{_INDENT}{escape_controls(line)}".rstrip())
    if len(body) == MAX_SEARCHED_CHARS:
        yield output.flowed(f"{_INDENT}… the first {MAX_SEARCHED_CHARS:,} characters; the file has the rest")


def _section(output: Output, title: str, count: int) -> list[str]:
    return ["", output.styled(title, "bold") + (f" ({count})" if count else "")]


def _more(count: int, command: str) -> Iterator[str]:
    if count > 0:
        yield escape_controls(f"{_INDENT}… {count} more: {command}")
