"""Shows of each mutant which test misses the guard that it leaves out.

``python -m tests.support.guards.detectors REQUEST`` does it.

The tests are collected once, in a process of their own. A first copy of it runs them all and notes which guards made a
difference in which test. Then one copy for each mutant runs the tests in which its guard did, until one fails. What
that first run did not note can only make a mutant seem to survive, never hide one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.effort import scale, tally
from tests.support.guards.mutants import Mutant, applied, mutants, watched

ROOT = Path(__file__).resolve().parents[3]
TEST_CPU_S, UNKNOWN_CPU_S = 1.0, 20.0
"""A test that takes longer than this, and much longer than without a mutant, does not end."""
TEST_S = 120
"""Nor does one that waits for so long."""
FIRST_S = 600
"""Nor does one of the first run, without a mutant, that takes so long: a busy machine is no reason."""
WAIT_S = 7200.0
"""Longer than all mutants of a request take on any machine."""
MEMORY_BYTES = 8 << 30
SURVIVED = ""
ENDED = "a test never came to its end"


class Request(msgspec.Struct, frozen=True):
    """The guards to take out, and the tests that have to fail without them."""

    places: tuple[str, ...]
    """Modules, or functions of modules as "module:Class.function"."""
    tests: tuple[str, ...]
    """Files and folders of tests."""
    deselected: tuple[str, ...] = ()
    """Tests that are not run: those that take long, or hurt programs themselves and cannot know of a mutant."""
    names: tuple[str, ...] = ()
    """Take only these few mutants, by their full names, and spare the first run; by default all in the places."""
    spared: tuple[str, ...] = ()
    """Do not take out these, by their full names."""
    result: str = ""
    """Path of the file to write: for each mutant the test that caught it, empty for none."""


def wanted(request: Request) -> list[Mutant]:
    """Return the mutants of a request.

    Raises: ``LookupError`` for a place or a name without any.
    """
    found: dict[str, Mutant] = {}
    for place in request.places:
        module, _, function = place.partition(":")
        here = {str(one): one for one in mutants(module) if function in {"", one.function}}
        if not here:
            raise LookupError(f"there is no guard in {place}")
        found |= here
    missing = {*request.names, *request.spared} - set(found)
    if missing:
        raise LookupError(f"there is no guard like this: {sorted(missing)}")
    names = (set(request.names) or set(found)) - set(request.spared)
    return [one for name, one in found.items() if name in names]


def caught(request: Request, folder: Path) -> dict[str, str]:
    """Return for each mutant of a request the test that caught it, empty for none. ``folder`` is for files."""
    result, reported = folder / "result.json", folder / "request.json"
    request = msgspec.structs.replace(request, result=str(result))
    reported.write_bytes(msgspec.json.encode(request))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"KB_FAULT": "slice", "KB_FAULT_SEED": str(scale.SEED), "KB_FAULT_ROUND": "0", "KB_TEST_DAY": "all"}
    for name in (tally.KEPT_IN, "KB_FAULT_UNTIL"):  # the time of a soak is over long before all mutants are tried
        environment.pop(name, None)
    command = [sys.executable, "-m", "tests.support.guards.detectors", str(reported)]
    with tempfile.TemporaryDirectory(prefix="kb-test-") as left:  # by copies, which end without tidying up
        environment["TMPDIR"] = left
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
    if ended.returncode or not result.exists():
        raise RuntimeError(f"the control did not run: {ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    found: dict[str, str] = json.loads(result.read_bytes())
    return found


class Control:
    """A plugin that runs the collected tests once for each mutant, each time in a copy of this process."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.failed = ""
        self.duration_s = 0.0

    @pytest.hookimpl
    def pytest_configure(self) -> None:
        """Let Hypothesis keep nothing of what a mutant does to an example, and be content with one that fails."""
        from hypothesis import Phase, settings  # pytest wants to import it by itself first

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("control", settings.default, database=None, phases=phases)
        settings.load_profile("control")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do the work in place of a plain run."""
        if session.testsfailed or not session.items:
            pytest.exit("the tests could not be collected", returncode=1)
        chosen = wanted(self.request)
        gc.collect()
        gc.freeze()
        found: dict[str, str] = {}
        reached, durations = (None, {}) if self.request.names else self._reached(session)
        order = _Order(session.items, durations)
        for mutant in chosen:
            known = None if reached is None else reached.get(str(mutant), [])
            found[str(mutant)] = by = self._hunt(session, mutant, order.of(mutant, known), durations)
            order.learn(mutant, by)
        Path(self.request.result).write_text(json.dumps(found), encoding="utf-8")
        return True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test came to."""
        self.duration_s += report.duration
        if report.failed:
            self.failed = f"{report.nodeid}\n{report.longreprtext}"

    def _reached(self, session: pytest.Session) -> tuple[dict[str, list[int]], dict[int, float]]:
        """Run all tests, and return for each mutant those in which it makes a difference, and how long each took."""
        modules = {place.partition(":")[0] for place in self.request.places}
        names = {module: [str(one) for one in mutants(module)] for module in modules}

        def run() -> Any:
            reached: dict[str, list[int]] = {}
            durations = {}
            with contextlib.ExitStack() as stack:
                seen = {module: stack.enter_context(watched(module)) for module in modules}
                for at, item in enumerate(session.items):
                    # A test that does not end shows where it is, and ends the control.
                    faulthandler.dump_traceback_later(FIRST_S, exit=True, file=sys.__stderr__)
                    self._run(session, item, session.items[at + 1 : at + 2])
                    faulthandler.cancel_dump_traceback_later()
                    if self.failed:
                        return [self.failed, {}, {}]
                    durations[at] = self.duration_s
                    for module, numbers in seen.items():
                        for number in numbers:
                            reached.setdefault(names[module][number], []).append(at)
                        numbers.clear()
            return ["", reached, durations]

        failed, reached, durations = self._in_copy(run) or ["the first run never came to its end", {}, {}]
        if failed:
            pytest.exit(f"a test fails without any mutant: {failed}", returncode=1)
        return reached, {int(at): duration for at, duration in durations.items()}

    def _hunt(self, session: pytest.Session, mutant: Mutant, order: Sequence[int], durations: dict[int, float]) -> str:
        """Return the first test that fails with the mutant, empty if none does."""

        def run() -> Any:
            session.config.option.tbstyle = "no"  # to tell how a test fails takes longer than to see that it does
            with applied(mutant):
                for place, at in enumerate(order):
                    limit_s = TEST_CPU_S + 10 * durations[at] if durations else UNKNOWN_CPU_S
                    signal.setitimer(signal.ITIMER_PROF, limit_s)
                    signal.alarm(TEST_S)
                    self._run(
                        session, session.items[at], [session.items[next_] for next_ in order[place + 1 : place + 2]]
                    )
                    if self.failed:
                        return [self.failed.partition("\n")[0]]
            return [SURVIVED]

        return (self._in_copy(run) or [ENDED])[0] if order else SURVIVED

    def _run(self, session: pytest.Session, item: pytest.Item, following: Iterable[pytest.Item]) -> None:
        self.failed, self.duration_s = "", 0.0
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=next(iter(following), None))

    def _in_copy(self, run: Callable[[], Any]) -> Any:
        """Return what ``run`` returns in a copy of this process, None if a signal ended that before."""
        answer = Path(f"{self.request.result}.part")
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            status = 1
            try:
                os.setpgid(0, 0)
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                answer.write_text(json.dumps(run()), encoding="utf-8")
                status = 0
            except BaseException:  # noqa: BLE001 - it is reported, and the copy must not go on as if it were the first
                traceback.print_exc()
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if os.WIFSIGNALED(status):
            return None
        if status:
            pytest.exit("the control itself failed", returncode=1)
        return json.loads(answer.read_bytes())


class _Order:
    """The order of tests: first those that caught others in this function or module, or that took out the like of it
    elsewhere, or that mirror the module; then the shortest.
    """

    def __init__(self, items: Sequence[pytest.Item], durations: dict[int, float]) -> None:
        self._numbers = {item.nodeid: number for number, item in enumerate(items)}
        self._files = [item.path.stem for item in items]
        self._durations = durations
        self._caught: dict[str, dict[int, int]] = {}

    def of(self, mutant: Mutant, reached: Sequence[int] | None) -> list[int]:
        here = self._caught.get(f"{mutant.module}.{mutant.function}", {})
        near, alike = self._caught.get(mutant.module, {}), self._caught.get(_what(mutant), {})
        every = range(len(self._numbers)) if reached is None else reached
        name = f"test_{mutant.module.rpartition('.')[2]}"

        def rank(at: int) -> tuple[float, ...]:
            return (
                -here.get(at, 0),
                -near.get(at, 0),
                -alike.get(at, 0),
                self._files[at] != name,
                self._durations.get(at, 0.0),
                at,
            )

        return sorted(every, key=rank)

    def learn(self, mutant: Mutant, by: str) -> None:
        if by in self._numbers:
            for place in (mutant.module, f"{mutant.module}.{mutant.function}", _what(mutant)):
                counts = self._caught.setdefault(place, {})
                counts[self._numbers[by]] = counts.get(self._numbers[by], 0) + 1


def _what(mutant: Mutant) -> str:
    """Return what is left out, wherever that is."""
    return mutant.name.partition(": ")[2]


def main() -> int:
    """Return the status of pytest."""
    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Request)
    quiet = ["-q", "-s", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    folder = ["--basetemp", str(Path(sys.argv[1]).parent / "basetemp")]
    out = [f"--deselect={one}" for one in request.deselected]
    return int(pytest.main([*quiet, *folder, *out, *request.tests], plugins=[Control(request)]))


if __name__ == "__main__":
    sys.exit(main())
