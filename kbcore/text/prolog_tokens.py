"""The parts of a text in Prolog that hold text and no clause: comments, character codes and quoted texts. Pure."""

from __future__ import annotations

import re
from typing import Final

SYMBOL: Final = r"[#$&*+\-./:<=>?@^~\\]"
"""A character of which symbols are made: a comment or a full stop does not begin after one."""
OPAQUE: Final = rf"""
      %[^\n]*
    | (?<!{SYMBOL})/\*.*?(?:\*/|\Z)
    | (?<!\w)0'(?:\\x[0-9a-fA-F]+\\?|\\[0-7]+\\?|\\.|''?|[^\\])
    | (?<!\w)[1-9][0-9]?'(?=\w)
    | '(?:[^'\\]|\\.|'')*+(?:'|\Z)
    | "(?:[^"\\]|\\.|"")*+(?:"|\Z)
    | `(?:[^`\\]|\\.|``)*+(?:`|\Z)"""
"""Comments, character codes, numbers with a base, and quoted texts: a pattern for ``re.VERBOSE | re.DOTALL``."""
_OPAQUE: Final = re.compile(OPAQUE, re.VERBOSE | re.DOTALL)


def without_script_line(text: str) -> str:
    """Return the text of a file with a comment in place of a first line that names a program (``#!``)."""
    return f"%{text[1:]}" if text.startswith("#!") else text


def block_comments(text: str) -> list[tuple[int, int]]:
    """Return the first character of each block comment that has an end, and the one after it, in their order."""
    if "/*" not in text:
        return []
    found = (token.span() for token in _OPAQUE.finditer(text) if token[0].startswith("/*"))
    return [(begin, end) for begin, end in found if text.endswith("*/", begin + 4, end)]
