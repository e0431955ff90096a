"""Conflicts that a git merge left in a text: both sides, between lines of seven signs.

Neither side counts as what the author means: the lines of a conflict become empty, so that the lines around them
keep their numbers and can be read.
"""

from __future__ import annotations

import re
from typing import Final

from kbcore.text.problems import FileProblem

CODE: Final = "merge_conflict"
REMEDY: Final = "Keep what you want of the two sides, remove the lines <<<<<<<, ======= and >>>>>>>, and save it."

_START: Final = re.compile(r"<{7}(?: .*)?")
_MIDDLE: Final = "======="
_END: Final = re.compile(r">{7}(?: .*)?")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")


def without_conflicts(text: str) -> tuple[str, tuple[FileProblem, ...]]:
    """Return a text with the lines of every conflict left empty, and a problem for each conflict.

    Code fences of Markdown may show a conflict; that is no conflict of the file itself.
    """
    if "<<<<<<<" not in text or ">>>>>>>" not in text:
        return text, ()
    lines = text.split("\n")
    problems = []
    fence, start, has_middle = "", -1, False
    for at, line in enumerate(lines):
        opening = _FENCE.match(line)
        if start < 0 and opening and fence in {"", opening[1]}:
            fence = "" if fence else opening[1]
        elif start < 0 and not fence and _START.fullmatch(line):
            start = at
        elif start >= 0 and line == _MIDDLE:
            has_middle = True
        elif has_middle and _END.fullmatch(line):
            problems.append(_problem(start, at))
            lines[start : at + 1] = [""] * (at + 1 - start)
            start, has_middle = -1, False
    return ("\n".join(lines), tuple(problems)) if problems else (text, ())


def is_left_over(line: str) -> bool:
    """Tell whether a line is a sign that a conflict left, alone."""
    return bool(_START.fullmatch(line) or _END.fullmatch(line)) or line == _MIDDLE


def _problem(start: int, end: int) -> FileProblem:
    message = f"a git merge stopped here: lines {start + 1} to {end + 1} hold both sides of a conflict"
    return FileProblem(start + 1, CODE, message, REMEDY)
