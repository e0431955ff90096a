"""The content of a page, as a file: CSV, a workbook, Markdown, JSON, and SVG of a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kbcore.errors import InvalidQuery, LimitExceeded
from kbcore.query.exchange.tables import csv_of, workbook_of
from kbcore.text.escaping import in_quotes, json_text, markdown_text
from kbweb.rendering import shown
from kbweb.server.pages.page import MAX_EXPORT_ROWS, ExportTable, HtmlPage

KINDS: Final[Mapping[str, str]] = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
"""The media types of the formats."""


def formats_of(page: HtmlPage) -> list[str]:
    """Return the formats in which a page can be exported."""
    return [*(("csv", "xlsx", "md", "json") if page.table else ()), *(("svg",) if page.picture else ())]


def exported(page: HtmlPage, format_: str) -> bytes:
    """Return what a page shows in a format: all of it.

    Raises: ``InvalidQuery`` for a format that it does not have; ``LimitExceeded`` for more than ``MAX_EXPORT_ROWS``.
    """
    if format_ not in formats_of(page):
        formats = ", ".join(formats_of(page))
        hint = f"Choose of {formats}." if formats else "It has no export at all: it shows no rows."
        raise InvalidQuery(f"This page has no export as {in_quotes(format_)}.", hint=hint)
    if format_ == "svg" or page.table is None:
        return page.picture.encode()
    if len(page.table.rows) > MAX_EXPORT_ROWS:
        message = f"The page has more than {MAX_EXPORT_ROWS:,} rows, which are the most of an export."
        raise LimitExceeded(message, hint="Choose fewer by its filters.")
    return _WRITERS[format_](page.table)


def _texts(table: ExportTable) -> list[list[str]]:
    return [[*table.names], *([cell if isinstance(cell, str) else shown(cell) for cell in row] for row in table.rows)]


def _markdown(table: ExportTable) -> bytes:
    lines = [[markdown_text(one) for one in row] for row in _texts(table)]
    head, *rows = [f"| {' | '.join(row)} |\n" for row in lines]
    return "".join([head, f"|{' --- |' * len(table.names)}\n", *rows]).encode()


def _json(table: ExportTable) -> bytes:
    rows: list[dict[str, Any]] = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    return f"{json_text(rows, 2)}\n".encode()


_WRITERS: Final[Mapping[str, Callable[[ExportTable], bytes]]] = {
    "csv": lambda table: csv_of(_texts(table)),
    "xlsx": lambda table: workbook_of(_texts(table), "KB"),
    "md": _markdown,
    "json": _json,
}
