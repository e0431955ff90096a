"""Entries of StrictDoc: one for the document, one for each element that is no text or section without a UID. Pure.

``RELATIONS`` and ``REFS`` are lists of objects. ``element`` is the tag of an element, and ``parent`` the UID of the
composite element that encloses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kbcore.extract.sources.entry import Entry, FileEntries
from kbcore.text import conflict_markers
from kbcore.text.problems import FileProblem
from kbcore.text.tree import mapping

_ELEMENT: Final = re.compile(r"(\[{1,2})(/?)([A-Z][A-Z0-9_-]*)\]{1,2}[ \t]*$")
_FIELD: Final = re.compile(r"([A-Z][A-Z0-9_-]*):(?:[ \t]+(.*))?$")
_ITEM: Final = re.compile(r"(- |  )([A-Z][A-Z0-9_-]*):[ \t]+(.*)$")
_NOT_STATED: Final = frozenset({"GRAMMAR", "DOCUMENT_FROM_FILE"})
"""Elements that define others, or name other files."""
_TEXTS: Final = frozenset({"TEXT", "SECTION", "FREETEXT"})
_BEGIN, _END = ">>>", "<<<"
_INVALID: Final = "invalid_strictdoc"


def entries(text: str) -> FileEntries:
    """Return the elements of a document."""
    plain, torn = conflict_markers.without_conflicts(text)
    result = FileEntries([], [*torn], is_complete=not torn)
    lines = plain.split("\n")
    enclosing: list[tuple[str, str]] = []
    """The tags of the elements around a line, each with the UID of the innermost composite element up to it."""
    at = 0
    while at < len(lines):
        begun = _ELEMENT.match(lines[at])
        if begun is None:
            if lines[at].strip():
                hint = "Put it into a field of an element."
                result.problems.append(
                    FileProblem(at + 1, _INVALID, "this line belongs to no element", hint, "warning")
                )
            at += 1
            continue
        bracket, slash, tag = begun.groups()
        if slash:
            while enclosing and enclosing.pop()[0] != tag:
                continue
            at += 1
            continue
        end = next((n for n in range(at + 1, len(lines)) if _ELEMENT.match(lines[n])), len(lines))
        if tag in _NOT_STATED:
            at = end
            continue
        entry, at = _element(lines, at, tag, result)
        uid = entry.values.get("UID", "")
        above = enclosing[-1][1] if enclosing else ""
        if above:
            entry.values["parent"] = above
            entry.tree.places[id(entry.values)]["parent"] = entry.line
        if bracket == "[[" or tag == "SECTION":
            enclosing.append((tag, uid if uid and tag not in _TEXTS else above))
        if uid or tag not in _TEXTS:
            result.entries.append(entry)
    return result


def _element(lines: Sequence[str], at: int, tag: str, result: FileEntries) -> tuple[Entry, int]:
    """Return the element that begins on a line, and the number of the first line after it."""
    places = {"element": at + 1}
    values: dict[str, Any] = {"element": tag}
    entry = Entry(values, mapping(values, places), at + 1, {"document": "doc"} if tag == "DOCUMENT" else {})
    at += 1
    while at < len(lines) and not _ELEMENT.match(lines[at]):
        line, number = lines[at], at + 1
        at += 1
        field = _FIELD.match(line)
        if field is None:
            if line.strip():
                hint = "Write `FIELD: value`."
                result.problems.append(FileProblem(number, _INVALID, "this line is no field", hint, "warning"))
            continue
        name, value = field[1], (field[2] or "").strip()
        found: Any = value
        if value == _BEGIN:
            end = next((n for n in range(at, len(lines)) if lines[n].strip() == _END), len(lines))
            if end == len(lines):
                message, hint = f"the text of {name} has no end", f"Add a line `{_END}`."
                result.problems.append(FileProblem(number, _INVALID, message, hint))
                result.is_complete = entry.is_whole = False
            found, at = "\n".join(lines[at:end]).strip("\n"), end + 1
        elif not value:
            found, at = _items(lines, at, entry)
        if found:
            values.setdefault(name, found)
            places.setdefault(name, number)
    return entry, at


def _items(lines: Sequence[str], at: int, entry: Entry) -> tuple[list[dict[str, str]], int]:
    """Return the objects of a list, and the number of the first line after it."""
    found: list[dict[str, str]] = []
    numbers: list[int] = []
    while at < len(lines) and (item := _ITEM.match(lines[at])):
        if item[1] == "- " or not found:
            found.append({})
            numbers.append(at + 1)
        found[-1][item[2]] = item[3].strip()
        at += 1
    entry.tree.places[id(found)] = numbers
    return found, at
