"""Pages of records, differences and writers, and the preview of a revert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from kbcore.errors import NotFound
from kbcore.errors.remedies import for_shell
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.model.renames import joined
from kbcore.model.state import Draft
from kbcore.pages.activity import read_activity
from kbcore.store import branches
from kbcore.store.history.compare import differences_from
from kbcore.store.history.log import RecordFilter, log, operations_from, record_facts
from kbcore.store.history.moment import meant
from kbcore.store.history.shown import edge_change, entity_change
from kbcore.store.history.undo import UndoOptions, revert
from kbcore.store.history.when import is_seq
from kbcore.text.escaping import in_quotes
from kbweb.contents import ChangedField, changed_fields
from kbweb.server.pages.page import MAX_OFFSET, ExportTable, HtmlPage, PageRequest, point_of
from kbweb.server.reading import BranchState

CHANGES: Final = 200
"""Changes of a record, or between two points, of one page."""


def records(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return the records, newest first, by who wrote them, when and about what."""
    asked, view = request.parameters, state.recorded
    since, until = (point_of(state.branch, asked.one(name)) for name in ("since", "until"))
    selection = RecordFilter(asked.one("actor"), asked.one("source"), asked.one("session"), since, until)
    before = asked.number("before", state.seq + 1, MAX_OFFSET)
    found = log(view, selection, id=asked.one("id"), limit=request.limit + 1, before_seq=min(before, state.seq + 1))
    rows, more = found[: request.limit], len(found) > request.limit
    values = {"records": rows, "before": rows[-1]["seq"] if more else 0, "near": selection.near_actors(view)}
    names = ("seq", "at", "actor", "source", "session", "message", "commit")
    return HtmlPage(
        "records", "Records", values, ExportTable(names, [[one.get(name, "") for name in names] for one in rows])
    )


def record(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return one record as a difference. Raises: ``NotFound``, ``HistoryPruned``."""
    seq = _seq(request.key)
    facts = record_facts_of(state, seq)
    limit = max(request.limit, CHANGES)
    read = [*islice(operations_from(state.recorded, seq, request.offset, at_once=min(limit, MAX_PAGE_ROWS)), limit)]
    operations = [one for _, one in read]
    values = {
        "record": facts,
        "operations": operations,
        "fields_of": changed_fields,
        "after": read[-1][0] if len(read) == limit else 0,
        "last": state.seq,
    }
    return HtmlPage("record", f"Record {seq}", values, _changes_table(operations))


def record_facts_of(state: BranchState, seq: int) -> dict[str, Any]:
    """Return the facts of a record. Raises: ``NotFound`` where there is none."""
    if not 1 <= seq <= state.head:
        raise NotFound(f"There is no record {seq}.", hint=f"The last one is {state.head}.")
    return record_facts(state.branch.store, state.recorded, seq)


def changes(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return what differs between two points, a part at a time."""
    asked, view = request.parameters, state.recorded
    first, last = asked.one("from"), asked.one("to")
    if not first:
        return HtmlPage("compare", "Changes", {})
    low = meant(view, point_of(state.branch, first) or first).seq
    high = meant(view, point_of(state.branch, last) or last).seq if last else state.seq
    found: dict[str, Any] = {"from": low, "to": high, "entities": [], "edges": []}
    limit = max(request.limit, CHANGES)
    read = [*islice(differences_from(view, low, high, request.offset, at_once=min(limit, MAX_PAGE_ROWS)), limit)]
    for _, name, one in read:
        found[name].append(one)
    values = {
        "changes": found,
        "fields_of": changed_fields,
        "since": first,
        "after": read[-1][0] if len(read) == limit else 0,
    }
    return HtmlPage("changes", "Changes", values, _changes_table([*found["entities"], *found["edges"]]))


def _changes_table(found: Sequence[Mapping[str, Any]]) -> ExportTable:
    rows = [
        (one["change"], element_name(one), field.name, field.before, field.after)
        for one in found
        for field in changed_fields(one) or [ChangedField("", None, None)]
    ]
    return ExportTable(("change", "of", "field", "before", "after"), rows)


def element_name(one: Mapping[str, Any]) -> str:
    """Return the name of what a change is of: an entity, an edge or a file."""
    if "path" in one:
        return f"file {one['path']}"
    if "from" in one:
        kind = f":{one['kind']}" if one.get("kind") else ""
        return f"{one['from']} {one['type']}{kind} {one['to']}"
    return str(one["id"])


def activity(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return who wrote how much, and when."""
    found, total = read_activity(state.recorded, state.seq, request.limit, request.offset)
    names = ("actor", "source", "records", "first_at", "last_at", "last_seq", "created", "updated", "deleted", "edges")
    table = ExportTable(names, [msgspec.structs.astuple(one) for one in found])
    return HtmlPage("activity", "Activity", {"writers": found, "total": total}, table)


def preview(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return what the revert of a record would change; nothing is written. Raises: as ``revert``."""
    seq = _seq(request.key)
    facts = record_facts_of(state, seq)
    drafts: list[Draft] = []
    workspace = state.branch.workspace
    _, choice, _ = branches.open_to_try(workspace, request.reader.target.branch)
    outcome = revert(
        workspace,
        choice.branch,
        request.reader.target.author,
        [seq],
        UndoOptions(dry_run=True),
        follows_head=choice.follows_head,
        note=drafts.append,
    )
    changed = joined(drafts[-1].changes) if drafts else None
    operations: list[dict[str, Any]] = []
    if changed is not None:
        operations = [{"element": "entity", **entity_change(one)} for one in changed.nodes]
        operations += [{"element": "edge", **edge_change(one)} for one in changed.links]
    values = {
        "record": facts,
        "operations": operations[:CHANGES],
        "left": max(0, len(operations) - CHANGES),
        "fields_of": changed_fields,
        "warnings": [for_shell(one) for one in outcome.warnings],
    }
    return HtmlPage("revert", f"Revert of record {seq}", values, _changes_table(operations))


def _seq(text: str) -> int:
    if not is_seq(text):
        raise NotFound(f"{in_quotes(text)} is no record.", hint="A record is named by its seq, such as 12.")
    return int(text)
