"""The pages of the explorer: from what is asked of a state to the values of a template, and a table for exports.

A page has at most ``PAGE_ROWS`` rows, an export of the same at most ``MAX_PAGE_ROWS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec
from markupsafe import Markup

from kbcore.checks import descriptions
from kbcore.errors import InvalidQuery, NotFound, Problem
from kbcore.limits import MAX_TRAVERSAL_DEPTH
from kbcore.model.renames import joined
from kbcore.model.schema import ASPECTS
from kbcore.model.state import Draft
from kbcore.pages.activity import read_activity
from kbcore.pages.branch_report import read_last_record
from kbcore.pages.entity import read_entity_pages
from kbcore.query import (
    NO_PATTERN,
    UNREAD,
    DataNames,
    Query,
    check,
    parse_each,
    parse_pattern,
    parse_where,
)
from kbcore.query.coverage import State as MatrixState
from kbcore.query.drawing import MAX_NODES, svg
from kbcore.query.former import called, with_present_ids
from kbcore.query.matrix import MatrixRequest, check_matrix, read_matrix
from kbcore.query.section import Section, SectionRequest, section
from kbcore.query.subject import subject_of_node
from kbcore.store import branches
from kbcore.store.history.compare import differences_from
from kbcore.store.history.log import Selection, log, missing, operations_from, record_facts
from kbcore.store.history.moment import meant
from kbcore.store.history.shown import edge_change, entity_change
from kbcore.store.history.undo import UndoOptions, revert
from kbcore.store.history.when import When, is_seq, point_in, span_meant
from kbcore.sync.searching import documents, search
from kbcore.text.escaping import in_quotes
from kbcore.view.branch_definitions import schema_at
from kbweb.contents import ChangedField, Detail, by_rule, changed_fields, entity_html, requirement_lines
from kbweb.links import ServerLinks
from kbweb.server.asked import Asked
from kbweb.server.reading import Branch, Reader, State

PAGE_ROWS: Final = 100
CHANGES: Final = 200
"""Changes of a record, or between two points, of one page."""
SUGGESTED: Final = 12
"""Entities that are shown while one types."""
MAX_DEPTH: Final = 6
_MAX_OFFSET: Final = 100_000_000


class Ask(msgspec.Struct, frozen=True):
    """One request for a page. ``key`` is what its address names, ``limit`` how many rows are shown."""

    asked: Asked
    links: ServerLinks
    reader: Reader
    key: str = ""
    limit: int = PAGE_ROWS

    @property
    def offset(self) -> int:
        """Return how many rows come before the page."""
        return self.asked.number("offset", 0, _MAX_OFFSET)


class Table(msgspec.Struct, frozen=True):
    """What a page shows, as rows for an export. A row has a value for each name."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


class Page(msgspec.Struct, frozen=True):
    """What a page shows: a template with its values, a title, and the same as a table where there is one."""

    template: str
    title: str
    values: dict[str, Any]
    table: Table | None = None
    picture: str = ""
    """An SVG that can be exported."""


PageOf = Callable[[Ask, State], Page]


def overview(ask: Ask, state: State) -> Page:
    """Return what there is, how far it is covered, and the last records."""
    found = ask.reader.summary(state).overview
    at, commit = read_last_record(state.view)
    values = {"overview": found, "branch": state.branch.name, "seq": state.seq, "at": at, "commit": commit}
    counts = [(one.type, status, count) for one in found.types for status, count in one.statuses]
    return Page("overview", "Overview", values, Table(("type", "status", "entities"), counts))


def coverage(ask: Ask, state: State) -> Page:
    """Return how far requirements are covered, in groups."""
    found, by_name = ask.reader.summary(state), ask.reader.groups(state)
    counted = [
        (by, group.name or "", group.requirements, *(tally.yes for tally in group.tallies.values()), group.failing)
        for by, groups in by_name.items()
        for group in groups
    ]
    table = Table(("by", "group", "requirements", *ASPECTS, "failing"), counted)
    return Page("coverage", "Coverage", {"overview": found.overview, "groups": by_name}, table)


def requirements(ask: Ask, state: State) -> Page:
    """Return the requirements with what specifies, verifies and implements each."""
    found = ask.reader.summary(state).covered.requirements
    tag, priority, lacks = ask.asked.one("tag"), ask.asked.one("priority"), ask.asked.many("lacks")
    for aspect in lacks:
        if aspect not in ASPECTS:
            raise InvalidQuery(f"{in_quotes(aspect)} is no aspect.", hint=f"Choose of {', '.join(ASPECTS)}.")
    chosen = [
        one
        for one in found
        if (not tag or tag in one.tags)
        and (not priority or one.priority == priority)
        and all(one.state(aspect) == "no" for aspect in lacks)
        and (not ask.asked.one("holes") or any(one.state(aspect) == "no" for aspect in ASPECTS))
    ]
    rows = chosen[ask.offset : ask.offset + ask.limit]
    values = {
        "aspects": ASPECTS,
        "requirements": requirement_lines(rows),
        "total": len(chosen),
        "all": len(found),
        "tags": sorted({one for req in found for one in req.tags})[:MAX_NODES],
        "priorities": sorted({req.priority for req in found if req.priority}),
    }
    cells = [(one.id, one.title, one.priority, *(_aspect_text(one, aspect) for aspect in ASPECTS)) for one in rows]
    return Page("requirements", "Requirements", values, Table(("id", "title", "priority", *ASPECTS), cells))


def _aspect_text(one: Any, aspect: str) -> str:
    if one.state(aspect) == "not_applicable":
        return f"not applicable: {one.not_applicable[aspect]}"
    return ", ".join(getattr(one, aspect))


def matrix(ask: Ask, state: State) -> Page:
    """Return which entities of a type lead to which ones of another, over a path of edges."""
    asked = ask.asked
    schema = schema_at(state.recorded.rows, state.branch.workspace.schema, state.at) if state.at else _schema(state)
    steps = tuple(" ".join(asked.many("edges")).split())
    types, edges = sorted(schema.entities), sorted(schema.edges)
    values: dict[str, Any] = {"types": types, "edge_types": edges, "steps": steps, "matrix": None}
    if not steps:
        return Page("matrix", "Matrix", values)
    problems: list[Problem] = []
    conditions = parse_each("where", asked.many("where"), parse_where, UNREAD, problems)
    query = Query(
        type=asked.one("type"),
        tags=asked.many("tag"),
        status=asked.one("status"),
        path=asked.many("path"),
        where=conditions,
    )
    checked = check(query, schema, DataNames(state.recorded.rows, is_edge=False), problems, root=_root(state))
    only: tuple[MatrixState, ...] = ("no",) if asked.one("holes") else ()
    wanted = MatrixRequest(checked, steps, asked.one("to"), only, limit=ask.limit, offset=ask.offset)
    found = read_matrix(state.recorded.rows, state.at, check_matrix(wanted, schema))
    cells = [
        (row.subject.id, row.subject.title, row.state, row.reason, ", ".join(one.id for one in row.ends), row.count)
        for row in found.rows
    ]
    table = Table(("id", "title", "state", "reason", "leads_to", "count"), cells)
    return Page("matrix", "Matrix", values | {"matrix": found, "total": found.shown}, table)


def violations(ask: Ask, state: State) -> Page:
    """Return what the rules find."""
    summary = ask.reader.summary(state)
    rule, severity = ask.asked.one("rule"), ask.asked.one("severity")
    chosen = [
        one
        for one in summary.check.violations
        if (not rule or one.rule == rule) and (not severity or one.severity == severity)
    ]
    rows = chosen[ask.offset : ask.offset + ask.limit]
    values = {
        "overview": summary.overview,
        "violations": by_rule(rows),
        "descriptions": descriptions(state.branch.workspace),
        "total": len(chosen),
        "rules": [one for one in summary.overview.rules if one.violations],
    }
    cells = [(one.rule, one.severity, one.id, one.message, one.hint, one.source, one.line or "") for one in rows]
    names = ("rule", "severity", "id", "message", "hint", "file", "line")
    return Page("violations", "Violations", values, Table(names, cells))


def conflicts(ask: Ask, state: State) -> Page:
    """Return what changes state differently."""
    found = ask.reader.summary(state).conflicts
    rows = found[ask.offset : ask.offset + ask.limit]
    cells = [
        (one.name, one.field, value.get("value", ""), ", ".join(c["actor"] for c in value.get("changes", [value])))
        for one in rows
        for value in one.values
    ]
    values = {"conflicts": rows, "total": len(found)}
    return Page("conflicts", "Conflicts", values, Table(("of", "field", "value", "by"), cells))


def entities(ask: Ask, state: State) -> Page:
    """Return the entities that a query finds, as ``kb query`` does."""
    asked, workspace = ask.asked, state.branch.workspace
    problems: list[Problem] = []
    query = Query(
        type=asked.one("type"),
        ids=asked.many("id"),
        tags=asked.many("tag"),
        status=asked.one("status"),
        where=parse_each("where", asked.many("where"), parse_where, UNREAD, problems),
        has=parse_each("has", asked.many("has"), parse_pattern, NO_PATTERN, problems),
        lacks=parse_each("lacks", asked.many("lacks"), parse_pattern, NO_PATTERN, problems),
        text=asked.one("text"),
        path=asked.many("path"),
        from_id=asked.one("from"),
        follow=tuple(name.strip() for names in asked.many("follow") for name in names.split(",")),
        depth=asked.number("depth", 1, MAX_TRAVERSAL_DEPTH, 1),
        reverse=bool(asked.one("reverse")),
        sort=asked.one("sort") or ("" if asked.one("text") or asked.one("from") else "id"),
        limit=ask.limit,
        cursor=asked.one("cursor"),
    )
    view = state.recorded
    schema = schema_at(view.rows, workspace.schema, state.at) if state.at is not None else _schema(state)
    times = partial(span_meant, now=workspace.machine.clock.now(), is_local=True)
    checked = check(query, schema, DataNames(view.rows, is_edge=False), problems, root=_root(state), times=times)
    if checked.is_edge:
        raise InvalidQuery("This page lists entities.", hint="The page of an entity has its edges.")
    checked, _ = with_present_ids(view, checked, state.at)
    found = search(
        workspace, state.branch.store, state.branch.name, view, msgspec.structs.replace(checked, at=state.at)
    )
    subjects = [subject_of_node(node) for node in found.entities]
    values = {
        "found": subjects,
        "total": found.total,
        "next_cursor": found.next_cursor,
        "types": sorted(schema.entities),
    }
    rows = [(one.id, one.type, one.title, one.status, one.owner, "yes" if one.proposed else "") for one in subjects]
    table = Table(("id", "type", "title", "status", "owner", "proposed"), rows)
    return Page("found", "Entities", values, table)


def suggest(ask: Ask, state: State) -> Page:
    """Return the first entities that a search finds whose last word may be a beginning."""
    words = ask.asked.one("text")
    if not words:
        return Page("suggest", "Search", {"found": [], "total": 0, "words": ""})
    query = check(Query(text=words, limit=SUGGESTED), _schema(state))
    query = msgspec.structs.replace(query, at=state.at)
    branch = state.branch
    found = search(branch.workspace, branch.store, branch.name, state.recorded, query)
    exact = state.view.nodes([words])
    nodes = [*exact, *(node for node in found.entities if node.id != words)][:SUGGESTED]
    subjects = [subject_of_node(node) for node in nodes]
    return Page("suggest", "Search", {"found": subjects, "total": max(found.total, len(nodes)), "words": words})


def entity(ask: Ask, state: State) -> Page:
    """Return one entity: its fields, text, edges, findings, history, and what is around it. Raises: ``NotFound``."""
    view, branch = state.view, state.branch
    key = called(view, [ask.key]).get(ask.key, ask.key)
    nodes = view.nodes([key])
    if not nodes:
        raise missing(view, key)
    page = read_entity_pages(view, [key], ask.reader.report_on(state, key))[key]
    texts = documents(branch.workspace, branch.name, state.recorded, nodes, state.at)
    depth = ask.asked.number("depth", 1, MAX_DEPTH, 1)
    around = section(view.rows, None, SectionRequest(key, depth, limit=MAX_NODES))
    picture, reason = _picture(around, key, ask)
    values = {
        "content": entity_html(page, ask.links, Detail(has_picture=False), texts.get(key) or ""),
        "key": key,
        "depth": depth,
        "max_depth": MAX_DEPTH,
        "around": around,
        "picture": Markup(picture),  # noqa: S704 - it escapes its texts
        "reason": reason,
        "records_total": page.records_total,
    }
    edges = [(one.facts["from"], one.type, one.kind, one.facts["to"]) for one in page.edges]
    return Page("entity", key, values, Table(("from", "type", "kind", "to"), edges), picture)


def _picture(around: Section, start: str, ask: Ask) -> tuple[str, str]:
    """Return a picture of a section, or why there is none."""
    if len(around.nodes) < 2:  # noqa: PLR2004 - the entity alone
        return "", "Nothing is next to it."
    if around.is_cut:
        return "", f"{around.entities} entities are within this depth; a picture has at most {MAX_NODES}."
    try:
        label = f"{start} and what is around it"
        return svg(around, start, ask.links.entity, label, is_alone=ask.asked.one("format") == "svg"), ""
    except InvalidQuery as error:
        return "", f"{error.message} {error.hint}"


def records(ask: Ask, state: State) -> Page:
    """Return the records, newest first, by who wrote them, when and about what."""
    asked, view = ask.asked, state.recorded
    since, until = (_point(state.branch, asked.one(name)) for name in ("since", "until"))
    selection = Selection(asked.one("actor"), asked.one("source"), asked.one("session"), since, until)
    before = asked.number("before", state.seq + 1, _MAX_OFFSET)
    found = log(view, selection, id=asked.one("id"), limit=ask.limit + 1, before_seq=min(before, state.seq + 1))
    rows, more = found[: ask.limit], len(found) > ask.limit
    values = {"records": rows, "before": rows[-1]["seq"] if more else 0, "near": selection.near_actors(view)}
    names = ("seq", "at", "actor", "source", "session", "message", "commit")
    return Page("records", "Records", values, Table(names, [[one.get(name, "") for name in names] for one in rows]))


def record(ask: Ask, state: State) -> Page:
    """Return one record as a difference. Raises: ``NotFound``, ``HistoryPruned``."""
    seq = _seq(ask.key)
    facts = record_facts_of(state, seq)
    read = [*islice(operations_from(state.recorded, seq, ask.offset, at_once=CHANGES), CHANGES)]
    operations = [one for _, one in read]
    values = {
        "record": facts,
        "operations": operations,
        "fields_of": changed_fields,
        "after": read[-1][0] if len(read) == CHANGES else 0,
        "last": state.seq,
    }
    return Page("record", f"Record {seq}", values, _changes_table(operations))


def record_facts_of(state: State, seq: int) -> dict[str, Any]:
    """Return the facts of a record. Raises: ``NotFound`` where there is none."""
    if not 1 <= seq <= state.head:
        raise NotFound(f"There is no record {seq}.", hint=f"The last one is {state.head}.")
    return record_facts(state.branch.store, state.recorded, seq)


def changes(ask: Ask, state: State) -> Page:
    """Return what differs between two points, a part at a time."""
    asked, view = ask.asked, state.recorded
    first, last = asked.one("from"), asked.one("to")
    if not first:
        return Page("compare", "Changes", {})
    low = meant(view, _point(state.branch, first) or first).seq
    high = meant(view, _point(state.branch, last) or last).seq if last else state.seq
    found: dict[str, Any] = {"from": low, "to": high, "entities": [], "edges": []}
    read = [*islice(differences_from(view, low, high, ask.offset, at_once=CHANGES), CHANGES)]
    for _, name, one in read:
        found[name].append(one)
    values = {
        "changes": found,
        "fields_of": changed_fields,
        "since": first,
        "after": read[-1][0] if len(read) == CHANGES else 0,
    }
    return Page("changes", "Changes", values, _changes_table([*found["entities"], *found["edges"]]))


def _changes_table(found: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        (one["change"], element_name(one), field.name, field.before, field.after)
        for one in found
        for field in changed_fields(one) or [ChangedField("", None, None)]
    ]
    return Table(("change", "of", "field", "before", "after"), rows)


def element_name(one: Mapping[str, Any]) -> str:
    """Return the name of what a change is of: an entity, an edge or a file."""
    if "path" in one:
        return f"file {one['path']}"
    if "from" in one:
        kind = f":{one['kind']}" if one.get("kind") else ""
        return f"{one['from']} {one['type']}{kind} {one['to']}"
    return str(one["id"])


def activity(_: Ask, state: State) -> Page:
    """Return who wrote how much, and when."""
    found = read_activity(state.recorded, state.seq)
    names = ("actor", "source", "records", "first_at", "last_at", "last_seq", "created", "updated", "deleted", "edges")
    return Page(
        "activity", "Activity", {"writers": found}, Table(names, [msgspec.structs.astuple(one) for one in found])
    )


def preview(ask: Ask, state: State) -> Page:
    """Return what the revert of a record would change; nothing is written. Raises: as ``revert``."""
    seq = _seq(ask.key)
    facts = record_facts_of(state, seq)
    drafts: list[Draft] = []
    workspace = state.branch.workspace
    _, choice, _ = branches.open_to_try(workspace, ask.reader.place.branch)
    outcome = revert(
        workspace,
        choice.branch,
        ask.reader.place.author,
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
        "warnings": outcome.warnings,
    }
    return Page("revert", f"Revert of record {seq}", values, _changes_table(operations))


def _seq(text: str) -> int:
    if not is_seq(text):
        raise NotFound(f"{in_quotes(text)} is no record.", hint="A record is named by its seq, such as 12.")
    return int(text)


def _point(branch: Branch, text: str) -> When | None:
    return point_in(branch.workspace, branch.name, text, is_local=True) if text else None


def _schema(state: State) -> Any:
    return state.view.schema(state.branch.workspace.schema)


def _root(state: State) -> str:
    repo = state.branch.workspace.repo
    return str(repo.worktree) if repo.has_worktree else ""


PAGES: Final[Mapping[str, PageOf]] = {
    "/": overview,
    "/coverage": coverage,
    "/requirements": requirements,
    "/matrix": matrix,
    "/violations": violations,
    "/conflicts": conflicts,
    "/entities": entities,
    "/entity/{key:path}": entity,
    "/records": records,
    "/record/{key}": record,
    "/record/{key}/revert": preview,
    "/changes": changes,
    "/activity": activity,
}
"""The pages by their addresses."""
NAVIGATION: Final = {
    "overview": "Overview",
    "coverage": "Coverage",
    "requirements": "Requirements",
    "matrix": "Matrix",
    "violations": "Violations",
    "conflicts": "Conflicts",
    "entities": "Entities",
    "records": "Records",
    "changes": "Changes",
    "activity": "Activity",
}
"""The pages that each page leads to, with their titles."""
