"""Neighbours of some entities, in small tables that hide those of the whole branch from one cursor.

They are in a schema of their own, which that cursor alone searches first: no other query is
answered differently. ``main.node`` means all nodes there as elsewhere, and what is in no such table is the branch's.
Over ``AcceptedTables`` both are these.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kbcore.view import database
from kbcore.view.view import View
from kbcore.view.without_proposals import AcceptedTables, in_accepted

_ENDS: Final = "select from_id from link union select to_id from link"
_PATHS: Final = "select path from node union select unnest(files) from link"


@contextlib.contextmanager
def neighborhood(
    view: View | AcceptedTables, ids: Sequence[str]
) -> Iterator[Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]]:
    """Return what answers a statement as ``View.rows`` does, for the length of the block; one block at a time.

    ``node`` holds the nodes with these ids and those at the other ends of their links, ``link`` the links that touch
    an id or are an end of such a link, and ``source`` the files that state anything of these, or have an id as path.

    Raises: ``ViewDamaged``, as the answers do.
    """
    with contextlib.closing(view.cursor()) as cursor:

        def rows(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            with database.explained():
                return cursor.rows(sql, params)

        is_whole = not isinstance(view, AcceptedTables)
        where = "main" if is_whole else "accepted"

        def answer(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            return rows(sql if is_whole else in_accepted(sql), params)

        rows("create schema near")
        try:
            rows(f"set search_path = 'near,{where}{'' if is_whole else ',main'}'")
            _fill(answer, ids)
            yield answer
        finally:
            with database.explained():
                cursor.execute("drop schema near cascade", is_cleanup=True)


def _fill(rows: Callable[..., list[tuple[Any, ...]]], ids: Sequence[str]) -> None:
    def reached(keys: str) -> tuple[str, list[Any]]:
        """Return the condition that something is asked for, or among what a statement adds to that."""
        return database.among([*ids, *(row[0] for row in rows(keys))])

    asked, params = database.among(ids)
    # One condition for both ends would have all columns of all links read.
    rows(f"create table near.link as from main.link where from_id {asked}", params)
    rows(f"insert into link from main.link where to_id {asked} and id not in (select id from link)", params)
    rows(f"insert into link from main.link where id in ({_ENDS}) and id not in (select id from link)")
    condition, params = reached(_ENDS)
    rows(f"create table near.node as from main.node where id {condition}", params)
    condition, params = reached(_PATHS)  # what is asked for may be the path of a file
    rows(f"create table near.source as from main.source where path {condition}", params)
