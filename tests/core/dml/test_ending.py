"""A run that is cancelled, not read any more, or whose engine dies leaves no process, and does not wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import Any

import pytest

from kbcore.dml import Run, run_dml
from tests.support.dml.runs import body, none_left, ran_async
from tests.support.dml.scripts import Script, call, does, done
from tests.support.logic.engines import is_running
from tests.support.repository.repos import git_env

Engine = dict[str, str]

LOOP = "agent_main :- log(begun), repeat, fail."


def started(code: str, engine: Engine, **options: Any) -> Run:
    """Return a run."""
    return run_dml(code, env=git_env(engine), **options)


def pid_of(run: Run) -> int:
    """Return the process of the engine of a run."""
    process = run._engine._engine
    assert process is not None
    return process.pid


async def forever(*_: Any) -> Any:
    """Wait for what never comes."""
    await asyncio.sleep(1000)


class Waiting:
    """A model that never says anything."""

    async def complete(self, *_: Any) -> Any:
        """Wait."""
        await forever()


PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "search": (LOOP, {}),
    "task": (body('log(begun), task("t")'), {"model": Waiting()}),
    "tool": (body("log(begun), exec(wait, _)"), {}),
    "input": (body('log(begun), wait_for_input("q", _)'), {"on_input": forever}),
    "many events": (body("log(begun), repeat, log(x), fail"), {}),
    "tool of the program": (
        'tool(work(_, _)) :- log(begun), repeat, fail.\nagent_main :- task("t").',
        {"model": Script(forever=does(call("work", arg1="x")))},
    ),
    "cleanup": (body("setup_call_cleanup(true, throw(x), ( log(begun), repeat, fail ))"), {}),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_run_that_is_cancelled_leaves_no_process(engine: Engine, place: str) -> None:
    code, options = PLACES[place]
    if place == "tool":

        async def wait() -> None:
            await forever()

        options = {"tools": [wait]}

    async def main() -> None:
        begun = asyncio.Event()

        async def read() -> None:
            async for event in started(code, engine, **options):
                if event.content == "begun":
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await none_left()

    asyncio.run(main())


def test_a_run_may_be_cancelled_at_any_time(engine: Engine) -> None:
    async def main(after_s: float) -> None:
        async def read() -> None:
            async for _ in started(body('forall(between(1, 100000, X), user("{X}"))'), engine):
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await none_left()

    for hundredth in (0, 1, 2, 4, 8, 16, 32):
        asyncio.run(main(hundredth / 100))


def test_a_run_that_nobody_reads_any_more_ends(engine: Engine) -> None:
    async def main() -> None:
        run = started(LOOP, engine)
        async for _ in run:
            break
        await none_left()
        async for _ in started(LOOP, engine):
            break
        await none_left()
        run = started(LOOP, engine)
        reader = aiter(run)
        await anext(reader)
        assert is_running(pid_of(run))
        await run.aclose()
        await none_left(0.1)
        with pytest.raises(StopAsyncIteration):
            await anext(reader)
        with pytest.raises(RuntimeError, match="a run is read once"):
            aiter(run)
        await started(LOOP, engine).aclose()

    asyncio.run(main())


def test_an_engine_that_is_killed_ends_the_run_with_an_error(engine: Engine) -> None:
    class Killing:
        async def complete(self, *_: Any) -> Any:
            os.kill(pid_of(runs[-1]), signal.SIGKILL)
            return done()

    def kill() -> None:
        os.kill(pid_of(runs[-1]), signal.SIGKILL)

    async def read(code: str, **options: Any) -> None:
        runs.append(started(code, engine, **options))
        events = []
        async for event in runs[-1]:
            events.append(event)
            if event.content == "kill":
                kill()
        assert [one.type for one in events[-2:]] == ["error", "finished"]
        assert events[-1].outcome == "error"
        assert events[-2].content == "The run has ended: The engine was killed."
        assert (events[-2].code, events[-2].data["hint"]) == ("program_failed", "Run it again.")
        await none_left()

    runs: list[Run] = []
    asyncio.run(read(body("log(kill), repeat, fail")))
    asyncio.run(read(body('task("t"), log(never)'), model=Killing()))
    asyncio.run(read(body("exec(kill, _), log(never)"), tools=[kill]))
    asyncio.run(read('tool(x(_, _)) :- exec(kill, _).\nagent_main :- task("t").', tools=[kill],
                     model=Script(does(call("x", arg1="1")))))  # fmt: skip


def test_a_slow_reader_gets_all_events_and_the_run_waits_for_it(engine: Engine) -> None:
    async def main() -> None:
        seen = []
        run = started(body("forall(between(1, 1000, X), log(X))"), engine)
        async for event in run:
            seen.append(event.content)
            if len(seen) < 3:
                await asyncio.sleep(0.3)
                assert run._events.qsize() <= 100
        assert seen == [*map(str, range(1, 1001)), ""]

    asyncio.run(main())


def test_fifty_runs_at_once_do_not_meet(engine: Engine) -> None:
    code = """
    agent_main(N) :-
        \\+ catch(seen(_), _, fail), assertz(seen(N)), nb_setval(k, N), user("own {N}"), task("t {N}", X),
        findall(S, seen(S), L), nb_getval(k, K), log("{N} {X} {L} {K}").
    """

    async def one(number: int) -> None:
        model = Script(done(X=number))
        found = await ran_async(code, engine, params={"N": number}, model=model)
        assert found.logs == [f"{number} {number} [{number}] {number}"]
        assert model.conversation(0)[0] == f"user: own {number}"

    async def main() -> None:
        at_once = asyncio.Semaphore(50 if engine["KB_LOGIC_ENGINE"] == "native" else 8)

        async def limited(number: int) -> None:
            async with at_once:
                await one(number)

        await asyncio.gather(*map(limited, range(50)))
        await none_left()

    asyncio.run(main())


def test_runs_of_two_threads_do_not_meet(engine: Engine) -> None:
    results: dict[int, list[str]] = {}

    def work(number: int) -> None:
        found = asyncio.run(
            ran_async(body(f"forall(between(1, 50, X), ( user(X), Y is X * {number}, log(Y) ))"), engine)
        )
        results[number] = found.logs

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [str(number * at) for at in range(1, 51)] for number in (2, 3)}


def test_an_error_of_the_reader_ends_the_run(engine: Engine) -> None:
    async def main() -> None:
        with contextlib.suppress(ZeroDivisionError):
            async for _ in started(LOOP, engine):
                raise ZeroDivisionError
        await none_left()

    asyncio.run(main())
