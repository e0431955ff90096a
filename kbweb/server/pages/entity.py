"""The page of an entity, with what is around it."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from kbcore.errors import InvalidQuery
from kbcore.pages.entity import read_entity_pages
from kbcore.query.former_ids import called
from kbcore.query.section import Section, SectionRequest, section
from kbcore.query.svg_drawing import MAX_NODES, svg
from kbcore.store.history.log import no_such_entity
from kbcore.sync.searching import documents
from kbweb.contents import Detail, entity_html
from kbweb.links import id_in_path
from kbweb.server.pages.page import ExportTable, HtmlPage, PageRequest
from kbweb.server.reading import BranchState

MAX_DEPTH: Final = 6
"""Steps around an entity."""


def entity(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return one entity: its fields, text, edges, findings, history, and what is around it. Raises: ``NotFound``."""
    view, branch = state.view, state.branch
    named = id_in_path(request.key)
    key = called(view, [named]).get(named, named)
    nodes = view.nodes([key])
    if not nodes:
        raise no_such_entity(view, key)
    page = read_entity_pages(view, [key], request.reader.report_on(state, key))[key]
    texts = documents(branch.workspace, branch.name, state.recorded, nodes, state.at)
    depth = request.parameters.number("depth", 1, MAX_DEPTH, 1)
    around = section(view.rows, None, SectionRequest(key, depth, limit=MAX_NODES))
    picture, reason = _picture(around, key, request)
    values = {
        "content": entity_html(page, request.links, Detail(has_picture=False), texts.get(key) or ""),
        "key": key,
        "depth": depth,
        "max_depth": MAX_DEPTH,
        "around": around,
        "picture": Markup(picture),  # noqa: S704 - it escapes its texts
        "reason": reason,
        "records_total": page.records_total,
    }
    edges = [
        (one.facts["from"], one.type, one.kind, one.facts["to"], "yes" if one.is_proposed else "") for one in page.edges
    ]
    return HtmlPage("entity", key, values, ExportTable(("from", "type", "kind", "to", "proposed"), edges), picture)


def _picture(around: Section, start: str, request: PageRequest) -> tuple[str, str]:
    """Return a picture of a section, or why there is none."""
    if len(around.nodes) < 2:  # noqa: PLR2004 - the entity alone
        return "", "Nothing is next to it."
    if around.is_cut:
        return "", f"{around.entities} entities are within this depth; a picture has at most {MAX_NODES}."
    try:
        href = None if request.parameters.one("format") == "svg" else request.links.entity
        return svg(around, start, href, f"{start} and what is around it"), ""
    except InvalidQuery as error:
        return "", f"{error.message} {error.hint}"
