"""Tables whose rows end in a path: as a column where it fits, else on lines of its own below each row. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kbcli.terminal.cells import width_of
from kbcli.terminal.tables import Paint, aligned, laid_out
from kbcore.text.escaping import escape_controls

_INDENT: Final = "    "
_LEAST_COLUMNS: Final = 20


def with_paths(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, paint: Paint | None = None
) -> list[str]:
    """Return the lines of a table whose last column holds paths, of which nothing is cut off."""
    return [line for lines in laid_out_with_paths(head, rows, width, paint) for line in lines]


def laid_out_with_paths(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, paint: Paint | None = None
) -> list[list[str]]:
    """Return the lines of the head, and those of each row, as ``with_paths`` has them."""
    if width is None or all(width_of(line) <= width for line in aligned(head, rows)):
        return laid_out(head, rows, paint=paint)
    top, *above = laid_out(head[:-1], [row[:-1] for row in rows], width, paint)
    below = (_wrapped(escape_controls(row[-1]), max(width, _LEAST_COLUMNS)) for row in rows)
    return [top, *([*lines, *path] for lines, path in zip(above, below, strict=True))]


def _wrapped(path: str, width: int) -> list[str]:
    """Return a path in lines of at most so many columns; an id that is wider is a line all the same."""
    first, *words = path.split() or [""]
    lines = [_INDENT + first]
    for word in words:
        longer = f"{lines[-1]} {word}"
        if width_of(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(_INDENT * 2 + word)
    return lines
