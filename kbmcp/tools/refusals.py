"""The JSON of a refused or failed call: what was wrong, what was not changed, and which call to make next.

One problem is reported once: its words are those of the whole error, and ``details`` keeps only its place and its code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kbcore import limits
from kbcore.errors import InvalidQuery, KBError, Problem
from kbcore.model.request_reader import kind_of
from kbcore.text.wording import one_of
from kbmcp.tools.answers import Payload, cut_deep, fit
from kbmcp.tools.hints import in_tool_words

ERROR_CHARS: Final = 9_000
"""The most characters of the text of an error; some clients cut errors earlier than answers."""


def allowed_names(names: Sequence[str]) -> str:
    """Return the sentence that names the arguments there are."""
    return f"Allowed: {', '.join(names)}." if names else "Leave it out: there are no arguments."


def refused_arguments(problems: Sequence[Problem]) -> InvalidQuery:
    """Return the error for the arguments of a call that only reads, with everything that is wrong with them."""
    first, count = problems[0], len(problems)
    message = first.message if count == 1 else f"The arguments have {count} problems."
    return InvalidQuery(message, details=problems[: limits.MAX_PROBLEMS], says_first=count == 1)


def wrong_kind(path: str, kinds: tuple[str, ...], value: Any, hint: str = "") -> Problem:
    """Return the problem that the value of an argument is of none of the kinds that it may have; ``values`` are these.

    ``path`` is the JSON path of the value.
    """
    name = path.removeprefix("$.")
    message = f"`{name}` {must_be(kinds)}, not {kind_of(value)}."
    return Problem(path, "wrong_type", message, hint, field=name, values=kinds)


def must_be(kinds: Sequence[str]) -> str:
    """Return that a value must be of one of these kinds, or one of these values."""
    return f"must be {one_of(kinds)}"


def limit_problems(limit: int, most: int = limits.MAX_PAGE_ROWS) -> Iterator[Problem]:
    """Yield what is wrong with the rows of a page that are asked for."""
    if not 1 <= limit <= most:
        message = f"The limit must be from 1 to {most}, not {limit}."
        yield Problem("$.limit", "out_of_range", message, "Use `next_cursor` for more." if limit > 0 else "")


def error_json(
    error: KBError, hint: str, around: Mapping[str, Any], *, writes: bool, is_dotted: bool, has_core: bool = True
) -> Payload:
    """Return the JSON of an error.

    ``hint`` is the remedy, in the words of the core, and ``around`` what else is known of the call, its branch and seq
    above all. Details that are too many are counted.
    """
    body = error.as_json(writes=writes)
    body["hint"] = in_tool_words(hint, is_dotted=is_dotted, has_core=has_core)
    for detail, problem in zip(body["details"], error.details, strict=True):
        detail["hint"] = in_tool_words(problem.remedy, is_dotted=is_dotted, has_core=has_core)
    if len(body["details"]) == 1:
        only = body["details"][0]
        problem = only.pop("message")
        if not error.says_first:
            body["message"] = error.message_for(writes=writes, instead=problem)
        del only["hint"]
    payload = fit({"error": body, **around}, [("details", body)], ERROR_CHARS)
    shown: Payload = cut_deep(payload, ERROR_CHARS)
    return shown
