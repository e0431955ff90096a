"""The rows of a statement in the shapes of KIP: a list of one expression's values, else one list for each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kbcore.kip.compile.projection import Cell, Selected
from kbcore.kip.elements import link_json, node_json
from kbcore.kip.names import TypeNames
from kbcore.view.tables import LINK, NODE, link_of, node_of

Row = Sequence[Any]

_decode = msgspec.json.Decoder().decode


def shaped(rows: Sequence[Row], selected: Selected, names: TypeNames) -> Any:
    """Return the result of FIND: aggregates alone are scalars, everything else is a list over the rows."""
    readers = [reader(cell, names) for cell in selected.cells]
    if selected.is_single:
        columns: list[Any] = [read(rows[0]) for read in readers]
    else:
        columns = [[read(row) for row in rows] for read in readers]
    return columns[0] if len(columns) == 1 else columns


def reader(cell: Cell, names: TypeNames) -> Callable[[Row], Any]:
    """Return what reads one expression out of a row."""
    at = cell.start
    if cell.shape in {"text", "count"}:
        return lambda row: row[at]
    if cell.shape == "json":
        return lambda row: None if row[at] is None else _decode(row[at])
    if cell.shape in {"sum", "average"}:
        return lambda row: _total(row[at], row[at + 1], row[at + 2], is_average=cell.shape == "average")
    return _element(cell, names)


def _element(cell: Cell, names: TypeNames) -> Callable[[Row], Any]:
    """Return what reads an element; one that stands in several rows is made once."""
    at, width = cell.start, len(NODE)
    made: dict[str, Any] = {}

    def read(row: Row) -> Any:
        starts = {"node": (at, None), "link": (None, at), "end": (at, at + width)}[cell.shape]
        for start, is_node in zip(starts, (True, False), strict=True):
            if start is None or row[start] is None:
                continue
            key = row[start]
            if key not in made:
                whole = row[start : start + (width if is_node else len(LINK))]
                made[key] = node_json(node_of(whole), names) if is_node else link_json(link_of(whole))
            return made[key][cell.member] if cell.member else made[key]
        return None

    return read


def _total(whole: int | None, rest: float | None, count: int, *, is_average: bool) -> float | None:
    """Return a sum, or the average of ``count`` numbers; whole numbers have a whole sum, none the sum 0."""
    total = int(whole or 0) if rest is None else int(whole or 0) + rest
    if not is_average:
        return total
    return total / count if count else None
