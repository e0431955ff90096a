"""A table with a row for each entity, as CSV or XLSX, in the form of the profile ``table``. Pure.

Columns of edges are called ``edge TYPE``, and ``edge relates_to (KIND)``; a cell has one id a line.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from typing import Final

from kbcore.errors import InvalidQuery
from kbcore.extract.links import RELATES_TO
from kbcore.query.exchange.graph import CORE_TEXTS, Graph, attributes_of, relations, status_of

PACKAGE: Final = "XlsxWriter"
_FIRST: Final = ("id", "type", "title", "status", *CORE_TEXTS, "tags", "links", "text_ref")
_MOST_CELL_CHARS: Final = 32_767
"""What a cell of a workbook has at most."""
_MADE: Final = dt.datetime(1980, 1, 1)  # noqa: DTZ001 - the format knows no time zones
"""The time that is written into workbooks: the same facts make the same file."""


def to_csv(graph: Graph) -> bytes:
    """Return the table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(_rows(graph))
    return out.getvalue().encode()


def to_xlsx(graph: Graph) -> bytes:
    """Return the table as a workbook. Raises: ``InvalidQuery`` where the package that writes them is not installed."""
    try:
        import xlsxwriter  # type: ignore[import-untyped] # noqa: PLC0415 - an extra
    except ImportError as error:
        message = f"Workbooks are not written: the package {PACKAGE} is not installed."
        raise InvalidQuery(message, hint='Install it with `pip install "kb-memory[xlsx]"`.') from error
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        book.set_properties({"created": _MADE})
        sheet = book.add_worksheet("Entities")
        for number, row in enumerate(_rows(graph)):
            for column, cell in enumerate(row):
                if cell and len(cell) <= _MOST_CELL_CHARS:
                    sheet.write_string(number, column, cell)
    return out.getvalue()


def _rows(graph: Graph) -> list[list[str]]:
    rows: dict[str, dict[str, str]] = {}
    for entity in graph.entities:
        texts = {name: str(entity.get(name) or "") for name in ("id", "type", "title", *CORE_TEXTS, "text_ref")}
        row = {**texts, "status": status_of(entity), **attributes_of(graph, entity)}
        row["tags"] = ", ".join(entity.get("tags", ()))
        row["links"] = "\n".join(entity.get("links", ()))
        rows[entity["id"]] = row
    columns = sorted({name for row in rows.values() for name in row} - {*_FIRST})
    for edge, type_, kind in relations(graph, rows):
        name = f"edge {type_} ({kind})" if type_ == RELATES_TO else f"edge {type_}"
        row = rows[edge["from"]]
        row[name] = f"{row[name]}\n{edge['to']}" if name in row else edge["to"]
    edges = sorted({name for row in rows.values() for name in row} - {*_FIRST, *columns})
    header = [*_FIRST, *columns, *edges]
    return [header, *([row.get(name, "") for name in header] for row in rows.values())]
