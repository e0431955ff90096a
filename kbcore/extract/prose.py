"""Statements of the body of a Markdown document outside of front matter: title, bullets, a status, links.

Code fences and HTML comments state nothing. Only these are read: the first heading; ``- Key: value`` lines
directly under it; the first line of a section ``Status``; lines ``Supersedes …`` and ``Superseded by …`` in a
section ``Status`` or ``Links``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kbcore import limits

_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH: Final = re.compile(r" {0,3}(?:[#>|]|[-*+][ \t]|\d{1,9}[.)][ \t])|    |\t")
_BULLET: Final = re.compile(r" {0,3}[-*+][ \t]+(.*)")
MARKER: Final = re.compile(r"[ \t]*(?:[-*+]|(\d{1,9})[.)])[ \t]+(?:\[([ xX])\][ \t]+)?")
"""The sign of a list, its number, and what is in the box of a task list."""
_STATEMENT: Final = re.compile(r"[*_]{0,2}([A-Za-z][A-Za-z _-]{0,38}[A-Za-z])[*_]{0,2}:[*_]{0,2}(?:[ \t]+(.*)|)$")
_KNOWN_KEYS: Final = frozenset(
    {
        *(
            "id",
            "type",
            "title",
            "status",
            "date",
            "tags",
            "owner",
            "priority",
            "severity",
            "author",
            "authors",
        ),
        *("deciders", "decision_makers", "decision-makers", "consulted", "informed"),
        *("supersedes", "superseded_by", "superseded-by"),
    }
)
_SUPERSEDING: Final = re.compile(r"super[sc]ede(?:s|d[ _-]by)\b", re.IGNORECASE)
_NEWER: Final = ("supersedes", "supercedes")
_SECTIONS: Final = frozenset({"status", "links"})


class ProseLine(msgspec.Struct, frozen=True):
    """A line of prose and its number in the file."""

    text: str
    number: int


class BodyOutline(msgspec.Struct):
    """The statements of a body: keys and values of bullets under the heading, and lines of sections by heading."""

    title: str = ""
    title_line: int = 0
    title_level: int = 0
    bullets: dict[str, ProseLine] = msgspec.field(default_factory=dict)
    sections: dict[str, list[ProseLine]] = msgspec.field(default_factory=dict)


def outline(body: str, first_line: int, *, needs_title: bool, needs_sections: bool) -> BodyOutline:
    """Read a body that begins on ``first_line`` of its file, as far as is needed.

    The title is the first heading of level 1, or the first heading when there is none. Bullets count under a
    heading of level 1.
    """
    result = BodyOutline()
    header: list[ProseLine] = []
    in_header, section = False, ""
    for level, text, number in blocks(body, first_line):
        if level:
            if result.title and not needs_sections and (result.title_level == 1 or not needs_title):
                break
            in_header = not result.title or (level == 1 and result.title_level > 1)
            if in_header:
                result.title, result.title_line, result.title_level = text, number, level
                header.clear()
            section = text.lower()
        elif in_header:
            header.append(ProseLine(text, number))
        elif section in _SECTIONS:
            result.sections.setdefault(section, []).append(ProseLine(text, number))
    result.bullets = _bullets(header) if result.title_level == 1 else {}
    return result


def statements_of_status(lines: Iterable[ProseLine]) -> tuple[ProseLine | None, list[ProseLine]]:
    """Return the status that a section ``Status`` states, and its lines about superseding."""
    status: ProseLine | None = None
    found: list[ProseLine] = []
    for line in lines:
        text = _unbulleted(line.text).strip("*_ ")
        if not text:
            continue
        if _SUPERSEDING.match(text):
            found.append(ProseLine(text, line.number))
            if status is None and not text.lower().startswith(_NEWER):
                status = found[-1]
        elif status is None and not found:
            status = ProseLine(text.rstrip("."), line.number)
    return status, found


def superseding(lines: Iterable[ProseLine]) -> list[ProseLine]:
    """Return the lines about superseding of a section ``Links``."""
    return [
        ProseLine(text, line.number)
        for line in lines
        if _SUPERSEDING.match(text := _unbulleted(line.text).strip("*_ "))
    ]


def prose_lines(body: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a body with their numbers, without code fences and HTML comments."""
    fence, in_comment = "", False
    for number, raw in enumerate(io.StringIO(body), first_line):
        line = raw.rstrip("\n")
        if fence:
            if line.lstrip(" ").startswith(fence) and not line.strip(fence[0] + " \t"):
                fence = ""
            continue
        if in_comment or "<!--" in line:
            line, in_comment = _uncommented(line, in_comment)
        found = _FENCE.match(line)
        if found:
            fence = found[1]
            continue
        yield number, line


def _uncommented(line: str, in_comment: bool) -> tuple[str, bool]:
    kept: list[str] = []
    at = 0
    while at < len(line):
        sign = "-->" if in_comment else "<!--"
        found = line.find(sign, at)
        end = found if found >= 0 else len(line)
        if not in_comment:
            kept.append(line[at:end])
        if found < 0:
            break
        in_comment = not in_comment
        at = end + len(sign)
    return "".join(kept).rstrip(), in_comment


def blocks(body: str, first_line: int) -> Iterator[tuple[int, str, int]]:
    """Yield headings (level, text, line) and other lines (0, text, line), in order."""
    held: tuple[int, str] | None = None
    was_text = False
    for number, line in prose_lines(body, first_line):
        atx = _ATX.match(line)
        underline = _UNDERLINE.match(line) if held and not was_text else None
        if underline and held:
            yield (1 if underline[1][0] == "=" else 2), held[1].strip(), held[0]
            held = None
            continue
        if held:
            yield 0, held[1], held[0]
            was_text, held = True, None
        if atx:
            yield len(atx[1]), _heading(line[atx.end() :]), number
            was_text = False
        elif not line.strip() or _NO_PARAGRAPH.match(line):
            yield 0, line, number
            was_text = bool(line.strip())
        else:
            held = (number, line)
    if held:
        yield 0, held[1], held[0]


def _heading(text: str) -> str:
    """Return the text of a heading without the signs that may close it."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text


def _bullets(header: list[ProseLine]) -> dict[str, ProseLine]:
    """Return the ``Key: value`` lines at the beginning of a text; it ends at the first line that is none.

    Bullets count when one of their keys is known; a line without a bullet counts when its key is known.
    """
    found: dict[str, ProseLine] = {}
    last = ""
    for line in header:
        if not line.text.strip():
            continue
        bullet = _BULLET.match(line.text)
        statement = _STATEMENT.match(bullet[1] if bullet else line.text.strip())
        key = statement[1].lower().replace(" ", "_") if statement else ""
        if statement and (bullet or key in _KNOWN_KEYS):
            found.setdefault(key, ProseLine((statement[2] or "").strip(), line.number))
            last = key
        elif last and not bullet and line.text.startswith("  "):
            before = found[last]
            if len(before.text) > limits.MAX_TEXT_BYTES:
                continue
            found[last] = ProseLine(f"{before.text} {line.text.strip()}".strip(), before.number)
        else:
            break
    return found if any(key in _KNOWN_KEYS for key in found) else {}


def without_marker(text: str) -> str:
    """Return a line without the sign of a list and the box of a task list in front of it."""
    found = MARKER.match(text)
    return text[found.end() if found else 0 :].strip()


def _unbulleted(text: str) -> str:
    bullet = _BULLET.match(text)
    return (bullet[1] if bullet else text).strip()
