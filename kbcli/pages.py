"""A page of a query in every format: JSON, lines of JSON, tables, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcli import tables
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.model import CORE_FIELDS, OBJECT_FIELDS, edge_json, entity_json
from kbcore.visible import json_text, visible

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.query import Page, Query

_ENTITY_HEAD: Final = ("ID", "TYPE", "STATUS", "TITLE")
_EDGE_HEAD: Final = ("FROM", "EDGE", "TO", "CONFIDENCE", "SOURCE")
_ENTITY_COLUMNS: Final = ("id", *CORE_FIELDS, *OBJECT_FIELDS, "version", "stale")
_EDGE_COLUMNS: Final = (
    *("type", "from", "to", "kind", "confidence", *OBJECT_FIELDS),
    *("created_at", "created_by", "source", "sources", "version", "id"),
)


def document(page: Page, branch: str, *, with_edges: bool, is_of_edges: bool = False) -> dict[str, Any]:
    """Return a page as the contract has it; with edges, each entity also carries its own.

    A page of edges themselves gives each its id, by which another edge can name it as an end.
    """
    return {
        "branch": branch,
        "seq": page.seq,
        "total": page.total,
        "entities": _entities(page, with_edges=with_edges),
        "edges": _edges(page) if is_of_edges else [edge_json(link) for link in page.edges],
        "next_cursor": page.next_cursor or None,
    }


def _edges(page: Page) -> list[dict[str, Any]]:
    return [{**edge_json(link), "id": link.id} for link in page.edges]


def _entities(page: Page, *, with_edges: bool) -> list[dict[str, Any]]:
    shown = [entity_json(node) | ({"stale": True} if node.id in page.stale else {}) for node in page.entities]
    if with_edges:
        own: dict[str, list[dict[str, Any]]] = {entity["id"]: [] for entity in shown}
        for link in page.edges:
            for end in dict.fromkeys((link.from_id, link.to_id)):
                if end in own:
                    own[end].append(edge_json(link))
        for entity in shown:
            entity["edges"] = own[entity["id"]]
    return shown


def tell(session: Session, page: Page, asked: Query, format_: str, *, at: str | None = None) -> None:
    """Write a page for people, or in the format of another program; ``at`` is the seq or time asked for."""
    output = session.output
    output.is_paged = format_ == "table"
    items = _edges(page) if asked.is_edge else _entities(page, with_edges=asked.edges)
    columns = _EDGE_COLUMNS if asked.is_edge else _ENTITY_COLUMNS
    if format_ == "jsonl":
        output.data("".join(json_text(item) + "\n" for item in items))
    elif format_ == "csv":
        output.data(tables.comma_separated(columns, ([_cell(item.get(key)) for key in columns] for item in items)))
    elif format_ == "markdown":
        output.data(tables.markdown(*_table(items, is_edge=asked.is_edge)))
    elif items:
        output.data(_lines(tables.aligned(*_table(items, is_edge=asked.is_edge), output.width)))
        if page.edges and not asked.is_edge:
            rows = _table([edge_json(link) for link in page.edges], is_edge=True)
            output.data("\n" + _lines(tables.aligned(*rows, output.width)))
    _tell_rest(session, page, len(items), _nothing(page, asked, at))


def _nothing(page: Page, asked: Query, at: str | None) -> str:
    """Return why a page without rows is empty."""
    if page.seq:
        return f"No {'edge' if asked.is_edge else 'entity'} matches."
    if at is None:
        return "The branch holds nothing yet; `kb sync` takes in documents."
    what = "That time" if at.strip() != "0" else "Seq 0"
    return f"{what} is before the first record; nothing stood then."


def _tell_rest(session: Session, page: Page, shown: int, nothing: str) -> None:
    output = session.output
    if not shown and page.total:
        output.note("The answer ends here.")
    elif not shown:
        output.note(nothing)
    elif page.next_cursor:
        output.note(f"{shown} of {page.total}; for more: {ways_on(shown, page.total, visible(page.next_cursor))}")


def ways_on(shown: int, total: int, cursor: str) -> str:
    """Return the options that show more of an answer than so many rows."""
    most = min(total, MAX_PAGE_ROWS)
    return (f"--limit {most}, or " if shown < most else "") + f"--cursor {cursor}"


def _table(items: Sequence[dict[str, Any]], *, is_edge: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    if is_edge:
        return _EDGE_HEAD, [edge_row(item) for item in items]
    tags = any(item.get("tags") for item in items)
    rows = [
        (
            *(item["id"], item["type"], _status(item), item.get("title", "")),
            *((", ".join(item.get("tags", ())),) if tags else ()),
        )
        for item in items
    ]
    return (*_ENTITY_HEAD, "TAGS") if tags else _ENTITY_HEAD, rows


def _status(item: dict[str, Any]) -> str:
    """Return the status of an entity, marked where its file could not be read whole."""
    mark = "(stale)" if item.get("stale") else ""
    return f"{item.get('status', '')} {mark}".strip()


def edge_row(edge: dict[str, Any]) -> tuple[str, ...]:
    """Return an edge in JSON as a row of a table."""
    name = f"{edge['type']}:{edge['kind']}" if edge.get("kind") else edge["type"]
    return edge["from"], name, edge["to"], _cell(edge.get("confidence")), edge["source"]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def _lines(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
