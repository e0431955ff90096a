"""Statements with an end to their time, and constants beside the tables of a view."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import duckdb
import pytest

from kbcore import interrupting
from kbcore.errors import StatementTimeout
from kbcore.interrupting import CurrentWork, Stopped
from kbcore.view import database
from kbcore.view.session import DatabaseSession, SqlRefused
from tests.support.large import SLOW


@pytest.fixture
def session() -> Iterator[DatabaseSession]:
    connection = database.connect(database.Room())
    yield DatabaseSession(connection, threading.RLock(), lambda: None)
    connection.close()


def test_a_statement_ends_when_its_time_is_over_and_the_next_one_has_all_of_its_own(session) -> None:
    for _ in range(3):
        with pytest.raises(StatementTimeout):
            session.rows(SLOW, time_s=0.02)
        assert session.rows("select 1", time_s=5) == [(1,)]
        assert session.rows("select sum(range) from range(1000000)") == [(499999500000,)]


def test_a_statement_that_ends_in_time_is_not_interrupted_however_short_its_time(session) -> None:
    for _ in range(200):
        try:
            assert session.rows("select 1", time_s=0.0005) == [(1,)]
        except StatementTimeout:
            continue


def test_who_else_interrupts_is_not_taken_for_the_alarm(session) -> None:
    threading.Timer(0.05, session._connection.interrupt).start()
    with pytest.raises(duckdb.InterruptException):
        session.rows(SLOW, time_s=30)


def test_a_statement_without_a_time_of_its_own_has_that_of_all_statements(monkeypatch) -> None:
    assert interrupting._statement_s.get() == 30
    with interrupting.maintenance():
        assert interrupting._statement_s.get() == 600
    token = interrupting._statement_s.set(0.05)
    try:
        connection = database.connect(database.Room())
        for asked in (connection, connection.cursor()):
            with pytest.raises(StatementTimeout):
                asked.execute(SLOW).fetchall()
        connection.close()
    finally:
        interrupting._statement_s.reset(token)


def test_one_thread_waits_for_the_statements_of_all_connections(session) -> None:
    others = [database.connect(database.Room()) for _ in range(3)]
    for one in others:
        one.execute("select 1").fetchall()
        one.close()
    assert [one.name for one in threading.enumerate() if one.name == "kb-alarm"] == ["kb-alarm"]


def test_work_that_is_stopped_has_its_statement_interrupted_and_begins_no_other(session) -> None:
    work = CurrentWork()
    with interrupting.done_for(work):
        assert session.rows("select 1") == [(1,)]
        timer = threading.Timer(0.1, work.stop)
        timer.start()
        with pytest.raises(Stopped):
            session.rows(SLOW, time_s=30)
        with pytest.raises(Stopped):
            session.rows("select 1")
    assert session.rows("select 1") == [(1,)]


def test_the_work_of_others_goes_on_when_one_is_stopped(session) -> None:
    work = CurrentWork()
    work.stop()
    with interrupting.done_for(CurrentWork()):
        assert session.rows("select count(*) from range(3000000) t(i) where hash(i) % 2 = 0")[0][0] > 0


def test_a_transaction_of_stopped_work_is_rolled_back() -> None:
    connection, work = database.connect(database.Room()), CurrentWork()
    connection.execute("create table t (i integer)")

    def write() -> None:
        with database.transaction(connection):
            connection.execute("insert into t values (1)")
            work.stop()
            connection.execute("insert into t values (2)")

    with interrupting.done_for(work), pytest.raises(Stopped):
        write()
    assert connection.execute("select count(*) from t").fetchall() == [(0,)]
    connection.close()


def test_constants_are_held_until_their_mark_changes(session) -> None:
    for mark, word in ((1, "a"), (1, "b"), (2, "c")):
        session.hold("told", {"word": "VARCHAR"}, mark, [{"word": word}])
        assert session.rows("select word from told") == [("c" if mark == 2 else "a",)]


def test_what_is_made_once_is_made_again_for_another_mark(session) -> None:
    made: list[int] = []
    for mark in (1, 1, 2, 2, 1):
        assert session.once("it", mark, lambda one: (made.append(one), one)[1]) == mark
    assert made == [1, 2, 1]


def test_what_the_database_refuses_for_a_value_says_why(session) -> None:
    with pytest.raises(SqlRefused, match="missing \\)"):
        session.rows("select regexp_matches('a', ?)", ["("])
