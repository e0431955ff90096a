"""Pages of the entities that a query finds, and of what is found while one types."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from kbcore.errors import InvalidQuery, Problem
from kbcore.limits import MAX_PAGE_ROWS, MAX_TRAVERSAL_DEPTH
from kbcore.query import NO_PATTERN, UNREAD, DataNames, Query, check, parse_each, parse_pattern, parse_where
from kbcore.query.former_ids import with_present_ids
from kbcore.query.subject import Subject, subject_of_node
from kbcore.store.history.when import span_meant
from kbcore.sync.searching import search
from kbweb.server.pages.page import ExportTable, HtmlPage, PageRequest, root_of, schema_of
from kbweb.server.reading import BranchState, owners_of

SUGGESTED: Final = 12
"""Entities that are shown while one types."""


def entities(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return the entities that a query finds, as ``kb query`` does."""
    asked, workspace = request.parameters, state.branch.workspace
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
        limit=min(request.limit, MAX_PAGE_ROWS),
        cursor=asked.one("cursor"),
    )
    view = state.recorded
    schema = schema_of(state)
    times = partial(span_meant, now=workspace.machine.clock.now(), is_local=True)
    known = DataNames(view.rows, is_edge=False, owners=partial(owners_of, state))
    checked = check(query, schema, known, problems, root=root_of(state), times=times)
    if checked.is_edge:
        raise InvalidQuery("This page lists entities.", hint="The page of an entity has its edges.")
    checked, _ = with_present_ids(view, checked, state.at)
    checked = msgspec.structs.replace(checked, at=state.at)
    subjects: list[Subject] = []
    while True:
        found = search(workspace, state.branch.store, state.branch.name, view, checked)
        subjects += map(subject_of_node, found.entities)
        if len(subjects) >= request.limit or not found.next_cursor:
            break
        checked = msgspec.structs.replace(checked, cursor=found.next_cursor)  # an export has all that is found
    values = {
        "found": subjects,
        "total": found.total,
        "next_cursor": found.next_cursor,
        "types": sorted(schema.entities),
    }
    rows = [(one.id, one.type, one.title, one.status, one.owner, "yes" if one.proposed else "") for one in subjects]
    table = ExportTable(("id", "type", "title", "status", "owner", "proposed"), rows)
    return HtmlPage("found", "Entities", values, table)


def suggest(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return the first entities that a search finds whose last word may be a beginning."""
    words = request.parameters.one("text")
    if not words:
        return HtmlPage("suggest", "Search", {"found": [], "total": 0, "words": ""})
    query = check(Query(text=words, limit=SUGGESTED), schema_of(state))
    query = msgspec.structs.replace(query, at=state.at)
    branch = state.branch
    found = search(branch.workspace, branch.store, branch.name, state.recorded, query)
    exact = state.view.nodes([words])
    nodes = [*exact, *(node for node in found.entities if node.id != words)][:SUGGESTED]
    subjects = [subject_of_node(node) for node in nodes]
    return HtmlPage("suggest", "Search", {"found": subjects, "total": max(found.total, len(nodes)), "words": words})
