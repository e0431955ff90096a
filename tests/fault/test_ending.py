"""F27: signals at random moments of commands that write: each ends in two seconds, and what it said is there.

The two seconds are those of the command itself: what it waits for a processor or a disk that others use does not count.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbcore.storage.fs import RealFs
from tests.fault.conftest import Tally
from tests.support.effort.scale import SEED, tries
from tests.support.processes.cli import environment
from tests.support.processes.own_time import own_time_s
from tests.support.repository.project import Project

MOST_S = 2.0
ENTITIES = 40
ENDED = {0, *(status for number in (signal.SIGINT, signal.SIGTERM) for status in (128 + number, -number))}
"""The statuses of a command that has ended, in good order or by the system."""


def begun(project: Project, number: int, key: str) -> subprocess.Popen[str]:
    """Begin a write of entities whose ids begin with the key: by a changeset, or every third time by a sync."""
    if number % 3 == 2:
        for at in range(ENTITIES):
            text = f"---\nid: {key}-{at}\ntitle: {key}\nstatus: open\n---\n"
            project.write({f"docs/requirements/{key}-{at}.md": text})
        words = ["sync"]
    else:
        words = ["apply", "-"]
    command = [sys.executable, "-m", "kbcli.app", "-C", str(project.root), *words, "--json"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), text=True)
    assert process.stdin
    process.stdin.write(request_of(key))
    process.stdin.close()
    process.stdin = None
    return process


def request_of(key: str) -> str:
    entities = [{"id": f"{key}-{at}", "type": "req", "title": key, "status": "open"} for at in range(ENTITIES)]
    return json.dumps({"changeset_id": f"cs-{key}", "entities": entities})


def is_in_order(status: int, warned: str) -> bool:
    """Tell whether a command ended as it should: Python shows where it was if it was still starting, KB never does."""
    if "Traceback" in warned:
        return warned.rstrip().endswith("KeyboardInterrupt") and "in _guarded" not in warned and "kbcore" not in warned
    return status in ENDED


@pytest.mark.sliced
@pytest.mark.fault("F27")
def test_a_command_that_a_signal_ends_is_whole_or_absent_and_what_it_acknowledged_is_there(
    tmp_path: Path, tally: Tally
) -> None:
    project = Project(tmp_path / "p", fs=RealFs())
    project.apply(entities=[{"id": "first", "type": "req", "title": "t", "status": "open"}])
    dice = random.Random(SEED)
    acknowledged, count = set[str](), tries(5, 60)
    for number in range(count):
        key = f"N{number}"
        process = begun(project, number, key)
        time.sleep(dice.uniform(0.1, 0.9))
        process.send_signal(dice.choice([signal.SIGTERM, signal.SIGINT]))
        took_s = own_time_s(process, MOST_S)
        if took_s > MOST_S:
            tally.violated(number, "it did not end in time")
            process.kill()
        said, warned = process.communicate(timeout=30)
        if not is_in_order(process.returncode, warned):
            tally.violated(number, f"status {process.returncode}: {warned[-500:]}")
        answer = json.loads(said) if process.returncode == 0 else {}
        if answer.get("applied") or answer.get("created", 0) >= ENTITIES:
            acknowledged.add(key)
        found = len(project.view().nodes([f"{key}-{at}" for at in range(ENTITIES)]))
        if found not in {0, ENTITIES}:
            tally.violated(number, f"{found} of {ENTITIES} entities are there")
        if key in acknowledged and not found:
            tally.violated(number, "what was acknowledged is not there")
        if number % 3 == 2:
            if found and not said:
                tally.violated(number, "the sync wrote and said nothing")
        elif project.apply(**json.loads(request_of(key))).duplicate is not bool(found):
            tally.violated(number, "the changeset id does not say what became of it")
        tally.tried()
    project.close()
    tally.done(count)


@pytest.mark.sliced(1)
@pytest.mark.fault("F27")
@pytest.mark.parametrize("work", ["import time; time.sleep(60)", "while True: pass"], ids=["asleep", "working"])
def test_the_time_of_a_process_counts_whether_it_sleeps_or_works(work: str, tally: Tally) -> None:
    tally.tried()
    with subprocess.Popen([sys.executable, "-c", work]) as process:
        took_s = own_time_s(process, 0.5)
        process.kill()
    if not 0.5 < took_s < MOST_S:
        tally.violated(work, took_s)
    tally.done()
