"""A traceability matrix as a table, Markdown, TSV or CSV."""

from __future__ import annotations

from typing import Final

from kbcli.terminal import tables
from kbcli.terminal.output import Output
from kbcore.query.matrix import Matrix, MatrixRequest, MatrixRow
from kbcore.text.escaping import json_text
from kbcore.text.wording import pluralize

_SHOWN: Final = 5
"""Columns that a row of a table names."""
_COLUMNS: Final = ("id", "title", "status", "state", "linked", "linked_total", "reason")


def show(output: Output, wanted: MatrixRequest, found: Matrix, format_: str) -> None:
    """Write a matrix, and for people its numbers."""
    if format_ == "csv":
        output.stream(tables.comma_separated(_COLUMNS, map(_cells, found.rows)))
        return
    if format_ == "tsv":
        names = [name.upper() for name in _COLUMNS]
        output.stream(f"{line}\n" for line in tables.tab_separated(names, map(_cells, found.rows)))
        return
    output.is_paged = True
    head = ("ID", wanted.to.upper() or "LEADS TO", "TITLE")
    rows = [matrix_row(row) for row in found.rows]
    if rows and format_ == "markdown":
        output.stream(tables.markdown(head, rows))
    elif rows:
        output.data("".join(line + "\n" for line in output.table(head, rows)))
    output.note(numbers(found))


def numbers(found: Matrix) -> str:
    """Return how many rows are linked, and how many are not."""
    waived = f", {found.not_applicable} not applicable" if found.not_applicable else ""
    retired = f"; {pluralize(found.retired, 'retired entity')} left out" if found.retired else ""
    retired += f"; {found.proposed} only proposed" if found.proposed else ""
    return f"{found.yes} linked, {pluralize(found.no, 'hole')}{waived}{retired}."


def matrix_row(row: MatrixRow) -> tuple[str, str, str]:
    """Return a row as a table has it: the id, what it leads to, and the title."""
    return row.subject.id, _linked(row), row.subject.title


def _linked(row: MatrixRow) -> str:
    if row.state == "yes":
        more = f" +{row.count - _SHOWN}" if row.count > _SHOWN else ""
        return ", ".join(one.id for one in row.ends[:_SHOWN]) + more
    return f"n/a: {row.reason}" if row.state == "not_applicable" else "none"


def _cells(row: MatrixRow) -> tuple[str, ...]:
    ends = json_text([one.id for one in row.ends])
    return (row.subject.id, row.subject.title, row.subject.status, row.state, ends, str(row.count), row.reason)
