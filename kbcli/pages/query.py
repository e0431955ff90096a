"""A page of a query in every format: JSON, lines of JSON, tables, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcli.terminal import tables
from kbcli.terminal.colours import STALE
from kbcli.terminal.pathtables import laid_out_with_paths
from kbcli.words.snippets import snippet_line
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.model import CORE_FIELDS, OBJECT_FIELDS, edge_json, entity_json
from kbcore.query.walk import path_text
from kbcore.visible import json_text, visible

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcli.render import Output
    from kbcore.query import Page, Query
    from kbcore.query.walk import Path

_ENTITY_HEAD: Final = ("ID", "TYPE", "STATUS", "TITLE")
_EDGE_HEAD: Final = ("FROM", "EDGE", "TO", "CONFIDENCE", "SOURCE")
_ENTITY_COLUMNS: Final = ("id", *CORE_FIELDS, *OBJECT_FIELDS, "version", "stale")
_WALK_COLUMNS: Final = ("depth", "path")
_TEXT_COLUMNS: Final = ("score", "snippet")
_EDGE_COLUMNS: Final = (
    *("type", "from", "to", "kind", "confidence", *OBJECT_FIELDS),
    *("created_at", "created_by", "source", "sources", "version", "id"),
)


def document(page: Page, *, with_edges: bool, is_of_edges: bool = False) -> dict[str, Any]:
    """Return a page as the contract has it; with edges, each entity also carries its own.

    A page of edges themselves gives each its id, by which another edge can name it as an end.
    """
    return {
        "total": page.total,
        "entities": _entities(page, with_edges=with_edges),
        "edges": _edges(page) if is_of_edges else [edge_json(link) for link in page.edges],
        "next_cursor": page.next_cursor or None,
    } | ({"search": page.found.document(page.total)} if page.found else {})


def _edges(page: Page) -> list[dict[str, Any]]:
    return [{**edge_json(link), "id": link.id} for link in page.edges]


def _entities(page: Page, *, with_edges: bool) -> list[dict[str, Any]]:
    shown = [
        entity_json(node)
        | ({"stale": True} if node.id in page.stale else {})
        | page.walked(node.id)
        | (page.found.shown(node.id) if page.found else {})
        for node in page.entities
    ]
    if with_edges:
        own: dict[str, list[dict[str, Any]]] = {entity["id"]: [] for entity in shown}
        for link in page.edges:
            for end in dict.fromkeys((link.from_id, link.to_id)):
                if end in own:
                    own[end].append(edge_json(link))
        for entity in shown:
            entity["edges"] = own[entity["id"]]
    return shown


def tell(session: Session, page: Page, asked: Query, format_: str, nothing: Sequence[str]) -> None:
    """Write a page for people, or in the format of another program; ``nothing`` says why it is empty, if it is."""
    output = session.output
    output.is_paged = format_ == "table"
    items = _edges(page) if asked.is_edge else _entities(page, with_edges=asked.edges)
    columns = _EDGE_COLUMNS if asked.is_edge else _entity_columns(asked)
    if format_ == "jsonl":
        output.data("".join(json_text(item) + "\n" for item in items))
    elif format_ == "csv":
        output.data(tables.comma_separated(columns, ([_cell(item.get(key)) for key in columns] for item in items)))
    elif format_ == "markdown":
        output.data(tables.markdown(*_with_snippets(items, *_table(items, page.paths, is_edge=asked.is_edge))))
    elif items:
        output.data(_lines(_drawn(output, page, items, is_edge=asked.is_edge)))
        if page.edges and not asked.is_edge:
            rows = _table([edge_json(link) for link in page.edges], {}, is_edge=True)
            output.data("\n" + _lines(output.table(*rows)))
    _tell_rest(session, page, len(items), nothing)


def _entity_columns(asked: Query) -> tuple[str, ...]:
    return (
        *_ENTITY_COLUMNS,
        *(_WALK_COLUMNS if asked.from_id else ()),
        *(_TEXT_COLUMNS if asked.text else ()),
    )


def _with_snippets(
    items: Sequence[dict[str, Any]], head: tuple[str, ...], rows: list[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return a table with what shows why each entity was found, in the column that a terminal has no room for."""
    if not any("snippet" in item for item in items):
        return head, rows
    said = [item.get("snippet", {}).get("text", "") for item in items]
    return (*head, "SNIPPET"), [(*row, one) for row, one in zip(rows, said, strict=True)]


def _drawn(output: Output, page: Page, items: Sequence[dict[str, Any]], *, is_edge: bool) -> Iterator[str]:
    """Yield the lines of a table, below each row the snippet of its entity."""
    table = laid_out_with_paths if page.paths else tables.laid_out
    head, *rows = table(*_table(items, page.paths, is_edge=is_edge), output.width, output.styled)
    yield from head
    snippets = page.found.snippets if page.found else {}
    for lines, item in zip(rows, items, strict=True):
        yield from lines
        if snippets and item["id"] in snippets:
            yield snippet_line(output, snippets[item["id"]])


def _tell_rest(session: Session, page: Page, shown: int, nothing: Sequence[str]) -> None:
    output = session.output
    for sentence in page.found.sentences(page.total) if page.found else ():
        output.note(sentence)
    if not shown and page.total:
        output.note("The answer ends here.")
    elif not shown and nothing:
        output.note("\n".join(nothing))
    elif shown and page.next_cursor:
        output.note(f"{shown} of {page.total}; for more: {ways_on(shown, page.total, visible(page.next_cursor))}")


def ways_on(shown: int, total: int, cursor: str) -> str:
    """Return the options that show more of an answer than so many rows."""
    most = min(total, MAX_PAGE_ROWS)
    return (f"--limit {most}, or " if shown < most else "") + f"--cursor {cursor}"


def _table(
    items: Sequence[dict[str, Any]], paths: Mapping[str, Path], *, is_edge: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    if is_edge:
        return _EDGE_HEAD, [edge_row(item) for item in items]
    tags = any(item.get("tags") for item in items)
    head = (*_ENTITY_HEAD, *(("TAGS",) if tags else ()), *(("PATH",) if paths else ()))
    rows = [
        (
            *(item["id"], item["type"], _status(item), item.get("title", "")),
            *((", ".join(item.get("tags", ())),) if tags else ()),
            *((path_text(paths[item["id"]]),) if paths else ()),
        )
        for item in items
    ]
    return head, rows


def _status(item: dict[str, Any]) -> str:
    """Return the status of an entity, marked where its file could not be read whole."""
    mark = STALE if item.get("stale") else ""
    return f"{item.get('status', '')} {mark}".strip()


def edge_row(edge: dict[str, Any]) -> tuple[str, ...]:
    """Return an edge in JSON as a row of a table."""
    name = f"{edge['type']}:{edge['kind']}" if edge.get("kind") else edge["type"]
    return edge["from"], name, edge["to"], _cell(edge.get("confidence")), edge["source"]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def _lines(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)
