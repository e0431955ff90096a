"""The table of all figures: one row a question and size, each with its ratio to its floor."""

from __future__ import annotations

import msgspec

from benchmarks.measure import Series

HEADINGS = ("question", "size", "KB", "floor", "ratio", "of CPU", "at most", "met", "peak")


class Row(msgspec.Struct, frozen=True):
    """One figure. ``at_most`` is the ratio that is aimed for, None where there is no aim."""

    question: str
    size: str
    kb: Series
    floor: Series
    at_most: float | None
    peak_bytes: int | None

    @property
    def ratio(self) -> float:
        """Return how many times as long KB takes, median to median."""
        return self.kb.median_s / self.floor.median_s

    @property
    def cpu_ratio(self) -> float | None:
        """Return the same of the processor's time; None where it is not known of both."""
        return self.kb.cpu_s / self.floor.cpu_s if self.kb.cpu_s and self.floor.cpu_s else None

    @property
    def is_met(self) -> bool | None:
        """Tell whether the aim is met; None where there is none."""
        return None if self.at_most is None else self.ratio <= self.at_most

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the headings."""
        return (
            self.question,
            self.size,
            _times(self.kb),
            _times(self.floor),
            f"{self.ratio:.2f}",
            "" if self.cpu_ratio is None else f"{self.cpu_ratio:.2f}",
            "" if self.at_most is None else f"{self.at_most:g}",
            {True: "yes", False: "no", None: ""}[self.is_met],
            "" if self.peak_bytes is None else f"{self.peak_bytes / 2**20:.0f} MiB",
        )


def markdown(rows: list[Row]) -> str:
    """Return the table in Markdown, its columns aligned for reading as text."""
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "".join(f"| {line} |\n" for line in lines)


def _times(series: Series) -> str:
    """Return the median, and in parentheses the fastest and the slowest run."""
    return f"{_time(series.median_s)} ({_time(min(series.walls_s))} to {_time(max(series.walls_s))})"


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1e3
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.{1 if milliseconds >= 10 else 2}f} ms"
