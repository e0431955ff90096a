"""Parquet files hold what a view holds: written at once, or piece by piece after any records."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.view import table_creation
from kbcore.view.database import scratch_folder
from kbcore.view.parquet import KINDS, PartWriter, database_of_parts, open_parts
from kbcore.view.tables import ELEMENTS, RECORD
from tests.support.generators.histories import laws, records
from tests.support.repository.stores import Stored

_LOCAL = ("file", "offset_bytes", "length_bytes")


def content(view):
    tables = {"record": [name for name in RECORD if name not in _LOCAL]}
    for name, (_, columns) in ELEMENTS.items():
        tables |= {name: list(columns), f"{name}_history": list(table_creation.history_columns(columns))}
    return {
        name: sorted(map(repr, view.rows(f"select {', '.join(cells)} from {name}"))) for name, cells in tables.items()
    }


def written(view, folder, number, since):
    writer = PartWriter(view)
    where = Path(folder) / str(number)
    where.mkdir()
    found = list(writer.write(where, 1, since=since, has_history=True))
    writer.close()
    return [(one.kind, str(one.path)) for one in found]


def fingerprint(view, since=None):
    writer = PartWriter(view)
    found = writer.fingerprint(since)
    writer.close()
    return found


@contextlib.contextmanager
def opened(view, parts):
    paths = {kind: [path for one, path in parts if one == kind] for kind in KINDS}
    with contextlib.closing(database_of_parts()) as shared, open_parts(shared, paths, view.basis) as found:
        yield found


@laws(60)
@given(records(), st.sets(st.integers(1, 8)))
def test_parts_of_any_history_written_at_any_records_are_the_view(history, breaks):
    with tempfile.TemporaryDirectory() as root, scratch_folder() as folder:
        stored = Stored(Path(root))
        parts, since, known = [], 0, 0
        for number, ops in enumerate(history, start=1):
            stored.commit(ops)
            if number in breaks or number == len(history):
                view = stored.view()
                known = known ^ fingerprint(view, since) if since else fingerprint(view)
                parts += written(view, folder, number, since)
                since = view.seq
        view = stored.view()
        assert known == fingerprint(view)
        with opened(view, parts) as other:
            assert content(other) == content(view)
            assert fingerprint(other) == known
        stored.close()


def test_a_fingerprint_does_not_depend_on_when_and_in_which_records_facts_were_stated(tmp_path):
    from kbcore.model.record import PutNode

    def put(key, title):
        return PutNode(id=key, base=0, set={"type": "req", "title": title})

    one, other, third = (Stored(tmp_path / name) for name in "abc")
    one.commit([put("A", "a"), put("B", "b")])
    other.commit([put("B", "x")])
    other.commit([put("A", "a")])
    other.commit([put("B", "b")])
    third.commit([put("A", "a"), put("B", "other")])
    assert fingerprint(one.view()) == fingerprint(other.view()) != fingerprint(third.view())
    for stored in (one, other, third):
        stored.close()


def test_branches_that_are_opened_one_after_the_other_know_nothing_of_each_other(tmp_path):
    from kbcore.model.record import PutNode

    with scratch_folder() as folder, contextlib.closing(database_of_parts()) as shared:
        for number in range(3):
            stored = Stored(tmp_path / str(number))
            stored.commit([PutNode(id=f"REQ-{number}", base=0, set={"type": "req", "title": str(number)})])
            view = stored.view()
            parts = written(view, folder, number, 0)
            paths = {kind: [path for one, path in parts if one == kind] for kind in KINDS}
            with open_parts(shared, paths, view.basis) as other:
                assert content(other) == content(view)
                assert other.rows("select count(*) from information_schema.tables where table_name = 'held'") == [(0,)]
                other.cursor().hold("held", {"id": "VARCHAR"}, None, [{"id": str(number)}])
            with pytest.raises(ZeroDivisionError), open_parts(shared, paths, view.basis):
                raise ZeroDivisionError
            stored.close()
