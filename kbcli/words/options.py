"""What is wrong with a query, in the words of the command line: options for the arguments that the core names. Pure."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kbcore.errors import InvalidQuery, Problem

OPTIONS: Final = {
    "type": "TYPE",
    "ids": "--id",
    "tags": "--tag",
    "next_cursor": "--cursor",
    **{
        name: f"--{name}"
        for name in (
            *("status", "where", "has", "lacks", "text", "from", "follow", "depth", "reverse", "edges"),
            *("at", "sort", "limit", "cursor"),
        )
    },
}
"""What is typed for each argument of a query."""

_NAMED: Final = re.compile(rf"`({'|'.join(OPTIONS)})`")
_PLACE: Final = re.compile(r"\$\.(\w+)(?:\[\d+\])?")


def in_option_words(error: InvalidQuery) -> InvalidQuery:
    """Return the error with options in place of arguments and of JSON paths."""
    details = [
        msgspec.structs.replace(one, path=_option(one), message=_said(one.message), hint=_said(one.hint))
        for one in error.details
    ]
    return InvalidQuery(_said(error.message), hint=_said(error.hint), details=details, data=error.data)


def _option(problem: Problem) -> str:
    found = _PLACE.fullmatch(problem.path)
    return OPTIONS.get(found[1], problem.path) if found else problem.path


def _said(text: str) -> str:
    return _NAMED.sub(lambda found: f"`{OPTIONS[found[1]]}`", text)
