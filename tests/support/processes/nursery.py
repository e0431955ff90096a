"""A process that makes others quickly: ``python -m tests.support.processes.nursery DESCRIPTOR``.

A member begins with everything imported, which saves it most of its time, and is a process like any other: it has
descriptors of its own, and can be killed or stopped. The nursery itself opens no store and starts no thread.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import traceback

from tests.support.processes.lines import Line, Message

JOBS = ("crowd_jobs", "crowd_git")
"""Modules whose functions are jobs; imported before the first member is made."""


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    living: set[int] = set()
    for name in JOBS:
        importlib.import_module(f"tests.support.crowd.{name}")
    try:
        while True:
            asked, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
            if not asked:
                return
            message = json.loads(asked)
            if "reap" in message:
                pid, status = os.waitpid(message["reap"], 0)
                living.discard(pid)
                control.sendall(json.dumps(os.waitstatus_to_exitcode(status)).encode() + b"\n")
                continue
            pid = os.fork()
            if pid == 0:
                control.close()
                _live(Line(socket.socket(fileno=fds[0])), message)
            os.close(fds[0])
            living.add(pid)
            control.sendall(json.dumps(pid).encode() + b"\n")
    finally:
        # A member that is stopped would stay for ever.
        for pid in living:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _live(line: Line, message: Message) -> None:
    """Do the job that a member was made for, and end."""
    status = 1
    try:
        module, _, name = message["job"].partition(":")
        getattr(importlib.import_module(f"tests.support.crowd.{module}"), name)(line, **message["given"])
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process: all of it is reported
        line.send(failed=traceback.format_exc()[-3000:])
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
