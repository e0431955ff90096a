"""The options that are typed for the arguments and members of a request, as messages and places name them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.errors import KBError, Problem

if TYPE_CHECKING:
    from kbcli.terminal.output import Output

OPTIONS: Final = {
    "type": "TYPE",
    "ids": "--id",
    "tags": "--tag",
    "next_cursor": "--cursor",
    **{
        name: f"--{name}"
        for name in (
            *("status", "where", "has", "lacks", "text", "path", "from", "follow", "depth", "reverse", "edges"),
            *("at", "sort", "fields", "count", "limit", "cursor"),
        )
    },
}
"""The option for each argument of a query."""

_PLACE: Final = re.compile(r"\$\.(\w+)(?:\[(\d+)\])?(?:\.\w+)?")
REPEATED: Final = "..."
"""The end of the name of an argument that is given several times."""


def option(name: str) -> str:
    """Return what is typed for an argument of a query."""
    return OPTIONS.get(name, name)


@contextlib.contextmanager
def placed(
    output: Output, options: Mapping[str, str] = OPTIONS, hints: Mapping[tuple[str, str], str] | None = None
) -> Iterator[None]:
    """Let errors of the block name options as places, not members of a request, which ``options`` maps to them.

    ``hints`` are remedies in the words of the command, by the code of a problem and the member that it is about.
    A program that reads JSON gets the path, and the remedy of the request.
    """
    try:
        yield
    except KBError as error:
        if not output.is_json:
            said = [_remedy(one, hints or {}) for one in error.details]
            if said and {*said} != {one.remedy for one in error.details} and len({*said}) == 1:
                error.remedy = said[0]
            error.details = tuple(_typed(one, options, remedy) for one, remedy in zip(error.details, said, strict=True))
        raise


def _remedy(problem: Problem, hints: Mapping[tuple[str, str], str]) -> str:
    """Return the remedy of a problem in the words of the command, or its own."""
    return hints.get((problem.code, problem.path.rpartition(".")[2]), problem.remedy)


def _typed(problem: Problem, options: Mapping[str, str], remedy: str) -> Problem:
    """Return a problem with the option as its place; of arguments that are repeated it is the one that is meant.

    Another argument without an option is no place: the message names its value.
    """
    found = _PLACE.fullmatch(problem.path)
    path = options.get(found[1], problem.path) if found else problem.path
    if path.endswith(REPEATED):
        number = f" {int(found[2]) + 1}" if found and found[2] else ""
        return msgspec.structs.replace(problem, path=f"{path.removesuffix(REPEATED)}{number}", remedy=remedy)
    return msgspec.structs.replace(problem, path=path if path.startswith(("-", "$")) else "$", remedy=remedy)
