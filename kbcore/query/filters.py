"""The texts in which filters are typed: each one parsed, and all their problems collected. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kbcore.errors import InvalidQuery, Problem
from kbcore.query.request import Pattern
from kbcore.text.escaping import in_quotes

T = TypeVar("T")

NO_PATTERN: Final = Pattern("")
"""Takes the place in a query of a pattern that could not be read."""


def parse_pattern(text: str) -> Pattern:
    """Return the pattern that ``verified_by``, ``depends_on:REQ-1`` or ``^implements:SYM-9`` means.

    Raises: ``InvalidQuery`` when the edge or, after a colon, the id is missing.
    """
    body = text.removeprefix("^")
    edge, colon, end = body.partition(":")
    if not edge or (colon and not end):
        hint = "Write EDGE, EDGE:ID or ^EDGE:ID, for example `verified_by` or `^implements:SYM-9`."
        raise InvalidQuery(f"{in_quotes(text)} names no {'id' if edge else 'edge'}.", hint=hint)
    return Pattern(edge, end, inverse=body != text)


def parse_each(
    name: str, texts: Iterable[str], parse: Callable[[str], T], unread: T, problems: list[Problem]
) -> tuple[T, ...]:
    """Return what each text of a filter means; ``unread`` takes the place of one that is added to the problems."""
    found = []
    for at, text in enumerate(texts):
        try:
            found.append(parse(text))
        except InvalidQuery as error:
            problems.append(Problem(f"$.{name}[{at}]", "bad_value", error.message, error.remedy))
            found.append(unread)
    return tuple(found)
