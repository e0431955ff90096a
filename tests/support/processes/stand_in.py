"""Lets a program be run by a process that has imported it: ``python -SEs stand_in.py ADDRESS [ARGUMENT …]``.

It is started in place of the program, and ends with its status; ``forked`` has the other side.
Only what is quick to import is imported here. A signal to the stand-in does not reach the program.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket  # `socket` takes as long as all the rest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NUMBER_BYTES = 8


def ask(
    address: str, streams: Sequence[int], arguments: Sequence[str], env: Iterable[tuple[str, str]], cwd: str
) -> socket:
    """Have a program started; what is returned tells its number, and its status in the end."""
    line = socket(AF_UNIX)
    line.connect(address)
    words = [str(len(arguments)), cwd, *arguments, *(f"{name}={value}" for name, value in env)]
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in streams)
    line.sendmsg([os.fsencode("\0".join(words))], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
    line.shutdown(SHUT_WR)
    return line


def send_number(line: socket, number: int) -> None:
    """Send a number."""
    line.sendall(number.to_bytes(_NUMBER_BYTES, sys.byteorder, signed=True))


def receive_number(line: socket) -> int:
    """Return the next number that is received."""
    return int.from_bytes(line.recv(_NUMBER_BYTES), sys.byteorder, signed=True)


def main() -> int:
    line = ask(sys.argv[1], (0, 1, 2), sys.argv[2:], os.environ.items(), os.getcwd())  # noqa: PTH109 - as above
    receive_number(line)
    status = receive_number(line)
    return status if status >= 0 else 128 - status  # as a shell says that a signal ended it


if __name__ == "__main__":
    sys.exit(main())
