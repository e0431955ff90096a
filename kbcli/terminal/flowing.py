"""Sentences in lines that fit a terminal. Pure.

They are broken between words only. Text that is to be copied is never broken: the terminal itself continues in its next
line with a path, or a command, that is wider than it is, and knows that it is one.
"""

from __future__ import annotations

import re
from typing import Final

from kbcli.terminal.cells import width_of

_COLOUR: Final = re.compile("\x1b\\[\\d*m")
_NO_COLOUR: Final = "\x1b[0m"
_UNIT: Final = re.compile(r"( *)((?:echo '.*' \| kb apply -|`[^`]*`|--[a-z-]+ [^ ]|[^ ])+)")
"""A unit that is not broken: a word, an option with its value, and a command with its spaces; before it, its distance.
Other blanks than the plain one, as of a fixed or a wide space, are characters of a word."""
_INDENT: Final = "  "


def flowed(text: str, width: int) -> list[str]:
    """Return a line of text in lines of so many columns where that is possible; the later ones are indented.

    A colour that continues in the next line is set there again: pagers end it with the line.
    """
    if _width(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    lines: list[str] = []
    colour = ""
    for distance, unit in _UNIT.findall(text):
        longer = f"{lines[-1]}{distance}{unit}" if lines else indent + unit
        if not lines or _width(longer) <= width:
            lines[-1:] = [longer]
        else:
            lines[-1] += _NO_COLOUR * bool(colour)
            lines.append(f"{indent}{_INDENT}{colour}{unit}")
        colour = _left_on(unit, colour)
    return lines


def _left_on(unit: str, colour: str) -> str:
    """Return the colour that text after a unit has."""
    found = _COLOUR.findall(unit)
    last = found[-1] if found else colour
    return "" if last == _NO_COLOUR else last


def _width(text: str) -> int:
    return width_of(_COLOUR.sub("", text))
