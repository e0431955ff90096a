"""A fuzzer: inputs made of a small corpus, each from its own seed, given to targets in a guarded process.

``python -m tests.support.fuzz.fuzzing TARGET,… SEED FIRST COUNT`` reports one JSON object; a COUNT of 1 replays and
shows one input, and numbers below 0 are the inputs that are always the same. The process may take 1 GiB more
memory than it begins with, and each input 2 seconds of CPU.
"""

from __future__ import annotations

import collections
import contextlib
import json
import mmap
import random
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kbcore.errors import KBError, Problem
from tests.support.effort.scale import SCALE
from tests.support.fuzz.mutating import mutated
from tests.support.fuzz.nasty import NASTY
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "tests" / "fault" / "corpus"
MEMORY_BYTES = 2**30
INPUT_S = 2.0
WAIT_S = 1200.0
"""Longer than the inputs of one process take on any machine: what needs longer waits for something."""
_PLACE_BYTES = 64
_LEAKS = re.compile(
    r"<class |object at 0x|Traceback|msgspec|pydantic|NoneType|<kb|\bkb(?:core|cli|mcp)\.[a-z]|Exception\b"
)
_CUT_OFF = tuple(" \t\n,;:([{")


class Target(NamedTuple):
    """A target of the fuzzer: its first inputs, how often one gets a new checksum, and what reads it.

    ``use`` returns the errors and problems that it found as values; a ``KBError`` is an answer as well. What else it
    raises is a violation.
    """

    seeds: Sequence[bytes]
    use: Callable[[bytes], Iterable[Any] | None]
    seal: Callable[[bytes], bytes] | None = None


class Found(NamedTuple):
    """The result of a run: inputs tried, answers by kind, and violations with the target and number of their input."""

    tried: int
    answers: dict[str, int]
    violations: list[tuple[str, str]]
    memory_bytes: int


def corpus(*names: str) -> list[bytes]:
    """Return the files of some folders of the corpus."""
    return [path.read_bytes() for name in names for path in sorted((CORPUS / name).iterdir())]


def input_of(target: Target, name: str, seed: int, number: int) -> bytes:
    """Return one input: the same for the same seed and number. Below 0 are those that are always the same."""
    if number < 0:
        return NASTY[-number - 1]()
    chance = random.Random(f"{seed}:{name}:{number}")
    data = mutated(chance, target.seeds)
    return target.seal(data) if target.seal and chance.random() < 0.7 else data


def faults_of(answer: Any) -> Iterator[str]:
    """Yield what is unclear about an error or a problem that a user would see."""
    if isinstance(answer, KBError):
        yield from _unclear(answer.message)
        yield from _unclear(answer.hint, is_sentence=True)
        json.dumps(answer.as_json(), allow_nan=False)
        for one in answer.details:
            yield from faults_of(one)
    elif isinstance(answer, Problem):
        yield from _unclear(answer.message, is_sentence=True)
        yield from _unclear(answer.hint, is_sentence=True) if answer.hint else ()
    else:  # a problem of a file, which is shown after its place
        yield from _unclear(answer.message)
        yield from _unclear(answer.hint, is_sentence=True)


def _unclear(text: str, *, is_sentence: bool = False) -> Iterator[str]:
    if not text.strip():
        yield "an empty text"
    if leak := _LEAKS.search(text):
        yield f"{leak[0]!r} in {text[:200]!a}"
    if text.endswith(_CUT_OFF) or (is_sentence and not text.endswith((".", "?", "!", "…", ")", "`"))):
        yield f"no end of a sentence: {text[-80:]!a}"
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        yield f"half of a surrogate pair in {text[:200]!a}"


def judged(use: Callable[[bytes], Iterable[Any] | None], data: bytes) -> tuple[str, list[str]]:
    """Give one input to a target; return the kind of its answer, and what is wrong with that."""
    try:
        answers = list(use(data) or ())
        kind = "problems" if answers else "taken"
    except KBError as error:
        answers, kind = [error], error.code
    except Exception as error:  # noqa: BLE001 - whatever else is raised is what is looked for
        return "crash", [f"{type(error).__name__}: {str(error)[:200]!a}"]
    return kind, [fault for answer in answers for fault in faults_of(answer)]


def limit_memory() -> None:
    """Let this process take 1 GiB more than it has now."""
    taken_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = taken_bytes + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_here(target: Target, name: str, seed: int, numbers: range, place: Any) -> Found:
    """Give the inputs to a target, writing down the number of each before it begins."""
    found = Found(0, {}, [], 0)
    violations = found.violations
    for number in numbers:
        place[:_PLACE_BYTES] = f"{name} {number}".encode().ljust(_PLACE_BYTES)
        data = input_of(target, name, seed, number)
        signal.setitimer(signal.ITIMER_PROF, INPUT_S)  # what takes longer ends the process
        kind, faults = judged(target.use, data)
        found.answers[kind] = found.answers.get(kind, 0) + 1
        violations += [(f"{name} {number}", f"{fault} for {data[:300]!r}") for fault in faults[:2]]
        if len(violations) > 40:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return found._replace(tried=len(numbers))


def run_guarded(names: Sequence[str], seed: int, count: int, folder: Path) -> Found:
    """Run targets in a process of their own; what ended it is a violation of the input that it was at."""
    place = folder / f"{names[0]}.at"
    place.write_bytes(b" " * _PLACE_BYTES)
    first = -len(NASTY)
    command = [
        sys.executable,
        "-m",
        "tests.support.fuzz.fuzzing",
        ",".join(names),
        *map(str, (seed, first, count - first)),
    ]
    try:
        done = subprocess.run(
            [*command, str(place)],
            cwd=ROOT,
            env=git_env({"PYTHONPATH": str(ROOT), "KB_FAULT": SCALE}),
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Found(count, {}, [(place.read_text().strip(), f"no end within {WAIT_S:g} s")], 0)
    if done.returncode:
        said = done.stderr[-600:].decode(errors="replace")
        what = f"more than {INPUT_S} s" if done.returncode == -signal.SIGPROF else f"status {done.returncode}: {said}"
        return Found(count, {}, [(place.read_text().strip(), what)], 0)
    tried, answers, violations, memory_bytes = json.loads(done.stdout.splitlines()[-1])
    return Found(tried, answers, [(at, what) for at, what in violations], memory_bytes)


def main() -> None:
    """Run what the arguments name and print what was found."""
    from tests.support.fuzz.parsers import TARGETS

    names, (seed, first, count) = sys.argv[1].split(","), map(int, sys.argv[2:5])
    targets = {name: TARGETS[name]() for name in names}
    for target in targets.values():
        judged(target.use, target.seeds[0])  # what is imported late is no part of an input
    limit_memory()
    with contextlib.ExitStack() as stack:
        place: Any = bytearray(_PLACE_BYTES)
        if len(sys.argv) > 5:
            file = stack.enter_context(Path(sys.argv[5]).open("r+b"))
            place = stack.enter_context(mmap.mmap(file.fileno(), _PLACE_BYTES))
        elif count == 1:
            print(input_of(targets[names[0]], names[0], seed, first)[:2000])
        whole = Found(0, {}, [], 0)
        for name, target in targets.items():
            found = run_here(target, name, seed, range(first, first + count), place)
            answers = collections.Counter(whole.answers) + collections.Counter(found.answers)
            whole = Found(whole.tried + found.tried, dict(answers), whole.violations + found.violations, 0)
    print(json.dumps(whole._replace(memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)))


if __name__ == "__main__":
    main()
