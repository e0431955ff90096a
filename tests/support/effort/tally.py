"""Counts of what each fault test tried, and of what failed: kept, added up and shown as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

Rows = dict[str, list[int]]
"""For each fault test: how many cases ran, how many points they tried, and how many violations they found."""

KEPT_IN = "KB_FAULT_TALLY"
"""The environment variable that names a file to add the rows of a run to, one JSON object a line."""


def add(rows: Rows, name: str, cases: int, points: int, violations: int) -> None:
    """Add to the row of one fault test."""
    row = rows.setdefault(name, [0, 0, 0])
    for at, number in enumerate((cases, points, violations)):
        row[at] += number


def keep(rows: Rows) -> None:
    """Add the rows to the file that the environment names, if it names one."""
    if os.environ.get(KEPT_IN):
        with Path(os.environ[KEPT_IN]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(rows) + "\n")


def kept(path: Path) -> Rows:
    """Return the sum of all rows that were kept in a file."""
    rows: Rows = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        for name, row in json.loads(line).items():
            add(rows, name, *row)
    return rows


def table(rows: Rows) -> Iterable[str]:
    """Yield the lines of the table."""
    yield f"{'test':<8}{'cases':>8}{'points':>14}{'violations':>12}"
    for name in sorted(rows, key=lambda one: (one[0], len(one.rstrip("m")), one)):
        yield _line(name, rows[name])
    yield _line("all", [sum(row[at] for row in rows.values()) for at in range(3)])


def _line(name: str, row: list[int]) -> str:
    cases, points, violations = row
    return f"{name:<8}{cases:>8,}{points:>14,}{violations:>12,}"
