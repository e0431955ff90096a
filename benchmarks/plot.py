"""Draws cost against the number of things as SVG: one small panel a question, all with the same logarithmic axes.

Colours follow the reader's scheme, light or dark; lines differ in their dashes and marks too, not only in colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import msgspec

from benchmarks.growth import Curve, Points, exponent, power
from benchmarks.place import ROOT

PLOT = ROOT / "docs" / "performance.svg"

_COLUMNS = 4
_PANEL_WIDTH, _PANEL_HEIGHT = 236, 218
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 10, 46, 40
"""Around the axes of a panel: room for the ticks of seconds, nothing, the heading, the ticks of N."""
_HEADER = 64
_MARGIN = 14
_LIGHT = {"paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "grid": "#e4e8ec"}
_LIGHT |= {"kb": "#0b62c4", "floor": "#6e7781", "peer": "#bc4c00"}
_DARK = {"paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "grid": "#262c36"}
_DARK |= {"kb": "#58a6ff", "floor": "#8b949e", "peer": "#f0883e"}
_SHAPES = """
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 12px; }
  .title { font-size: 16px; font-weight: 600; }
  .name { font-weight: 600; }
  .faint { font-size: 10px; }
  .grid { stroke-width: 1; fill: none; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .floor { stroke-dasharray: 5 3; }
  .peer { stroke-dasharray: 2 3; }
"""
_LEGEND = (("kb", "KB"), ("floor", "floor"), ("peer", "another tool"))


class _Axes(msgspec.Struct, frozen=True):
    """The decades that the axes of all panels span: of the number of things, and of seconds."""

    counts: tuple[int, int]
    seconds: tuple[int, int]

    def x(self, count: float) -> float:
        return _LEFT + _share(count, self.counts) * (_PANEL_WIDTH - _LEFT - _RIGHT)

    def y(self, seconds: float) -> float:
        return _PANEL_HEIGHT - _BOTTOM - _share(seconds, self.seconds) * (_PANEL_HEIGHT - _TOP - _BOTTOM)


def _style() -> str:
    """Return the style sheet: shapes, and the colours of both schemes, written out for what knows no variables."""
    return f"{_SHAPES}{_coloured(_LIGHT)}  @media (prefers-color-scheme: dark) {{\n{_coloured(_DARK)}  }}\n"


def _coloured(palette: Mapping[str, str]) -> str:
    rules = {"text": f"fill: {palette['ink']}", ".paper": f"fill: {palette['paper']}"}
    rules |= {".faint": f"fill: {palette['faint']}", ".grid": f"stroke: {palette['grid']}"}
    for kind, _ in _LEGEND:
        rules |= {f".{kind}": f"stroke: {palette[kind]}", f".mark-{kind}": f"fill: {palette[kind]}"}
    return "".join(f"  {selector} {{ {rule}; }}\n" for selector, rule in rules.items())


def write(curves: Sequence[Curve]) -> None:
    """Write the plot next to the page."""
    PLOT.write_text(svg(curves), encoding="utf-8")


def svg(curves: Sequence[Curve]) -> str:
    """Return the plot of these curves.

    Raises: ``ValueError`` when there are none.
    """
    points = [point for curve in curves for point in (*curve.kb, *curve.other)]
    if not points:
        raise ValueError("there is nothing to draw")
    axes = _Axes(_decades([count for count, _ in points]), _decades([seconds for _, seconds in points]))
    rows = -(-len(curves) // _COLUMNS)
    width, height = 2 * _MARGIN + _COLUMNS * _PANEL_WIDTH, _HEADER + rows * _PANEL_HEIGHT + _MARGIN
    label = "Cost against the number of things, for KB, its floors and other tools"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">',
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="title" x="{_MARGIN}" y="28">Cost against the number of things, N</text>',
        *_legend(),
    ]
    for number, curve in enumerate(curves):
        row, column = divmod(number, _COLUMNS)
        place = f"translate({_MARGIN + column * _PANEL_WIDTH} {_HEADER + row * _PANEL_HEIGHT})"
        parts += [f'<g transform="{place}">', *_panel(curve, axes), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend() -> Iterator[str]:
    left = _MARGIN
    for kind, name in _LEGEND:
        yield f'<path class="line {kind}" d="M{left} 46h34"/>'
        yield _mark(kind, left + 17, 46)
        yield f'<text x="{left + 42}" y="50">{name}</text>'
        left += 62 + 8 * len(name)
    yield f'<text class="faint" x="{left}" y="50">Medians; both axes are logarithmic, and the same everywhere.</text>'


def _panel(curve: Curve, axes: _Axes) -> Iterator[str]:
    kind = "peer" if curve.is_peer else "floor"
    yield f'<text class="name" x="{_LEFT}" y="14">{escape(curve.name)}</text>'
    yield f'<text class="faint" x="{_LEFT}" y="28">{escape(_shortened(f"/ {curve.against}"))}</text>'
    yield (
        f'<text class="faint" x="{_LEFT}" y="40">grows with {power(exponent(curve.kb))}, '
        f"{'the other' if curve.is_peer else 'the floor'} {power(exponent(curve.other))}</text>"
    )
    yield from _grid(curve.unit, axes)
    for name, points in ((kind, curve.other), ("kb", curve.kb)):
        yield from _line(name, points, axes)


def _grid(unit: str, axes: _Axes) -> Iterator[str]:
    left, right = axes.x(10 ** axes.counts[0]), axes.x(10 ** axes.counts[1])
    low, high = axes.y(10 ** axes.seconds[0]), axes.y(10 ** axes.seconds[1])
    for decade in range(axes.seconds[0], axes.seconds[1] + 1):
        y = axes.y(10.0**decade)
        yield f'<path class="grid" d="M{left:.1f} {y:.1f}H{right:.1f}"/>'
        yield f'<text class="faint" x="{left - 5:.1f}" y="{y + 3.5:.1f}" text-anchor="end">{_seconds(decade)}</text>'
    for decade in range(axes.counts[0], axes.counts[1] + 1):
        x = axes.x(10**decade)
        yield f'<path class="grid" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{low + 16:.1f}" text-anchor="middle">{_count(decade)}</text>'
    middle = (left + right) / 2
    yield f'<text class="faint" x="{middle:.1f}" y="{low + 29:.1f}" text-anchor="middle">{escape(unit)}</text>'


def _line(kind: str, points: Points, axes: _Axes) -> Iterator[str]:
    spots = [(axes.x(count), axes.y(seconds)) for count, seconds in points]
    path = "".join(f"L{x:.1f} {y:.1f}" for x, y in spots[1:])
    yield f'<path class="line {kind}" d="M{spots[0][0]:.1f} {spots[0][1]:.1f}{path}"/>'
    yield from (_mark(kind, x, y) for x, y in spots)


def _mark(kind: str, x: float, y: float) -> str:
    """Return a circle for KB, a square for a floor, a diamond for another tool."""
    if kind == "kb":
        return f'<circle class="mark-kb" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if kind == "peer" else ""
    return f'<rect class="mark-{kind}" x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"{turn}/>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten that hold all the values between them."""
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def _share(value: float, decades: tuple[int, int]) -> float:
    """Return where a value is between the ends of its axis: 0 is at the lower, 1 at the upper."""
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])


def _seconds(decade: int) -> str:
    """Return a power of ten of seconds in the unit that suits it."""
    if decade >= 0:
        return f"{10**decade:,} s"
    return f"{10 ** (decade + 3)} ms" if decade >= -3 else f"{10 ** (decade + 6)} µs"


def _count(decade: int) -> str:
    return f"{10**decade}" if decade < 3 else f"{10 ** (decade - 3)}k"


def _shortened(text: str, longest: int = 38) -> str:
    """Return a text that fits over a panel."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
