"""The origin of a base, and the stamp within it that names this."""

from __future__ import annotations

import msgspec

from kbcore.view import database, table_creation
from kbcore.view.tables import VIEW_FORMAT


class BaseStamp(msgspec.Struct, frozen=True):
    """The origin of a view: the last record, and where in the journal the next one begins.

    ``store_id`` names the store that was folded, and no other; ``lineage`` is the beginning of the history that the
    record belongs to, shared by copies of a branch; ``history_from`` is the seq after which history and log are whole
    (0: from the first record). ``listed_from`` is the first record that the log lists all the same, where records are
    missing from the journal; 0 where none is.
    """

    store_id: str
    lineage: str
    seq: int
    sum: str
    at: str
    file: str
    end_bytes: int
    history_from: int = 0
    listed_from: int = 0

    def from_where(self, other: BaseStamp) -> BaseStamp:
        """Return the same, with history and log beginning where those of another one begin."""
        return msgspec.structs.replace(self, history_from=other.history_from, listed_from=other.listed_from)


def write_stamp(connection: database.Connection, catalog: str, basis: BaseStamp) -> None:
    """Note in a filled base what it was folded from."""
    values = (VIEW_FORMAT, *msgspec.structs.astuple(basis))
    row = dict(zip(table_creation.STAMP, values, strict=True))
    database.load(connection, f"{catalog}.stamp", table_creation.STAMP, [row])
