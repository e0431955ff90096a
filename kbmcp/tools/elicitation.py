"""Questions to the person who uses a client, for what an agent may not decide: who is asked, and what was confirmed.

A call that needs a person fails with a question before it writes. Where the client offers to ask (elicitation), the
person answers, and the call runs again; what it would do then must be what was confirmed. A client of revision
2026-07-28 gets the question as the result, and sends the call again with the answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from kbcore.errors import NeedsPerson, StaleBase
from kbcore.text.escaping import escape_and_cut
from kbmcp.tools.call import Call

Ask = Callable[[str], Awaitable[bool]]
"""Asks a person, and returns whether that person confirms."""

_MOST_CHARS: Final = 1_500
_MOST_OPEN: Final = 16
_KEY: Final = "confirm"
_SCHEMA: Final[types.ElicitRequestedSchema] = {
    "type": "object",
    "properties": {_KEY: {"type": "boolean", "title": "Do it", "default": False}},
    "required": [_KEY],
}
_BY_HAND: Final = "Ask the user to decide; `kb revert --help` and `kb redact --help` say how a person does it."
_CHANGED: Final = "What the person confirmed was changed by another record before the answer came."
NOT_OFFERED: Final = f"This client offers no way to ask a person (elicitation). {_BY_HAND}"
NOT_CONFIRMED: Final = f"The person was asked and did not confirm. Do not ask again for the same. {_BY_HAND}"


def confirm(call: Call, what: str, why: str) -> None:
    """Go on only where a person has confirmed this: what is asked for, and why that needs a person.

    Raises: ``NeedsPerson`` with the question; ``StaleBase`` where the person has confirmed another one.
    """
    question = escape_and_cut(
        f"{call.author.actor} asks {what}, on the branch {call.branch} of {call.repository}. {why}", _MOST_CHARS
    )
    if call.confirmed and call.confirmed != question:
        raise StaleBase(_CHANGED)
    if not call.confirmed:
        raise NeedsPerson(question, hint=NOT_OFFERED)


class InputNeeded(Exception):
    """A client of a revision without requests of the server has to ask the person; the result says so."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class Questions:
    """The questions that clients of revision 2026-07-28 were given and have not answered yet."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        """The question by the token that the client has to send back."""

    def asker(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Ask | None:
        """Return what asks the person of a call; None where the client does not offer that."""
        offered = ctx.session.client_capabilities and ctx.session.client_capabilities.elicitation
        if not offered or (offered.form is None and offered.url is not None):
            return None

        async def by_request(question: str) -> bool:
            return _is_confirmed(await ctx.session.elicit_form(question, _SCHEMA, ctx.request_id))

        async def by_result(question: str) -> bool:
            answer = (params.input_responses or {}).get(_KEY)
            asked = self._open.pop(params.request_state or "", "")
            if isinstance(answer, types.ElicitResult) and asked == question:
                return _is_confirmed(answer)
            raise InputNeeded(self._begin(question))

        return by_request if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else by_result

    def _begin(self, question: str) -> types.InputRequiredResult:
        token = secrets.token_urlsafe(16)
        for old in [*self._open][: max(0, len(self._open) + 1 - _MOST_OPEN)]:
            del self._open[old]
        self._open[token] = question
        form = types.ElicitRequestFormParams(message=question, requested_schema=_SCHEMA)
        return types.InputRequiredResult(input_requests={_KEY: types.ElicitRequest(params=form)}, request_state=token)


def _is_confirmed(answer: types.ElicitResult) -> bool:
    return answer.action == "accept" and (answer.content or {}).get(_KEY) is True
