"""Which paths a glob means. Both are relative to the repository's root, with ``/`` between parts.

``*`` and ``?`` stay within one part, ``**`` as a whole part spans any number of folders (none too), ``[…]``
is a set of characters. Letters match exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_DEEPEST: Final = 64
"""So many folders below each other are as good as any number."""

_BRACES = re.compile(r"\{[^{},]*,[^{}]*\}")


def matches(path: str, globs: Iterable[str]) -> bool:
    """Tell whether any of the globs means this path."""
    return any(compiled(glob).fullmatch(path) for glob in globs)


def glob_fault(glob: object) -> str:
    """Return why something cannot be used as a glob, or the empty text."""
    if not isinstance(glob, str) or not glob.strip():
        return "it must be text that is not empty"
    if "\\" in glob:
        return "parts are separated by '/', not by '\\'"
    if glob.startswith("/"):
        return "it must be relative to the root of the repository"
    if ".." in glob.split("/"):
        return "it must not leave the repository ('..')"
    if _BRACES.search(glob):
        return "braces are no alternatives here; list a glob for each"
    return ""


@lru_cache(maxsize=1024)
def compiled(glob: str) -> re.Pattern[str]:
    """Return the expression that matches exactly the paths which the glob means."""
    parts = glob.removeprefix("./").split("/")
    pieces: list[str] = []
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**" and not is_last and parts[number + 1] == "**":
            continue
        if part == "**":
            pieces.append(".+" if is_last else "(?:[^/]+/)*")
        else:
            pieces.append(_part(part) + ("" if is_last else "/"))
    return re.compile("".join(pieces), re.DOTALL)


def _part(part: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            if out[-1:] != ["[^/]*"]:
                out.append("[^/]*")
        elif character == "?":
            out.append("[^/]")
        elif character == "[" and (end := part.find("]", at + 1)) > 0:
            inside = part[at:end]
            negation = "^/" if inside[0] in "!^" else ""
            members = inside[1:] if negation else inside
            out.append(f"[{negation}{_members(members)}]")
            at = end + 1
        else:
            out.append(re.escape(character))
    return "".join(out)


def _members(members: str) -> str:
    """Escape what has a meaning in an expression, but not ``a-z``; a range the wrong way round is text."""
    escaped = re.sub(r"([\\\]\[^&~|])", r"\\\1", members)
    ranges = re.findall(r"(.)-(.)", members, re.DOTALL)
    return escaped.replace("-", "\\-") if any(low > high for low, high in ranges) else escaped


def fixed_part(glob: str) -> str:
    """Return the folder that every match of a glob lies below, "" for the root."""
    fixed = []
    for part in glob.removeprefix("./").split("/")[:-1]:
        if any(character in part for character in "*?["):
            break
        fixed.append(part)
    return "/".join(fixed)


def depth_of(glob: str) -> int:
    """Return how many folders below its fixed part a glob reaches."""
    if "**" in glob.split("/"):
        return _DEEPEST
    fixed = fixed_part(glob)
    return glob.removeprefix("./").count("/") - (fixed.count("/") + 1 if fixed else 0)
