"""The report of a run: the machine, the noise, and the tables; and the file that it is written to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks import growth, machine, page, plot, runs, stored
from benchmarks.measure import Series
from benchmarks.table import Figure, Row, Versus, markdown

_FEWEST = 4
"""Of fewer runs, quartiles say nothing."""


def text(measured_on: str, figures: Sequence[Figure]) -> str:
    """Return all that was measured, in Markdown; ``measured_on`` is the machine as it was before the run."""
    curves = growth.curves(figures)
    parts = [machine.paragraph(f"{measured_on} {machine.load('after')} {noise(figures)}")]
    rows = [one for one in figures if isinstance(one, Row)]
    beside = [one for one in figures if not isinstance(one, Row)]
    if rows:
        parts.append(f"### Against floors\n\n{runs.tables(rows)}")
    if curves:
        parts.append(f"### Growth\n\n{markdown(growth.HEADINGS, [one.cells() for one in curves])}")
    if beside:
        parts.append(f"### Against other tools\n\n{runs.tables(beside)}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def noise(figures: Sequence[Figure]) -> str:
    """Return one sentence on how much runs of the same differed."""
    spreads = sorted(_spread(series) for series in _series(figures) if len(series.samples) >= _FEWEST)
    if not spreads:
        return ""
    return (
        f"Noise: the middle half of the runs of one figure is within {statistics.median(spreads):.0%} of its median "
        f"for half of the figures, and within {spreads[-1]:.0%} for all of them."
    )


def write(measured: str, figures: Sequence[Figure]) -> None:
    """Put a whole run into the page, its plot next to it, and its ratios where the guard finds them."""
    page.write(measured)
    plot.write(growth.curves(figures))
    stored.write([one for one in figures if isinstance(one, Row)])


def write_one(name: str, measured_on: str, figures: Sequence[Figure]) -> None:
    """Put what one question has found into the page, and its ratios to the stored ones."""
    said = machine.paragraph(f"{measured_on} {machine.load('after')} {noise(figures)}")
    page.write_one(name, f"{said}\n\n{runs.tables(figures)}")
    stored.update([one for one in figures if isinstance(one, Row)])


def _series(figures: Sequence[Figure]) -> list[Series]:
    pairs = [(one.kb, one.floor) for one in figures if isinstance(one, Row)]
    pairs += [(one.kb, one.theirs) for one in figures if isinstance(one, Versus)]
    return [series for pair in pairs for series in pair]


def _spread(series: Series) -> float:
    first, _, third = statistics.quantiles(series.walls_s, n=4)
    return (third - first) / series.median_s
