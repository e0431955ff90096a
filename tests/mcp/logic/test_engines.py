"""Engines of servers of the toolset logic: how they end, and the order of calls."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.mcp.agents import WAIT_S, program, raw
from tests.mcp.prolog_agents import engine_pids, prolog_agent
from tests.support.logic.engines import is_running

LOOP = "repeat, fail"


def until(is_so):
    """Wait until something is so; a test that waits in vain fails."""
    ends = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


def wait_until_busy(root: Path) -> int:
    """Wait until the only engine of a repository has worked for a tenth of a second, and return its process."""
    [pid] = engine_pids(root)
    before = ticks(pid)
    until(lambda: ticks(pid) >= before + 10)
    return pid


def ticks(pid: int) -> int:
    """Return the time that a process has worked, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.sliced
def test_a_killed_engine_is_replaced_and_loses_no_clause(own_prolog):
    own_prolog.add("p(1).", "p(2).")
    own_prolog.solutions("p(X)")
    [pid] = engine_pids(own_prolog.root)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid))
    answer = own_prolog.add("p(3).")
    assert "started again" in answer["note"]
    assert [one["X"] for one in own_prolog.solutions("p(X)")] == ["1", "2", "3"]
    own_prolog.first("p(X)")
    [pid] = engine_pids(own_prolog.root)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid))
    assert own_prolog.error("query_next")["kind"] == "query_lost"
    assert own_prolog.error("query_next")["kind"] == "no_active_session"
    assert own_prolog.first("p(X)")["bindings"] == {"X": "1"}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("use_engine", [True, False])
def test_a_step_that_takes_too_long_is_ended_and_the_next_query_works(project, engine, use_engine):
    project.write({".kb/config.json": '{"logic": {"timeLimitSeconds": 1}}'})
    with prolog_agent(project.root, engine) as prolog:
        prolog.add("p(1).")
        prolog.call("query_start", query=LOOP, use_engine=use_engine)
        error = prolog.error("query_next")
        assert error["kind"] == "timeout"
        assert "logic.timeLimitSeconds" in error["message"]
        assert prolog.error("query_next")["kind"] == "no_active_session"
        assert prolog.solutions("p(X)") == [{"X": "1"}]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("how", ["close", "terminate", "kill"])
def test_a_busy_engine_ends_with_its_server(project, engine, how):
    with program(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        server.call(1, "query_start", {"query": LOOP})
        server.answer(1)
        server.call(2, "query_next")
        pid = wait_until_busy(project.root)
        if how == "close":
            server.close()
        else:
            getattr(server.process, how)()
            server.ended()
        until(lambda: not is_running(pid))


@pytest.mark.sliced
def test_a_cancelled_query_ends_and_the_next_call_works(project, engine):
    with program(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        server.call(1, "clauses", {"operation": "assert", "clauses": "p(1)."})
        server.answer(1)
        server.call(2, "query_start", {"query": LOOP})
        server.answer(2)
        server.call(3, "query_next")
        wait_until_busy(project.root)
        server.call(4, "query_next")
        server.send("notifications/cancelled", {"requestId": 3})
        assert server.answer(4)["error"]["kind"] == "query_lost"
        server.call(5, "query_start", {"query": "p(X)"})
        server.call(6, "query_next")
        assert server.answer(6)["bindings"] == {"X": "1"}


@pytest.mark.sliced
def test_calls_that_are_sent_at_once_are_carried_out_in_their_order(project, engine):
    with raw(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        key = 0
        for number in range(5):
            for name, arguments in (
                ("clauses", {"operation": "assert", "clauses": f"p({number})."}),
                ("query_start", {"query": f"p({number}), X = {number}"}),
                ("query_next", {}),
                ("query_next", {}),
                ("query_close", {}),
            ):
                key += 1
                server.call(key, name, arguments)
        answers = [server.answer(number) for number in range(1, key + 1)]
        assert [one.get("status") for one in answers] == [None, "ready", "success", "done", "closed"] * 5
        assert [one["bindings"] for one in answers if "bindings" in one] == [{"X": str(n)} for n in range(5)]


@pytest.mark.sliced
def test_a_call_that_needs_no_engine_does_not_wait_for_an_import_whose_engine_does_not_answer(project, engine):
    project.write({"a.pl": "a(1)."})
    with program(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        server.call(1, "clauses", {"operation": "assert", "clauses": "p(1)."})
        server.answer(1)
        [pid] = engine_pids(project.root)
        os.kill(pid, signal.SIGSTOP)
        server.call(2, "files", {"operation": "import", "filename": "a.pl"})
        server.call(3, "workspace", {"operation": "snapshot"})
        server.call(4, "workspace", {"operation": "list_symbols"})
        server.call(5, "files", {"operation": "list"})
        assert server.answer(3)["dump"] == "p(1)."
        assert server.answer(4)["predicates"] == ["p/1"]
        assert server.answer(5)["files"] == []
        os.kill(pid, signal.SIGCONT)
        assert server.answer(2)["status"] == "success"
