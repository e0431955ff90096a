"""For all sequences of changes: a branch keeps what a plain list would, and what is brought forward is what is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.logic.branch_clauses import ClauseCache
from kbcore.logic.clauses import ClauseChange, Clauses
from kbcore.logic.unrecorded_clauses import SessionClauses
from tests.core.store.history.undoing import revert
from tests.support.repository.clauses import clause_store, new
from tests.support.repository.project import Project

STEPS = st.lists(
    st.tuples(
        st.lists(st.text("pq(),.'\\ \nä😀", min_size=1, max_size=8), max_size=4),
        st.sets(st.integers(0, 12), max_size=3),
        st.sampled_from(["read", "not_read", "undo"]),
    ),
    max_size=8,
)


@pytest.mark.sliced
@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_a_branch_keeps_what_a_list_keeps(steps: list[tuple[list[str], set[int], str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "p")
        store, session = clause_store(project, ClauseCache()), SessionClauses(project.machine.clock, 1000)
        model, order = list[tuple[str, int]](), 0
        for added, places, way in steps:
            before = list(model)

            def plan(now: Clauses, added: list[str] = added, places: set[int] = places) -> ClauseChange:
                gone = [one.id for place, one in enumerate(now.clauses) if place in places]
                return ClauseChange([new(text) for text in added], gone)

            done = store.change(plan)
            model = [one for place, one in enumerate(model) if place not in places]
            model += [(text, order + place) for place, text in enumerate(added, start=1)]
            order += len(added)
            if way == "undo" and done.is_written:
                revert(project, done.seq)
                model = before
            else:
                session_is_same = session.change(plan)
                assert len(session_is_same.ids) == len(added)
            if way != "not_read":
                found = store.read()
                assert [(one.text, one.order) for one in found.clauses] == model
                assert found == clause_store(project).read()
                assert found.clauses == store.read(found.seq).clauses
            if way == "undo" and done.is_written:
                session = SessionClauses(project.machine.clock, 1000)
                session.change(lambda _, model=model: ClauseChange([new(text) for text, _ in model]))
            assert [one.text for one in session.read().clauses] == [text for text, _ in model]
        assert store.read() == clause_store(project).read()
        assert store.read().last_order == order
        project.close()
