"""Entries of Markdown, reStructuredText and AsciiDoc: the whole document, and what headings and lines begin. Pure.

The header of a document is its front matter, or the lines ``Key: value``, ``:Key: value`` at its beginning, also under
its first heading.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.extract import frontmatter, prose, rst_links
from kbcore.extract.prose import ProseLine
from kbcore.extract.sources import patterns
from kbcore.extract.sources.entry import Entry, FileEntries, of_lines
from kbcore.extract.sources.source import Items, texts
from kbcore.text import conflict_markers
from kbcore.text.tree import TextTree, mapping

_HEADER: Final = re.compile(r":?([A-Za-z][\w .-]{0,60}?):(?:[ \t]+(.*)|[ \t]*)$")
_RST_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*$")
_ADOC_HEADING: Final = re.compile(r"(={1,6})[ \t]+(\S.*)$")
_DIRECTIVE: Final = re.compile(r"([ \t]*)\.\.[ \t]+(\w[\w.-]*)::[ \t]*(.*)$")
_OPTION: Final = re.compile(r"[ \t]+:([\w-]+):[ \t]*(.*)$")
_MAX_TEXT_CHARS: Final = 2000
_MAX_HEADER_LINES: Final = 200
_BOXES: Final = {" ": "unchecked", "x": "checked", "X": "checked"}


class _Line(msgspec.Struct, frozen=True):
    """A line of a document: ``level`` is that of a heading, 0 for any other line."""

    text: str
    number: int
    level: int = 0


def entries(text: str, format_: str, items: Items | None) -> FileEntries:
    """Return the entries of a document: itself, or its items, in which case ``whole`` is the document."""
    plain, torn = conflict_markers.without_conflicts(text)
    whole, problems, lines = _document(plain, format_)
    whole.is_whole = whole.is_whole and not torn
    result = FileEntries([whole], [*torn, *problems], is_complete=whole.is_whole)
    if items is not None:
        result.whole = whole
        result.entries = list(items_of(lines, items, format_))
    return result


def _document(text: str, format_: str) -> tuple[Entry, list[Any], list[_Line]]:
    """Return a document as one entry, its problems and its lines."""
    document = frontmatter.split(text)
    front, body, first = document.front, document.body, document.body_line
    problems = list(document.problems)
    tree = frontmatter.read_front(front) if front is not None else mapping({}, {})
    problems += tree.problems
    lines = list(_lines(body, first, format_))
    heading = next((one for one in lines if one.level == 1), next((one for one in lines if one.level), None))
    header, rest = _header(lines, heading)
    if front is None:
        _add_header(tree, header)
    entry = Entry(tree.root, tree, 1, body=body, body_line=first)
    entry.heading = ProseLine(heading.text, heading.number) if heading else None
    entry.text = _paragraph(rest)
    entry.section = _sections(lines)
    entry.is_whole = document.is_whole and tree.is_complete
    return entry, problems, lines


def _add_header(tree: TextTree, header: Mapping[str, ProseLine]) -> None:
    values = {key: line.text for key, line in header.items() if line.text}
    tree.root = values
    tree.places[id(values)] = {key: header[key].number for key in values}


def _header(lines: Sequence[_Line], heading: _Line | None) -> tuple[dict[str, ProseLine], Sequence[_Line]]:
    """Return the ``Key: value`` lines at the beginning, or right under this first heading, and the lines after them."""
    found: dict[str, ProseLine] = {}
    last, end = "", 0
    for at, line in enumerate(lines[:_MAX_HEADER_LINES]):
        if line.level:
            if line is not heading or found:
                break
            end = at + 1
            continue
        if not line.text.strip():
            if found:
                last = ""
            continue
        shown = prose.without_marker(line.text)
        named = _HEADER.match(_plain_key(shown))
        if named and not shown.startswith("http"):
            last, end = named[1].strip(), at + 1
            found.setdefault(last, ProseLine((named[2] or "").strip(), line.number))
        elif last and line.text[:1] in " \t":
            before, end = found[last], at + 1
            found[last] = ProseLine(f"{before.text} {line.text.strip()}".strip(), before.number)
        else:
            break
    return found, lines[end:]


def _lines(body: str, first_line: int, format_: str) -> Iterator[_Line]:
    if format_ == "markdown":
        for level, text, number in prose.blocks(body, first_line):
            yield _Line(text, number, level)
        return
    rows = body.split("\n")
    if format_ == "asciidoc":
        for number, row in enumerate(rows, first_line):
            found = _ADOC_HEADING.match(row)
            yield _Line(found[2].strip(), number, len(found[1])) if found else _Line(row, number)
        return
    levels: list[str] = []
    skipped = -1
    for at, row in enumerate(rows):
        if at == skipped:
            continue
        under = rows[at + 1] if at + 1 < len(rows) else ""
        has_line_over = at + 2 < len(rows) and bool(_RST_UNDERLINE.match(row)) and rows[at + 2].rstrip() == row.rstrip()
        if has_line_over and under.strip():
            continue  # the line over a title; the one under it says the same
        mark = _RST_UNDERLINE.match(under)
        if mark and row.strip() and not _RST_UNDERLINE.match(row) and len(under.rstrip()) >= len(row.strip()):
            if mark[1] not in levels:
                levels.append(mark[1])
            yield _Line(row.strip(), first_line + at, levels.index(mark[1]) + 1)
            skipped = at + 1
        else:
            yield _Line(row, first_line + at)


def _paragraph(lines: Sequence[_Line]) -> ProseLine | None:
    """Return the first paragraph as one line."""
    kept: list[_Line] = []
    for line in lines:
        if line.level or (kept and not line.text.strip()):
            break
        if line.text.strip():
            kept.append(line)
    if not kept:
        return None
    return ProseLine(" ".join(one.text.strip() for one in kept)[:_MAX_TEXT_CHARS], kept[0].number)


def _sections(lines: Sequence[_Line]) -> Callable[[str], list[ProseLine]]:
    def section(name: str) -> list[ProseLine]:
        wanted = name.strip().lower()
        at = next((n for n, one in enumerate(lines) if one.level and one.text.strip().lower() == wanted), len(lines))
        below = itertools.takewhile(lambda one: not one.level, lines[at + 1 :])
        return [ProseLine(one.text, one.number) for one in below]

    return section


def items_of(lines: Sequence[_Line], items: Items, format_: str) -> Iterator[Entry]:
    """Yield the entries that headings, lines or directives of a document begin."""
    headings, starts, directives = texts(items.heading), texts(items.line), texts(items.directive)
    under = texts(items.under)
    shown = _shown(lines, format_) if directives else frozenset[int]()
    above: list[tuple[int, dict[str, str] | None]] = []
    heading: _Line | None = None
    for at, line in enumerate(lines):
        if line.level:
            heading = line
            parts = _enclosing(above, line.level, under)
            found = patterns.match(headings, line.text) if headings else None
            if found is not None and parts is not None:
                yield _of_heading(lines, at, {**parts, **found}, format_)
            above = [(level, one) for level, one in above if level < line.level]
            above.append((line.level, patterns.match(under, line.text) if under else None))
        elif starts and line.text.strip():
            found = _started(line, starts, items)
            parts = _enclosing(above, 99, under) if found is not None else None
            if found is not None and parts is not None:
                entry = _of_line(lines, at, {**parts, **_of_marker(line.text), **found}, items)
                entry.heading = ProseLine(heading.text, heading.number) if heading else None
                yield entry
        elif line.number in shown and (begun := _DIRECTIVE.match(line.text)) and begun[2] in directives:
            yield _of_directive(lines, at, begun)


def _shown(lines: Sequence[_Line], format_: str) -> frozenset[int]:
    """Return the numbers of the lines with directives that count: in reStructuredText none of code or of a comment."""
    if format_ != "rst":
        return frozenset(one.number for one in lines)
    return frozenset(number for number, _, _ in rst_links.lines_of_text((one.number, one.text) for one in lines))


def _enclosing(
    above: Sequence[tuple[int, dict[str, str] | None]], level: int, under: Sequence[str]
) -> dict[str, str] | None:
    """Return what the nearest heading above names, nothing where none is asked for; None where none fits."""
    if not under:
        return {}
    return next((parts for depth, parts in reversed(above) if depth < level and parts is not None), None)


def _of_heading(lines: Sequence[_Line], at: int, parts: dict[str, str], format_: str) -> Entry:
    heading = lines[at]
    end = next((n for n in range(at + 1, len(lines)) if 0 < lines[n].level <= heading.level), len(lines))
    inner = lines[at + 1 : end]
    before_next = inner[: next((n for n, one in enumerate(inner) if one.level), len(inner))]
    header, rest = _header(before_next, None)
    entry = of_lines(header, heading.number, parts)
    entry.heading = ProseLine(heading.text, heading.number)
    entry.text = _paragraph(rest)
    entry.section = _sections(inner)
    entry.body, entry.body_line = "\n".join(_as_written(one, format_) for one in inner), heading.number + 1
    return entry


def _as_written(line: _Line, format_: str) -> str:
    return f"{'#' * line.level} {line.text}" if line.level and format_ == "markdown" else line.text


def _started(line: _Line, starts: Sequence[str], items: Items) -> dict[str, str] | None:
    """Return the parts of a line that begins an item, None of any other; one of a section has no sign of a list."""
    if line.level or (items.extent == "section" and prose.MARKER.match(line.text)):
        return None
    return patterns.match(starts, prose.without_marker(line.text))


def _of_marker(text: str) -> dict[str, str]:
    """Return what the sign in front of a line says: ``ordinal``, a number, and ``checkbox``."""
    found = prose.MARKER.match(text)
    said = {"ordinal": found[1], "checkbox": _BOXES.get(found[2])} if found else {}
    return {name: value for name, value in said.items() if value}


def _of_line(lines: Sequence[_Line], at: int, parts: dict[str, str], items: Items) -> Entry:
    """Return an entry of one line, with the lines ``Key: value`` of what belongs to it."""
    first = lines[at]
    starts, is_section = texts(items.line), items.extent == "section"
    inner: list[_Line] = []
    for number in range(at + 1, len(lines)):
        line = lines[number]
        is_indented = not line.level and line.text.strip() and _depth(line.text) > _depth(first.text)
        is_outside = line.level > 0 if is_section else not is_indented
        if is_outside or _started(line, starts, items) is not None:
            break
        inner.append(line)
    entry, rest = _of_block(inner, first.number)
    entry.parts = parts
    shown = ProseLine(prose.without_marker(first.text)[:_MAX_TEXT_CHARS], first.number)
    entry.text = _paragraph(rest) if is_section else shown
    entry.body, entry.body_line = "\n".join(one.text for one in (first, *inner)), first.number
    return entry


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip())


def _of_block(lines: Sequence[_Line], first_line: int) -> tuple[Entry, list[_Line]]:
    """Return an entry of the lines ``Key: value`` of a block, and the other lines.

    The items of a list below a key without a value are its values.
    """
    values: dict[str, Any] = {}
    places: dict[str, int] = {}
    tree = mapping(values, places)
    rest: list[_Line] = []
    open_key = ""
    for line in lines:
        shown = prose.without_marker(line.text)
        named = None if line.level or shown.startswith("http") else _HEADER.match(_plain_key(shown))
        if named:
            key, value = named[1].strip(), (named[2] or "").strip()
            open_key = "" if value else key
            if value and key not in values:
                values[key], places[key] = value, line.number
        elif open_key and prose.MARKER.match(line.text):
            listed = values.setdefault(open_key, [])
            places.setdefault(open_key, line.number)
            if isinstance(listed, list):
                listed.append(shown.strip("`"))
                tree.places.setdefault(id(listed), []).append(line.number)
        else:
            open_key = open_key if not line.text.strip() else ""
            rest.append(line)
    return Entry(values, tree, first_line), rest


def _plain_key(text: str) -> str:
    """Return a line ``**Key**: value`` or ``_Key: value_`` without the signs of emphasis."""
    if len(text) > 2 and text[0] in "_*" and text[-1] == text[0] and text[1] not in "_*":  # noqa: PLR2004 - two signs
        text = text[1:-1]
    return re.sub(r"^\*\*(.+?):?\*\*:?", r"\1:", text)


def _of_directive(lines: Sequence[_Line], at: int, begun: re.Match[str]) -> Entry:
    """Return an entry of a directive of reStructuredText: its options, its argument as heading, and its first text."""
    indent = len(begun[1])
    options: dict[str, ProseLine] = {}
    inner: list[_Line] = []
    for number in range(at + 1, len(lines)):
        line = lines[number]
        depth = _depth(line.text)
        if line.text.strip() and (depth <= indent or line.level):
            break
        option = _OPTION.match(line.text) if not inner else None
        if option:
            options.setdefault(option[1], ProseLine(option[2].strip(), line.number))
        elif line.text.strip() or inner:
            inner.append(line)
    entry = of_lines(options, lines[at].number, {"directive": begun[2]})
    entry.heading = ProseLine(begun[3].strip(), lines[at].number) if begun[3].strip() else None
    entry.text = _paragraph(inner)
    entry.body, entry.body_line = "\n".join(one.text for one in inner), lines[at].number + 1
    return entry
