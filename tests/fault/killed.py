"""A process that runs one workload on a real disk and says what was acknowledged: ``python -m tests.fault.killed``.

It is killed from outside at one of its system calls, so it says each thing at once, by a system call of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kbcore.storage.fs import RealFs
from tests.fault.workloads import SOAKED, Acked


class Told(Acked):
    """A list that prints what is added to it."""

    def append(self, one: object) -> None:
        os.write(1, f"{one}\n".encode())


def main() -> None:
    root, name = sys.argv[1:]
    work = next(one for one in SOAKED if one.name == name)
    work.run(RealFs(), Path(root), Told())


if __name__ == "__main__":
    main()
