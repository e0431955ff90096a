"""A scratch copy of a view as of a seq, for looking at what was or what would be. It is never published.

Nothing that is done to the copy changes what it was copied from, and no file of it is left. A copy may have another
state before its first record, as its seq 0: what its elements are now confirmed by, and changed from, is read from that
state as from any other seq.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kbcore.errors import StorageError, ViewDamaged
from kbcore.model.state import Changes
from kbcore.process import interrupting
from kbcore.view import base, database, table_creation
from kbcore.view.database import Room, scratch_folder
from kbcore.view.history import check_reach
from kbcore.view.record_rows import ROW_OF
from kbcore.view.tables import ELEMENTS
from kbcore.view.view import View


@contextlib.contextmanager
def scratch_copy(view: View, seq: int, *, base_state: tuple[int, Changes] | None = None) -> Iterator[View]:
    """Return another view of the state at a seq, for the length of the block.

    ``base_state`` leads back from the state at an earlier seq to the one that is set before its history.

    Raises: ``HistoryPruned``; ``StorageError`` when the copy cannot be written.
    """
    check_reach(view, seq)
    with scratch_folder() as folder:
        path = Path(folder, "scratch.duckdb")
        try:
            with interrupting.maintenance():
                view.write_past(str(path), seq)
            if base_state is not None:
                _set_base_state(str(path), Room(folder), *base_state)
        except ViewDamaged as error:
            raise StorageError(
                f"A copy of the view cannot be written to the temporary folder: {error}",
                hint="Free some space there, or name another folder with TMPDIR.",
            ) from error
        with base.open_own(str(path), Room(folder)) as copy:
            yield copy


def _set_base_state(path: str, room: Room, seq: int, back: Changes) -> None:
    """Let the file of a copy hold another state before all records; ``back`` leads to it from the state at ``seq``.

    The rows that the records up to ``seq`` superseded are deleted: that state takes their place.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    with contextlib.closing(database.connect(room)) as connection, database.explained():
        connection.execute(f"attach '{database.quoted(path)}' as base")
        for table, changed in (("node", back.nodes), ("link", back.links), ("source", back.sources)):
            key, columns = ELEMENTS[table]
            changed_keys = [change.key for change in changed]
            connection.execute(f"delete from base.{table}_history where ended <= ?", [seq])
            is_before = f"version <= ? and {key} not in (select unnest(?::varchar[]))"
            for name in (table, f"{table}_history"):
                connection.execute(f"update base.{name} set version = 0 where {is_before}", [seq, changed_keys])
            rows = (
                {**ROW_OF[table](msgspec.structs.replace(one.after, version=0)), "ended": one.before.version}
                for one in changed
                if one.before is not None and one.after is not None
            )
            database.load(connection, f"base.{table}_history", table_creation.history_columns(columns), rows)
