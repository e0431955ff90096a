"""Starts the MCP server with an audit hook that notes what Python opens, lists, starts or connects to.

``python -m tests.support.processes.audited LOG ARGUMENT…``: the log gets one JSON line an event, ``[event, what]``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

NOTED = (
    "open",
    "os.listdir",
    "os.scandir",
    "os.chdir",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.spawn",
)


def main() -> int:
    """Serve until the client ends it."""
    log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event.startswith("socket.") or event in NOTED:
            what = args[0] if args else ""
            shown = (
                [str(arg) for arg in args[1:]]
                if event.startswith("socket.")
                else os.fsdecode(what or "")
                if isinstance(what, str | bytes | os.PathLike)
                else what
            )
            os.write(log, json.dumps([event, shown if isinstance(shown, int | list) else str(shown)]).encode() + b"\n")

    sys.addaudithook(note)
    from kbmcp.server import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
