"""Connections: a base that is written, statements with an end to their time, and tables of constants."""

from __future__ import annotations

import contextlib
import threading

import duckdb
import pytest

from kbcore.errors import StatementTimeout
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.view import database, table_creation
from kbcore.view.database import ProcessCache, StatementRefused
from tests.support.views.large import SLOW


@pytest.fixture
def connection(tmp_path):
    with contextlib.closing(database.connect(database.Room(str(tmp_path / "spill"), (str(tmp_path),)))) as made:
        yield made


@pytest.mark.parametrize(("rows", "is_indexed"), [(2048, False), (2049, True)])
def test_only_a_table_that_takes_more_than_one_reading_is_indexed(connection, tmp_path, rows, is_indexed):
    connection.execute(database.attaching_new(str(tmp_path / "base"), "base"))
    table_creation.create_base(connection, "base")
    connection.execute(
        f"insert into base.node (id, files) select 'N-' || number, ['a', 'b'] from range({rows // 2}) t(number)"
    )
    connection.execute(f"insert into base.link (id) select 'L-' || number from range({rows}) t(number)")
    table_creation.finish_base(connection, "base")
    indexes = {row[0] for row in connection.execute("select index_name from duckdb_indexes()").fetchall()}
    assert indexes == ({"link_by_id", "link_by_from_id", "link_by_to_id"} if is_indexed else set())
    assert connection.execute("select count(*) from base.node_src").fetchall() == [(rows // 2 * 2,)]


def test_a_walk_over_many_parquet_files_ends(tmp_path):
    """Without a thread of its own for reading files the database waited without end, in about half of the runs."""
    parts, walked = [], []
    with contextlib.closing(duckdb.connect()) as writer:
        for number in range(30):
            parts.append(f"select * from read_parquet('{tmp_path}/{number}.parquet')")
            rows = f"select range as a, range + 1 as b, {number} as part from range(50)"
            writer.execute(f"copy ({rows}) to '{tmp_path}/{number}.parquet' (format parquet)")
    walk = (
        f"with recursive step as ({' union all '.join(parts)}), walked as (select 0 as part, 1 as id union "
        "select s.part, s.b from step s join walked w on s.part = w.part and s.a = w.id) select * from walked"
    )

    def run() -> None:
        for _ in range(8):
            with contextlib.closing(database.connect(database.Room(folders=(str(tmp_path),)))) as connection:
                walked.append(len(connection.select(f"{walk} order by all", 100)[1]))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert walked == [50] * 8


def test_a_file_that_is_being_filled_has_no_log_beside_it(connection, tmp_path):
    connection.execute(database.attaching_new(str(tmp_path / "base"), "base"))
    table_creation.create_base(connection, "base")
    connection.execute("insert into base.node (id) values ('N-1')")
    connection.execute("force checkpoint base")
    assert [path.name for path in tmp_path.iterdir()] == ["base"]
    connection.execute("detach base")
    connection.execute(f"attach '{tmp_path / 'base'}' as base (read_only)")
    assert connection.execute("select id from base.node").fetchall() == [("N-1",)]


def test_interrupting_a_closed_connection_is_no_error(connection):
    connection.close()
    connection.interrupt()


def test_a_statement_ends_when_its_time_is_over_and_the_next_one_has_all_of_its_own(connection) -> None:
    for _ in range(3):
        with pytest.raises(StatementTimeout):
            connection.rows(SLOW, time_s=0.02)
        assert connection.rows("select 1", time_s=5) == [(1,)]
        assert connection.rows("select sum(range) from range(1000000)") == [(499999500000,)]


def test_a_statement_that_ends_in_time_is_not_interrupted_however_short_its_time(connection) -> None:
    for _ in range(200):
        try:
            assert connection.rows("select 1", time_s=0.0005) == [(1,)]
        except StatementTimeout:
            continue


def test_who_else_interrupts_is_not_taken_for_the_alarm(connection) -> None:
    threading.Timer(0.05, connection.interrupt).start()
    with pytest.raises(duckdb.InterruptException):
        connection.rows(SLOW, time_s=30)


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


def test_one_thread_waits_for_the_statements_of_all_connections(connection) -> None:
    others = [database.connect(database.Room()) for _ in range(3)]
    for one in others:
        one.execute("select 1").fetchall()
        one.close()
    assert [one.name for one in threading.enumerate() if one.name == "kb-alarm"] == ["kb-alarm"]


def test_work_that_is_stopped_has_its_statement_interrupted_and_begins_no_other(connection) -> None:
    work = CurrentWork()
    with interrupting.done_for(work):
        assert connection.rows("select 1") == [(1,)]
        timer = threading.Timer(0.1, work.stop)
        timer.start()
        with pytest.raises(Stopped):
            connection.rows(SLOW, time_s=30)
        with pytest.raises(Stopped):
            connection.rows("select 1")
    assert connection.rows("select 1") == [(1,)]


def test_the_work_of_others_goes_on_when_one_is_stopped(connection) -> None:
    work = CurrentWork()
    work.stop()
    with interrupting.done_for(CurrentWork()):
        assert connection.rows("select count(*) from range(3000000) t(i) where hash(i) % 2 = 0")[0][0] > 0


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


def test_constants_are_held_until_their_mark_changes(connection) -> None:
    for mark, word in ((1, "a"), (1, "b"), (2, "c")):
        connection.hold("told", {"word": "VARCHAR"}, mark, [{"word": word}])
        assert connection.rows("select word from told") == [("c" if mark == 2 else "a",)]


def test_what_is_made_once_is_made_again_for_another_mark(connection) -> None:
    made: list[int] = []
    for mark in (1, 1, 2, 2, 1):
        assert connection.once("it", mark, lambda one: (made.append(one), one)[1]) == mark
    assert made == [1, 2, 1]


def test_what_the_database_refuses_for_a_value_says_why(connection) -> None:
    with pytest.raises(StatementRefused, match="missing \\)"), database.explained():
        connection.rows("select regexp_matches('a', ?)", ["("])


def test_the_parsed_statements_that_are_kept_are_bounded_in_number_and_length() -> None:
    kept = ProcessCache()
    with contextlib.closing(duckdb.connect()) as opened:
        first = kept.parsed("select 0", opened)
        assert kept.parsed("select 0", opened) is first
        long = f"select '{'x' * 20_000}'"
        assert kept.parsed(long, opened) is not kept.parsed(long, opened)
        for number in range(600):
            [statement] = kept.parsed(f"select {number}", opened)
            assert opened.execute(statement).fetchall() == [(number,)]
        assert kept.parsed("select 0", opened) is not first, "others took its place"
        assert len(kept._parsed) <= 512
        assert kept.usual_bytes(opened) == kept.usual_bytes(opened) > 0
