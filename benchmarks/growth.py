"""The growth of cost with the number of elements: the exponent of a line fitted to the logarithms of both. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

import msgspec

from benchmarks.table import Figure, Row, Versus, shown_bytes, shown_time

HEADINGS = ("question", "from", "to", "KB", "peak", "KB grows with", "at the end", "floor grows with", "at most", "met")

Points = tuple[tuple[int, float], ...]
"""Pairs of a number of things and the seconds it took."""


class Curve(msgspec.Struct, frozen=True):
    """One question over several sizes: seconds of KB and of what it is measured against, by the number of things."""

    name: str
    unit: str
    kb: Points
    against: str
    other: Points
    is_peer: bool
    grows_at_most: float | None
    peaks_bytes: tuple[int | None, ...]

    @property
    def is_met(self) -> bool | None:
        """Return whether KB grows no faster than it may; None where nothing is aimed for."""
        return None if self.grows_at_most is None else exponent(self.kb) <= self.grows_at_most

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the curve's row, in the order of the headings."""
        (first, first_s), *_, (last, last_s) = self.kb
        peaks = [shown_bytes(peak) for peak in (self.peaks_bytes[0], self.peaks_bytes[-1])]
        return (
            f"{self.name} / {self.against}",
            f"{first:,}",
            f"{last:,} {self.unit}",
            f"{shown_time(first_s)} to {shown_time(last_s)}",
            " to ".join(peaks) if all(peaks) else "",
            power(exponent(self.kb)),
            power(exponent(self.kb[-2:])),
            power(exponent(self.other)),
            "" if self.grows_at_most is None else power(self.grows_at_most),
            {True: "yes", False: "no", None: ""}[self.is_met],
        )


def exponent(points: Points) -> float:
    """Return the slope of the line that fits the logarithms best: 0 is flat, 1 is in proportion, 2 is quadratic."""
    return statistics.linear_regression(
        [math.log(count) for count, _ in points], [math.log(seconds) for _, seconds in points]
    ).slope


def power(value: float) -> str:
    """Return an exponent as a power of N."""
    return f"N^{value:.2f}".replace("-0.00", "0.00")


def curves(figures: Iterable[Figure]) -> list[Curve]:
    """Return the questions that were measured at more than one size, in order."""
    groups: dict[tuple[str, str], list[Row | Versus]] = {}
    for one in figures:
        if isinstance(one, Row):
            groups.setdefault((one.name, one.against), []).append(one)
        elif isinstance(one, Versus):
            groups.setdefault((one.work, one.peer), []).append(one)
    return [
        _curve(name, against, group) for (name, against), group in groups.items() if len({o.count for o in group}) > 1
    ]


def _curve(name: str, against: str, group: Sequence[Row | Versus]) -> Curve:
    ordered = sorted(group, key=lambda one: one.count)
    last = ordered[-1]
    return Curve(
        name,
        last.unit,
        tuple((one.count, one.kb.median_s) for one in ordered),
        against,
        tuple((one.count, (one.floor if isinstance(one, Row) else one.theirs).median_s) for one in ordered),
        isinstance(last, Versus),
        last.grows_at_most if isinstance(last, Row) else None,
        tuple(one.peak_bytes if isinstance(one, Row) else one.kb_peak_bytes for one in ordered),
    )
