"""Real processes: killed without warning, and writing and reading at the same time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.storage import compaction, head, journal, verify
from tests.core.storage.making import CLOCK, FS, new_store, numbers
from tests.support.generators.histories import FACTOR

ROOT = Path(__file__).parents[3]
KILLS = 3 * FACTOR

WRITE = """
import json, sys
from pathlib import Path
from kbcore.clock import SystemClock
from kbcore.storage import journal
from kbcore.storage.fs import RealFs
fs, clock, directory, who, count, pad = RealFs(), SystemClock(), Path(sys.argv[1]), *map(int, sys.argv[2:])
for number in range(count):
    with journal.writing(fs, directory, clock, wait_s=60) as writer:
        at = max(clock.now(), writer.head.head.at)
        rec = json.dumps({"at": at, "who": who, "n": number, "pad": "x" * pad}).encode()
        seq = writer.append(rec, at).seq
    print(json.dumps([seq, who, number]), flush=True)
"""

READ = """
import sys
from pathlib import Path
from kbcore.storage import journal
from kbcore.storage.fs import RealFs
fs, directory, last = RealFs(), Path(sys.argv[1]), int(sys.argv[2])
place, seen, looks = None, 0, 0

def look(of):
    global place
    for entry in journal.scan(fs, directory, of, after=place):
        place = entry.end
    return of.seq

while seen < last:
    now = journal.reading(fs, directory, look)
    assert now >= seen, (now, seen)
    seen = now
    looks += 1
print(looks)
"""


def start(program: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def acked_lines(text: str) -> list[list[int]]:
    """Return the answers that came out whole."""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("pad", [0, 4 * 1024 * 1024], ids=["small records", "large records"])
def test_what_was_answered_survives_kill_9(tmp_path: Path, pad: int) -> None:
    directory = new_store(tmp_path)
    chance = random.Random(pad)
    acked: list[list[int]] = []
    for who in range(KILLS):
        process = start(WRITE, directory, who, 10_000, pad)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.04))
        process.kill()
        acked += acked_lines(first + process.communicate()[0])
    with journal.writing(FS, directory, CLOCK) as writer:
        of = writer.head
    records = [json.loads(entry.frame.rec) for entry in journal.scan(FS, directory, of)]
    present = [(seq, record["who"], record["n"]) for seq, record in enumerate(records, start=1)]
    assert set(map(tuple, acked)) <= set(present)
    assert len(present) <= len(acked) + KILLS
    assert verify.prove(FS, directory).is_sound


@pytest.mark.sliced
def test_writers_and_readers_at_once_agree(tmp_path: Path) -> None:
    directory = new_store(tmp_path)
    writers, count = 3, 20
    processes = [start(WRITE, directory, who, count, 100) for who in range(writers)]
    readers = [start(READ, directory, writers * count) for _ in range(2)]
    for _ in range(3):
        compaction.compact(FS, directory, SystemClock(), lambda of: [b"1"], wait_s=60)
    acked = [line for process in processes for line in acked_lines(process.communicate()[0])]
    assert [process.returncode for process in processes] == [0] * writers
    assert all(int(reader.communicate(timeout=30)[0]) > 0 for reader in readers)
    of = head.read(FS, directory)
    assert of.seq == writers * count
    assert sorted(seq for seq, _, _ in acked) == list(range(1, of.seq + 1))
    records = [json.loads(entry.frame.rec) for entry in journal.scan(FS, directory, of)]
    assert [[seq, record["who"], record["n"]] for seq, record in enumerate(records, start=1)] == sorted(acked)
    assert [record["at"] for record in records] == sorted(record["at"] for record in records)
    assert verify.prove(FS, directory).is_sound
    assert len(numbers(directory)) == of.seq
