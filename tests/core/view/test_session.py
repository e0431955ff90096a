"""Statements with an end to their time, and constants beside the tables of a view."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import duckdb
import pytest

from kbcore.view.session import Refused, Session, TimeOver

SLOW = "select count(*) from range(100000) a, range(100000) b where hash(a.range) < hash(b.range)"


@pytest.fixture
def session() -> Iterator[Session]:
    connection = duckdb.connect(":memory:")
    made = Session(connection, threading.RLock(), lambda: None)
    yield made
    made.close()
    connection.close()


def test_a_statement_ends_when_its_time_is_over_and_the_next_one_has_all_of_its_own(session) -> None:
    for _ in range(3):
        with pytest.raises(TimeOver):
            session.rows(SLOW, time_s=0.02)
        assert session.rows("select 1", time_s=5) == [(1,)]
        assert session.rows("select sum(range) from range(1000000)") == [(499999500000,)]


def test_a_statement_that_ends_in_time_is_not_interrupted_however_short_its_time(session) -> None:
    for _ in range(200):
        try:
            assert session.rows("select 1", time_s=0.0005) == [(1,)]
        except TimeOver:
            continue


def test_who_else_interrupts_is_not_taken_for_the_alarm(session) -> None:
    threading.Timer(0.05, session._connection.interrupt).start()
    with pytest.raises(duckdb.InterruptException):
        session.rows(SLOW, time_s=30)


def test_whoever_is_done_with_it_leaves_no_thread_behind(session) -> None:
    before = set(threading.enumerate())
    other = Session(duckdb.connect(":memory:"), threading.RLock(), lambda: None)
    assert other.rows("select 1", time_s=5) == [(1,)]
    assert [one.name[:8] for one in set(threading.enumerate()) - before] == ["kb-alarm"]
    other.close()
    assert set(threading.enumerate()) <= before


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
    with pytest.raises(Refused, match="missing \\)"):
        session.rows("select regexp_matches('a', ?)", ["("])
