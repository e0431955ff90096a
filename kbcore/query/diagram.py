"""A part of the graph as a text that draws it: Mermaid or DOT. Pure.

What is stored is only ever the text of a label: names of nodes are made of letters, digits and ``_``, the same for an
id in every drawing, and every character of a label that could mean something to a reader of the format is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.model.graph import PROPOSED
from kbcore.model.statuses import RETIRED
from kbcore.query.section import Arrow, Section
from kbcore.query.subject import Subject
from kbcore.text.escaping import escape_controls

_TITLE_CHARS: Final = 60
_WORD: Final = re.compile(r"[a-z]+")
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]")
_UNSAFE_IN_MERMAID: Final = re.compile(r"[^\w ,.()/-]|^[\s\d.-]")
_DOTTED: Final = {"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"}


class _Look(msgspec.Struct, frozen=True):
    """The style of entities of one type: brackets of Mermaid, a shape of DOT, colours of the inside and the edge."""

    opening: str
    closing: str
    shape: str
    fill: str
    stroke: str


_LOOKS: Final[Mapping[str, _Look]] = {
    "req": _Look("[", "]", "box", "#dbeafe", "#1d4ed8"),
    "scenario": _Look("(", ")", "note", "#e0e7ff", "#4338ca"),
    "test": _Look("{{", "}}", "hexagon", "#dcfce7", "#15803d"),
    "adr": _Look("[[", "]]", "folder", "#fef9c3", "#a16207"),
    "flag": _Look(">", "]", "cds", "#ffedd5", "#c2410c"),
    "event": _Look("([", "])", "ellipse", "#fce7f3", "#be185d"),
    "symbol": _Look("[/", "/]", "parallelogram", "#f3f4f6", "#374151"),
    "component": _Look("[(", ")]", "component", "#ccfbf1", "#0f766e"),
    "doc": _Look("[", "]", "note", "#f5f5f4", "#57534e"),
    "task": _Look("(", ")", "box", "#ede9fe", "#6d28d9"),
    "note": _Look("[", "]", "note", "#fefce8", "#854d0e"),
}
_OTHER: Final = _Look("(", ")", "box", "#ffffff", "#6b7280")


def mermaid(section: Section, start: str = "", notes: Sequence[str] = ()) -> str:
    """Return a flowchart of Mermaid; ``notes`` become comments, and the start gets a thick edge."""
    names = {node.id: name_of(node.id) for node in section.nodes}
    lines = ["flowchart LR", *(f"  %% {_comment(note)}" for note in notes)]
    for node in section.nodes:
        look = _LOOKS.get(node.type, _OTHER)
        label = "<br/>".join(_mermaid_text(line) for line in _label(node))
        lines.append(f'  {names[node.id]}{look.opening}"{label}"{look.closing}:::{_class(node)}')
    lines += [
        f'  {names[one.from_id]} -->|"{_mermaid_text(_edge_words(one))}"| {names[one.to_id]}' for one in section.arrows
    ]
    for type_ in _types(section.nodes):
        look = _LOOKS.get(type_, _OTHER)
        lines.append(f"  classDef {_class_name(type_)} fill:{look.fill},stroke:{look.stroke},color:#111827")
    retired = [names[node.id] for node in section.nodes if is_out_of_service(node)]
    lines += [f"  style {name} stroke-dasharray:5 5" for name in retired]
    lines += [f"  style {names[start]} stroke-width:4px"] if start in names else []
    return "\n".join(lines) + "\n"


def dot(section: Section, start: str = "", notes: Sequence[str] = ()) -> str:
    """Return a digraph of Graphviz; ``notes`` become comments, and the start gets a thick edge."""
    lines = ["digraph kb {", *(f"  // {_comment(note)}" for note in notes)]
    lines += ["  rankdir=LR;", '  node [style=filled, fontname="sans-serif"];', '  edge [fontname="sans-serif"];']
    for node in section.nodes:
        look = _LOOKS.get(node.type, _OTHER)
        style = ', style="filled,dashed"' if is_out_of_service(node) else ""
        width = ", penwidth=3" if node.id == start else ""
        label = "\\n".join(_dot_text(line) for line in _label(node))
        lines.append(
            f'  {name_of(node.id)} [label="{label}", shape={look.shape}, fillcolor="{look.fill}", '
            f'color="{look.stroke}"{style}{width}];'
        )
    lines += [
        f'  {name_of(one.from_id)} -> {name_of(one.to_id)} [label="{_dot_text(_edge_words(one))}"];'
        for one in section.arrows
    ]
    return "\n".join([*lines, "}"]) + "\n"


def name_of(id_: str) -> str:
    """Return the name of an entity in a drawing: ``n_REQ_2d_1`` for ``REQ-1``; no two ids have the same."""
    return "n_" + _UNSAFE_IN_NAMES.sub(lambda found: f"_{ord(found[0]):x}_", id_)


def _label(node: Subject) -> list[str]:
    title = escape_controls(node.title)
    short = title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1] + "…"
    lines = [
        escape_controls(node.id),
        short,
        escape_controls(
            ", ".join(word for word in (node.type, node.status, PROPOSED if node.proposed else "") if word)
        ),
    ]
    return [line for line in lines if line]


def _edge_words(arrow: Arrow) -> str:
    words = f"{arrow.type}: {arrow.kind}" if arrow.kind else arrow.type
    return escape_controls(f"{words} ({PROPOSED})" if arrow.is_proposed else words)


def _mermaid_text(line: str) -> str:
    """Return a line as the text of a label: what is neither a letter, a digit nor harmless is written as its number."""
    return _UNSAFE_IN_MERMAID.sub(lambda found: f"#{ord(found[0])};", line)


def _dot_text(line: str) -> str:
    return "".join(_DOTTED.get(one, one) for one in line)


def _comment(note: str) -> str:
    return re.sub(r"[^\w ,.()/-]", "", escape_controls(note))


def _types(nodes: Iterable[Subject]) -> list[str]:
    return sorted({node.type if node.type in _LOOKS else "" for node in nodes})


def _class(node: Subject) -> str:
    return _class_name(node.type if node.type in _LOOKS else "")


def _class_name(type_: str) -> str:
    return f"kb_{type_ or 'other'}"


def is_out_of_service(node: Subject) -> bool:
    """Return whether the status of an entity takes it out of service."""
    word = _WORD.search(node.status.lower())
    return word is not None and word[0] in RETIRED
