"""Conflicts that a git merge left in a text: both sides, between lines of seven signs, or of more where git says so.

git writes eight where both sides renamed the file, and two more for each merge that it made to find a base.
Neither side counts as what the author means: the lines of a conflict become empty, so that the lines around them
keep their numbers and can be read.
"""

from __future__ import annotations

import re
from typing import Final

from kbcore.text.problems import FileProblem

CODE: Final = "merge_conflict"
REMEDY: Final = "Keep what you want of the two sides, remove the lines <<<<<<<, ======= and >>>>>>>, and save it."

_START: Final = re.compile(r"(<{7,})(?: .*)?")
_MIDDLE: Final = re.compile(r"={7,}")
_END: Final = re.compile(r"(>{7,})(?: .*)?")
_SIGNS: Final = frozenset(sign * 7 for sign in "<=>")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")


def without_conflicts(text: str) -> tuple[str, tuple[FileProblem, ...]]:
    """Return a text with the lines of every conflict left empty, and a problem for each conflict.

    Code fences of Markdown may show a conflict; that is no conflict of the file itself.
    """
    if "<<<<<<<" not in text or ">>>>>>>" not in text:
        return text, ()
    lines = text.split("\n")
    problems = []
    fence, start, size, has_middle = "", -1, 0, False
    for at, line in enumerate(lines):
        opening = _FENCE.match(line)
        if start < 0 and opening and fence in {"", opening[1]}:
            fence = "" if fence else opening[1]
        elif start < 0 and not fence and (begin := _START.fullmatch(line)):
            start, size = at, len(begin[1])
        elif start >= 0 and line == "=" * size:
            has_middle = True
        elif has_middle and (end := _END.fullmatch(line)) and len(end[1]) == size:
            problems.append(_problem(start, at))
            lines[start : at + 1] = [""] * (at + 1 - start)
            start, has_middle = -1, False
    return ("\n".join(lines), tuple(problems)) if problems else (text, ())


def is_left_over(line: str) -> bool:
    """Tell whether a line is a sign that a conflict left, alone."""
    return line[:7] in _SIGNS and any(sign.fullmatch(line) for sign in (_START, _MIDDLE, _END))


def _problem(start: int, end: int) -> FileProblem:
    message = f"a git merge stopped here: lines {start + 1} to {end + 1} hold both sides of a conflict"
    return FileProblem(start + 1, CODE, message, REMEDY)
