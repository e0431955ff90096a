"""The beginning and end of the front matter of a Markdown document. Its content is read elsewhere.

Front matter is the text between a first line ``---`` and the next line ``---`` or ``...``; both may end in
spaces. Nothing else is front matter, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from kbcore import limits
from kbcore.text import plain_yaml
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree

FIRST_LINE: Final = 2
"""The line of a document on which the text of its front matter begins."""

_OPENING: Final = re.compile(r"---[ \t]*(?:\n|\Z)")
_CLOSING: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_END_UNCLOSED: Final = re.compile(r"^(?:[ \t]*$|#{1,6}[ \t])", re.MULTILINE)
_MAPPING_LINE: Final = re.compile(r"[A-Za-z_][\w .-]*:(?:[ \t]|$)|[ \t]+\S|-[ \t]|#")
_FIELD_LINE: Final = re.compile(
    r"(?:id|title|type|status|owner|priority|severity|tags|links|attributes)[ \t]*:(?:[ \t]|$)", re.IGNORECASE
)
_SECOND: Final = re.compile(r"^---[ \t]*\n[A-Za-z_#]", re.MULTILINE)

_KEY_LINE: Final = re.compile(r"[A-Za-z_][\w .-]*:(?:[ \t]|$)", re.MULTILINE)


class Document(msgspec.Struct, frozen=True):
    """A document in two parts. ``front`` is None without front matter; ``body_line`` is the body's own first.

    ``is_whole`` is False when the front matter has no end or is too large: then ``front`` is what can be determined
    to belong to it.
    """

    front: str | None
    body: str
    body_line: int
    problems: tuple[FileProblem, ...] = ()
    is_whole: bool = True


def split(text: str) -> Document:
    """Part the text of a document, as ``decode`` gives it, into its front matter and its body."""
    opening = _OPENING.match(text)
    if opening is None:
        return Document(None, text, 1, _misplaced(text))
    start = opening.end()
    closing = _CLOSING.search(text, start)
    if closing is None:
        return _unclosed(text, start)
    front = text[start : closing.start()]
    body_line = FIRST_LINE + front.count("\n") + 1
    body = text[closing.end() + 1 :]
    too_large = _too_large(front)
    if too_large:
        return Document(None, body, body_line, (too_large,), is_whole=False)
    return Document(front, body, body_line)


def read_front(front: str) -> TextTree:
    """Return the content of front matter. Only what is not plain needs the library for YAML."""
    tree = plain_yaml.read(front, FIRST_LINE)
    if tree is None:
        from kbcore.text import yaml_salvage  # noqa: PLC0415 - it imports yaml

        tree = yaml_salvage.read_mapping(front, FIRST_LINE)
    return tree


def _too_large(front: str) -> FileProblem | None:
    if len(front) * 4 <= limits.MAX_FRONT_MATTER_BYTES:
        return None
    length_bytes = len(front.encode())
    if length_bytes <= limits.MAX_FRONT_MATTER_BYTES:
        return None
    message = f"the front matter has {length_bytes} bytes; the limit is {limits.MAX_FRONT_MATTER_BYTES}"
    return FileProblem(1, "too_long", message, "Move long text below the closing `---` line.")


def _unclosed(text: str, start: int) -> Document:
    """Take the lines up to the first blank one or the first heading for the front matter."""
    found = _END_UNCLOSED.search(text, start)
    end = found.start() if found else len(text)
    front = text[start:end]
    last_line = FIRST_LINE + front.rstrip("\n").count("\n")
    message = "the front matter that begins in line 1 has no closing line"
    hint = f"Put a line `---` below its last key (line {last_line}, it seems)."
    problem = FileProblem(1, "unclosed_front_matter", message, hint)
    body_line = FIRST_LINE + front.count("\n")
    too_large = _too_large(front)
    if too_large:
        return Document(None, text[end:], body_line, (problem, too_large), is_whole=False)
    return Document(front, text[end:], body_line, (problem,), is_whole=False)


def _misplaced(text: str) -> tuple[FileProblem, ...]:
    """Warn about what looks like front matter but does not count as such."""
    if text.startswith("+++\n"):
        message = "front matter between `+++` lines (TOML) is not read"
        hint = "Write it as YAML between `---` lines."
        return (FileProblem(1, "misplaced_front_matter", message, hint, "warning"),)
    start = _after_comments(text)
    opening = _OPENING.match(text, start) if start else None
    if not opening or not _KEY_LINE.match(text, opening.end()) or not _CLOSING.search(text, opening.end()):
        return ()
    line = text.count("\n", 0, start) + 1
    message = f"the `---` in line {line} does not begin front matter: it is not the first line of the file"
    hint = "Move comments and blank lines below the closing `---` line."
    return (FileProblem(line, "misplaced_front_matter", message, hint, "warning"),)


def may_have_second(body: str) -> bool:
    """Tell whether a body has the signs of a second block."""
    # Few bodies have such a line, and a plain search finds none in a tenth of the time.
    return "---" in body and _SECOND.search(body) is not None


def second_block(lines: Iterable[tuple[int, str]]) -> FileProblem | None:
    """Return the problem of a block further down that looks like front matter, None without one.

    ``lines`` are those of the body that are no code, each with its number. A block follows a blank line, or begins the
    body; all of its lines are those of a mapping, and one states what an entity has.
    """
    begins, has_field, is_after_blank = 0, False, True
    for number, line in lines:
        if _CLOSING.fullmatch(line):
            if begins and has_field:
                message = f"a second block of front matter, in lines {begins} to {number}, is not read"
                hint = "Write each entity in a document of its own, or join the keys with those of the first block."
                return FileProblem(begins, "second_front_matter", message, hint, "warning")
            begins, has_field = (number if is_after_blank and line.startswith("-") else 0), False
        elif begins and not _MAPPING_LINE.match(line):
            begins = 0
        elif _FIELD_LINE.match(line):
            has_field = True
        is_after_blank = not line.strip()
    return None


def _after_comments(text: str) -> int:
    """Return where the text begins after blank lines and HTML comments."""
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if not text.startswith("<!--", at):
            return at
        end = text.find("-->", at)
        if end < 0:
            return at
        at = end + 3
