r"""The owners of files, as a file ``CODEOWNERS`` gives them. Pure.

A line is a pattern and its owners. The last line whose pattern means a file decides, also one without owners: then
nobody owns the file. In a file with sections, ``[NAME]`` or ``^[NAME]``, the last line of each section counts, and a
line without owners has those of the heading of its section. Comments begin with ``#`` at the beginning of a word; a
space within a pattern is written ``\ ``.

Patterns are those of ``.gitignore``, with three exceptions that the format has: ``!`` and ``[…]`` mean nothing, and
``folder/*`` means the files in the folder, not those in folders below. Letters match exactly.

Source: the documentation of code owners of GitHub, and that of GitLab for sections.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kbcore.text.escaping import in_quotes
from kbcore.text.globs import GlobSet
from kbcore.text.problems import FileProblem, at_most

_WORD: Final = re.compile(r"(?:\\.|[^\s\\]|\\$)+")
_SECTION: Final = re.compile(r"\^?\[(?P<name>[^\]]+)\](?:\[\d+\])?(?=\s|$)")
_ESCAPED: Final = re.compile(r"\\?.", re.DOTALL)
_SIGNS: Final = frozenset("*?")
_MAX_SHOWN_CHARS: Final = 60
_MARK_HEX: Final = 16
_OWNER_HINT: Final = "Owners are written `@name`, `@organization/team` or as an address of mail."
_PATTERN_HINT: Final = "Write a path, with `*`, `?` or `**`."
FAULT: Final = "bad_owners_line"
"""The code of the problem that a line gives no owner."""


class OwnersLine(msgspec.Struct, frozen=True):
    """A line: its number from 1, its pattern as it is written, and the owners that it gives, in their order."""

    line: int
    pattern: str
    owners: tuple[str, ...]


class Ownership(msgspec.Struct, frozen=True):
    """The owners of a file, none where a line says so, and the numbers of the lines that give them."""

    owners: tuple[str, ...]
    lines: tuple[int, ...]


class CodeOwners:
    """The owners of files by path; ``file`` is where they are from, "" without such a file.

    ``problems`` are the lines that give nothing, and why. ``mark`` is the same for equal files alone, "" without one.
    """

    def __init__(
        self,
        file: str,
        sections: Sequence[Sequence[OwnersLine]] = (),
        problems: Sequence[FileProblem] = (),
        mark: str = "",
    ) -> None:
        self.file = file
        self.mark = mark
        self.problems = tuple(problems)
        self._sections = [_Section(lines) for lines in sections]

    def of(self, path: str) -> Ownership | None:
        """Return the owners of the file at a path from the root; None where no line means it."""
        found = [last for section in self._sections if (last := section.last(path))]
        if not found:
            return None
        owners = dict.fromkeys(owner for line in found for owner in line.owners)
        return Ownership(tuple(owners), tuple(line.line for line in found))


NONE: Final = CodeOwners("")
"""The owners where no file gives any."""


class _Section:
    """The lines of one section, with what their patterns mean."""

    def __init__(self, lines: Sequence[OwnersLine]) -> None:
        meant = [(glob, line) for line in lines for glob in globs_of(line.pattern)]
        self._lines = [line for _, line in meant]
        self._globs = GlobSet([glob for glob, _ in meant])

    def last(self, path: str) -> OwnersLine | None:
        """Return the last line that means a path."""
        number = max(self._globs.all(path), default=None)
        return None if number is None else self._lines[number]


def read(text: str, file: str) -> CodeOwners:
    """Return what a text gives that was read from ``file``. A line that cannot be used gives nothing, and is named."""
    sections: dict[str, list[OwnersLine]] = {"": []}
    problems: list[FileProblem] = []
    name, usual = "", tuple[str, ...]()
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        heading = _SECTION.match(line.strip())
        words = [*_words(line.strip()[heading.end() :] if heading else line)]
        pattern, owners = ("", words) if heading else ("".join(words[:1]), words[1:])
        fault, hint = _fault(pattern), _PATTERN_HINT
        if not fault and (wrong := next((one for one in owners if "@" not in one), "")):
            fault, hint = f"{in_quotes(wrong[:_MAX_SHOWN_CHARS])} is no owner", _OWNER_HINT
        if fault:
            problems.append(FileProblem(number, FAULT, f"the line gives no owner: {fault}", hint, "warning"))
        elif heading:
            name, usual = heading["name"].strip().casefold(), tuple(owners)
            sections.setdefault(name, [])
        elif pattern:
            sections[name].append(OwnersLine(number, pattern, tuple(owners) or usual))
    mark = hashlib.sha256(f"{file}\n{text}".encode()).hexdigest()[:_MARK_HEX]
    return CodeOwners(file, [lines for lines in sections.values() if lines], at_most(problems), mark)


def _words(line: str) -> Iterator[str]:
    """Yield the words of a line up to its comment."""
    for found in _WORD.finditer(line):
        if found[0].startswith("#"):
            return
        yield found[0]


def _fault(pattern: str) -> str:
    """Return why a pattern means nothing, "" where it means something."""
    if pattern.startswith("!"):
        return "a pattern cannot begin with `!`"
    if re.search(r"(?<!\\)\[", pattern):
        return "a pattern has no sets in `[ ]`"
    return "the pattern names no file" if pattern and not pattern.strip("/") else ""


def globs_of(pattern: str) -> list[str]:
    """Return the globs of ``kbcore.text.globs`` that mean the same files as a pattern."""
    body = pattern.strip("/")
    is_anchored = "/" in pattern.rstrip("/")
    parts = [_glob_part(part) for part in body.split("/") if part]
    glob = "/".join(parts if is_anchored else ["**", *parts])
    if pattern.endswith("/"):
        return [f"{glob}/*/**" if parts[-1] == "**" else f"{glob}/**"]
    if parts[-1] == "**" or (parts[-1] == "*" and is_anchored):
        return [glob]
    return [glob, f"{glob}/**"]


def _glob_part(part: str) -> str:
    """Return one part of a glob: characters that are escaped, or mean something only there, are sets of one."""
    pieces = [
        one if one in _SIGNS else f"[{one[-1]}]" if one[-1] in "*?[" else one[-1] for one in _ESCAPED.findall(part)
    ]
    found = "".join(pieces)
    # In a glob `*.md` means `.markdown` too.
    return f"{found[:-1]}[d]" if found.endswith(".md") and not _SIGNS.isdisjoint(found) else found
