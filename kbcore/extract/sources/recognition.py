"""Recognition of files that have the signs of a profile. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from functools import cache, cached_property
from typing import Final

from kbcore.extract.facts import SourceFile
from kbcore.extract.sources import patterns, profiles
from kbcore.extract.sources.document import entries_of
from kbcore.extract.sources.entry import Entry, FileEntries
from kbcore.extract.sources.profiles import Signs
from kbcore.extract.sources.source import ENDINGS, Items, Source, source_of, texts
from kbcore.text import globs

SIGNS_BYTES: Final = 64 * 1024
"""The beginning of a text that is looked at."""
_ENTRIES: Final = 10
_LINES: Final = 1000
_MARKER: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_PLAIN: Final = Source()


class LookedAtFile:
    """A file whose content is looked at: its path and its bytes, of a long text the beginning."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.ending = posixpath.splitext(path)[1].lower()
        self._read: dict[str, FileEntries] = {}

    @cached_property
    def text(self) -> str:
        """The beginning of the content, whatever its bytes are."""
        return self.data[:SIGNS_BYTES].decode("utf-8", "replace")

    def entries(self, profile: str = "") -> list[Entry]:
        """Return the entries as a profile reads them; without one those of the format that the ending says."""
        found = self._read.get(profile)
        if found is None:
            rules = source_of(profiles.read(profile)["source"]) if profile else _PLAIN
            found = self._read[profile] = entries_of(SourceFile(self.path, self.data), rules)
        return found.entries

    @cached_property
    def document(self) -> Entry | None:
        """The whole text as one entry; None for what is no text."""
        return next(iter(self.entries()), None) if ENDINGS.get(self.ending) in {"markdown", "rst", "asciidoc"} else None

    def has_heading(self, pattern: str) -> bool:
        """Return whether a heading of the text fits a pattern."""
        rules = Source(format=ENDINGS.get(self.ending, "markdown"), items=Items(heading=pattern))
        return bool(entries_of(SourceFile(self.path, self.data), rules).entries)


def fits_path(signs: Signs, path: str, beside: Collection[str]) -> bool:
    """Return whether a path has what signs say of it; ``beside`` are the names of the files of its folder."""
    name = posixpath.basename(path)
    return (
        (not signs.names or globs.matches(name, texts(signs.names)))
        and (not signs.paths or globs.matches(path, texts(signs.paths)))
        and (not signs.endings or name.lower().endswith(texts(signs.endings)))
        and (not signs.beside or any(globs.matches(one, texts(signs.beside)) for one in beside))
    )


def fits_content(signs: Signs, file: LookedAtFile, profile: str) -> bool:
    """Return whether the content of a file has what signs say of it."""
    if not all(one in file.text for one in texts(signs.contains)):
        return False
    if signs.keys and not any(_has_all(one, texts(signs.keys)) for one in file.entries(profile)[:_ENTRIES]):
        return False
    if signs.heading and not _has_title(file, texts(signs.heading)):
        return False
    if not all(file.has_heading(one) for one in texts(signs.sections)):
        return False
    lines = (_MARKER.sub("", line.strip(), count=1) for line in file.text.split("\n", _LINES)[:_LINES])
    return not signs.lines or any(patterns.match(texts(signs.lines), line) is not None for line in lines)


def _has_all(entry: Entry, keys: Collection[str]) -> bool:
    return all(entry.find(key)[0] is not None for key in keys)


def _has_title(file: LookedAtFile, wanted: tuple[str, ...]) -> bool:
    entry = file.document
    said = [entry.text_of(key) for key in ("heading", "title")] if entry else []
    return any(patterns.match(wanted, one) is not None for one in said if one)


@cache
def signs_of_ending(ending: str) -> tuple[tuple[int, Signs], ...]:
    """Return the signs that files with an ending may have, each with the number of its profile."""
    listed = [(number, one) for number, name in enumerate(profiles.NAMES) for one in profiles.signs(name)]
    return tuple((number, one) for number, one in listed if ending in (endings_of(one) or {ending}))


def endings_of(signs: Signs) -> frozenset[str]:
    """Return the endings that signs allow; none where they allow any."""
    globs = (*texts(signs.names), *texts(signs.paths), *texts(signs.endings))
    found = [posixpath.splitext(f"x{one}" if one.startswith(".") else one)[1].lower() for one in globs]
    return frozenset(found) if all(one[1:].isalnum() for one in found) else frozenset()
