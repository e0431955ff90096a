"""A process with an engine that works without end, or waits: ``python -m tests.support.logic.busy FOLDER GOAL``.

It prints the number of the engine's process; the environment chooses the engine. An empty goal leaves the engine idle.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from tests.support.logic.workspaces import logic_project


def main() -> None:
    folder, goal = sys.argv[1:]
    with logic_project(Path(folder), os.environ) as logic:
        logic.first("true")
        print(logic.pid, flush=True)
        if goal:
            logic.first(goal)
        threading.Event().wait()


if __name__ == "__main__":
    main()
