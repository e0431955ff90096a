"""The place where the SQL of a project's rules runs: what it starts, lends and takes away again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kbcore.rules.rule import SqlRefused
from kbcore.view.relations import RELATIONS
from kbcore.view.sandbox import Sandbox
from tests.support.graph import graph_of, node

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
    with Sandbox(lender, 5) as sandbox:
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


def test_the_process_is_told_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "sekret")
    with Sandbox(Lender(), 5) as sandbox:
        assert sandbox.rows("select 1") == [(1,)]
        assert sandbox._process is not None
        assert Path(f"/proc/{sandbox._process.pid}/environ").read_bytes() == b""


def test_after_a_statement_had_to_be_ended_the_tables_are_there_again_and_lent_once():
    lender = Lender()
    with Sandbox(lender, 0.2) as sandbox:
        assert sandbox.rows("select id from entity", tables=["entity"]) == [("A",)]
        with pytest.raises(SqlRefused, match=r"within 0.2 s") as caught:
            sandbox.rows("select sleep_ms(60000) from entity", tables=["entity"])
        assert (caught.value.is_limit, caught.value.is_memory) == (True, False)
        assert sandbox.rows("select id from entity", tables=["entity"]) == [("A",)]
    assert lender.lent == ["entity"]


def test_a_process_that_does_not_start_is_told_as_such(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Sandbox(Lender(), 5) as sandbox, pytest.raises(SqlRefused, match="does not start"):
        sandbox.rows("select 1")
