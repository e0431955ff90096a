"""Runs the fault suite again and again, with other seeds each round: ``python -m tests.support.soak MINUTES``.

It ends when the time is over or something went wrong; then it says how to see that again.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support import tally

ROOT = Path(__file__).resolve().parents[2]
LAWS = "-m hypothesis --ignore tests/fault tests"
LEAST_S = 30.0
"""A file is not begun with less time left."""


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
    for number in itertools.count():
        for file in files:
            left_s = end_s - time.monotonic()
            if left_s < (LEAST_S if number else 1):
                return 0
            again = f"KB_FAULT=soak KB_FAULT_ROUND={number}"
            print(f"round {number}, {left_s / 60:.0f} minutes left: {file}", flush=True)
            environment = {
                **os.environ,
                "KB_FAULT": "soak",
                "KB_FAULT_ROUND": str(number),
                tally.KEPT_IN: str(rows),
            }
            command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--tb=short", *file.split()]
            try:
                ended = subprocess.run(command, cwd=ROOT, env=environment, timeout=left_s, check=False)
            except subprocess.TimeoutExpired:
                return 0
            if ended.returncode:
                print(f"Something went wrong. To see it again: {again} python -m pytest {file}", flush=True)
                return 1
    raise AssertionError("there is always another round")


if __name__ == "__main__":
    sys.exit(main())
