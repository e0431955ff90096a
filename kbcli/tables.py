"""Rows to aligned text, Markdown and CSV. Pure; every cell is made safe here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from kbcli.render import shortened, width_of
from kbcore.visible import visible, visible_lines

_GAP: Final = "  "
_LEAST_CHARS: Final = 12
"""A column is not made narrower than this."""


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> list[str]:
    """Return the lines of a table; the widest columns are shortened until a line fits into ``width``."""
    safe = [[visible(cell) for cell in row] for row in [head, *rows]]
    widths = [max(width_of(cell) for cell in column) for column in zip(*safe, strict=True)]
    if width is not None:
        _narrow(widths, width - len(_GAP) * (len(widths) - 1))
    lines = []
    for row in safe:
        cells = [shortened(cell, limit) for cell, limit in zip(row, widths, strict=True)]
        padded = [cell + " " * (limit - width_of(cell)) for cell, limit in zip(cells, widths, strict=True)]
        lines.append(_GAP.join(padded).rstrip())
    return lines


def _narrow(widths: list[int], room: int) -> None:
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda at: widths[at])
        if widths[widest] <= _LEAST_CHARS:
            return
        widths[widest] = max(_LEAST_CHARS, widths[widest] - (sum(widths) - room))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_markdown_cell(cell) for cell in line)} |\n" for line in lines)


def _markdown_cell(cell: str) -> str:
    text = visible(cell.replace("\n", " "))
    for character in "\\`|<>*_[]":
        text = text.replace(character, "\\" + character)
    return text


def comma_separated(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return CSV as RFC 4180 has it, with line feeds."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([visible_lines(cell) for cell in row] for row in rows)
    return stream.getvalue()
