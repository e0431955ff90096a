"""The time of a run of DML against the bare engine over a pipe: start, steps, backtracks and messages."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from benchmarks.inside import series_of
from benchmarks.measure import Sample, call, in_turns
from benchmarks.place import Place
from benchmarks.prolog import Bare, bare_engine, usable_engines
from benchmarks.table import Row
from tests.support.logic.engines import engine_variables

STEP = 15.0
"""The most that a step of a program may cost against the bare engine."""
MESSAGES = 1_000
BACKTRACKS = 1_000
_REVERSED = 400
_TIMES = 40
_SEARCHES = 100
"""One search is over sooner than the two events around it, whose time is that of the pipe."""
_CLAUSES = (
    "nrev([], []).\n", "nrev([H|T], R) :- nrev(T, S), app(S, [H], R).\n", "app([], L, L).\n",
    "app([H|T], L, [H|R]) :- app(T, L, R).\n",
    f"work :- numlist(1, {_REVERSED}, L), forall(between(1, {_TIMES}, _), nrev(L, _)).\n",
    "pick(X) :- between(1, 1000000, X).\n", f"search :- pick(X), X > {BACKTRACKS}, !.\n",
    f"searches :- forall(between(1, {_SEARCHES}, _), search).\n",
)  # fmt: skip


def run(place: Place) -> list[Row]:
    """Measure each engine of this machine; say on standard error which is missing."""
    rows = []
    for engine in usable_engines():
        variables = json.dumps(engine_variables(engine))
        for one in place.answer("-m", "benchmarks.dml", engine, variables, str(place.sizes.rounds)):
            kb, floor = series_of(one.pop("taken"))
            rows.append(Row(**{**one, "name": f"DML, {engine}: {one['name']}"}, kb=kb, floor=floor))
    return rows


def _between(goals: str, *clauses: str) -> Sample:
    """Return the time of the goals of a program, without the start of the engine."""

    async def timed() -> float:
        from kbcore.dml import run_dml

        code = "".join([*clauses, f"agent_main :- log(begin), {goals}, log(end).\n"])
        begun, ended = [time.perf_counter() async for event in run_dml(code) if event.type == "log"]
        return ended - begun

    return Sample(asyncio.run(timed()))


def _first_event() -> None:
    async def first() -> None:
        from kbcore.dml import run_dml

        run = run_dml("agent_main :- log(x).")
        async for event in run:
            if event.type != "log":
                raise RuntimeError(event)
            return

    asyncio.run(first())


def _memory_bytes() -> int:
    """Return the bytes of the memory of a run with so many messages of a hundred characters."""
    from kbcore.dml.memory import ROOT, MessageTree
    from kbcore.dml.model import Message

    tracemalloc.start()
    memory, node = MessageTree(), ROOT
    for number in range(MESSAGES):
        node = memory.add(node, Message("user", f"{number:100}"))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


def main(engine: str, variables: str, rounds: str) -> None:
    """Print the rows of one engine, with the seconds of each run."""
    os.environ.update(json.loads(variables))
    from kbcore.logic.engine import available

    launch = available(os.environ).required()
    rows: list[dict[str, Any]] = []

    def took(
        name: str, count: int, unit: str, own: Callable[[], Sample], floor: Callable[[], Sample], **more: Any
    ) -> None:
        taken = [one.walls_s for one in in_turns(own, floor, rounds=int(rounds))]
        rows.append({"name": name, "against": "bare engine", "count": count, "unit": unit, "taken": taken,
                     "peak_bytes": None, **more})  # fmt: skip

    def start_bare() -> Sample:
        begun = time.perf_counter()
        started: Bare = bare_engine(engine, launch)
        sample = Sample(time.perf_counter() - begun)
        started.kill()
        return sample

    took("start to the first event", 1, "run", lambda: call(_first_event), start_bare)
    bare = bare_engine(engine, launch)
    bare.ask("".join([f"load({len(_CLAUSES)}).\n", *_CLAUSES]).encode())
    steps = _TIMES * (_REVERSED + 1) * (_REVERSED + 2) // 2
    took("steps of a program", steps, "steps", lambda: _between("work", *_CLAUSES),
         lambda: call(lambda: bare.ask(b"call(work).\n")), at_most=STEP)  # fmt: skip
    took("backtracks without tasks", _SEARCHES * BACKTRACKS, "backtracks", lambda: _between("searches", *_CLAUSES),
         lambda: call(lambda: bare.ask(b"call(searches).\n")), at_most=STEP)  # fmt: skip
    adding = 'add(0) :- !.\nadd(N) :- user("{N}"), M is N - 1, add(M).\n'

    def ask_often() -> None:
        for _ in range(MESSAGES):
            bare.ask(b"hello.\n")

    took("messages added, each a request", MESSAGES, "messages", lambda: _between(f"add({MESSAGES})", adding),
         lambda: call(ask_often), peak_bytes=_memory_bytes())  # fmt: skip
    bare.kill()
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
