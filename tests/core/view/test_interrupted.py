"""A view that is interrupted while it takes something in holds all of it or nothing, and no part of it twice."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from kbcore.model.record import DropNode, PutNode
from kbcore.model.state import State
from kbcore.view import base
from kbcore.view.database import Room
from kbcore.view.history import state_at
from kbcore.view.record_rows import FoldStart
from kbcore.view.view import View
from tests.support.generators.histories import LINEAGE, basis_at, entries_of, lines_of, states_of
from tests.support.views.grown import adopt


class Interrupted:
    """A connection on which one statement, counted from 0, is interrupted."""

    def __init__(self, inner: Any, at: int) -> None:
        self.inner = inner
        self.left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, *args: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left == -1:
            raise duckdb.InterruptException("here")
        return self.inner.execute(*args, **options)


def interrupted_everywhere(view: View) -> int:
    """Ask again and again, interrupted one statement later each time, until there is an answer; return how often."""
    real = view._connection
    for at in range(200):
        view._connection = Interrupted(real, at)  # type: ignore[assignment]
        try:
            view.rows("select id from node")
        except duckdb.InterruptException:
            continue
        finally:
            view._connection = real
        return at
    raise AssertionError("it never answers")


@pytest.mark.parametrize("begun_with", [0, 2])
def test_whichever_statement_is_interrupted_the_next_question_is_answered_in_full(begun_with: int) -> None:
    named = [("A", "1"), ("B", "1"), ("A", "2"), ("B", "2")]
    put = [PutNode(id=key, base=0, set={"type": "req", "title": title}) for key, title in named]
    history = [[put[0]], [put[1]], [put[2]], [put[3]], [DropNode(id="A", base=0)], [put[0]]]
    entries = entries_of(history)
    start = FoldStart(0, LINEAGE, State(), [])
    with base.build(":memory:", Room(), start, entries[:begun_with], basis_at(entries, begun_with)) as view:
        for part in (entries[begun_with:4], entries[4:]):
            for entry in part:
                adopt(view, entries, entry)
            assert interrupted_everywhere(view) > 5
        for seq, state in enumerate(states_of(entries)):
            assert lines_of(state_at(view, seq)) == lines_of(state), f"at seq {seq}"
        assert view.rows("select count(*) from record") == [(len(entries),)]
