"""The clauses of a run are read before those of the store, which alone takes changes."""

from __future__ import annotations

from kbcore.clock import SystemClock
from kbcore.logic.clauses import ClauseChange, NewClause
from kbcore.logic.unrecorded_clauses import RunClauses, SessionClauses, numbered


def made(*names: str) -> list[NewClause]:
    return [NewClause(f"{name}.", name, f"{name}/0") for name in names]


def texts(store: RunClauses | SessionClauses) -> list[str]:
    return [one.text for one in store.read().clauses]


def test_clauses_of_a_run_come_first_and_have_places_and_ids_of_their_own() -> None:
    recorded = SessionClauses(SystemClock(), 100)
    store = RunClauses(numbered(made("a", "b")))
    store.recorded = recorded
    store.change(lambda _: ClauseChange(added=made("c")))
    assert texts(store) == ["a.", "b.", "c."]
    assert texts(recorded) == ["c."]
    found = store.read().clauses
    assert [one.order for one in found] == sorted({one.order for one in found})
    assert len({one.id for one in found}) == 3


def test_a_change_is_planned_on_what_is_recorded_alone() -> None:
    store = RunClauses(numbered(made("a")))
    store.recorded = SessionClauses(SystemClock(), 100)
    seen = []

    def plan(clauses):
        seen.extend(clauses.clauses)
        return ClauseChange()

    store.change(plan)
    assert seen == []


def test_what_has_not_changed_is_the_same_object_so_that_an_engine_loads_nothing() -> None:
    store = RunClauses(numbered(made("a")))
    store.recorded = SessionClauses(SystemClock(), 100)
    first = store.read()
    assert store.read() is first
    store.change(lambda _: ClauseChange(added=made("b")))
    assert store.read() is not first
    assert texts(store) == ["a.", "b."]
