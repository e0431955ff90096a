"""Marks in comments of source code: what the code implements or verifies, in the words of several tools.

``kb: implements REQ-1, REQ-2`` is KB's own, whatever marks a comment in its language; ``kb: relates_to:KIND REQ-1``
has a kind too. Ids are separated by commas; quotation marks, backticks and brackets around one, and what ends a
sentence or the comment, are none of it; words that follow the id are prose. The rule on staged source files reads the
same marks. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import msgspec

from kbcore.text.suggest import near_ones

IMPLEMENTS: Final = "implements"
_COMMENT: Final = re.compile(r"\bkb:[ \t]*implements\b[ \t:]*([^\r\n]*)", re.IGNORECASE)
_OWN: Final = re.compile(
    r"\bkb:[ \t]*(\^?)([a-z][a-z_-]*)\b(?::([\w-]+)(?=[ \t]+[^\s]))?[ \t:]*([^\r\n]*)", re.IGNORECASE
)
COMMENT_LINE: Final = r"kb:[[:blank:]]*implements"
"""Matches each line with a comment, for git."""
_BREAK: Final = re.compile("\n")
_CLOSER: Final = re.compile(r"\*/|-->|--\}|\*\)|\]\]|#\}|%>|\"\"\"|'''")
"""Endings of a comment in any language."""
_AROUND: Final = " \t.:;!()[]{}<>\"'`"

_OPEN_FAST_TRACE: Final = re.compile(r"\[\s*([a-z]+)(?:~[\w.-]+(?:~\d+)?)?\s*->([^\]\r\n]*+)\]", re.IGNORECASE)
_SPECIFICATION: Final = re.compile(r"(?<![a-z])[a-z]++~[\w.-]++~\d+", re.IGNORECASE)
_STRICTDOC: Final = re.compile(r"@relation\(([^()]*+)\)")
_CODELINKS: Final = re.compile(
    r"^[^\w@\r\n]*@[^@,\r\n]++,\s*+[\w.-]+\s*+,\s*+(\w+)\s*+,\s*+\[([^\]\r\n]*+)\]", re.MULTILINE
)
_UID: Final = r"[A-Z][A-Za-z]*+[-_.]?\d++"
_DOORSTOP: Final = re.compile(
    rf"^[^\w\n]*+((?i:implements|verifies|tests)):?[ \t]+({_UID}(?:[ \t]*+,[ \t]*+{_UID})*+)[^\w\n]*+$", re.MULTILINE
)
_PYTEST: Final = re.compile(r"mark\s*\.\s*(?:requirement|kb)\s*\(([^()]*)\)")
_QUOTED: Final = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_LIKE_AN_ID: Final = re.compile(r"[A-Z][A-Za-z]*+(?:[-_.][A-Za-z]++)*+[-_.]?\d[\w.-]*+|[a-z]+~[\w.-]+~\d+")
"""A word that is no prose: letters, the first one a capital, and a number."""
_LEAST_ALIKE: Final = 0.8
"""The least likeness of a word to the name of an edge that is taken for a misspelled one."""
_LEAST_CHARS: Final = 4
_VERIFYING: Final = frozenset({"test", "utest", "itest", "stest", "verifies", "tests"})


class Mark(msgspec.Struct, frozen=True):
    """A link that a comment states: the edge, None for the one that fits, and the line from that of the comment.

    ``is_of_file`` means that it is for the file, wherever the comment is.
    """

    target: str
    edge: str | None
    line: int
    reverse: bool = False
    is_of_file: bool = False
    kind: str = ""


class WrongMark(msgspec.Struct, frozen=True):
    """A comment that is meant as a mark and states no link, with its line from that of the comment.

    ``edge`` is the word in the place of the edge; "" in ``target`` is a mark that names no id.
    """

    edge: str
    target: str
    line: int
    is_known: bool


def items_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the texts between the commas of each ``kb: implements``, with their line; "" where it names nothing."""
    line, at = 1, 0
    for found in _COMMENT.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        yield from ((line, item) for item in _listed(found[1]))


def spellings(item: str) -> list[str]:
    """Return the ids that may be meant: as written, without what surrounds it, or the first word, the last of all."""
    words = item.split()
    return list(dict.fromkeys([item, item.strip(_AROUND), words[0].strip(_AROUND)])) if words else []


def marks_in(text: str, edges: Collection[str]) -> list[Mark]:
    """Return the marks of a comment, in order of lines; ``edges`` are further names that ``kb: EDGE ID`` may have."""
    breaks = _breaks(text)
    found = [*_own(text, edges, breaks)]
    for one in _OPEN_FAST_TRACE.finditer(text):
        edge, line = _edge_of(one[1].lower()), bisect_left(breaks, one.start())
        found += [Mark(key, edge, line) for key in _SPECIFICATION.findall(one[2])]
    for one in _STRICTDOC.finditer(text):
        parts = [part.strip() for part in one[1].split(",")]
        options = {
            name.strip(): value.strip() for name, _, value in (part.partition("=") for part in parts if "=" in part)
        }
        edge = None if options.get("role", "").lower().startswith(("test", "verif")) else IMPLEMENTS
        is_of_file, line = options.get("scope") == "file", bisect_left(breaks, one.start())
        keys = [part.strip(_AROUND) for part in parts if "=" not in part]
        found += [Mark(key, edge, line, is_of_file=is_of_file) for key in keys if key]
    for pattern in (_CODELINKS, _DOORSTOP):
        for one in pattern.finditer(text):
            edge, line = _edge_of(one[1].lower()), bisect_left(breaks, one.start(1))
            found += [Mark(key, edge, line) for key in map(_stripped, one[2].split(",")) if key]
    return sorted(found, key=lambda one: one.line)


def marks_of_pytest(decorator: str) -> list[str]:
    """Return the ids that a decorator ``@pytest.mark.requirement("REQ-1")`` names, or one of ``pytest.mark.kb``."""
    found = _PYTEST.search(decorator)
    quoted = _QUOTED.findall(found[1]) if found else []
    return [key for pair in quoted for key in map(_stripped, "".join(pair).split(",")) if key]


def wrong_marks(text: str, edges: Collection[str]) -> Iterator[WrongMark]:
    """Yield the marks of a comment that name no edge, or no id; ``edges`` are the names that ``kb: EDGE ID`` may have.

    Another word than the name of an edge is prose, unless what looks like an id follows, or it is nearly such a name.
    """
    breaks = _breaks(text)
    for one in _OWN.finditer(text):
        edge, _, rest = _said(one)
        target = next((key for item in _listed(rest) if item and (key := spellings(item)[-1])), "")
        is_known = edge in edges or edge == IMPLEMENTS
        if (is_known and not target) or (not is_known and (_LIKE_AN_ID.fullmatch(target) or _is_nearly(edge, edges))):
            yield WrongMark(one[2], target, bisect_left(breaks, one.start()), is_known)


def _is_nearly(edge: str, edges: Collection[str]) -> bool:
    if len(edge) < _LEAST_CHARS:
        return False
    return bool(near_ones(edge, {*edges, IMPLEMENTS}, 1, least_alike=_LEAST_ALIKE, stems=False))


def _own(text: str, edges: Collection[str], breaks: Sequence[int]) -> Iterator[Mark]:
    """Yield KB's own marks; ``breaks`` are the places of line breaks."""
    for one in _OWN.finditer(text):
        edge, kind, rest = _said(one)
        if edge not in edges and edge != IMPLEMENTS:
            continue
        for item in _listed(rest):
            key = spellings(item)[-1] if item else ""
            if key:
                yield Mark(key, edge, bisect_left(breaks, one.start()), reverse=bool(one[1]), kind=kind)


def _said(mark: re.Match[str]) -> tuple[str, str, str]:
    """Return the edge, the kind and the ids of a mark; ``implements:REQ-1 and more`` has an id and no kind."""
    edge, kind = mark[2].lower().replace("-", "_"), mark[3] or ""
    if kind and (edge == IMPLEMENTS or _LIKE_AN_ID.fullmatch(kind)):
        return edge, "", f"{kind} {mark[4]}"
    return edge, kind, mark[4]


def _listed(text: str) -> list[str]:
    listed = _CLOSER.split(text, maxsplit=1)[0]
    return [item.strip() for item in listed.split(",") if item.strip() or "," not in listed]


def _edge_of(word: str) -> str | None:
    """Return the edge that a word of another tool means: None where it says that something is verified."""
    return None if word in _VERIFYING else IMPLEMENTS


def _stripped(text: str) -> str:
    return text.strip(_AROUND)


def _breaks(text: str) -> list[int]:
    """Return the places of line breaks."""
    return [one.start() for one in _BREAK.finditer(text)]
