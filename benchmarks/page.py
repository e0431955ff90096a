"""Puts the figures of a run into ``docs/performance.md``, between two comments; the rest is written by hand."""

from __future__ import annotations

from benchmarks.place import ROOT

PAGE = ROOT / "docs" / "performance.md"
FIGURES = "figures"
FLEET = "fleet"


def write(figures: str, part: str = FIGURES) -> None:
    """Replace the figures of a part of the page.

    Raises: ``ValueError`` when the page lacks the two comments.
    """
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(text, figures, part), encoding="utf-8")


def replaced(text: str, figures: str, part: str = FIGURES) -> str:
    """Return a page with other figures between the two comments of a part."""
    first, last = f"<!-- measured: {part} -->\n", f"<!-- end of {part} -->"
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{PAGE} must contain {first.strip()} and {last}")
    return f"{before}{begin}\n{figures.strip()}\n\n{end}{after}"
