"""Several writers at once: nothing is lost, nothing is mixed up."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.mcp.agents import ROOT, agent, raw, server_env, spawned

COUNT = 12


def entity(key):
    return {"id": key, "type": "req", "title": key, "status": "open"}


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


def test_writes_in_flight_at_once_go_in_their_order_and_reads_after_them_find_what_they_wrote(project):
    with raw(project.root) as server:
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
