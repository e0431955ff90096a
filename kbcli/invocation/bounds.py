"""Options of a command that contradict each other, or are out of bounds."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kbcore.errors import InvalidQuery
from kbcore.limits import DEFAULT_PAGE_ROWS, MAX_PAGE_ROWS

if TYPE_CHECKING:
    from kbcli.terminal.output import Output


def check_bounds(option: str, value: int, most: int, default: int | str, *, least: int = 1) -> None:
    """Refuse a number that is not from ``least`` to ``most``. Raises: ``InvalidQuery``."""
    if not least <= value <= most:
        raise InvalidQuery(
            f"{option} must be from {least} to {most}, not {value}.", hint=f"Leave it out for {default}."
        )


def rows_of(limit: int | None, output: Output, default: int = DEFAULT_PAGE_ROWS) -> int | None:
    """Return how many rows a list has at most: a page for a reader, None for a file or another program.

    Raises: ``InvalidQuery`` for a limit that is out of bounds.
    """
    if limit is None:
        return default if output.is_terminal else None
    if not 1 <= limit <= MAX_PAGE_ROWS:
        hint = f"Leave it out for {default} rows at a terminal, and for all rows in a file or a pipe."
        raise InvalidQuery(f"--limit must be from 1 to {MAX_PAGE_ROWS}, not {limit}.", hint=hint)
    return limit


def table_format(format_: str | None, output: Output) -> str:
    """Return the format of a list: a table for a reader, else one that other programs read."""
    output.is_aligned = True if format_ == "table" else False if format_ == "tsv" else None
    return format_ or ("table" if output.aligns else "tsv")


def check_format(format_: str | None, own: Collection[str | None], *, is_json: bool) -> None:
    """Refuse a format together with ``--json``, unless it is one of these ``own``. Raises: ``InvalidQuery``."""
    if is_json and format_ not in own:
        raise InvalidQuery(f"--json and --format {format_} contradict each other.", hint="Give one of the two.")
