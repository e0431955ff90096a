"""The engine of the Prolog workspace dies at any moment: nothing is lost, nothing is doubled, and the query says so."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.errors import PrologFailed
from tests.fault.conftest import Tally
from tests.support.effort.scale import SEED, tries
from tests.support.logic.engines import is_running
from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 0.02
"""A request of a small workspace takes about half as long."""
DEADLINE_S = 30


@contextlib.contextmanager
def _killed_within(logic: LogicProject, delay_s: float) -> Iterator[None]:
    """Kill the engine that runs now, at some time while the block runs; it is dead at the end."""
    engine = logic.prolog._engine.process
    assert engine is not None

    def kill() -> None:
        if engine._child.returncode is None:
            engine._child.send_signal(signal.SIGKILL)

    timer = threading.Timer(delay_s, kill)
    timer.start()
    yield
    timer.join()
    engine._child.wait()


class _Moments:
    """A workspace of the facts ``item(N)``, and what it must hold."""

    def __init__(self, logic: LogicProject, chance: random.Random) -> None:
        self.logic = logic
        self.chance = chance
        self.items: list[int] = []
        self.last = 0

    def check(self) -> str:
        """Return what is wrong; "" for nothing."""
        text = "".join(f"item({one}).\n" for one in self.items).rstrip("\n")
        if self.logic.snapshot() != text:
            return f"the records hold {self.logic.snapshot()!r}, not {text!r}"
        found = self.logic.values("findall(X, catch(item(X), _, fail), L)", "L")
        if found != [f"[{', '.join(map(str, self.items))}]"]:
            return f"the engine holds {found}, not {self.items}"
        return ""

    def add(self) -> str:
        """Add some facts while the engine is killed."""
        new = [self.last + step for step in range(1, self.chance.randint(2, 6))]
        with _killed_within(self.logic, self.chance.random() * WITHIN_S):
            done = self.logic.add(*(f"item({one})." for one in new))
        self.items += new
        self.last = new[-1]
        return "" if done.succeeded == len(new) else f"{done.outcomes}"

    def remove(self) -> str:
        """Remove one while the engine is killed."""
        gone = self.chance.choice(self.items)
        with _killed_within(self.logic, self.chance.random() * WITHIN_S):
            done = self.logic.remove(f"item({gone}).")
        self.items.remove(gone)
        return "" if done.succeeded == 1 else f"{done.outcomes}"

    def query(self) -> str:
        """Read the answers of a query while the engine is killed; it may be lost, and has no wrong answer."""
        self.logic.start("item(X)")
        found = list[str]()
        kind = ""
        with _killed_within(self.logic, self.chance.random() * WITHIN_S):
            try:
                while (answer := self.logic.next())["status"] == "success":
                    found.append(answer["bindings"]["X"])
            except PrologFailed as error:
                kind = error.data["kind"]
        if found != [str(one) for one in self.items[: len(found)]]:
            return f"the answers {found} of {self.items}"
        if kind:
            return "" if kind == "query_lost" else f"{kind}, not query_lost"
        return "" if len(found) == len(self.items) else f"done after {found} of {self.items}"

    def open_query(self) -> str:
        """Kill the engine between two answers: the next one says that the query is lost, then there is none."""
        self.logic.first("item(X)")
        with _killed_within(self.logic, 0):
            pass
        kinds = []
        for _ in range(2):
            try:
                kinds.append(self.logic.next()["status"])
            except PrologFailed as error:
                kinds.append(error.data["kind"])
        return "" if kinds == ["query_lost", "no_active_session"] else f"{kinds}"


@pytest.mark.sliced
@pytest.mark.fault("P1")
def test_an_engine_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    engine: dict[str, str], tmp_path: Path, tally: Tally
) -> None:
    chance = random.Random(SEED)
    with logic_project(tmp_path / "p", git_env(engine)) as logic:
        moments = _Moments(logic, chance)
        moments.logic.add("item(0).")
        moments.items = [0]
        for number in range(tries(10, 200)):
            steps = [moments.add, moments.query, moments.open_query]
            step = chance.choice([*steps, moments.remove] if len(moments.items) > 1 else steps)
            problem = step() or moments.check()
            if problem:
                tally.violated(f"{engine['KB_LOGIC_ENGINE']} {number} {step.__name__}", problem)
                break
            tally.tried()
    tally.done(at_least=tries(10, 200))


@pytest.mark.sliced(1)
@pytest.mark.parametrize("goal", ["", "repeat, fail"])
def test_a_process_that_is_killed_leaves_no_engine(engine: dict[str, str], goal: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.logic.busy", str(tmp_path / "p"), goal]
    env = git_env(engine)
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        time.sleep(0.2)  # the engine works on the goal then
        owner.kill()
    until = time.monotonic() + DEADLINE_S
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(pid)
