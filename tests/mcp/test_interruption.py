"""One slow call: it keeps no other waiting, a client can cancel it, and the server ends in its midst."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.limits import MAX_KIP_CLAUSES
from tests.mcp.agents import ROOT, Raw, program, raw
from tests.support.repository.project import Project

WAIT_S = 20.0
LOAD_S = 0.5
"""The additional time that the end of a process may take on a busy machine."""

PATTERNS = " ".join(f'?{name} {{type: "Requirement"}}' for name in "abcdef")
ADDED = (
    "FILTER(CONTAINS(?a.name, ?b.name) && CONTAINS(?c.name, ?d.name) && CONTAINS(?e.name, ?f.name) "
    "&& ?a.id < ?c.id && ?b.id > ?d.id && ?e.id < ?a.id && ?f.id > ?c.id)"
)
SLOW = f"FIND(COUNT(?a)) WHERE {{ {PATTERNS} {ADDED} }}"
"""A product of six times 400 entities: it takes far longer than a test, and its time limit is 60 s here."""


@pytest.fixture
def server(project: Project) -> Iterator[Raw]:
    project.write({".kb/config.json": '{"kip": {"timeLimitSeconds": 60}}'})
    for lower in (0, 200):
        made = range(lower, lower + 200)
        project.apply(entities=[{"id": f"R{at}", "type": "req", "title": f"t{at}", "status": "open"} for at in made])
    with raw(project.root, "--toolsets", "core,kip") as found:
        found.greet()
        found.call("warm", "kb_query", {"limit": 1})
        assert found.answer("warm")["total"] == 400
        yield found


def begin_slow(server: Raw, key: object = "slow") -> None:
    server.call(key, "execute_kip_readonly", {"command": SLOW})
    time.sleep(0.7)


def threads_s(server: Raw) -> float:
    """Return how many seconds of processor time the server has used so far."""
    with open(f"/proc/{server.process.pid}/stat") as file:  # noqa: PTH123 - no file of ours
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def is_resting(server: Raw) -> bool:
    """Tell whether the server uses no processor time to speak of."""
    before_s = threads_s(server)
    time.sleep(0.5)
    return threads_s(server) - before_s < 0.04


@pytest.mark.sliced
def test_a_query_that_is_cancelled_is_interrupted_at_once(server: Raw) -> None:
    begin_slow(server)
    # On a loaded machine a program may get no processor time for half a second; the query takes far longer than this.
    assert any(not is_resting(server) for _ in range(10))
    server.send("notifications/cancelled", {"requestId": "slow", "reason": "test"})
    time.sleep(0.3)
    assert is_resting(server)
    server.call(2, "kb_query", {"limit": 1})
    assert server.answer(2)["total"] == 400
    assert server.close() == 0
    assert "slow" not in {json.loads(line).get("id") for line in server.lines}


def ask_to_end(server: Raw, ending: object) -> None:
    """Send a signal, or end the input."""
    if isinstance(ending, signal.Signals):
        server.process.send_signal(ending)
    else:
        assert server.process.stdin
        server.process.stdin.close()


@pytest.mark.sliced(2)
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_within_two_seconds_in_the_midst_of_a_query(server: Raw, ending: object) -> None:
    begin_slow(server)
    begun_s = time.monotonic()
    ask_to_end(server, ending)
    assert server.ended() == 0
    assert time.monotonic() - begun_s < 2.0
    error = server.answer("slow")["error"]
    assert "interrupted" in json.dumps(error).lower(), error
    assert "Nothing was written" not in error["message"]
    server.assert_only_messages()


@pytest.mark.sliced
def test_other_calls_on_the_branch_are_answered_in_the_midst_of_a_slow_query(server: Raw) -> None:
    begin_slow(server)
    entities = [{"id": "NEW", "type": "req", "title": "new", "status": "open"}]
    for number, (tool, arguments) in enumerate(
        [
            ("kb_query", {"limit": 1}),
            ("kb_upsert", {"entities": entities}),
            ("kb_query", {"ids": ["NEW"]}),
            ("kb_check", {"ids": ["NEW"]}),
            ("kb_history", {"action": "log", "limit": 1}),
        ]
    ):
        begun_s = time.monotonic()
        server.call(number, tool, arguments)
        answer = server.answer(number)
        assert "error" not in answer, answer
        assert time.monotonic() - begun_s < 5.0
    assert "slow" not in {json.loads(line).get("id") for line in server.lines}


UPSERT = 'UPSERT { CONCEPT {{type: "Person", name: "late"} SET ATTRIBUTES {person_class: "Human"}} }'


@pytest.mark.sliced(1)
@pytest.mark.parametrize("commands", [[SLOW, UPSERT], [UPSERT, SLOW]])
def test_an_interrupted_batch_says_which_commands_were_carried_out(server: Raw, commands: list[str]) -> None:
    server.call("slow", "execute_kip", {"commands": commands})
    time.sleep(1.5)
    assert server.process.stdin
    server.process.stdin.close()
    assert server.ended() == 0
    *before, last = server.answer("slow")["result"]
    assert len(before) == commands.index(SLOW)
    error = last["error"]
    assert (error["code"], error["data"]["kb_code"], error["data"]["applied"]) == ("KIP_4001", "interrupted", "no")
    assert "Nothing was written" in error["message"]
    assert ("The commands before it were run" in error["message"]) == bool(before)


@pytest.mark.sliced
def test_a_write_that_only_waited_for_the_lock_wrote_nothing_whatever_was_written_before_it(
    server: Raw, project: Project
) -> None:
    commands = [UPSERT.replace("late", f"late {at}") for at in range(250)]
    workspace = project.workspace()
    store = workspace.store(workspace.head().branch)
    before = store.head().seq
    server.call("batch", "execute_kip", {"commands": commands})
    while store.head().seq < before + 3:
        time.sleep(0.01)
    with (store.directory / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        time.sleep(0.5)
        assert server.process.stdin
        server.process.stdin.close()
        assert server.ended() == 0
    *done, last = server.answer("batch")["result"]
    assert len(done) == store.head().seq - before
    assert not any("error" in one for one in done)
    assert (last["error"]["data"]["kb_code"], last["error"]["data"]["applied"]) == ("interrupted", "no")
    assert "not known" not in last["error"]["message"]


HOPS = " ".join(f'(?x{at}, "depends_on"{{1,3}}, ?x{at + 1})' for at in range(MAX_KIP_CLAUSES - 1))
LONG_TO_PLAN = f"FIND(COUNT(?x0)) WHERE {{ {HOPS} }}"
"""The database takes seconds to plan it, and interrupts nothing meanwhile."""


@pytest.mark.sliced(1)
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM])
def test_the_server_ends_soon_in_the_midst_of_planning_a_query_of_the_most_clauses(server: Raw, ending: object) -> None:
    server.call("slow", "execute_kip_readonly", {"command": LONG_TO_PLAN})
    time.sleep(0.7)
    begun_s = time.monotonic()
    ask_to_end(server, ending)
    server.process.wait(WAIT_S)
    assert time.monotonic() - begun_s < 2.0 + LOAD_S


AT_EXIT = """
import atexit, os, sys

class Probe:
    def __del__(self, write=os.write):
        write(2, b"every object is freed\\n")

probe = Probe()
atexit.register(lambda: (sys.stderr.write("at exit\\n"), print("printed last", end="")))
"""


@pytest.mark.sliced(1)
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM])
def test_the_end_calls_what_is_registered_for_it_and_does_not_free_every_object(
    project: Project, tmp_path: Path, ending: object
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(AT_EXIT)
    env = {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT}"}
    with program(project.root, env=env) as server:
        server.greet()
        server.call(1, "kb_query")
        assert server.answer(1)["total"] == 0
        if isinstance(ending, signal.Signals):
            server.process.send_signal(ending)
        else:
            assert server.process.stdin
            server.process.stdin.close()
        assert server.ended() == 0
        assert server.errors == b"at exit\nprinted last"
