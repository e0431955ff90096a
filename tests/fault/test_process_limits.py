"""Processes whose address space or threads are limited: each ends with an answer, none with a signal or in silence."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kbcore.limits import MIB, MIN_ADDRESS_BYTES
from tests.support.processes.cli import program
from tests.support.repository.project import Project

WAIT_S = 120.0
NEEDED_MIB = MIN_ADDRESS_BYTES // MIB
OTHER_USER = 65_531
"""A user id without any process, because root may have any number of threads."""

SERVER = [sys.executable, "-m", "kbmcp.server", "--toolsets", "core,kip"]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("kb_query", {"type": "req", "limit": 20}),
    ("kb_query", {"text": "several words"}),
    ("kb_check", {}),
    ("kb_query", {"ids": ["REQ-1"]}),
    ("execute_kip", {"command": 'FIND(COUNT(?a)) WHERE { ?a {type: "Requirement"} }'}),
    ("kb_history", {"action": "log"}),
]


@pytest.fixture
def stored(project: Project) -> Project:
    titles = [(f"REQ-{number}", f"Title {number} of several words") for number in range(3000)]
    project.apply(entities=[{"id": key, "type": "req", "title": title, "status": "open"} for key, title in titles])
    return project


def limited(kind: int, limit: int) -> Callable[[], None]:
    """Return what sets a limit in a child, and lets it leave no core file."""

    def limit_child() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(kind, (limit, limit))

    return limit_child


def ran(command: list[str], root: Path, limit_child: Callable[[], None]) -> Any:
    return subprocess.run(
        command, cwd=root, input=b"", capture_output=True, preexec_fn=limit_child, timeout=WAIT_S, check=False
    )  # fmt: skip


def session(calls: list[tuple[str, dict[str, Any]]]) -> bytes:
    """Return the lines of a session that makes these calls at once."""
    messages: list[Mapping[str, Any]] = [
        {"id": 0, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
    ]
    for number, (name, arguments) in enumerate(calls, start=1):
        messages.append({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


def answered(root: Path, limit_mib: int, calls: list[tuple[str, dict[str, Any]]]) -> dict[int, Any]:
    """Make calls at once in a session with a limited server; return the answers by the ids of the requests."""
    answers: dict[int, Any] = {}
    with subprocess.Popen(
        ["prlimit", f"--as={limit_mib * MIB}", "--core=0", *SERVER], cwd=root,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdin
        assert server.stdout
        assert server.stderr
        end = threading.Timer(WAIT_S, server.kill)
        end.start()
        server.stdin.write(session(calls))
        server.stdin.flush()
        for line in server.stdout:
            one = json.loads(line)
            answers[one["id"]] = one
            if len(answers) == len(calls) + 1:
                server.stdin.close()
        end.cancel()
        assert server.wait() == 0, server.stderr.read()
    return answers


def failed(answer: Any) -> bool:
    """Tell whether an answer is an error."""
    return "error" in answer or bool(answer["result"].get("isError"))


@pytest.mark.sliced(5)
@pytest.mark.fault("F28")
@pytest.mark.parametrize("limit_mib", [64, 150, 300, 400, 500, 600, NEEDED_MIB - 1])
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_too_small_an_address_space_is_refused_at_the_start_with_both_sizes(
    name: str, limit_mib: int, project: Project, tally: Any
) -> None:
    limit_child = limited(getattr(resource, name), limit_mib * MIB)
    flag = {"RLIMIT_AS": "-v", "RLIMIT_DATA": "-d"}[name]
    for command in ([*program(), "check", "--json"], SERVER):
        done = ran(command, project.root, limit_child)
        assert done.returncode == 25, done
        said = (done.stdout + done.stderr).decode()
        assert f"(`ulimit {flag}`, {limit_mib} MiB)" in said
        assert f"KB needs at least {NEEDED_MIB} MiB" in said
        assert "Traceback" not in said
    tally.tried()


@pytest.mark.sliced(1)
@pytest.mark.fault("F28")
@pytest.mark.parametrize("limit_mib", [NEEDED_MIB, 1000, 1200])
def test_a_server_at_a_limit_that_suffices_answers_every_call(limit_mib: int, stored: Project, tally: Any) -> None:
    answers = answered(stored.root, limit_mib, CALLS)
    assert answers.keys() == {*range(len(CALLS) + 1)}
    assert [one for one in answers.values() if failed(one)] == []
    tally.tried()


@pytest.mark.sliced
@pytest.mark.fault("F28")
def test_an_answer_that_needs_more_than_there_is_is_an_error_of_that_call_alone(stored: Project, tally: Any) -> None:
    greedy = (
        'FIND(?a.name, ?b.name) WHERE { ?a {type: "Requirement"} ?b {type: "Requirement"} } ORDER BY ?b.name, ?a.name'
    )
    calls = [("execute_kip", {"command": greedy}), *CALLS]
    answers = answered(stored.root, NEEDED_MIB, calls)
    assert answers.keys() == {*range(len(calls) + 1)}
    assert [key for key, one in answers.items() if failed(one)] == [1]
    tally.tried()


@pytest.mark.sliced(3)
@pytest.mark.fault("F28")
@pytest.mark.parametrize("limit_mib", [NEEDED_MIB, 1000])
@pytest.mark.parametrize("words", [["check"], ["query", "--text", "several words"], ["query", "req"], ["sync"]])
def test_a_command_at_a_limit_that_suffices_does_its_work(
    words: list[str], limit_mib: int, stored: Project, tally: Any
) -> None:
    done = ran([*program(), *words], stored.root, limited(resource.RLIMIT_AS, limit_mib * MIB))
    assert done.returncode in {0, 1}, done
    assert b"error:" not in done.stderr
    tally.tried()


@pytest.mark.sliced
@pytest.mark.fault("F28")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that has no process yet")
def test_without_a_thread_to_begin_with_a_command_and_a_server_say_so(project: Project, tally: Any) -> None:
    for command in ([*program(), "status"], SERVER):
        words = [
            "setpriv",
            f"--reuid={OTHER_USER}",
            "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override",
            *command,
        ]
        done = ran(words, project.root, limited(resource.RLIMIT_NPROC, 1))
        assert done.returncode == 25, done
        assert b"The system gives KB no more threads." in done.stderr
        assert b"Traceback" not in done.stderr
    tally.tried()


@pytest.mark.sliced(1)
@pytest.mark.fault("F28")
@pytest.mark.parametrize("limit", range(8, 14, 2))
def test_too_few_open_files_to_start_git_is_no_fault_of_git(limit: int, stored: Project, tally: Any) -> None:
    (stored.root / "one.json").write_text(
        '{"entities": [{"id": "NEW", "type": "req", "title": "New", "status": "open"}]}'
    )
    done = ran([*program(), "--json", "apply", "one.json"], stored.root, limited(resource.RLIMIT_NOFILE, limit))
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["retryable"]) == (25, "resource_limit", True), done
    tally.tried()
