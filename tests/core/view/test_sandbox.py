"""The place where the SQL of a project's rules runs: what it starts, lends and takes away again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbcore.view.relations import RELATIONS, SqlRefused
from kbcore.view.sandbox import Sandbox, Times
from tests.support.processes.cli import ROOT
from tests.support.repository.repos import git_env
from tests.support.views.graph import graph_of, node

GRAPH = graph_of([node("A")])


class Lender:
    """Lends tables of one graph, and remembers which."""

    def __init__(self) -> None:
        self.lent: list[str] = []
        self.folder = Path()

    def __call__(self, table: str, path: str) -> None:
        self.lent.append(table)
        self.folder = Path(path).parent
        GRAPH.connection.execute(f"attach '{path}' as lent")
        GRAPH.connection.execute(f"create table lent.{table} as {RELATIONS[table].select}")
        GRAPH.connection.execute("detach lent")


def test_nothing_is_started_or_lent_before_it_is_needed_and_nothing_stays():
    lender = Lender()
    with Sandbox(lender, Times(5)) as sandbox:
        assert sandbox._process is None
        assert sandbox.rows("select 1") == [(1,)]
        assert lender.lent == []
        for _ in range(2):
            assert sandbox.rows("select id from entity", tables=["entity"]) == [("A",)]
        assert lender.lent == ["entity"]
        process = sandbox._process
    assert process is not None
    assert process.poll() is not None
    assert not lender.folder.exists()


def test_the_process_gets_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "sekret")
    with Sandbox(Lender(), Times(5)) as sandbox:
        assert sandbox.rows("select 1") == [(1,)]
        assert sandbox._process is not None
        assert Path(f"/proc/{sandbox._process.pid}/environ").read_bytes() == b""


def test_after_a_statement_had_to_be_ended_the_tables_are_there_again_and_lent_once():
    lender = Lender()
    with Sandbox(lender, Times(0.2)) as sandbox:
        assert sandbox.rows("select id from entity", tables=["entity"]) == [("A",)]
        with pytest.raises(SqlRefused, match=r"within 0.2 s") as caught:
            sandbox.rows("select sleep_ms(60000) from entity", tables=["entity"])
        assert (caught.value.is_limit, caught.value.is_memory) == (True, False)
        assert sandbox.rows("select id from entity", tables=["entity"]) == [("A",)]
    assert lender.lent == ["entity"]


def test_a_process_that_does_not_start_is_reported_as_such(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Sandbox(Lender(), Times(5)) as sandbox, pytest.raises(SqlRefused, match="does not start"):
        sandbox.rows("select 1")


@pytest.mark.sliced
def test_the_user_bounds_what_a_rule_asks_for_and_what_all_rules_take(tmp_path):
    with Sandbox(Lender(), Times(5, most_s=0.2, most_by="`limits.ruleTimeSeconds`")) as sandbox:
        with pytest.raises(SqlRefused, match=r"within 0\.2 s") as caught:
            sandbox.rows("select sleep_ms(60000)", time_s=3600)
        assert "ruleTimeSeconds" in caught.value.cause
    with Sandbox(Lender(), Times(5, total_s=1, total_by="`limits.rulesTimeSeconds`", now_s=time.monotonic)) as sandbox:
        begun_s = time.monotonic()
        for _ in range(3):
            with pytest.raises(SqlRefused, match=r"all rules of the project have 1 s") as caught:
                sandbox.rows("select sleep_ms(60000)")
            assert "rulesTimeSeconds" in caught.value.cause
        assert time.monotonic() - begun_s < 10


PARENT = """
import sys
from kbcore.view.sandbox import Sandbox, Times

with Sandbox(lambda table, path: None, Times(600)) as sandbox:
    sandbox.rows("select 1")
    print(sandbox._process.pid, flush=True)
    sandbox.rows(sys.argv[1])
"""


@pytest.mark.parametrize(
    "sql",
    ["select sleep_ms(600000)", "select sum((a.range * 7 + b.range) % 11) from range(10000000) a, range(10000000) b"],
)
def test_the_process_ends_within_two_seconds_when_its_parent_is_killed(sql):
    command = [sys.executable, "-c", PARENT, sql]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=git_env({"PYTHONPATH": str(ROOT)})) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        time.sleep(0.5)  # the statement runs now
        assert is_running(child)
        parent.kill()
    end_s = time.monotonic() + 2
    while is_running(child) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not is_running(child)


def is_running(process: int) -> bool:
    """Tell whether there is such a process, and it has not ended."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
