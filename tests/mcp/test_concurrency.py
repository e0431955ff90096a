"""Several writers at once: nothing is lost, nothing is mixed up."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kbcore.storage import lock
from kbcore.storage.fs import RealFs
from kbcore.store.pool import StorePool
from kbcore.view.cache_files import VIEW
from tests.mcp.agents import ROOT, WAIT_S, agent, program, raw, server_env, spawned

COUNT = 12


def entity(key):
    return {"id": key, "type": "req", "title": key, "status": "open"}


@pytest.mark.sliced
def test_two_servers_and_the_command_line_lose_nothing(project):
    """One server is a process of its own, the other one is in this process."""
    with spawned(project.root, name="one") as one, agent(project.root, mode="2026-07-28", name="two") as two:

        def by_agent(found, name):
            for number in range(COUNT):
                found.call("kb_upsert", entities=[entity(f"{name}-{number}")])

        def by_command():
            for number in range(3):
                request = json.dumps({"entities": [entity(f"cli-{number}")]})
                command = [sys.executable, "-m", "kbcli.app", "-C", str(project.root), "apply", "-"]
                subprocess.run(command, input=request, text=True, check=True, env=server_env(), cwd=ROOT)

        with ThreadPoolExecutor(3) as pool:
            tasks = [pool.submit(by_agent, one, "one"), pool.submit(by_agent, two, "two"), pool.submit(by_command)]
            for task in tasks:
                task.result()
        wanted = {f"{name}-{number}" for name in ("one", "two") for number in range(COUNT)}
        wanted |= {f"cli-{number}" for number in range(3)}
        for found in (one, two):
            answer = found.call("kb_query", limit=100)
            assert {one["id"] for one in answer["entities"]} == wanted
            assert answer["seq"] == len(wanted)
    records = project.view().rows("select seq, source from record order by seq")
    assert [seq for seq, _ in records] == list(range(1, len(wanted) + 1))
    assert {source for _, source in records} == {"mcp:one", "mcp:two", "cli"}


PATIENT = """
from kbmcp import server
from kbmcp.protocol import call_queue

call_queue.AFTER_WRITES_S = 600.0
server.main()
"""
"""A server whose reads wait for the writes before them however long these take: on a slow machine longer than usual."""


@pytest.mark.sliced
def test_writes_in_flight_at_once_go_in_their_order_and_reads_after_them_find_what_they_wrote(project):
    with program(project.root, command=[sys.executable, "-c", PATIENT]) as server:
        server.greet()
        for number in range(40):
            key = f"K{number % 10}"
            if number < 10:
                server.call(number, "kb_upsert", {"entities": [entity(key)]})
            else:
                server.call(number, "kb_query", {"ids": [key]})
        for number in range(40, 45):
            server.call(number, "kb_upsert", {"entities": [{"id": "K0", "title": f"v{number}"}]})
        server.call(45, "kb_query", {"ids": ["K0"]})
        for number in range(10):
            answer = server.answer(number)
            assert (answer["created"], answer["seq"]) == ([f"K{number}"], number + 1)
        for number in range(10, 40):
            answer = server.answer(number)
            assert [one["id"] for one in answer["entities"]] == [f"K{number % 10}"]
            assert answer["seq"] >= 10
        assert [server.answer(number)["seq"] for number in range(40, 45)] == [11, 12, 13, 14, 15]
        assert server.answer(45)["entities"][0]["title"] == "v44"
        assert server.close() == 0
        server.assert_only_messages()


def published(project):
    """Write one entity and publish the view, and return the folder of the cache."""
    project.apply(entities=[entity("A")])
    project.close()
    project.pool = StorePool()
    assert project.view().seq == 1
    return project.workspace().folders.cache_dir / "main"


@pytest.mark.sliced
def test_a_write_after_large_ones_of_another_process_is_answered_before_the_view_is_published(project):
    folder = published(project)
    with raw(project.root) as server, lock.QueueLock(RealFs(), folder) as queue:
        server.greet()
        server.call(1, "kb_query", {"ids": ["A"]})
        assert server.answer(1)["total"] == 1
        assert queue.take(), "as a process that publishes"
        project.apply(entities=[entity(f"B-{number}") for number in range(5000)])
        before = (folder / VIEW).stat().st_ino
        server.call(2, "kb_upsert", {"entities": [entity(f"C-{number}") for number in range(1500)]})
        assert server.answer(2)["seq"] == 3
        server.call(3, "kb_query", {"ids": ["B-1", "C-1"]})
        assert server.answer(3)["total"] == 2
        assert (folder / VIEW).stat().st_ino == before
        queue.__exit__()
        until_s = time.monotonic() + WAIT_S
        while (folder / VIEW).stat().st_ino == before and time.monotonic() < until_s:
            time.sleep(0.02)
        assert (folder / VIEW).stat().st_ino != before
        server.call(4, "kb_query", {"limit": 1})
        assert server.answer(4)["total"] == 6501
        assert server.close() == 0
    assert {path.name for path in folder.iterdir()} <= {VIEW, "text.duckdb"}


def test_the_end_of_a_server_waits_for_no_publication(project):
    folder = published(project)
    with raw(project.root) as server, lock.QueueLock(RealFs(), folder) as queue:
        server.greet()
        assert queue.take()
        server.call(1, "kb_upsert", {"entities": [entity(f"C-{number}") for number in range(2500)]})
        assert server.answer(1)["seq"] == 2
        assert server.close(3.0) == 0
        assert server.errors == b""


def test_a_reader_sees_what_it_has_written_and_never_less(project):
    with raw(project.root) as one, raw(project.root) as two:
        seen = 0
        for server in (one, two):
            server.greet()
        for number in range(10):
            writer, reader = (one, two) if number % 2 else (two, one)
            writer.call(number, "kb_upsert", {"entities": [entity(f"E{number}")]})
            written = writer.answer(number)["seq"]
            reader.call(number, "kb_query", {"limit": 1})
            seq = reader.answer(number)["seq"]
            assert seq >= written > seen
            seen = seq
