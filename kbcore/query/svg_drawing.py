"""A part of the graph as a picture: SVG of layers from left to right. The layout is that of the library graphlay.

The same section always gives the same picture. Stored text is only ever the text of an element, escaped, and the
value of ``href`` comes from the caller.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.model.graph import PROPOSED
from kbcore.query.diagram import is_out_of_service, name_of
from kbcore.query.section import Arrow, Section
from kbcore.query.subject import Subject
from kbcore.text.escaping import escape_controls

MAX_NODES: Final = 300
"""Entities of a picture: nobody can read one with more."""

_CHAR_PX: Final = 6.7
_BOLD_PX: Final = 8.0
"""The same of the id, which is the first line."""
_PADDING_PX: Final = 12.0
_LINE_PX: Final = 16.0
_HEIGHT_PX: Final = 44.0
_MAX_CELLS: Final = 30
"""Width of a label, in characters; those of East Asian scripts count twice."""
_MARGIN_PX: Final = 16.0
_OPTIONS: Final[Mapping[str, Any]] = {
    "effort": "fast",
    "coords": {"placement": "brandes_koepf"},
    "spacing": {"node_gap": 18.0, "layer_gap": 70.0, "isolated_gap": 18.0},
    # Moving the ports of a node apart takes a time that is square in its edges: 9 s for one with 300.
    "tuning": {"routing": {"port_relax_rounds": 0}},
}

Href = Callable[[str], str]
"""Returns where the page of an entity is, "" where it has none."""
_STYLE: Final = (
    "<style>.edges path{fill:none;stroke:#5b6470}marker path{fill:#5b6470}rect{fill:#f4f6f8;stroke:#5b6470}"
    ".start rect{stroke:#0b57c2;stroke-width:3}.retired rect{stroke-dasharray:4 3}"
    ".edges .proposed,.proposed rect{stroke:#7a5200;stroke-dasharray:2 3}"
    ".start.retired rect{stroke-dasharray:10 5}"
    "text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#5b6470}"
    "text:first-of-type{fill:#1a1d21;font-weight:600}"
    ".legend text{fill:#5b6470;font-weight:400;text-anchor:start}</style>"
)
"""The look of a picture outside of a page."""


class _Box(msgspec.Struct, frozen=True):
    """An entity in the picture, its centre and its size in px."""

    node: Subject
    lines: tuple[str, ...]
    width: float
    x: float = 0.0
    y: float = 0.0


def svg(section: Section, start: str, href: Href | None, label: str) -> str:
    """Return a picture of a section with at most ``MAX_NODES`` entities; ``label`` is its accessible name.

    ``start`` is the entity that the section is around ("" for none). Each entity links to ``href(id)``. What is only
    proposed is dotted, what is retired dashed; a line below the picture says so where there is one.
    Without ``href`` it is a picture alone: it has no links, and the style that a page would give it.

    Raises: ``InvalidQuery`` where the package that lays it out is not installed.
    """
    boxes, routes, bounds = _laid_out(section)
    low_x, low_y, high_x, high_y = bounds
    lines = _legend_lines(section)
    widest = max(high_x - low_x, *(_cells(line) * _CHAR_PX for line in lines), 0)
    width, height = widest + 2 * _MARGIN_PX, high_y - low_y + 2 * _MARGIN_PX + len(lines) * _LINE_PX
    view = f"{low_x - _MARGIN_PX:.0f} {low_y - _MARGIN_PX:.0f} {width:.0f} {height:.0f}"
    tip = f"tip_{name_of(start)}"  # another one in each picture of a page
    edges = "".join(_edge(arrow, points, tip) for arrow, points in zip(section.arrows, routes, strict=True))
    nodes = "".join(_node(box, href, is_start=box.node.id == start) for box in boxes)
    texts = "".join(
        f'<text x="{low_x:.0f}" y="{high_y + _MARGIN_PX + at * _LINE_PX:.0f}">{line}</text>'
        for at, line in enumerate(lines)
    )
    legend = f'<g class="legend">{texts}</g>' if texts else ""
    role, style = ("group", "") if href else ("img", _STYLE)  # an image contains no links
    return (
        f'<svg class="graph" role="{role}" aria-label="{escape(escape_controls(label))}" viewBox="{view}" '
        f'width="{width:.0f}" height="{height:.0f}" xmlns="http://www.w3.org/2000/svg">'
        f'{style}<defs><marker id="{tip}" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z"/></marker></defs><g class="edges">{edges}</g><g class="nodes">{nodes}</g>'
        f"{legend}</svg>"
    )


def _laid_out(section: Section) -> tuple[list[_Box], list[list[tuple[float, float]]], tuple[float, ...]]:
    try:
        import graphlay  # noqa: PLC0415 - an extra, and only pictures need it
    except ImportError as error:
        message = "Pictures of the graph are not drawn: the package graphlay is not installed."
        raise InvalidQuery(message, hint='Install it with `pip install "kb-memory[graph]"`.') from error
    boxes = [_sized(node) for node in section.nodes]
    graph = graphlay.Graph()
    for at, box in enumerate(boxes):
        graph.node(at, width=box.width, height=_HEIGHT_PX)
    index = {box.node.id: at for at, box in enumerate(boxes)}
    for arrow in section.arrows:
        graph.edge(index[arrow.from_id], index[arrow.to_id])
    found = graphlay.layout(graph, options=_OPTIONS)
    centres = [(one["center"]["x"], one["center"]["y"]) for one in found.nodes]
    placed = [msgspec.structs.replace(box, x=x, y=y) for box, (x, y) in zip(boxes, centres, strict=True)]
    routes = [[(point["x"], point["y"]) for point in one["points"]] for one in found.edges]
    low, high = found.bounds["min"], found.bounds["max"]
    return placed, routes, (low["x"], low["y"], high["x"], high["y"])


def _legend_lines(section: Section) -> list[str]:
    """Return what the two kinds of broken lines of a picture mean, as far as it has them."""
    has_proposed = any(one.proposed for one in section.nodes) or any(one.is_proposed for one in section.arrows)
    has_retired = any(map(is_out_of_service, section.nodes))
    return [*(["dotted: proposed"] if has_proposed else ()), *(["dashed: retired"] if has_retired else ())]


def _sized(node: Subject) -> _Box:
    lines = tuple(_cut(escape_controls(text)) for text in (node.id, node.title) if text)
    first, *others = map(_cells, lines)
    width = max(first * _BOLD_PX, *(count * _CHAR_PX for count in others), 60.0 - 2 * _PADDING_PX)
    return _Box(node, lines, width + 2 * _PADDING_PX)


def _node(box: _Box, href: Href | None, *, is_start: bool) -> str:
    left, top = box.x - box.width / 2, box.y - _HEIGHT_PX / 2
    kinds = (("start", is_start), ("retired", is_out_of_service(box.node)), (PROPOSED, box.node.proposed))
    words = [word for word, holds in kinds if holds]
    first = box.y - (len(box.lines) - 1) * _LINE_PX / 2 + 4
    texts = "".join(
        f'<text x="{box.x:.0f}" y="{first + at * _LINE_PX:.0f}">{escape(line)}</text>'
        for at, line in enumerate(box.lines)
    )
    facts = (box.node.id, box.node.title, box.node.type, box.node.status, PROPOSED if box.node.proposed else "")
    said = ", ".join(filter(None, facts))
    drawn = (
        f"<title>{escape(escape_controls(said))}</title>"
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{box.width:.0f}" height="{_HEIGHT_PX:.0f}" rx="6"/>{texts}'
    )
    place = href(box.node.id) if href else ""
    inner = f'<a href="{escape(place)}">{drawn}</a>' if place else drawn
    return f'<g class="{" ".join(words)}">{inner}</g>'


def _edge(arrow: Arrow, points: Sequence[tuple[float, float]], tip: str) -> str:
    path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
    kind = f":{arrow.kind}" if arrow.kind else ""
    said = f"{arrow.from_id} {arrow.type}{kind} {arrow.to_id}{f' ({PROPOSED})' if arrow.is_proposed else ''}"
    look = f' class="{PROPOSED}"' if arrow.is_proposed else ""
    return f'<path{look} d="{path}" marker-end="url(#{tip})"><title>{escape(escape_controls(said))}</title></path>'


def _cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _cut(text: str) -> str:
    """Return a text that is at most ``_MAX_CELLS`` wide."""
    if _cells(text) <= _MAX_CELLS:
        return text
    kept, width = [], 1
    for one in text:
        width += _cells(one)
        if width > _MAX_CELLS:
            break
        kept.append(one)
    return "".join(kept) + "…"
