"""Checks programs with engines of Prolog, which read them and run nothing of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from kbcore.dml.check import CallerTools, CheckedProgram, checked_reply, failed_check, finding_of
from kbcore.dml.engine_thread import EngineThread
from kbcore.dml.places import Lines
from kbcore.errors import Problem
from kbcore.limits import MAX_PROGRAM_CHARS
from kbcore.logic.engine import EngineEnded
from kbcore.logic.engine.terms import string
from kbcore.logic.nesting import deep_clauses, without_clauses

FindErrors = Callable[[str], Awaitable[Sequence[Problem]]]
"""Returns the errors of the text of a program."""
CHECK_S: Final = 60.0
"""The longest time that an engine may take to read a program."""
_AT_ONCE: Final = 2
"""Engines that work at the same time: each takes a core."""


async def check_program(text: str, file: str, tools: CallerTools, env: Mapping[str, str]) -> CheckedProgram:
    """Return the check of a program, made by an engine of its own. Raises: ``PrologUnavailable``."""
    if len(text) > MAX_PROGRAM_CHARS:
        return failed_check(text, file, "too_long", f"{len(text):,}", f"{MAX_PROGRAM_CHARS:,}")
    lines, deep = Lines(text), deep_clauses(text)
    found = [finding_of("too_deep", lines.place(one.start, one.end), file) for one in deep]
    engine = EngineThread(env, CHECK_S)
    try:
        async with asyncio.timeout(CHECK_S):
            await engine.start()
            reply = await engine.ask(f"check({string(without_clauses(text, deep))}).\n")
    except EngineEnded as ended:
        return failed_check(text, file, "not_checked", ended.reason)
    except TimeoutError:
        return failed_check(text, file, "not_checked", "timeout")
    finally:
        await engine.end()
    if reply["status"] == "error":
        return failed_check(text, file, "not_checked", reply["kind"])
    return checked_reply(reply, text, file, tools, found)


async def check_programs(
    programs: Sequence[tuple[str, str]], tools: CallerTools, env: Mapping[str, str]
) -> list[CheckedProgram]:
    """Return the checks of programs, each a file and its text, in their order. Raises: ``PrologUnavailable``."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(file: str, text: str) -> CheckedProgram:
        async with turns:
            return await check_program(text, file, tools, env)

    return await asyncio.gather(*(one(*program) for program in programs))


def errors_finder(
    file: str, tools: CallerTools, env: Mapping[str, str]
) -> Callable[[str], Awaitable[Sequence[Problem]]]:
    """Return what finds the errors of the text of a program, without its warnings."""

    async def find(text: str) -> Sequence[Problem]:
        checked = await check_program(text, file, tools, env)
        return [one.problem for one in checked.findings if one.severity == "error"]

    return find
