"""KB's own server object over HTTP, on loopback and a free port, for the programs that test servers.

It says where it listens in one line on standard output, and ends by itself: when its input is closed, or after a while.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import uvicorn

from kbmcp.serving import server_for
from kbmcp.tools.service import ServerOptions
from tests.conformance import fixtures

MAX_S = 600.0


async def serve(root: Path) -> None:
    """Serve the knowledge base of a repository."""
    server = server_for(ServerOptions(root, env=dict(os.environ)))
    fixtures.add_to(server)
    app = server.streamable_http_app(host="127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        runner = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        running = asyncio.create_task(runner.serve(sockets=[listening]))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
        await asyncio.wait(
            {running, asyncio.create_task(asyncio.to_thread(sys.stdin.read))},
            timeout=MAX_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        runner.should_exit = True
        await running


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
