"""Entries of tables, CSV and XLSX: one for each row, its keys those of the first row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kbcore.extract.sources.entry import Entry, FileEntries
from kbcore.text.escaping import text_of_csv_cell
from kbcore.text.problems import FileProblem
from kbcore.text.tree import mapping

PACKAGE: Final = "python-calamine"
_SEPARATORS: Final = ",;\t|"
_MOST_COLUMNS: Final = 1000
_CSV_LIMIT_CHARS: Final = 1_000_000


def of_csv(text: str) -> FileEntries:
    """Return the rows of a text whose columns are separated by the sign that its first line has most of ``, ; | tab``.

    The ``'`` in front of what begins as a formula does, which keeps spreadsheets from running it, is taken off.
    """
    first = text.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=first.count)
    csv.field_size_limit(_CSV_LIMIT_CHARS)
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    rows: list[tuple[int, list[str]]] = []
    begins = 1
    try:
        for row in reader:
            rows.append((begins, [text_of_csv_cell(cell.strip()) for cell in row]))
            begins = reader.line_num + 1
    except csv.Error as error:
        hint = "Correct the row; what is in front of it is read."
        found = _of_rows(rows)
        found.problems.append(FileProblem(begins, "invalid_csv", f"this row cannot be read: {error}", hint))
        found.is_complete = False
        return found
    return _of_rows(rows)


def of_xlsx(data: bytes, sheet: str) -> FileEntries:
    """Return the rows of a sheet of a workbook, the first one where none is named."""
    try:
        import python_calamine as calamine  # noqa: PLC0415 - an extra
    except ImportError:
        message = f"workbooks are not read: the package {PACKAGE} is not installed"
        hint = 'Install it with `pip install "kb-memory[xlsx]"`.'
        return FileEntries([], [FileProblem(0, "missing_package", message, hint)], is_complete=False)
    try:
        book = calamine.load_workbook(io.BytesIO(data))
        names = book.sheet_names
        if sheet and sheet not in names:
            hint = f"It has: {', '.join(names)}."
            return FileEntries(
                [], [FileProblem(0, "no_sheet", f"there is no sheet `{sheet}`", hint)], is_complete=False
            )
        cells = book.get_sheet_by_name(sheet or names[0]).to_python()
    except (calamine.CalamineError, IndexError, OSError) as error:
        problem = FileProblem(0, "invalid_xlsx", f"this is no workbook that can be read: {error}", "Save it again.")
        return FileEntries([], [problem], is_complete=False)
    return _of_rows([(number, [_cell(one) for one in row]) for number, row in enumerate(cells, 1)])


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _of_rows(rows: Iterable[tuple[int, Sequence[str]]]) -> FileEntries:
    result, names = FileEntries([], []), list[str]()
    longer: list[tuple[int, int]] = []
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if not names:
            names = [cell.strip() for cell in row[:_MOST_COLUMNS]]
            continue
        if any(cell.strip() for cell in row[len(names) :]):
            longer.append((line, len(row)))
        values = _values(names, row)
        tree = mapping(values, dict.fromkeys(values, line))
        for value in values.values():
            if isinstance(value, list):
                tree.places[id(value)] = [line] * len(value)
        result.entries.append(Entry(values, tree, line))
    if longer:
        result.problems.append(_more_cells(longer, len(names)))
    return result


def _values(names: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    """Return the cells of a row that have text, by the names of their columns.

    Exports repeat a column for each value, as "Labels" and "Labels": these are a list.
    """
    values: dict[str, Any] = {}
    for name, cell in zip(names, row, strict=False):
        if not (name and cell.strip()):
            continue
        if name in values:
            before = values[name]
            values[name] = [*before, cell] if isinstance(before, list) else [before, cell]
        else:
            values[name] = cell
    return values


def _more_cells(longer: Sequence[tuple[int, int]], names: int) -> FileProblem:
    """Return the problem of rows, each with its line and number of cells, that have more cells than the first row."""
    line, cells = longer[0]
    message = f"the row has {cells} cells, and the first row {names}; those beyond are left out"
    if len(longer) > 1:
        message = (
            f"{len(longer)} rows, of which this is the first, have more cells than the {names} of the head of the table"
        )
        message = f"{message}; those beyond are left out"
    hint = "Put text with the separator in it in quotes, or name the further columns in the first row."
    return FileProblem(line, "more_cells", message, hint, "warning")
