"""``python -m benchmarks``: run the questions, print their tables. ``make bench`` is this."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import guard, machine, peers, report, runs, stored
from benchmarks.peers import Peers
from benchmarks.place import Place
from benchmarks.sizes import FULL, GUARD, QUICK
from benchmarks.table import Row
from tests.support.repository.repos import use_empty_home

_ALL = (*runs.QUESTIONS, *runs.PEERS)
_WORSE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and print the tables; only the guard's status says anything about speed."""
    given = _parse(arguments)
    if given.set_up_peers:
        Peers(given.peers).set_up()
        return 0
    use_empty_home()
    with _directory(given.directory) as directory:
        if given.guard:
            place = Place(directory, QUICK if given.quick else GUARD)
            return _guarded(place, given.questions or guard.QUESTIONS, is_stored=given.write)
        measured_on = machine.described(directory)
        place = Place(directory, QUICK if given.quick else FULL, Peers(given.peers))
        found = {name: runs.measured([name], place) for name in given.questions or _ALL}
    figures = [one for ones in found.values() for one in ones]
    measured = report.text(measured_on, figures)
    print(measured, end="")
    if given.write and set(found) == set(_ALL):
        report.write(measured, figures)
    elif given.write:
        for name, ones in found.items():
            report.write_one(name, measured_on, ones)
    return 0


def _guarded(place: Place, questions: Sequence[str], *, is_stored: bool) -> int:
    """Compare the ratios of some questions with the stored ones, or store them in their place."""

    def measure(name: str) -> list[Row]:
        return [one for one in runs.measured([name], place) if isinstance(one, Row)]

    if is_stored:
        stored.update([row for name in questions for row in measure(name)])
        return 0
    table, holds = guard.guard(questions, measure, stored.read())
    print(table, end="")
    return 0 if holds else _WORSE


@contextlib.contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    """Yield an empty directory that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="kb-bench-", dir=given) as name:
        yield Path(name).resolve()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure KB against its floors, and against other tools."
    )
    parser.add_argument("--questions", nargs="+", choices=_ALL, metavar="NAME", help=", ".join(_ALL))
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: shows that it runs, no more")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/ and benchmarks/stored.json")
    parser.add_argument(
        "--guard", action="store_true", help="compare some ratios with the stored ones, or store them with --write"
    )
    parser.add_argument("--directory", type=Path, metavar="DIR", help="a directory on the disk to measure on")
    parser.add_argument(
        "--peers",
        type=Path,
        default=peers.DEFAULT,
        metavar="DIR",
        help="where the other tools are (default: %(default)s)",
    )
    parser.add_argument("--set-up-peers", action="store_true", help="bring the other tools there, and no more")
    given = parser.parse_args(arguments)
    if given.write and given.quick:
        parser.error("--write takes figures that mean something: leave --quick out")
    return given


if __name__ == "__main__":
    sys.exit(main())
