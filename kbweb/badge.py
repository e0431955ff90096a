"""The badge of a branch: the share of its requirements that a test verifies, as SVG of two parts with a colour."""

from __future__ import annotations

from html import escape
from typing import Final

from kbcore.query.coverage import CoverageGroup

_CHAR_PX: Final = 6.6
_PADDING_PX: Final = 8.0
_HEIGHT_PX: Final = 20
_COLOURS: Final = ((90.0, "#2b7a3d"), (60.0, "#8a6100"), (0.0, "#b3261e"))
"""The colour of the second part from so many percent on; white text on each has a contrast of at least 4.5."""
MARK: Final = 'aria-label="verified: '
"""The mark in each badge, by which one is recognized."""
_GREY: Final = "#5b6470"


def badge(requirements: CoverageGroup) -> str:
    """Return the badge for requirements: ``verified 87.5 %``, or ``no requirements`` where none needs a test."""
    tally = requirements.tallies["verified"]
    value = "no requirements" if tally.percent is None else f"{tally.percent:g} %"
    colour = _GREY if tally.percent is None else next(one for least, one in _COLOURS if tally.percent >= least)
    if requirements.failing:
        value, colour = f"{value}, {requirements.failing} failing", _COLOURS[-1][1]
    widths = [len(text) * _CHAR_PX + 2 * _PADDING_PX for text in ("verified", value)]
    whole = sum(widths)
    label = f"verified: {value}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{_HEIGHT_PX}" role="img" '
        f'aria-label="{escape(label)}"><title>{escape(label)}</title>'
        f'<clipPath id="r"><rect width="{whole:.0f}" height="{_HEIGHT_PX}" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{widths[0]:.0f}" height="{_HEIGHT_PX}" fill="#3b424b"/>'
        f'<rect x="{widths[0]:.0f}" width="{widths[1]:.0f}" height="{_HEIGHT_PX}" fill="{colour}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{widths[0] / 2:.1f}" y="14">verified</text>'
        f'<text x="{widths[0] + widths[1] / 2:.1f}" y="14">{escape(value)}</text></g></svg>\n'
    )
