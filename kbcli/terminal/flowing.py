"""Sentences in lines that fit a terminal. Pure.

They are broken between words alone. What is there to be copied is never broken: the terminal itself goes on in its next
line with a path, or a command, that is wider than it is, and knows that it is one.
"""

from __future__ import annotations

import re
from typing import Final

from kbcli.terminal.cells import width_of

_COLOUR: Final = re.compile("\x1b\\[\\d*m")
_UNIT: Final = re.compile(r"(?:echo '.*' \| kb apply -|`[^`]*`|--[a-z-]+ \S|\S)+")
"""What stays together: a word, an option with its value, and a command with its spaces."""
_BESIDE: Final = "  "


def flowed(text: str, width: int) -> list[str]:
    """Return a line of text in lines of so many columns where that is possible; the later ones are indented."""
    if _width(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    lines: list[str] = []
    for unit in _UNIT.findall(text):
        longer = f"{lines[-1]} {unit}" if lines else indent + unit
        if not lines or _width(longer) <= width:
            lines[-1:] = [longer]
        else:
            lines.append(f"{indent}{_BESIDE}{unit}")
    return lines


def _width(text: str) -> int:
    return width_of(_COLOUR.sub("", text))
