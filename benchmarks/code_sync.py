"""The time of the first sync of source code, and of one after a change in one file, against parsing the same files."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from benchmarks.cold_sync import first_sync_row
from benchmarks.generate import SEED
from benchmarks.measure import Sample, in_turns
from benchmarks.place import Place
from benchmarks.table import FLAT, Row

_OF_A_FILE = 100
_METHODS = 9
_CONFIG = {"extractors": {"code": {"paths": ["src/**/*.py"]}}}
_NAMES = ("count", "item", "left", "name", "next", "order", "page", "price", "rate", "state", "tax", "total", "value")


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on KBs that were just set up, then after one function of one file got another body."""
    return [row for count in place.sizes.code for row in (_first(place, count), _changed(place, count))]


def _first(place: Place, count: int) -> Row:
    root = _code(place, count)
    row = first_sync_row(
        place, root, ("benchmarks.floor_code", str(root / "src")), count=count, unit="symbols", config=_CONFIG
    )
    return msgspec.structs.replace(row, name="first sync of source code", against="parse it with tree-sitter")


def _changed(place: Place, count: int) -> Row:
    root = _code(place, count)
    place.settle(root)
    path = next(iter(sorted((root / "src").rglob("*.py"))))
    text = path.read_text()
    versions = iter(range(1_000_000))

    def sync() -> Sample:
        path.write_text(text.replace("return self", f"return {next(versions)} + self", 1))
        return place.kb(root, "sync", str(path.relative_to(root)))

    kb, floor = in_turns(
        sync,
        lambda: place.python("-m", "benchmarks.floor_code", str(path.parent)),
        rounds=place.sizes.rounds_of(count),
    )
    path.write_text(text)
    place.settle(root)
    return Row(
        name="sync of one changed source file",
        against="parse the files of its folder",
        count=count,
        unit="symbols",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        grows_at_most=FLAT,
    )


def _code(place: Place, count: int) -> Path:
    return place.committed(f"code-{count}", lambda root: _write_code(root, count))


def _write_code(root: Path, count: int) -> None:
    """Write so many symbols of Python: classes of nine methods, a hundred symbols in a file."""
    dice = random.Random(SEED)
    for start in range(0, count, _OF_A_FILE):
        path = root / "src" / f"part{start // _OF_A_FILE // 50}" / f"file{start // _OF_A_FILE}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_classes(dice, start, min(count, start + _OF_A_FILE))))


def _classes(dice: random.Random, start: int, end: int) -> list[str]:
    parts = ['"""A module."""\n\nimport os\n']
    while start < end:
        parts.append(f'\n\nclass Thing{start}:\n    """A thing."""\n')
        for number in range(start + 1, min(end, start + 1 + _METHODS)):
            one, two, three = dice.choices(_NAMES, k=3)
            parts.append(
                f'\n    def {one}_{number}(self, {two}: int, {three}_too: str = "x") -> int:\n'
                f'        """Return {one}."""\n'
                f"        if {two} > {dice.randrange(1000)}:\n"
                f"            return {two} * {dice.randrange(1000)} + len({three}_too)\n"
                "        # otherwise\n"
                f"        return self.{one} + {two} - {dice.randrange(99)}\n"
            )
        start += 1 + _METHODS
    return parts
