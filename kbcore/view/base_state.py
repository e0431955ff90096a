"""A state laid beneath the history of a copy, as its seq 0: what stood before the first record was written.

What the elements of that state are now confirmed by, and changed from, is read from it as from any other seq.
"""

from __future__ import annotations

import contextlib

import msgspec

from kbcore.model.state import Changes
from kbcore.view import database
from kbcore.view.database import Room
from kbcore.view.fold import ROW_OF
from kbcore.view.tables import ELEMENTS


def set_base_state(path: str, room: Room, seq: int, back: Changes) -> None:
    """Let the file of a copy hold another state before all records; ``back`` leads to it from the state at ``seq``.

    What the records up to ``seq`` superseded is forgotten: they came to where they are from the state beneath.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    with contextlib.closing(database.connect(room)) as connection, database.explained():
        connection.execute(f"attach '{database.quoted(path)}' as base")
        for table, changed in (("node", back.nodes), ("link", back.links), ("source", back.sources)):
            key, columns = ELEMENTS[table]
            turned = [change.key for change in changed]
            connection.execute(f"delete from base.{table}_history where ended <= ?", [seq])
            is_beneath = f"version <= ? and {key} not in (select unnest(?::varchar[]))"
            for name in (table, f"{table}_history"):
                connection.execute(f"update base.{name} set version = 0 where {is_beneath}", [seq, turned])
            rows = (
                {**ROW_OF[table](msgspec.structs.replace(one.after, version=0)), "ended": one.before.version}
                for one in changed
                if one.before is not None and one.after is not None
            )
            database.load(connection, f"base.{table}_history", database.history_columns(columns), rows)
