"""Connections of the explorer: one that has no request gives its place to a newer one.

Who may ask is known only from a request, so anybody on the machine can hold connections that send none. They do not
keep the user out: where ``MAX_IDLE`` wait for a request, the oldest of them is closed for the next.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_IDLE: Final = 128


class HttpConnection(H11Protocol):
    """A connection of HTTP/1.1, as uvicorn makes it for each client."""

    opened_s = 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether it is open, and has no request that is carried out."""
        return not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Note a new connection, and close the oldest idle one where there are too many."""
        super().connection_made(transport)
        self.opened_s = self.loop.time()
        idle = [one for one in self.connections if isinstance(one, HttpConnection) and one.is_idle]
        if len(idle) > MAX_IDLE:
            min(idle, key=lambda one: one.opened_s).transport.abort()
