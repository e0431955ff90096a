"""The tables of a view without what is only proposed, for rules: a proposal satisfies no rule, and breaks none.

They are in a schema of their own, which one cursor alone searches first: no other query is answered differently. What
an edge at a proposed entity says is left out with it. ``main.node`` and ``main.link`` mean these tables as well.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kbcore.model.proposals import ANY, OF_LINK, OF_NODE
from kbcore.view import base_rows, database
from kbcore.view.relations import RELATIONS
from kbcore.view.view import View

_FOUND: Final = (
    f"select (select count(*) from node where {ANY} and {OF_NODE}), "
    f"(select count(*) from link where {ANY} and {OF_LINK})"
)
_MAKE: Final = (
    "create schema accepted",
    f"create table accepted.waiting as select id from main.node where {ANY} and {OF_NODE}",
    "create view accepted.node as select * from main.node where id not in (select id from accepted.waiting)",
    f"""create view accepted.link as select * from main.link where not ({ANY} and {OF_LINK})
and from_id not in (select id from accepted.waiting) and to_id not in (select id from accepted.waiting)""",
    "set search_path = 'accepted,main'",
)
_MAIN: Final = re.compile(r"\bmain\.(node|link)\b")


def in_accepted(sql: str) -> str:
    """Return a statement of KB's own that means all accepted rows where it names all rows."""
    return _MAIN.sub(r"accepted.\1", sql)


def count_proposed(view: View) -> int:
    """Return how many entities and edges of a view are proposed as a whole."""
    return sum(view.rows(_FOUND)[0])


class AcceptedTables:
    """The tables of a view without proposals, and answers over them."""

    def __init__(self, cursor: database.Connection) -> None:
        self._cursor = cursor

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Answer a statement as ``View.rows`` does. Raises: as it does."""
        with database.explained():
            return self._cursor.rows(in_accepted(sql), params, time_s=time_s)

    def cursor(self) -> database.Connection:
        """Return another connection to these tables, as ``View.cursor``."""
        with database.explained():
            found = self._cursor.cursor()
            found.execute("set search_path = 'accepted,main'")
            return found

    def copy_relation(self, relation: str, path: str) -> None:
        """Copy a relation as ``View.copy_relation`` does."""
        with database.explained():
            base_rows.one_relation(self._cursor, RELATIONS[relation], path)


@contextlib.contextmanager
def without_proposals(view: View) -> Iterator[AcceptedTables]:
    """Return the tables of a view without what is proposed, for the length of the block; one block at a time.

    Raises: ``ViewDamaged``, as the answers do.
    """
    with contextlib.closing(view.cursor()) as cursor:
        try:
            with database.explained():
                for statement in _MAKE:
                    cursor.execute(statement)
            yield AcceptedTables(cursor)
        finally:
            with database.explained():
                cursor.execute("drop schema if exists accepted cascade", is_cleanup=True)
