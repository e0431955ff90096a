"""Writing a base: what is made of its tables, and what DuckDB leaves on the disk meanwhile."""

from __future__ import annotations

import contextlib

import pytest

from kbcore.view import database


@pytest.fixture
def connection(tmp_path):
    with contextlib.closing(database.connect(database.Room(str(tmp_path / "spill"), (str(tmp_path),)))) as made:
        yield made


@pytest.mark.parametrize(("rows", "is_indexed"), [(2048, False), (2049, True)])
def test_only_a_table_that_takes_more_than_one_reading_is_indexed(connection, tmp_path, rows, is_indexed):
    connection.execute(database.attaching_new(str(tmp_path / "base"), "base"))
    database.create_base(connection, "base")
    connection.execute(
        f"insert into base.node (id, files) select 'N-' || number, ['a', 'b'] from range({rows // 2}) t(number)"
    )
    connection.execute(f"insert into base.link (id) select 'L-' || number from range({rows}) t(number)")
    database.finish_base(connection, "base")
    indexes = {row[0] for row in connection.execute("select index_name from duckdb_indexes()").fetchall()}
    assert indexes == ({"link_by_id", "link_by_from_id", "link_by_to_id"} if is_indexed else set())
    assert connection.execute("select count(*) from base.node_src").fetchall() == [(rows // 2 * 2,)]


def test_a_file_that_is_being_filled_has_no_log_beside_it(connection, tmp_path):
    connection.execute(database.attaching_new(str(tmp_path / "base"), "base"))
    database.create_base(connection, "base")
    connection.execute("insert into base.node (id) values ('N-1')")
    connection.execute("force checkpoint base")
    assert [path.name for path in tmp_path.iterdir()] == ["base"]
    connection.execute("detach base")
    connection.execute(f"attach '{tmp_path / 'base'}' as base (read_only)")
    assert connection.execute("select id from base.node").fetchall() == [("N-1",)]


def test_interrupting_a_closed_connection_is_no_error(connection):
    connection.close()
    connection.interrupt()
