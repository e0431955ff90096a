"""Compares the ratios of a few questions with the stored ones: fails on what is worse at each attempt.

Times are not compared: they are the machine's. A question that looks worse is measured again, since one run can be
disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.table import Row, markdown

QUESTIONS = (
    "cold_sync",
    "symbol_sync",
    "unchanged_sync",
    "one_file_sync",
    "idle_hook",
    "point_query",
    "filtered_query",
    "text_query",
    "full_check",
    "entity_log",
    "mcp_query",
    "mcp_upsert",
    "full_replay",
)
HEADINGS = ("question", "size", "stored", "measured", "worse by", "verdict")
AT_MOST = 1.4
"""The factor of the stored ratio that is accepted."""
ATTEMPTS = 3
"""The number of times in a row that something must be worse."""

Measure = Callable[[str], Sequence[Row]]
"""Runs a question and returns its rows."""


def guard(names: Iterable[str], measure: Measure, stored: Mapping[str, float]) -> tuple[str, bool]:
    """Return the table of all ratios, each attempt's, and whether none has become worse for good.

    What looks worse is measured again when all else was, so that a busy minute does not meet it twice.
    """
    attempts: dict[str, list[Row]] = {}
    pending = list(names)
    for _ in range(ATTEMPTS):
        measured = {name: measure(name) for name in pending}
        for row in (row for rows in measured.values() for row in rows):
            attempts.setdefault(row.key, []).append(row)
        pending = [name for name, rows in measured.items() if any(_is_worse(attempts[row.key], stored) for row in rows)]
    return markdown(HEADINGS, [_cells(rows, stored) for rows in attempts.values()]), not pending


def _is_worse(rows: Sequence[Row], stored: Mapping[str, float]) -> bool:
    """Return whether a figure was worse at every attempt; one that was never stored cannot be."""
    limit = stored.get(rows[0].key)
    return limit is not None and all(row.ratio > limit * AT_MOST for row in rows)


def _cells(rows: Sequence[Row], stored: Mapping[str, float]) -> tuple[str, ...]:
    first, known = rows[0], stored.get(rows[0].key)
    ratios = [row.ratio for row in rows]
    measured = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    name = f"{first.name} / {first.against}"
    if known is None:
        return (name, first.size, "", measured, "", "nothing stored")
    verdict = "WORSE" if _is_worse(rows, stored) else "holds"
    return (name, first.size, f"{known:.2f}", measured, f"{min(ratios) / known - 1:+.0%}", verdict)
