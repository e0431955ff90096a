"""Execution of the SQL of a project's own rules: in its own process, over copies of the tables that it names.

A repository is not always the user's own. Its SQL has no way to KB's database and files, and what does not keep to its
limits of time and memory is ended from outside.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import duckdb
import msgspec

from kbcore import limits
from kbcore.process import interrupting, system_limits
from kbcore.process.interrupting import Stopped
from kbcore.view.database import quoted, scratch_folder
from kbcore.view.relations import SqlRefused

CopyRelation = Callable[[str, str], None]
"""Copies a table, by its name, into a new database file."""

_PROGRAM: Final = str(Path(__file__).with_name("sandbox_worker.py"))
_START_S: Final = 60.0
_OF_MEMORY: Final = frozenset({"OutOfMemoryException", "MemoryError", "FatalException", "InternalException"})
"""Errors of DuckDB when it gets no memory, or fails because of that."""

_GRACE_S: Final = 0.25
"""Time after its limit at which a statement is ended."""


class Times(msgspec.Struct, frozen=True):
    """Time limits of statements: usually, at most whatever a rule asks for, and all of them together."""

    usual_s: float
    most_s: float = limits.MAX_RULE_TIME_S
    total_s: float = limits.MAX_RULE_TIME_S
    most_by: str = ""
    """The setting of the limit ``most_s``."""
    total_by: str = ""
    """The setting of the limit ``total_s``."""
    now_s: Callable[[], float] = lambda: 0.0


class TimeLeft:
    """The time that is left of that of all rules of one check, whatever language they are in."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Sandbox:
    """One database without a way out. It is started by the first statement, and again when one had to be ended."""

    def __init__(self, copy_relation: CopyRelation, times: Times, left: TimeLeft | None = None) -> None:
        self._copy_relation = copy_relation
        self._times = times
        self._time_s = min(times.usual_s, times.most_s)
        self._wanted_s = times.usual_s
        self._left = left or TimeLeft(times.total_s)
        self._turn = 0
        self._folder: Any = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lent: set[str] = set()

    def __enter__(self) -> Self:
        """Return the sandbox itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started and remove what was lent."""
        self._end()
        if self._folder is not None:
            self._folder.cleanup()

    def switch_to(self, copy_relation: CopyRelation) -> None:
        """Drop the copied tables, and copy from another view from now on."""
        self._copy_relation = copy_relation
        self._turn += 1
        if self._left.seconds <= 0:
            self._end()
        lent, self._lent = self._lent, set()
        for table in sorted(lent):
            self._ask(f"drop view {table}", ())
            self._ask(f"detach lent_{table}", ())

    def rows(
        self,
        sql: str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        tables: Iterable[str] = (),
        time_s: float | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return all rows of a statement over these tables, each value as JSON has it.

        ``time_s`` is its time, where that is not the usual one; a process has one time for all its statements. It is
        never more than what the user allows, nor than what is left of the time of all statements.

        Raises: ``SqlRefused`` when the database refuses it, or when it takes more time or memory than it may.
        """
        self._wanted_s = time_s or self._times.usual_s
        own_s = min(self._wanted_s, self._times.most_s)
        if own_s != self._time_s:
            self._end()
            self._time_s = own_s
        if self._left.seconds <= 0:
            raise self._too_slow()
        begun_s = self._times.now_s()
        try:
            return self._rows_or_retry(sql, params, tables)
        finally:
            self._left.seconds -= self._times.now_s() - begun_s

    def _rows_or_retry(
        self, sql: str, params: Sequence[Any] | Mapping[str, Any], tables: Iterable[str]
    ) -> list[tuple[Any, ...]]:
        """Answer a statement, in a new process where the one that runs has too little memory left."""
        is_fresh = self._process is None
        try:
            return self._rows(sql, params, tables)
        except SqlRefused as error:
            if not error.is_limit:
                raise
            self._end()
            if is_fresh or not error.is_memory:
                raise
        # What went before may have left it too little memory: that is not to be held against this statement.
        return self._rows(sql, params, tables)

    def _rows(
        self, sql: str, params: Sequence[Any] | Mapping[str, Any], tables: Iterable[str]
    ) -> list[tuple[Any, ...]]:
        for table in sorted(set(tables) - self._lent):
            path = Path(self._started(), f"{table}-{self._turn}.duckdb")
            if not path.exists():
                self._copy_relation(table, str(path))
            self._ask(f"attach '{quoted(str(path))}' as lent_{table} (read_only)", ())
            self._ask(f"create view {table} as from lent_{table}.{table}", ())
            self._lent.add(table)
        return self._ask(sql, params)

    def _started(self) -> str:
        """Start the process unless it runs, and return its folder."""
        if self._folder is None:
            self._folder = scratch_folder()
        folder: str = self._folder.name
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _PROGRAM],
                cwd=folder,
                env=system_limits.child_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            settings = {
                "packages": str(Path(duckdb.__file__).parents[1]),
                "folder": folder,
                "time_s": self._time_s,
                "memory_bytes": limits.MAX_RULE_MEMORY_BYTES,
            }
            try:
                self._talk(self._process, settings, _START_S)
            except SqlRefused as error:
                raise SqlRefused("the program that would run it does not start", is_limit=True) from error
        return folder

    def _ask(self, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        self._started()
        assert self._process is not None  # noqa: S101 - for the type checker: it was just started
        answer = self._talk(
            self._process,
            [sql, dict(params) if isinstance(params, Mapping) else list(params)],
            max(0, min(self._time_s, self._left.seconds)) + _GRACE_S,
        )
        if "rows" in answer:
            return [tuple(row) for row in answer["rows"]]
        if answer["kind"] == "InterruptException":
            raise self._too_slow()
        if answer["kind"] in _OF_MEMORY:
            raise _too_large()
        raise SqlRefused(answer["said"])

    def _talk(self, process: subprocess.Popen[bytes], message: Any, wait_s: float) -> dict[str, Any]:
        """Send one line and return the answer; a process that gives none is ended."""
        with interrupting.step(process.kill, wait_s) as step:
            try:
                process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr] # it is a pipe
                process.stdin.flush()  # type: ignore[union-attr]
                line = process.stdout.readline()  # type: ignore[union-attr]
            except BrokenPipeError:
                line = b""
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        self._end()
        if step.is_stopped:
            raise Stopped
        raise self._too_slow() if step.is_interrupted else _too_large("or is nested too deeply")

    def _too_slow(self) -> SqlRefused:
        if self._left.seconds < self._time_s:
            said = f"all rules of the project have {self._times.total_s:g} s, and none is left"
            return SqlRefused(said, is_limit=True, is_time=True, cause=self._times.total_by)
        cause = self._times.most_by if self._times.most_s < self._wanted_s else ""
        return SqlRefused(f"it did not end within {self._time_s:g} s", is_limit=True, is_time=True, cause=cause)

    def _end(self) -> None:
        process, self._process = self._process, None
        self._lent.clear()
        if process is None:
            return
        process.kill()
        process.wait()
        with contextlib.suppress(BrokenPipeError):  # what it did not take any more is of no use to anybody
            process.stdin.close()  # type: ignore[union-attr] # it is a pipe
        process.stdout.close()  # type: ignore[union-attr]


def _too_large(other: str = "") -> SqlRefused:
    most = limits.MAX_RULE_MEMORY_BYTES // limits.MIB
    return SqlRefused(f"it takes more than {most} MiB of memory {other}".strip(), is_limit=True, is_memory=True)
