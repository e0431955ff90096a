"""A view of a large branch, made in a moment: its base is filled by SQL, and its tail by records as usual."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kbcore.model.record import PutNode
from kbcore.view import base, database, table_creation
from kbcore.view.base_stamp import BaseStamp, write_stamp
from kbcore.view.view import View
from tests.support.generators.histories import LINEAGE, STORE_ID, entries_of
from tests.support.views.grown import adopt

ROWS = 75_000
"""More than the 65,537 from which on DuckDB 2.0 does not end some statements: see ADR 0015."""


def large_view(folder: Path, *, rows: int = ROWS, tail: int = 60) -> View:
    """Return a view of so many requirements in a base, each linked to the one before it, and of a tail over them.

    The first record of the tail changes the title of the requirement in the middle.
    """
    titles = [(f"REQ-{rows // 2}", "changed"), *((f"REQ-X{number}", "new") for number in range(tail))]
    put = [PutNode(id=key, base=0, set={"type": "req", "title": title, "status": "open"}) for key, title in titles]
    entries = entries_of([[put[0]], *([one] for one in put)])
    room = database.Room(folders=(str(folder),))
    with contextlib.closing(database.connect(room)) as connection:
        path = str(folder / "large.duckdb")
        connection.execute(database.attaching_new(path, "base"))
        table_creation.create_base(connection, "base")
        connection.execute(
            "insert into base.node (id, type, name, title, status, tags, links, attributes, metadata, contested, "
            "owners, path, files, created_seq, version) "
            "select id, 'req', id, 'title of ' || id, 'open', [], [], '{}', '{}', '{}', '{}', '', [], 1, 1 "
            f"from (select 'REQ-' || range as id from range({rows})) order by id"
        )
        connection.execute(
            "insert into base.link (id, type, kind, from_id, to_id, is_resolved, attributes, metadata, contested, "
            "statements, owners, files, created_seq, version) "
            "select 'link:' || id, 'depends_on', '', id, target, true, '{}', '{}', '{}', '[]', '{}', [], 1, 1 "
            "from (select 'REQ-' || range as id, 'REQ-' || greatest(range - 1, 0) as target "
            f"from range(1, {rows})) order by id"
        )
        connection.execute("insert into base.record (seq, changeset_id) values (1, 'cs-1')")
        table_creation.finish_base(connection, "base")
        write_stamp(connection, "base", BaseStamp(STORE_ID, LINEAGE, 1, entries[0].sum, "", "", 0))
        connection.execute("force checkpoint base")
    view = base.open_base(path, room, Path(path).stat().st_size)
    for entry in entries[1:]:
        adopt(view, entries, entry)
    return view


SLOW = "select count(*) from range(300000) a, range(300000) b where hash(a.range) < hash(b.range)"
"""A statement that takes minutes, and that can be interrupted."""
