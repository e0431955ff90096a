"""A run of a program, read to its end, and the processes that it leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kbcore.dml import Event, Run, run_dml
from kbcore.dml.model import Message
from tests.support.logic.engines import is_running
from tests.support.logic.workspaces import children_of
from tests.support.repository.repos import git_env

_MARKS = ("kb_server", "launcher.js", "native-", "read -r line")
"""Parts of the commands of engines and of what watches over them."""


class Ran(msgspec.Struct, frozen=True):
    """A run that has ended, and its events."""

    run: Run
    events: list[Event]

    @property
    def outcome(self) -> str | None:
        """Return how it ended."""
        assert self.events[-1].type == "finished"
        assert [one.type for one in self.events].count("finished") == 1
        return self.events[-1].outcome

    def contents(self, *types: str) -> list[str]:
        """Return the contents of the events of these types."""
        return [one.content for one in self.events if one.type in types]

    @property
    def logs(self) -> list[str]:
        """Return what the program logged, without what was logged about it."""
        return [one.content for one in self.events if one.type == "log" and not one.code]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Return what was logged about the program, with the code of each."""
        return [(one.code, one.content) for one in self.events if one.type == "log" and one.code]

    @property
    def answers(self) -> list[str]:
        """Return its answers."""
        return self.contents("answer")

    @property
    def error(self) -> Event:
        """Return its only error; its outcome is ``error``."""
        [found] = [one for one in self.events if one.type == "error"]
        assert self.outcome == "error"
        return found

    @property
    def messages(self) -> list[str]:
        """Return the conversation at its end as `role: text`."""
        return [f"{one.role}: {one.text}" for one in self.memory]

    @property
    def memory(self) -> list[Message]:
        """Return the conversation at its end."""
        return self.run.memory


def ran(code: str, engine: Mapping[str, str], **options: Any) -> Ran:
    """Run a program on an engine, with the arguments of ``run_dml``."""
    return asyncio.run(ran_async(code, engine, **options))


async def ran_async(code: str, engine: Mapping[str, str], **options: Any) -> Ran:
    """Run a program in the present event loop, as ``ran``."""
    run = run_dml(code, env=git_env(engine), **options)
    return Ran(run, [event async for event in run])


async def none_left(within_s: float = 2.0) -> None:
    """Wait until this process has no engine any more; fail where it takes longer.

    Other tests in this process may have left children of other kinds.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    while left := _engines():
        assert loop.time() < until, left
        await asyncio.sleep(0.01)


def _engines() -> list[str]:
    """Return the commands of the engines that this process has started."""
    running = [_words(pid) for pid in children_of(os.getpid()) if is_running(int(pid))]
    return [words for words in running if any(mark in words for mark in _MARKS)]


def _words(pid: str) -> str:
    """Return the command of a process, "" where it has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def body(goals: str, *clauses: str) -> str:
    """Return a program with these goals as the body of `agent_main`, and further clauses."""
    return "\n".join([f"agent_main :- {goals}.", *clauses])
