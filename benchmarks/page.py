"""Puts the figures of a run into ``docs/performance.md``, between two comments; the rest is written by hand.

A question that was measured by itself has a place of its own after those of the whole run, which the next whole run
takes away.
"""

from __future__ import annotations

import re

from benchmarks.place import ROOT

PAGE = ROOT / "docs" / "performance.md"
FIGURES = "figures"
FLEET = "fleet"
_END = "<!-- end of figures -->"
_ONE = re.compile(r"\n\n<!-- measured by itself: (?P<name>\w+) -->\n.*?\n<!-- end of (?P=name) -->", re.DOTALL)


def write(figures: str, part: str = FIGURES) -> None:
    """Replace the figures of a part of the page.

    Raises: ``ValueError`` when the page lacks the two comments.
    """
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(text, figures, part), encoding="utf-8")


def write_one(name: str, figures: str) -> None:
    """Put the figures of one question into the page, or replace them there. Raises: as ``write``."""
    PAGE.write_text(with_one(PAGE.read_text(encoding="utf-8"), name, figures), encoding="utf-8")


def with_one(text: str, name: str, figures: str) -> str:
    """Return a page with the figures of a question that was measured by itself, in the order of their names."""
    before, end, after = text.partition(_END)
    if not end:
        raise ValueError(f"{PAGE} must contain {_END}")
    known = {one["name"]: one[0] for one in _ONE.finditer(after)}
    heading = f"### `{name}`, measured by itself"
    known[name] = f"\n\n<!-- measured by itself: {name} -->\n\n{heading}\n\n{figures.strip()}\n\n<!-- end of {name} -->"
    return f"{before}{end}{''.join(known[one] for one in sorted(known))}{_ONE.sub('', after)}"


def replaced(text: str, figures: str, part: str = FIGURES) -> str:
    """Return a page with other figures between the two comments of a part; of all figures, none of single questions."""
    first, last = f"<!-- measured: {part} -->\n", f"<!-- end of {part} -->"
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{PAGE} must contain {first.strip()} and {last}")
    return f"{before}{begin}\n{figures.strip()}\n\n{end}{_ONE.sub('', after) if part == FIGURES else after}"
