"""Carries out ``context`` of ``kb_query``: the facts that bind paths, ids or the uncommitted changes, within a budget.

The budget is in tokens of the whole answer, its frame included; only a note on other matters comes on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import Problem
from kbcore.text.escaping import escape_and_cut
from kbcore.text.tokens import chars_of
from kbmcp.tools.answers import DATA_NOTE, PAGE_CHARS, Payload, length_of
from kbmcp.tools.argument_models import ContextArguments, read
from kbmcp.tools.call import Call
from kbmcp.tools.refusals import refused_arguments

if TYPE_CHECKING:
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

_REASON_CHARS: Final = 120
_NAMES: Final = ("paths", "ids", "diff")
_SUBJECT_HINT: Final = "Name `paths` or `ids`, or say `diff` true for what is not committed."


def context(call: Call, asked: ContextArguments, room: int = PAGE_CHARS) -> Payload:
    """Return the facts of a context in at most as many tokens as its budget, and in so many characters.

    Raises: ``InvalidQuery`` for a context of nothing, and for a budget that is too small or too large; as reading.
    """
    from kbcore.sync.context import ContextRequest, find_context

    problems = [*_problems(asked)]
    if problems:
        raise refused_arguments(problems)
    request = ContextRequest(tuple(asked.paths), tuple(asked.ids), asked.diff)
    chars = min(chars_of(asked.budget or request.default_tokens), room)

    def answer(view: View, state: FileState) -> Payload:
        frame = _frame(call, state)
        found = find_context(call.workspace, view, call.branch, request)
        around = length_of(DATA_NOTE | {"repository": call.repository} | frame | call.answered_from)
        return frame | found.fitted(chars - around, length_of)

    return call.files.read(call.workspace, call.branch, answer, time_s=limits.FILES_S)


def read_context(given: Mapping[str, Any], path: str = "$.context") -> ContextArguments:
    """Return the members of a context. Raises: ``InvalidQuery`` with everything that is wrong, by its place."""
    found, problems = read(ContextArguments, given)
    if found is None or problems:
        raise refused_arguments([msgspec.structs.replace(one, path=f"{path}{one.path[1:]}") for one in problems])
    return found


def shared_budget(given: Mapping[str, Any], number: int) -> int:
    """Return the budget in tokens that several queries share; next to them a context has no other member.

    Raises: ``InvalidQuery``.
    """
    asked = read_context(given)
    least = limits.MIN_QUERY_TOKENS * number
    problems = [
        Problem(f"$.context.{name}", "beside_queries", f"`{name}` is next to `queries`.", "Put it into one of them.")
        for name in _NAMES
        if name in asked.model_fields_set
    ]
    if asked.budget is None:
        said = "`context` next to `queries` has only their `budget`."
        problems.append(Problem("$.context.budget", "missing_argument", said, "Give it in tokens."))
    elif not least <= asked.budget <= limits.MAX_CONTEXT_TOKENS:
        hint = f"Give at least {limits.MIN_QUERY_TOKENS} for each query, or leave `context` out."
        problems.append(_out_of_range(asked.budget, least, hint))
    if problems:
        raise refused_arguments(problems)
    return asked.budget or least


def _problems(asked: ContextArguments) -> Sequence[Problem]:
    found = []
    named = len(asked.paths) + len(asked.ids)
    if not (named or asked.diff):
        found.append(Problem("$.context", "missing_argument", "`context` is of nothing.", _SUBJECT_HINT))
    if named > limits.MAX_CONTEXT_PATHS:
        said = f"{named} paths and ids were given; one context takes {limits.MAX_CONTEXT_PATHS}."
        found.append(Problem("$.context", "too_many", said, "Ask in several calls."))
    if asked.budget is not None and not limits.MIN_CONTEXT_TOKENS <= asked.budget <= limits.MAX_CONTEXT_TOKENS:
        found.append(_out_of_range(asked.budget, limits.MIN_CONTEXT_TOKENS))
    return found


def _out_of_range(budget: int, least: int, hint: str = "Leave it out for a usual one.") -> Problem:
    said = f"The budget must be from {least} to {limits.MAX_CONTEXT_TOKENS} tokens here, not {budget}."
    return Problem("$.context.budget", "out_of_range", said, hint)


def _frame(call: Call, state: FileState) -> Payload:
    """Return the members that say what an answer is of."""
    shown = state.as_json()
    if "freshness_reason" in shown:
        shown["freshness_reason"] = escape_and_cut(shown["freshness_reason"], _REASON_CHARS)
    return {"branch": call.branch, **shown}
