"""H1: whatever others write, no parser crashes, hangs or swells, and each error is clear."""

from __future__ import annotations

import json
import random

import pytest

from kbcore.storage.fs import RealFs
from tests.support.effort.scale import SCALE, SEED, tries
from tests.support.fuzz import fuzzing
from tests.support.fuzz.fuzzing import Target, corpus, faults_of, input_of, run_guarded
from tests.support.fuzz.nasty import NASTY
from tests.support.fuzz.parsers import TARGETS
from tests.support.processes.spoken import Spoken
from tests.support.repository.project import Project, req

GROUPS = [list(TARGETS)] if SCALE == "slice" else [[name] for name in TARGETS]
"""Targets that run in one process; starting one costs as much as a thousand inputs."""


@pytest.mark.sliced(1)
@pytest.mark.fault("H1")
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_no_input_crashes_hangs_or_swells_a_parser(names, tally, tmp_path) -> None:
    count = tries(30, 9500)
    found = run_guarded(names, SEED, count, tmp_path)
    tally.tried(found.tried)
    for at, what in found.violations:
        tally.violated(f"python -m tests.support.fuzz.fuzzing {at.replace(' ', f' {SEED} ')} 1", what)
    if found.memory_bytes > fuzzing.MEMORY_BYTES:
        tally.violated(names, f"{found.memory_bytes} bytes of memory")
    assert len(found.answers) > 1 or len(names) == 1, "all inputs were answered alike"
    tally.done(at_least=(count + len(NASTY)) * len(names))


@pytest.mark.sliced
@pytest.mark.fault("H1")
def test_a_server_answers_or_leaves_out_every_line_and_lives_on(tally, tmp_path) -> None:
    project = Project(tmp_path / "p", fs=RealFs())
    project.sync({"docs/requirements/a.md": req("A")})
    project.close()
    target = Target([line for line in corpus("mcp") if b"initialize" not in line], lambda _: None)
    count = tries(60, 3000)
    with Spoken(project.root) as server:
        server.greet()
        for number in (*range(-len(NASTY), 0), *range(count)):
            server.write(input_of(target, "server", SEED, number).replace(b"\n", b" ") + b"\n")
            tally.tried()
            if number % 20 == 0:
                assert server.ask(f"still-{number}", "ping")["result"] == {}
        assert server.ask("last", "tools/call", {"name": "kb_query", "arguments": {"ids": ["A"]}})
        assert server.end() == 0
        for line in server.lines:
            if "Traceback" in str(line) or "internal_error" in str(line):
                tally.violated("server", line[:300])
            _judge(tally, json.loads(line))
        if b"Traceback" in server.errors:
            tally.violated("server", server.errors[-2000:])
    tally.done(at_least=count)


def _judge(tally, answer) -> None:
    """Look at an error of the protocol, or at the one that a tool gives."""
    message = answer.get("error", {}).get("message", "as good as any.").partition("Unknown tool: ")[0] or "names a tool"
    for fault in fuzzing._unclear(message):
        tally.violated(answer, fault)
    for block in answer.get("result", {}).get("content", ()):
        error = json.loads(block["text"]).get("error")
        if error and not (error["message"].strip() and error["hint"].strip()):
            tally.violated(error, "no message, or no hint")


@pytest.mark.fault("H1")
def test_the_fuzzer_finds_a_crash_a_hang_and_an_unclear_error(tally) -> None:
    from kbcore.errors import InvalidQuery

    def crash(data: bytes) -> None:
        raise KeyError(data)

    def unclear(data: bytes) -> None:
        raise InvalidQuery(f"got <class 'dict'> {data!r}", hint="no end")

    seeds = corpus("mcp")
    assert fuzzing.judged(crash, seeds[0])[0] == "crash"
    assert len(fuzzing.judged(unclear, seeds[0])[1]) == 2
    assert not list(faults_of(InvalidQuery("It cannot be read.")))
    target = Target(seeds, crash)
    inputs = {input_of(target, "x", SEED, number) for number in range(200)}
    assert len(inputs) > 150, "inputs repeat"
    assert inputs == {input_of(target, "x", SEED, number) for number in random.Random(1).sample(range(200), 200)}
    tally.tried(200)
    tally.done()


@pytest.mark.fault("H1")
@pytest.mark.parametrize(("body", "signal"), [("while True: pass", -27), ("x = bytearray(2 << 30)", None)])
def test_an_endless_or_huge_input_ends_its_process_and_is_named(body, signal, tally, tmp_path) -> None:
    import subprocess
    import sys

    code = (
        "import mmap\nfrom tests.support.fuzz import fuzzing\nfuzzing.INPUT_S = 0.1\nfuzzing.limit_memory()\n"
        f"def use(data):\n    {body}\n"
        "found = fuzzing.run_here(fuzzing.Target([b'a'], use), 'x', 1, range(2), mmap.mmap(-1, 64))\n"
        "assert [what.split(':')[0] for _, what in found.violations] == ['MemoryError'] * 2"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=fuzzing.ROOT, timeout=120, capture_output=True, check=False)
    assert done.returncode == (signal or 0), done.stderr.decode()
    tally.tried()
    tally.done()
