"""The server is there at once: its first reply waits for no data."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from tests.mcp.agents import program
from tests.mcp.test_streams import ENVELOPE
from tests.support.repository.places import stores_at

CPU_S = 2.5
"""Far above what a start takes on a slow machine, far below what reading a store would cost."""


@pytest.mark.sliced(1)
@pytest.mark.parametrize("era", ["initialize", "server/discover"])
def test_the_first_reply_costs_little_and_touches_no_data(era, project):
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    (stores_at(project.root) / "main").mkdir()
    (stores_at(project.root) / "main" / "head.json").write_text("damaged")
    with program(project.root) as server:
        if era == "initialize":
            server.greet()
        else:
            server.send("server/discover", {"_meta": ENVELOPE}, 1)
            server.reply(1)
        wall_s = time.perf_counter() - started
        loaded = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
        assert server.close() == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    reported = (
        f"first reply to {era}: {wall_s * 1000:.0f} ms after the start; {cpu_s * 1000:.0f} ms of CPU until the end"
    )
    print(reported)  # noqa: T201 - shown by -rP, for whoever wants the figure
    assert cpu_s < CPU_S
    assert "pydantic_core" in loaded
    assert "duckdb" not in loaded
