"""The processor time of the first sync of large manifests of symbols, against decoding the same bytes as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from benchmarks.cold_sync import first_sync_row
from benchmarks.place import Place
from benchmarks.table import Row

_OF_A_FILE = 4_000
_PATHS = {"extractors": {"manifest": {"paths": ["src/**/symbols.json"]}}}


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on KBs that were just set up, again and again."""
    return [_row(place, count) for count in place.sizes.symbols]


def _row(place: Place, count: int) -> Row:
    root = place.committed(f"symbols-{count}", lambda root: _write_symbols(root, count))
    row = first_sync_row(
        place, root, ("benchmarks.floor_symbols", str(root / "src")), count=count, unit="symbols", config=_PATHS
    )
    return msgspec.structs.replace(row, name="first sync of manifests", against="read and decode JSON")


def _write_symbols(root: Path, count: int) -> None:
    """Write so many symbols of five fields, every second one with a link."""
    for start in range(0, count, _OF_A_FILE):
        folder = root / "src" / f"part{start // _OF_A_FILE}"
        folder.mkdir(parents=True)
        listed = [_symbol(number, count) for number in range(start, min(count, start + _OF_A_FILE))]
        (folder / "symbols.json").write_text(json.dumps({"symbols": listed}, indent=1))


def _symbol(number: int, count: int) -> dict[str, object]:
    symbol: dict[str, object] = {
        "id": f"pkg.part{number // _OF_A_FILE}.Symbol{number}",
        "title": f"Symbol number {number}",
        "file": f"src/part{number // _OF_A_FILE}/file{number % 97}.py",
        "line": number % 900,
        "status": "active",
    }
    if number % 2:
        other = number * 7 % count
        symbol["links"] = [f"pkg.part{other // _OF_A_FILE}.Symbol{other}"]
    return symbol
