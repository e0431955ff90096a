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

_PLACE: Final = re.compile(r"\$\.(\w+)(?:\[\d+\])?(?:\.\w+)?")


@contextlib.contextmanager
def placed(output: Output, options: Mapping[str, str]) -> Iterator[None]:
    """Let errors of the block speak of options instead of members of a request, which ``options`` maps to them.

    A program that reads JSON is told the path.
    """
    try:
        yield
    except KBError as error:
        if not output.is_json:
            error.message, error.hint = _said(error.message, options), _said(error.hint, options)
            error.details = tuple(_typed(one, options) for one in error.details)
        raise


def in_option_words(error: InvalidQuery) -> InvalidQuery:
    """Return the error with options in place of arguments and of JSON paths."""
    details = [_typed(one, OPTIONS) for one in error.details]
    message, hint = _said(error.message, OPTIONS), _said(error.hint, OPTIONS)
    return InvalidQuery(message, hint=hint, details=details, data=error.data)


def _typed(problem: Problem, options: Mapping[str, str]) -> Problem:
    """Return a problem as a person who typed the options reads it.

    An argument that is typed without an option has no place: the message names its value.
    """
    found = _PLACE.fullmatch(problem.path)
    path = options.get(found[1], problem.path) if found else problem.path
    return msgspec.structs.replace(
        problem,
        path=path if path.startswith(("-", "$")) else "$",
        message=_said(problem.message, options),
        hint=_said(problem.hint, options),
    )


def _said(text: str, options: Mapping[str, str]) -> str:
    named = "|".join(map(re.escape, options))
    return re.sub(rf"`({named})`", lambda found: f"`{options[found[1]]}`", text)
