"""Text with structure, read: plain values, and the line of every member. The same for YAML and for JSON.

A value is None (nothing is there), text as typed, a list or a dict with text keys.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.text.problems import FileProblem
from kbcore.text.wording import in_lines

SMALL_CHARS: Final = limits.MAX_TEXT_BYTES // 8
"""A text of fewer characters than this holds no text, list of texts or JSON that is too large to keep."""


COMMENT_LIKE_TEXT: Final = re.compile(r"[ \t]#[^\s#]")
"""The beginning of a comment in YAML that an author may mean as text: no space follows the sign."""
DUPLICATE_KEY: Final = "duplicate_key"


class TextTree(msgspec.Struct):
    """The tree of a text. ``root`` is None when the text is empty.

    ``places`` maps the identity of each list and dict in the tree to the lines of its members; ask ``line``.
    ``is_complete`` is False when a part of the text could not be read, and ``lossy`` holds the identity of
    each list and dict that lacks a member for this reason. ``is_small`` says that no text of the tree and no
    list of texts can be beyond a limit, so that it need not be measured.
    """

    root: Any
    places: dict[int, Any]
    problems: list[FileProblem]
    is_complete: bool = True
    lossy: set[int] = msgspec.field(default_factory=set)
    is_small: bool = False

    def line(self, container: Any, member: Any) -> int:
        """Return the line, from 1, of a member of a list (by index) or dict (by key) of this tree."""
        lines = self.places.get(id(container))
        line: int = lines[member] if lines else 0
        return line


def is_small(text: str) -> bool:
    """Tell whether nothing in a text can be beyond a limit, however it is escaped or repeated."""
    return len(text) < SMALL_CHARS and "\\" not in text and not ("*" in text and "&" in text)


def mapping(values: dict[str, Any], lines: dict[str, int]) -> TextTree:
    """Return a tree of one level out of keys, their values and their lines."""
    return TextTree(values, {id(values): lines}, [])


def duplicate_key(key: str, first_line: int, line: int) -> FileProblem:
    """Return the problem of a repeated key of one mapping; the first one counts."""
    message = f"`{key}` is there twice: {in_lines(first_line, line)}"
    keep = "Keep one of the two" if first_line == line else "Keep one of the two lines"
    return FileProblem(line, DUPLICATE_KEY, message, f"{keep}; until then the first one counts.")
