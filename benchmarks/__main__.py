"""``python -m benchmarks``: run the questions, print one table. ``make bench`` is this."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import machine, page
from benchmarks.place import QUICK, Place, Sizes
from benchmarks.table import Row, markdown

QUESTIONS = (
    "cold_sync",
    "unchanged_sync",
    "point_query",
    "full_check",
    "mcp_query",
    "mcp_upsert",
    "open_store",
    "full_replay",
    "new_branch",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and print the table; the status says nothing about speed."""
    given = _parse(arguments)
    sizes = QUICK if given.quick else Sizes()
    with _directory(given.directory) as directory:
        measured_on = machine.described(directory)
        place = Place(directory, sizes)
        rows = [row for name in given.questions for row in _run(name, place)]
    figures = f"{measured_on}\n\n{markdown(rows)}"
    print(figures, end="")
    if given.write:
        page.write(figures)
    return 0


def _run(name: str, place: Place) -> list[Row]:
    print(f"{name} ...", file=sys.stderr, flush=True)
    rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run(place)
    print(markdown(rows), file=sys.stderr, flush=True)
    return rows


@contextlib.contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    """Yield an empty directory that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="kb-bench-", dir=given) as name:
        yield Path(name).resolve()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure KB against its floors.")
    parser.add_argument(
        "--questions", nargs="+", choices=QUESTIONS, default=QUESTIONS, metavar="NAME", help=", ".join(QUESTIONS)
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: shows that it runs, no more")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/performance.md")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="a directory on the disk to measure on")
    given = parser.parse_args(arguments)
    if given.write and (given.quick or set(given.questions) != set(QUESTIONS)):
        parser.error("--write takes the figures of a whole run: leave --quick and --questions out")
    return given


if __name__ == "__main__":
    sys.exit(main())
