"""A table with a row for each entity, as CSV or XLSX, in the form of the profile ``table``. Pure.

Columns of edges are called ``edge TYPE``, and ``edge relates_to (KIND)``; a cell has one id a line.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

from kbcore.errors import InvalidQuery
from kbcore.extract.links import RELATES_TO
from kbcore.query.exchange.graph import CORE_TEXTS, NOT_XML, Graph, attributes_of, relations, status_of, urls_of
from kbcore.text.escaping import csv_cell

PACKAGE: Final = "XlsxWriter"
_FIRST: Final = ("id", "type", "title", "status", *CORE_TEXTS, "tags", "links", "text_ref")
_MOST_CELL_CHARS: Final = 32_767
"""The most characters of a cell of a workbook."""
_NOTHING: Final = re.compile(r"(?!)")
_NOT_IN_WORKBOOKS: Final = re.compile(f"{NOT_XML.pattern}|_x[0-9A-Fa-f]{{4}}_")
"""Characters that no workbook can have, and what replaces one there."""
_MADE: Final = dt.datetime(1980, 1, 1)  # noqa: DTZ001 - the format knows no time zones
"""The time that is written into workbooks: the same facts make the same file."""


def to_csv(graph: Graph) -> bytes:
    """Return the table as CSV, in which no cell is a formula for a spreadsheet."""
    return csv_of(_rows(graph))


def csv_of(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows as CSV, in which no cell is a formula for a spreadsheet."""
    out = io.StringIO()
    for row in rows:
        line = io.StringIO()
        # With this ending of lines a carriage return is in quotes, which a reader takes for the end of a row else.
        csv.writer(line, lineterminator="\r\n").writerow([csv_cell(cell) for cell in row])
        out.write(line.getvalue().removesuffix("\r\n") + "\n")
    return out.getvalue().encode()


def to_xlsx(graph: Graph) -> bytes:
    """Return the table as a workbook. Raises: as ``workbook_of``."""
    return workbook_of(_rows(graph, _NOT_IN_WORKBOOKS), "Entities")


def workbook_of(rows: Iterable[Sequence[str]], name: str) -> bytes:
    """Return rows as a workbook of one sheet. A cell that a workbook cannot hold is left out.

    Raises: ``InvalidQuery`` where the package that writes them is not installed.
    """
    try:
        import xlsxwriter  # type: ignore[import-untyped] # noqa: PLC0415 - an extra
    except ImportError as error:
        message = f"Workbooks are not written: the package {PACKAGE} is not installed."
        raise InvalidQuery(message, hint='Install it with `pip install "kb-memory[xlsx]"`.') from error
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        book.set_properties({"created": _MADE})
        sheet = book.add_worksheet(name)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if cell and len(cell) <= _MOST_CELL_CHARS and not _NOT_IN_WORKBOOKS.search(cell):
                    sheet.write_string(number, column, cell)
    return out.getvalue()


def _rows(graph: Graph, unfit: re.Pattern[str] = _NOTHING) -> list[list[str]]:
    """Return the head and the rows; what ``unfit`` finds something in is left out."""
    rows: dict[str, dict[str, str]] = {}
    for entity in graph.entities:
        if unfit.search(entity["id"]):
            continue
        texts = {name: str(entity.get(name) or "") for name in ("id", "type", "title", *CORE_TEXTS, "text_ref")}
        row = {**texts, "status": status_of(entity), **attributes_of(graph, entity)}
        row["tags"] = ", ".join(entity.get("tags", ()))
        row["links"] = "\n".join(urls_of(entity))
        rows[entity["id"]] = {name: cell for name, cell in row.items() if not unfit.search(f"{name}\n{cell}")}
    columns = sorted({name for row in rows.values() for name in row} - {*_FIRST})
    for edge, type_, kind in relations(graph, rows):
        if unfit.search(kind):
            continue
        name = f"edge {type_} ({kind})" if type_ == RELATES_TO else f"edge {type_}"
        row = rows[edge["from"]]
        row[name] = f"{row[name]}\n{edge['to']}" if name in row else edge["to"]
    edges = sorted({name for row in rows.values() for name in row} - {*_FIRST, *columns})
    header = [*_FIRST, *columns, *edges]
    return [header, *([row.get(name, "") for name in header] for row in rows.values())]
