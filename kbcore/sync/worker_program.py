"""The program of a worker process, which ``workers`` starts: it answers jobs until its input is closed.

A message is its length in eight bytes and its content. The first one is the import path, as a JSON list; ``jobs`` says
what the others are. The program holds nothing that is lost when it is killed.
"""

from __future__ import annotations

import json
import sys
from typing import BinaryIO

_LENGTH_BYTES = 8


def main(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer each message, in order."""
    sys.path[:] = json.loads(_message(asked) or b"[]")
    from kbcore import gc_pause  # noqa: PLC0415 - where it is was just said
    from kbcore.sync.job_runner import JobRunner  # noqa: PLC0415 - as above

    runner = JobRunner()
    with gc_pause.paused():
        while (message := _message(asked)) is not None:
            answer = runner.answer(message)
            answers.write(len(answer).to_bytes(_LENGTH_BYTES, "big"))
            answers.write(answer)
            answers.flush()


def _message(asked: BinaryIO) -> bytes | None:
    """Return the next message, None at the end of the input."""
    head = asked.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "big")
    body = asked.read(length)
    return body if len(body) == length else None


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
