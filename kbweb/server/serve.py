"""The process that listens: one port of 127.0.0.1, until it is asked to end."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Final

from kbcore.errors import InvalidQuery
from kbweb.server.reading import Reader, ReadTarget

HOST: Final = "127.0.0.1"
_BACKLOG: Final = 64
_CONNECTIONS: Final = 512
"""More than there can be: those that wait are closed, and those of requests and listeners have limits of their own."""
_HEADER_BYTES: Final = 32 * 1024
_ENDS_S: Final = 1
_IDLE_S: Final = 30
_LOOK_S: Final = 0.5


class ExplorerServer:
    """Listens from the moment it is made; ``run`` answers until ``stop``."""

    def __init__(
        self, target: ReadTarget, port: int, report: Callable[[BaseException], None], *, writes: bool = False
    ) -> None:
        """``port`` is 0 for any that is free. Raises: ``InvalidQuery`` for one that cannot be had."""
        self._socket = _listening(port)
        reader = Reader(target)
        # The branch is read while what serves pages is imported, which takes about as long.
        reader.warm()
        try:
            import uvicorn  # noqa: PLC0415 - as was just said

            from kbweb.server.access import Guard, Keys  # noqa: PLC0415 - as above
            from kbweb.server.application import Explorer  # noqa: PLC0415 - as above
            from kbweb.server.connections import HttpConnection  # noqa: PLC0415 - as above
        except BaseException:
            reader.work.stop()
            reader.close()
            raise
        self._keys = Keys()
        self._explorer = Explorer(reader, self._keys.base, report, writes=writes)
        authority = f"{HOST}:{self.port}"
        config = uvicorn.Config(
            Guard(self._explorer, authority, self._keys, writes=writes),
            http=HttpConnection,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="error",  # anybody on the machine can send bytes that are no request
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_ENDS_S,
            h11_max_incomplete_event_size=_HEADER_BYTES,
        )
        self._server = uvicorn.Server(config)

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self._socket.getsockname()[1])

    def address(self) -> str:
        """Return a new address; of all of them one opens the explorer, once."""
        return f"http://{HOST}:{self.port}{self._keys.first_place()}"

    def run(self) -> None:
        """Answer until ``stop`` is called; signals are left to the caller, whose thread waits here."""
        failed: list[BaseException] = []

        def serve() -> None:
            try:
                asyncio.run(self._server.serve(sockets=[self._socket]))
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                failed.append(error)

        thread = threading.Thread(target=serve, name="kb-ui-server", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_S)
        self._socket.close()
        self._explorer.close()
        if failed:
            raise failed[0]

    def stop(self) -> None:
        """End at once: nothing more is read, and the port is free. From any thread, and from handlers of signals."""
        self._server.force_exit = self._server.should_exit = True
        threading.Thread(target=self._explorer.end, name="kb-ui-end", daemon=True).start()


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        message = f"Port {port} of {HOST} cannot be used: {error.strerror or error}."
        raise InvalidQuery(
            message, hint="Name another one with --port, or leave it out for any that is free."
        ) from error
    return found
