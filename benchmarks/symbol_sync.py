"""The processor time of the first sync of large manifests of symbols, against decoding the same bytes as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.cold_sync import first_sync
from benchmarks.measure import in_turns
from benchmarks.place import Place
from benchmarks.table import IN_PROPORTION, Row
from tests.support.repository.repos import git, make_repository

_OF_A_FILE = 4_000
_PATHS = {"extractors": {"manifest": {"paths": ["src/**/symbols.json"]}}}


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on KBs that were just set up, again and again."""
    return [_row(place, count) for count in place.sizes.symbols]


def _row(place: Place, count: int) -> Row:
    root = _symbols(place, count)
    kb, floor = in_turns(
        lambda: first_sync(place, root, _PATHS),
        lambda: place.python("-m", "benchmarks.floor_symbols", str(root / "src")),
        rounds=place.sizes.long_rounds_of(count),
    )
    return Row(
        name="first sync of manifests",
        against="read and decode JSON",
        count=count,
        unit="symbols",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        grows_at_most=IN_PROPORTION,
    )


def _symbols(place: Place, count: int) -> Path:
    """Return a committed repository with so many symbols of five fields, every second one with a link."""
    root = place.directory / f"symbols-{count}"
    if not root.exists():
        make_repository(root)
        for start in range(0, count, _OF_A_FILE):
            folder = root / "src" / f"part{start // _OF_A_FILE}"
            folder.mkdir(parents=True)
            listed = [_symbol(number, count) for number in range(start, min(count, start + _OF_A_FILE))]
            (folder / "symbols.json").write_text(json.dumps({"symbols": listed}, indent=1))
        place.kb(root, "init", "--no-hooks")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "-m", "symbols")
    return root


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
