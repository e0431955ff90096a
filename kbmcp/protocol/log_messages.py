"""Log messages to the client, as far as it asks for them: one for a call that failed, or whose answer has a note.

Up to revision 2025-11-25 a client asks by `logging/setLevel`, for the connection; nothing is sent before that. In
revision 2026-07-28 each request asks by its `_meta`. What is logged is in the answer too: nobody needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)
"""From the least severe on."""
_LOGGER: Final = "kb"
_BUG: Final = "internal_error"


class ClientLog:
    """The log messages of one connection."""

    def __init__(self) -> None:
        self.level: types.LoggingLevel | None = None
        """The least severe level that the client has asked for; None before it has."""

    async def note_answer(self, ctx: ServerRequestContext[Any, Any], tool: str, answer: Mapping[str, Any]) -> None:
        """Send what is worth a message about the answer of a tool."""
        error = answer.get("error")
        if isinstance(error, Mapping):
            level: types.LoggingLevel = "error" if error.get("code") == _BUG else "warning"
            said = {"code": error.get("code"), "message": error.get("message")}
        elif answer.get("note"):
            level, said = "notice", {"message": answer["note"]}
        else:
            return
        least = self._least(ctx)
        if least is None or LEVELS.index(level) < LEVELS.index(least):
            return
        params = types.LoggingMessageNotificationParams(level=level, logger=_LOGGER, data={"tool": tool, **said})
        await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)

    def _least(self, ctx: ServerRequestContext[Any, Any]) -> types.LoggingLevel | None:
        if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            return self.level
        asked: Any = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
        return asked if asked in LEVELS else None
