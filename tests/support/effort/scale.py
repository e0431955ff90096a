"""The part of a fault test that is run: a slice in the everyday suite, all of it on every merge, without end in a soak.

``KB_FAULT`` says which (``slice``, ``merge`` or ``soak``); ``KB_FAULT_SEED`` replays a run; in a soak
``KB_FAULT_ROUND`` gives each round other seeds, and no test begins after ``KB_FAULT_UNTIL``. ``KB_TEST_DAY`` replays
the slice of another day with its seed and points, or with ``all`` those of all days.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SCALE: Final = os.environ.get("KB_FAULT", "slice")
_DAY: Final = os.environ.setdefault("KB_TEST_DAY", str(int(time.time()) // 86_400))
DAY: Final = 0 if _DAY == "all" else int(_DAY)
"""The number of the day since 1970, which the workers of one run inherit: midnight comes to all of them at once."""

IS_SLICED: Final = SCALE == "slice" and _DAY != "all"
"""The slow tests run in part."""

SEED: Final = int(os.environ.get("KB_FAULT_SEED") or 20261121 + (DAY if IS_SLICED else 0)) + int(
    os.environ.get("KB_FAULT_ROUND", "0")
)
"""The seed of all random choices of the fault tests: in a slice another one each day."""

DAYS: Final = 7
"""The cases of a slow test are dealt over so many days; then comes the next slice of those that have one."""

UNTIL_S: Final = float(os.environ.get("KB_FAULT_UNTIL", "inf"))
"""The time of the clock, in seconds since 1970, after which no test is begun."""

if SCALE not in {"slice", "merge", "soak"}:
    raise ValueError(f"KB_FAULT is {SCALE!r}; use slice, merge or soak")


def tries(of_slice: int, of_merge: int, of_soak: int = 0) -> int:
    """Return how many points to try; in a soak each round tries at least as many as on a merge."""
    return {"slice": of_slice, "merge": of_merge, "soak": of_soak or of_merge}[SCALE]


def in_time(points: Iterable[T], of_merge: int) -> Iterator[T]:
    """Yield points to try; in a soak none after as many as on a merge once the time of the file is over."""
    for number, point in enumerate(points):
        if number >= of_merge and time.time() > UNTIL_S:
            return
        yield point


def spread(points: Sequence[T], of_slice: int) -> Sequence[T]:
    """Return points of an enumeration to try: in a slice at most so many, evenly spread.

    They are others every ``DAYS`` days until all were tried; for the slices of all days, from the first to the last.
    """
    if SCALE != "slice" or len(points) <= of_slice:
        return points
    if IS_SLICED:
        step = -(-len(points) // of_slice)
        return points[DAY // DAYS % step :: step]
    last = max(of_slice - 1, 1)
    return [points[number * (len(points) - 1) // last] for number in range(of_slice)]


def shares(cases: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the fewest shares of at most so many cases of a test, each evenly spread; together they have all."""
    step = -(-len(cases) // most)
    return [cases[first::step] for first in range(step)]


def of_period(name: str, parts: Sequence[T]) -> T:
    """Return the part of a test that has its turn for ``DAYS`` days; then comes the next one, until all had theirs."""
    return parts[turn(name, DAYS * len(parts)) // DAYS]


def of_today(name: str, cases: Sequence[T]) -> Sequence[T]:
    """Return the cases of a test that run today: each of them has one of ``DAYS`` days."""
    return cases[turn(name, DAYS) :: DAYS]


def turn(name: str, count: int) -> int:
    """Return the number below ``count`` that a test of this name has today: another one each day."""
    return (zlib.crc32(name.encode()) + DAY) % count


def each_value_once(cases: Sequence[Mapping[str, str]]) -> list[int]:
    """Return which cases to run so that each value of every parameter is in one of them, and few are in many.

    ``cases`` have the parameters of each by name.
    """
    used: Counter[tuple[str, str]] = Counter()
    values = [frozenset(case.items()) for case in cases]
    missing = set[tuple[str, str]]().union(*values)
    kept = []
    while missing:
        gains = [len(one & missing) for one in values]
        most = max(gains)
        best = (at for at, gain in enumerate(gains) if gain == most)
        at = min(best, key=lambda at: sum(used[value] for value in values[at]))
        kept.append(at)
        used.update(values[at])
        missing -= values[at]
    return sorted(kept)
