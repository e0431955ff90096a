"""Rows to aligned text, Markdown and CSV. Pure; every cell is made safe here.

Without a width a table is as wide as it needs to be, and the same for every reader. In a width no line is longer, but
for an id that has no room in its column: it stays whole, and the rest of its row begins on the next line.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from kbcli.terminal.cells import padded, shortened, width_of, wrapped
from kbcli.terminal.colours import Style, of_status
from kbcore.text.escaping import csv_cell, escape_controls, escape_lines, markdown_text

_GAP: Final = "  "
_LEAST: Final = 6
"""A column of text is made no narrower than this many columns of the terminal: the last of them is left out instead."""
_COMFORT: Final = 24
"""Columns that are left out where there is little room go before one of text becomes narrower than this."""
_MODEST: Final = 16
"""Columns that may be left out take no more than this where others are cut."""
_LEAST_ID: Final = 8
_ID_SHARE: Final = 3
"""Ids get at most the width divided by this before they are put on a line of their own."""

Paint = Callable[[str, Style], str]


class TableColumn(NamedTuple):
    """The kind of the cells of a column, and how they are treated.

    ``kind``: text is cut at its end, and a path at its beginning; an id is never cut, nor is what is whole; a number is
    whole and aligned to the right. ``is_extra``: a terminal that has too little room does without the column, and any
    terminal where it is empty. ``gives_way``: it is cut, and left out, before other text is.
    """

    kind: Literal["text", "path", "id", "whole", "number"] = "text"
    style: Callable[[str], Style | None] | None = None
    is_extra: bool = False
    gives_way: bool = False

    @property
    def is_cut(self) -> bool:
        """Return whether its cells may be shortened."""
        return self.kind in {"text", "path"}


_ID: Final = TableColumn("id")
_EXTRA: Final = TableColumn(is_extra=True)
_PLACE: Final = TableColumn("path", is_extra=True)
COLUMNS: Final[Mapping[str, TableColumn]] = {
    **dict.fromkeys(("ID", "FROM", "TO", "ENTITY", "COMPONENT", "TAG", "  BRANCH"), _ID),
    **dict.fromkeys(("TAGS", "PRIORITY", "GIT", "COPIED", "PATH", "TARGET"), _EXTRA),
    **dict.fromkeys(("SOURCE", "STATED IN", "ORIGIN"), _PLACE),
    "AT": TableColumn("whole"),
    "SEQ": TableColumn("number", lambda _: "yellow"),
    **dict.fromkeys(("COUNT", "BEFORE", "AFTER"), TableColumn("number")),
    "STATUS": TableColumn(style=of_status),
    **dict.fromkeys(("TITLE", "ACTOR", "CHANGES"), TableColumn(gives_way=True)),
    **dict.fromkeys(("CONFIDENCE", "REQUIREMENTS"), TableColumn("number", is_extra=True)),
}
"""The kinds of columns, by their heads, which mean the same in every table; all others are text."""


def aligned(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int | None = None,
    paint: Paint | None = None,
) -> list[str]:
    """Return the lines of a table, the head first; ``paint`` puts a text into a style where colours are wanted."""
    return [line for lines in laid_out(head, rows, width, paint) for line in lines]


def laid_out(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int | None = None,
    paint: Paint | None = None,
) -> list[list[str]]:
    """Return the lines of the head, and those of each row, as ``aligned`` has them."""
    named = [COLUMNS.get(one, TableColumn()) for one in head]
    named[:1] = [one._replace(is_extra=False) for one in named[:1]]  # what a row is called stays
    cells = [[escape_controls(cell) for cell in row] for row in rows]
    needed = [max([width_of(one), *(width_of(row[at]) for row in cells)]) for at, one in enumerate(head)]
    shown = list(range(len(named)))
    if width is not None:
        shown = [at for at in shown if not named[at].is_extra or any(row[at] for row in cells)]
        shown, needed = _fitted(named, needed, shown, width)
    drawn = _Drawn([named[at] for at in shown], [needed[at] for at in shown], paint)
    return [
        drawn.row([head[at] for at in shown], is_head=True),
        *(drawn.row([row[at] for at in shown]) for row in cells),
    ]


def whole(head: Sequence[str], rows: Iterable[Sequence[str]], paint: Paint | None = None) -> Iterator[list[str]]:
    """Yield the lines of the head, and those of each row, of a table as wide as it needs to be; rows are read twice."""
    columns = [COLUMNS.get(one, TableColumn()) for one in head]
    widths = [width_of(one) for one in head]
    for row in rows:
        widths = [max(width, width_of(escape_controls(cell))) for width, cell in zip(widths, row, strict=True)]
    drawn = _Drawn(columns, widths, paint)
    yield drawn.row(head, is_head=True)
    for row in rows:
        yield drawn.row([escape_controls(cell) for cell in row])


def _fitted(
    columns: Sequence[TableColumn], needed: Sequence[int], shown: Sequence[int], width: int
) -> tuple[list[int], list[int]]:
    """Return which of the columns in ``shown`` there is room for, and the widths of all columns."""
    widths = list(needed)
    for at in shown:
        if columns[at].kind == "id":
            widths[at] = min(widths[at], max(_LEAST_ID, width // _ID_SHARE))
    kept = list(shown)
    while True:
        texts = [at for at in kept if columns[at].is_cut]
        extra = [at for at in texts if columns[at].is_extra]
        fixed = sum(widths[at] for at in kept if not columns[at].is_cut)
        room = width - len(_GAP) * (len(kept) - 1) - fixed
        if sum(widths[at] for at in texts) <= room:
            return kept, widths
        modest = {at: min(widths[at], _MODEST) if at in extra else widths[at] for at in texts}
        rest = room - sum(modest.values())
        if rest >= 0:
            level = _level([widths[at] for at in extra], rest + sum(modest[at] for at in extra))
            return kept, [min(one, level) if at in extra else one for at, one in enumerate(widths)]
        level = _level([modest[at] for at in texts], room)
        dispensable = [at for at in kept if columns[at].is_extra]
        yielding = [at for at in texts if columns[at].gives_way and at]
        if level < _COMFORT and any(widths[at] > level for at in yielding) and not dispensable:
            left = room - sum(min(widths[at], _COMFORT) for at in texts if at not in yielding)
            if left >= _LEAST * len(yielding):
                cut = {
                    at: _level([widths[one] for one in yielding], left) if at in yielding else _COMFORT for at in texts
                }
                return kept, [min(one, cut.get(at, one)) for at, one in enumerate(widths)]
            dispensable = yielding
        if level >= _LEAST and (level >= _COMFORT or not dispensable):
            return kept, [min(modest[at], level) if at in texts else one for at, one in enumerate(widths)]
        over = dispensable or [at for at in texts if at]
        if not over:  # what is left is whole, and there is no room for it
            return kept, [min(one, _LEAST) if at in texts else one for at, one in enumerate(widths)]
        del kept[kept.index(over[-1])]


def _level(widths: Sequence[int], room: int) -> int:
    """Return the width at which to cut the widest of these, which need more than there is room, so that all fit."""
    left = sorted(widths)
    for place, one in enumerate(left):
        share = room // (len(left) - place)
        if one >= share:
            return share
        room -= one
    return room


class _Drawn:
    """The columns of a table with their widths, ready to write rows."""

    def __init__(self, columns: Sequence[TableColumn], widths: Sequence[int], paint: Paint | None) -> None:
        self._columns = columns
        self._widths = widths
        self._paint = paint

    def row(self, cells: Sequence[str], *, is_head: bool = False) -> list[str]:
        """Return the lines of a row: one, or more where an id is wider than its column."""
        lines, line, start, pending = [], "", 0, 0
        for column, width, cell in zip(self._columns, self._widths, cells, strict=True):
            if cell:
                line += " " * pending
                if is_head or column.is_cut:
                    cell = shortened(cell, width, keeps_end=column.kind == "path")  # noqa: PLW2901 - what is shown of it
                taken = width_of(cell)
                fill = width - taken
                before = fill if column.kind == "number" and fill > 0 else 0
                line += " " * before + self._painted(cell, column, is_head=is_head)
                pending = fill - before + len(_GAP)
                if fill < 0:
                    lines.append(line)
                    line, pending = "", start + width + len(_GAP)
            else:
                pending += width + len(_GAP)
            start += width + len(_GAP)
        return [*lines, line.rstrip()] if line or not lines else lines

    def _painted(self, cell: str, column: TableColumn, *, is_head: bool) -> str:
        style = "bold" if is_head else column.style(cell) if column.style else None
        return self._paint(cell, style) if self._paint and style else cell


def pairs(rows: Iterable[tuple[str, str]], width: int | None = None, indent: str = "  ") -> list[str]:
    """Return lines of names and what belongs to them, which is wrapped next to its name."""
    safe = [(escape_controls(name), escape_controls(text)) for name, text in rows]
    names = max((width_of(name) for name, _ in safe), default=0)
    room = None if width is None else max(_COMFORT, width - len(indent) - names - len(_GAP))
    lines = []
    for name, text in safe:
        first, *rest = wrapped(text, room)
        lines.append(f"{indent}{padded(name, names)}{_GAP}{first}".rstrip())
        lines += [f"{indent}{' ' * names}{_GAP}{one}" for one in rest]
    return lines


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in itertools.chain([head, ["---"] * len(head)], rows):
        yield f"| {' | '.join(markdown_text(cell) for cell in line)} |\n"


def tab_separated(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    r"""Yield the lines of a table for other programs: a tab between cells, no padding.

    What would break a line is escaped: a tab is ``\t``, a line feed ``\n``, and a backslash is ``\\``.
    """
    yield "\t".join(name.strip() for name in head)
    for row in rows:
        yield "\t".join(escape_controls(cell.replace("\\", "\\\\")) for cell in row)


def comma_separated(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield CSV as RFC 4180 has it, with line feeds: the head, then each row. No cell is run as a formula."""
    for row in itertools.chain([head], rows):
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerow([csv_cell(escape_lines(cell)) for cell in row])
        yield stream.getvalue()
