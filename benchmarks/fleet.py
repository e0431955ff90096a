"""``python -m benchmarks.fleet``: what exporting and asking many repositories takes, and how it grows with the facts.

Each question is a process of ``kb fleet``, timed from its start to its end. The repositories are those of
``fleet_place``. 10 million facts (``--facts 10000000``) take an hour of one processor, and half a gigabyte.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks import machine, page
from benchmarks.growth import exponent, power
from benchmarks.measure import Sample
from benchmarks.place import Place
from benchmarks.sizes import FULL
from benchmarks.table import markdown, shown_bytes
from tests.support.repository.repos import use_empty_home

EACH = 10_000
USUAL = (100_000, 1_000_000)
QUESTIONS = {
    "check": ("check", "--fail-on", "never"),
    "query": ("query", "req", "--where", "priority=must"),
    "coverage": ("coverage", "--by", "owner"),
    "search": ("search", "warehouse ledger"),
    "sql": ("sql", "select type, count(*) from entity group by all"),
}
HEADINGS = ("question", "facts", "repositories", "CPU", "elapsed", "peak", "grows with")


class Figure(msgspec.Struct, frozen=True):
    """One question to so many facts."""

    name: str
    facts: int
    repositories: int
    sample: Sample


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print the table, and put it into the page with ``--write``."""
    given = _parse(arguments)
    use_empty_home()
    with tempfile.TemporaryDirectory(prefix="kb-bench-", dir=given.directory) as folder:
        directory = Path(folder).resolve()
        before = machine.described(directory)
        engine = ("--engine", "ray", "--workers", str(given.workers)) if given.workers else ()
        place = Place(directory, FULL)
        figures = [one for count in given.facts for one in measured(place, count, given.each, engine)]
    asked = f"{given.workers} workers of Ray." if given.workers else "In one process."
    text = machine.paragraph(f"{before} {machine.load('after')} {asked}") + f"\n\n{table(figures)}"
    print(text, end="")
    if given.write:
        page.write(text, page.FLEET)
    return 0


def measured(place: Place, facts: int, each: int, engine: Sequence[str]) -> list[Figure]:
    """Make a fleet of so many facts, and return what exporting it and every question took."""
    folder = place.directory / f"fleet-{facts}"
    words = [sys.executable, "-m", "benchmarks.fleet_place", str(folder), str(facts), str(each)]
    made = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, env=place.env).stdout)
    there, repositories = int(made["facts"]), int(made["repositories"])
    print(f"{there:,} facts: {made['bytes'] / there:.1f} bytes a fact", file=sys.stderr, flush=True)
    found = [Figure("export", there, repositories, Sample(made["wall_s"], made["cpu_s"]))]
    for name, question in QUESTIONS.items():
        words = ["fleet", *question, "--place", str(folder), "--json", *engine]
        sample = place.kb(place.directory, *words, with_children=bool(engine))
        found.append(Figure(name, there, repositories, sample))
        print(f"{name}: {sample}", file=sys.stderr, flush=True)
    return found


def table(figures: Sequence[Figure]) -> str:
    """Return the figures in Markdown, each question with the power of the facts that its CPU grows with."""
    rows = []
    for one in figures:
        points = tuple((o.facts, o.sample.cpu_s) for o in figures if o.name == one.name and o.sample.cpu_s)
        is_last = one.facts == max(count for count, _ in points) and len(points) > 1
        peak = one.sample.peak_bytes
        rows.append((
            one.name, f"{one.facts:,}", f"{one.repositories:,}", f"{one.sample.cpu_s or 0:.1f} s",
            f"{one.sample.wall_s:.1f} s", shown_bytes(peak) if peak else "", power(exponent(points)) if is_last else "",
        ))  # fmt: skip
    return markdown(HEADINGS, rows)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description="Measure a fleet.")
    parser.add_argument("--facts", nargs="+", type=int, default=USUAL, metavar="N", help="so many facts (%(default)s)")
    parser.add_argument("--each", type=int, default=EACH, metavar="N", help="so many a repository (%(default)s)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="ask by workers of Ray")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/performance.md")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="a directory on the disk to measure on")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
