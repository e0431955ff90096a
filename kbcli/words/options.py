"""What is wrong with a request, in the words of the command line: options for what the core names. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.errors import InvalidQuery, KBError, Problem

if TYPE_CHECKING:
    from kbcli.render import Output

OPTIONS: Final = {
    "type": "TYPE",
    "ids": "--id",
    "tags": "--tag",
    "next_cursor": "--cursor",
    **{
        name: f"--{name}"
        for name in (
            *("status", "where", "has", "lacks", "text", "from", "follow", "depth", "reverse", "edges"),
            *("at", "sort", "fields", "count", "limit", "cursor"),
        )
    },
}
"""What is typed for each argument of a query."""

_NAMED: Final = re.compile(rf"`({'|'.join(OPTIONS)})`")
_PLACE: Final = re.compile(r"\$\.(\w+)(?:\[\d+\])?(?:\.\w+)?")


@contextlib.contextmanager
def placed(output: Output, options: Mapping[str, str]) -> Iterator[None]:
    """Let errors of the block name an option in place of a JSON path; ``options`` are those of members of a request.

    A program that reads JSON is told the path.
    """
    try:
        yield
    except KBError as error:
        if not output.is_json:
            error.details = tuple(msgspec.structs.replace(one, path=_option(one, options)) for one in error.details)
        raise


def in_option_words(error: InvalidQuery) -> InvalidQuery:
    """Return the error with options in place of arguments and of JSON paths."""
    details = [
        msgspec.structs.replace(one, path=_option(one, OPTIONS), message=_said(one.message), hint=_said(one.hint))
        for one in error.details
    ]
    return InvalidQuery(_said(error.message), hint=_said(error.hint), details=details, data=error.data)


def _option(problem: Problem, options: Mapping[str, str]) -> str:
    found = _PLACE.fullmatch(problem.path)
    return options.get(found[1], problem.path) if found else problem.path


def _said(text: str) -> str:
    return _NAMED.sub(lambda found: f"`{OPTIONS[found[1]]}`", text)
