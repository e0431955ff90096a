"""A program of its own that answers the SQL of the project's rules: ``sandbox`` starts it, without the rest of KB.

Invariant: before it reads the first statement it has dropped access to every file outside of one folder, every change
of a setting, and time and memory beyond its limits; the system enforces the rest. It ends as soon as the other end of
its input is closed, whatever runs: statements run in a thread, while the first one reads.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import sys
import threading
from typing import Any, BinaryIO

_SPILL_BYTES = 1024**3
_THREADS = 2


def main(asked: BinaryIO, answers: BinaryIO) -> None:
    """Read the settings from the first line, then answer one statement a line until there are no more.

    A line is JSON: ``{"packages", "folder", "time_s", "memory_bytes"}``, then ``[sql, params]`` each, params being a
    list, or an object by name; an answer is ``{"rows"}``, or ``{"kind", "said"}`` for what DuckDB refuses.
    """
    settings = json.loads(asked.readline())
    sys.path.append(settings["packages"])
    connection = _confined(settings["folder"], settings["time_s"])
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answering = threading.Thread(target=_keep_answering, args=(lines, answers, connection, settings), daemon=True)
    answering.start()
    for line in asked:
        lines.put(line)
    os._exit(0)  # a statement that still runs is of no use to anybody


def _keep_answering(
    lines: queue.SimpleQueue[bytes], answers: BinaryIO, connection: Any, settings: dict[str, Any]
) -> None:
    """Say that statements may come, and answer one after the other."""
    _limit(settings["memory_bytes"])
    _send(answers, {"rows": []})
    while True:
        line = lines.get()
        _limit_cpu(settings["time_s"])
        _send(answers, _answer(connection, *json.loads(line)))


def _confined(folder: str, time_s: float) -> Any:
    """Return a database that reads files in one folder alone, and whose settings stay as they are."""
    import duckdb  # noqa: PLC0415 - where it lies is given on standard input

    config: dict[str, Any] = {
        "threads": _THREADS,
        "async_threads": 0,
        "temp_directory": f"{folder}/spill",
        "max_temp_directory_size": f"{_SPILL_BYTES} bytes",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    quoted = folder.replace("'", "''")
    for statement in (
        f"set allowed_directories = ['{quoted}/']",
        "set enable_external_access = false",
        f"set max_execution_time = {max(1, round(time_s * 1000))}",
        "set disabled_optimizers = 'common_subplan'",  # as in `database.connect`, and for the same reason
        "set lock_configuration = true",
    ):
        connection.execute(statement)
    return connection


def _limit(memory_bytes: int) -> None:
    """Have the system refuse memory beyond what is taken now and this, and core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no more imports than it needs
            taken_bytes = int(file.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return  # no such system: the database's own limit is left
    most_bytes, hard_bytes = taken_bytes + memory_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard_bytes == resource.RLIM_INFINITY or most_bytes < hard_bytes:  # a smaller limit cannot be raised, and holds
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


def _limit_cpu(time_s: float) -> None:
    """Have the system end a statement that goes on although its answer is not needed any more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most_s = int(used.ru_utime + used.ru_stime + _THREADS * time_s) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (most_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _answer(connection: Any, sql: str, params: list[Any] | dict[str, Any]) -> dict[str, Any]:
    try:
        return {"rows": connection.execute(sql, params).fetchall()}
    except Exception as error:  # noqa: BLE001 - whatever a statement brings about is the answer to it
        return {"kind": type(error).__name__, "said": str(error)}


def _send(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer, default=str).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
