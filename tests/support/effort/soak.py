"""Runs the fault suite again and again, with other seeds each round: ``python -m tests.support.effort.soak MINUTES``.

Each file has an equal share of the time that is left in a round: when it is over, no other test of the file is begun,
and the next file follows. A file that ends earlier leaves its time to the others. The first round of each soak has a
new number, which is printed, so that no two soaks try the same. A soak ends when the time is over or a test
failed; then it says how to see that again.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.effort import tally

ROOT = Path(__file__).resolve().parents[3]
LAWS = "-m hypothesis --ignore tests/fault tests"
LEAST_S = 30.0
"""A round after the first is not begun with less time left."""
LONGEST_TEST_S = 1200.0
"""A test may go on for this long after the time of its file is over; then it is ended, and counts as failed."""


def main() -> int:
    """Return the status to end with: 0 when nothing was violated, 2 for wrong arguments or too little time."""
    asked = sys.argv[1] if len(sys.argv) == 2 else ""
    if not asked.isdigit() or not int(asked):
        print("usage: make soak MINUTES=60", file=sys.stderr)
        return 2
    minutes = int(asked)
    end_s = time.monotonic() + 60 * minutes
    files = [LAWS, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "fault").glob("test_*.py"))]
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows"
        try:
            status = _rounds(files, rows, end_s)
        finally:
            print("\n".join(tally.table(tally.kept(rows))), flush=True)
        if status or tally.kept(rows):
            return status
        print("No file came to its end in this time, so nothing is shown. Give it more minutes.", file=sys.stderr)
        return 2


def _rounds(files: list[str], rows: Path, end_s: float) -> int:
    for number in itertools.count(int(time.time()) // 60):
        if end_s - time.monotonic() < LEAST_S and tally.kept(rows):
            return 0
        for at, file in enumerate(files):
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return 0
            share_s = left_s / (len(files) - at)
            print(f"round {number}, {left_s / 60:.0f} minutes left, {share_s / 60:.1f} for {file}", flush=True)
            if not _passes(file, number, share_s, rows):
                print(f"To see it again: KB_FAULT=soak KB_FAULT_ROUND={number} python -m pytest {file}", flush=True)
                return 1
    raise AssertionError("there is always another round")


def _passes(file: str, number: int, share_s: float, rows: Path) -> bool:
    environment = {
        **os.environ,
        "KB_FAULT": "soak",
        "KB_FAULT_ROUND": str(number),
        "KB_FAULT_UNTIL": str(time.time() + share_s),
        tally.KEPT_IN: str(rows),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--tb=short", *file.split()]
    try:
        ended = subprocess.run(command, cwd=ROOT, env=environment, timeout=share_s + LONGEST_TEST_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"A test did not end within {LONGEST_TEST_S / 60:.0f} minutes after the time of its file.", flush=True)
        return False
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
