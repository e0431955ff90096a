"""Pages of how far requirements are covered, and of traceability between any two types."""

from __future__ import annotations

from functools import partial
from typing import Any

from kbcore.errors import InvalidQuery, Problem
from kbcore.model.schema import ASPECTS
from kbcore.pages.branch_report import read_last_record
from kbcore.query import UNREAD, DataNames, Query, check, parse_each, parse_where
from kbcore.query.coverage import RequirementPart, read_part
from kbcore.query.coverage import State as MatrixState
from kbcore.query.matrix import MatrixRequest, check_matrix, read_matrix
from kbcore.query.svg_drawing import MAX_NODES
from kbcore.text.escaping import in_quotes
from kbweb.contents import requirement_lines
from kbweb.server.pages.page import ExportTable, HtmlPage, PageRequest, root_of, schema_of
from kbweb.server.reading import BranchState, owners_of


def overview(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return what there is, how far it is covered, and the last records."""
    found = request.reader.summary(state).overview
    at, commit = read_last_record(state.view)
    values = {"overview": found, "branch": state.branch.name, "seq": state.seq, "at": at, "commit": commit}
    counts = [(one.type, status, count) for one in found.types for status, count in one.statuses]
    return HtmlPage("overview", "Overview", values, ExportTable(("type", "status", "entities"), counts))


def coverage(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return how far requirements are covered, in groups."""
    counts, by_name = request.reader.counts(state), request.reader.groups(state)
    counted = [
        (by, group.name or "", group.requirements, *(tally.yes for tally in group.tallies.values()), group.failing)
        for by, groups in by_name.items()
        for group in groups
    ]
    table = ExportTable(("by", "group", "requirements", *ASPECTS, "failing"), counted)
    overview = {"requirements": counts.total, "retired": counts.retired}  # the rest would take a check of the branch
    return HtmlPage("coverage", "Coverage", {"overview": overview, "groups": by_name}, table)


def requirements(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return the requirements with what specifies, verifies and implements each."""
    asked, view = request.parameters, state.view
    lacks = asked.many("lacks")
    for aspect in lacks:
        if aspect not in ASPECTS:
            raise InvalidQuery(f"{in_quotes(aspect)} is no aspect.", hint=f"Choose of {', '.join(ASPECTS)}.")
    tag, part = asked.one("tag"), RequirementPart(lacks, bool(asked.one("holes")), asked.one("priority"))
    of_tag = Query(tags=(tag,) if tag else ())
    rows, total = read_part(view.rows, None, of_tag, part, limit=request.limit, offset=request.offset)
    tags, priorities = request.reader.choices(state)
    values = {
        "aspects": ASPECTS,
        "requirements": requirement_lines(rows),
        "total": total,
        "all": request.reader.counts(state).total.requirements,
        "tags": tags[:MAX_NODES],
        "priorities": priorities,
    }
    cells = [(one.id, one.title, one.priority, *(_aspect_text(one, aspect) for aspect in ASPECTS)) for one in rows]
    return HtmlPage("requirements", "Requirements", values, ExportTable(("id", "title", "priority", *ASPECTS), cells))


def _aspect_text(one: Any, aspect: str) -> str:
    if one.state(aspect) == "not_applicable":
        return f"not applicable: {one.not_applicable[aspect]}"
    return ", ".join(getattr(one, aspect))


def matrix(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return which entities of a type lead to which ones of another, over a path of edges."""
    asked = request.parameters
    schema = schema_of(state)
    steps = tuple(" ".join(asked.many("edges")).split())
    types, edges = sorted(schema.entities), sorted(schema.edges)
    values: dict[str, Any] = {"types": types, "edge_types": edges, "steps": steps, "matrix": None}
    if not steps:
        return HtmlPage("matrix", "Matrix", values)
    problems: list[Problem] = []
    conditions = parse_each("where", asked.many("where"), parse_where, UNREAD, problems)
    query = Query(
        type=asked.one("type"),
        tags=asked.many("tag"),
        status=asked.one("status"),
        path=asked.many("path"),
        where=conditions,
    )
    known = DataNames(state.recorded.rows, is_edge=False, owners=partial(owners_of, state))
    checked = check(query, schema, known, problems, root=root_of(state))
    only: tuple[MatrixState, ...] = ("no",) if asked.one("holes") else ()
    wanted = MatrixRequest(checked, steps, asked.one("to"), only, limit=request.limit, offset=request.offset)
    found = read_matrix(state.recorded.rows, state.at, check_matrix(wanted, schema))
    cells = [
        (row.subject.id, row.subject.title, row.state, row.reason, ", ".join(one.id for one in row.ends), row.count)
        for row in found.rows
    ]
    table = ExportTable(("id", "title", "state", "reason", "leads_to", "count"), cells)
    return HtmlPage("matrix", "Matrix", values | {"matrix": found, "total": found.shown}, table)
