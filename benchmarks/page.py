"""Puts the figures of a run into ``docs/performance.md``, between two comments; the rest is written by hand."""

from __future__ import annotations

from benchmarks.place import ROOT

PAGE = ROOT / "docs" / "performance.md"
_BEGIN = "<!-- measured: figures -->\n"
_END = "<!-- end of figures -->"


def write(figures: str) -> None:
    """Replace the figures in the page.

    Raises: ``ValueError`` when the page lacks the two comments.
    """
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(text, figures), encoding="utf-8")


def replaced(text: str, figures: str) -> str:
    """Return a page with other figures between its two comments."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{PAGE} must contain {_BEGIN.strip()} and {_END}")
    return f"{before}{begin}\n{figures.strip()}\n\n{end}{after}"
