"""The ratios that were written down: ``benchmarks/stored.json``, by question and size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.table import Row

PATH = Path(__file__).with_name("stored.json")


def write(rows: Sequence[Row], path: Path = PATH) -> None:
    """Store the ratios of a run."""
    ratios = {row.key: round(row.ratio, 3) for row in rows}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ratios), indent=2) + b"\n")


def update(rows: Sequence[Row], path: Path = PATH) -> None:
    """Store the ratios of these rows, and keep those of others."""
    ratios = read(path) | {row.key: round(row.ratio, 3) for row in rows}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ratios), indent=2) + b"\n")


def read(path: Path = PATH) -> dict[str, float]:
    """Return the ratios by ``Row.key``; none where nothing was stored."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, float]) if path.exists() else {}
