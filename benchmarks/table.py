"""The measurements, in tables: KB with its floors, one row a question and size; and KB against its peers.

Every figure keeps the number of things that there were, so that growth can be fitted over them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchmarks.measure import Series

HEADINGS = ("question", "size", "KB", "floor", "ratio", "of CPU", "at most", "met", "peak")
PEER_HEADINGS = ("work", "size", "KB", "peer", "", "ratio", "peak of KB", "of the peer")
FLAT = 0.1
"""As fast whatever there is, with room for noise: cost grows less than with N to this power."""
IN_PROPORTION = 1.1
"""Nothing quadratic, with the same room."""


class Row(msgspec.Struct, frozen=True):
    """One figure: what KB does, against what floor, at how many things.

    ``at_most`` is the ratio that is aimed for, ``at_most_s`` the time, ``grows_at_most`` the power of ``count``; None
    where there is no aim.
    """

    name: str
    against: str
    count: int
    unit: str
    kb: Series
    floor: Series
    peak_bytes: int | None
    at_most: float | None = None
    at_most_s: float | None = None
    grows_at_most: float | None = None

    @property
    def size(self) -> str:
        """Return how much there was, in words."""
        return f"{self.count:,} {self.unit}"

    @property
    def key(self) -> str:
        """Return the key of this figure, which is the same in each run."""
        return f"{self.name} / {self.against}, {self.size}"

    @property
    def ratio(self) -> float:
        """Return how many times as long KB takes, round by round."""
        return self.kb.ratio_to(self.floor)

    @property
    def cpu_ratio(self) -> float | None:
        """Return the same of the processor's time; None where it is not known of both."""
        return self.kb.cpu_s / self.floor.cpu_s if self.kb.cpu_s and self.floor.cpu_s else None

    @property
    def is_met(self) -> bool | None:
        """Return whether all aims are met; None where there is none."""
        met = [self.ratio <= self.at_most] if self.at_most is not None else []
        met += [self.kb.median_s <= self.at_most_s] if self.at_most_s is not None else []
        return all(met) if met else None

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the headings."""
        aims = [f"{self.at_most:g}"] if self.at_most is not None else []
        aims += [shown_time(self.at_most_s)] if self.at_most_s is not None else []
        return (
            f"{self.name} / {self.against}",
            self.size,
            shown_times(self.kb),
            shown_times(self.floor),
            f"{self.ratio:.2f}",
            "" if self.cpu_ratio is None else f"{self.cpu_ratio:.2f}",
            ", ".join(aims),
            {True: "yes", False: "no", None: ""}[self.is_met],
            shown_bytes(self.peak_bytes),
        )


class Versus(msgspec.Struct, frozen=True):
    """One figure against a peer, which does as nearly the same as possible."""

    work: str
    count: int
    unit: str
    kb: Series
    peer: str
    theirs: Series
    kb_peak_bytes: int | None
    peer_peak_bytes: int | None

    @property
    def size(self) -> str:
        """Return how much there was, in words."""
        return f"{self.count:,} {self.unit}"

    @property
    def ratio(self) -> float:
        """Return how many times as long KB takes as the peer, round by round."""
        return self.kb.ratio_to(self.theirs)

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the peers' headings."""
        return (
            self.work,
            self.size,
            shown_times(self.kb),
            self.peer,
            shown_times(self.theirs),
            f"{self.ratio:.2g}",
            shown_bytes(self.kb_peak_bytes),
            shown_bytes(self.peer_peak_bytes),
        )


class Absent(msgspec.Struct, frozen=True):
    """A peer that was not there."""

    peer: str
    remedy: str

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the peers' headings."""
        return ("", "", "", self.peer, f"not installed ({self.remedy})", "", "", "")


Figure = Row | Versus | Absent


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, its columns aligned for reading as text."""
    table = [headings, *lines]
    widths = [max(3, *(len(line[column]) for line in table)) for column in range(len(headings))]
    shown = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    shown.insert(1, " | ".join("-" * width for width in widths))
    return "".join(f"| {line} |\n" for line in shown)


def shown_times(series: Series) -> str:
    """Return the median, and in parentheses the fastest and the slowest run."""
    return f"{shown_time(series.median_s)} ({shown_time(min(series.walls_s))} to {shown_time(max(series.walls_s))})"


def shown_time(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1e3
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.{1 if milliseconds >= 10 else 2}f} ms"


def shown_bytes(amount: int | None) -> str:
    """Return an amount of memory; nothing for what is not known."""
    return "" if amount is None else f"{amount / 2**20:.0f} MiB"
