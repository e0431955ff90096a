"""The text index of a branch within the database of a view: a published part, and a tail laid over it.

As with the view itself, ``text.X`` is attached read-only and the same for every process, ``text_tail_X`` holds what
came later, and ``text_X`` is the view over both. Documents go by the hash of their file: ``text_body`` has those that
are at hand, the kept ones and those read by this process.
"""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec

from kbcore.errors import ViewDamaged
from kbcore.query import asof
from kbcore.query.text import tables
from kbcore.query.text.tables import Index
from kbcore.view import database, inspection
from kbcore.view.database import Room, quoted
from kbcore.view.inspection import Rows
from kbcore.view.tables import Columns
from kbcore.view.textdocuments import Reader, documents_at_hand, gather
from kbcore.view.view import View

TEXT_FORMAT: Final = 6
WHOLE: Final = Index("text_")
PAST: Final = Index("text_past_")
_PUBLISHED: Final = Index("text.")
_FRESH: Final = Index("text_fresh.")
_TAIL: Final = Index("text_tail_")
_STAMP: Final[Columns] = {"format": "INTEGER", "lineage": "VARCHAR", "seq": "BIGINT", "sum": "VARCHAR"}
_ORDERS: Final = {"entity": "doc", "posting": "term, doc", "term": "term"}
"""How the rows of a published index lie, so that few of them are read to find a term."""


class TextStamp(msgspec.Struct, frozen=True):
    """What a published index was filled from: the record at ``seq`` of a history."""

    format: int
    lineage: str
    seq: int
    sum: str


def build(view: View, path: str, read: Reader) -> None:
    """Fill a new index with all that the view shows, in a file that does not exist yet or ``:memory:``.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    _detach(view)
    gather(view, read, None)
    view.rows(database.attaching_new(path, "text"))
    tables.create(view.rows, _PUBLISHED)
    tables.fill(view.rows, _PUBLISHED, "node", documents_at_hand(None))
    _stamp(view, "text")
    if path != ":memory:":
        view.rows("force checkpoint text")
        view.rows("detach text")
        view.rows(f"attach '{quoted(path)}' as text (read_only)")
    _overlay(view)


def merge(view: View, path: str) -> None:
    """Write the published part and the tail as one to a new file, and stand on that.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    view.rows(database.attaching_new(path, "text_fresh"))
    try:
        tables.create(view.rows, _FRESH)
        for table, order in _ORDERS.items():
            view.rows(f"insert into {_FRESH[table]} from {WHOLE[table]} order by {order}")
        _stamp(view, "text_fresh")
        view.rows("force checkpoint text_fresh")
    finally:
        view.rows("detach text_fresh")
    _detach(view)
    view.rows(f"attach '{quoted(path)}' as text (read_only)")
    _overlay(view)


def attach(view: View, path: str, length_bytes: int) -> int | None:
    """Attach a published index, a file of this length, and return the seq that it was filled at.

    Returns None when it is not one of this history.

    Raises: ``ViewDamaged`` when it is no index.
    """
    _detach(view)
    stamp = _attached(view.rows, path, length_bytes)
    is_known = stamp.lineage == view.basis.lineage and view.basis.history_from <= stamp.seq <= view.seq
    if not is_known or view.rows("select sum from record where seq = ?", [stamp.seq]) != [(stamp.sum,)]:
        return None
    _overlay(view)
    return stamp.seq


def inspect(path: str, room: Room, length_bytes: int) -> tuple[int, int]:
    """Return the seq of a published index and how many entities it has.

    Raises: ``ViewDamaged`` when it cannot be used.
    """
    with contextlib.closing(database.connect(room)) as connection, database.explained_all():
        stamp = _attached(database.asking(connection), path, length_bytes)
        [(entities,)] = connection.execute("select count(*) from text.entity").fetchall()
    return stamp.seq, entities


def _stamp(view: View, database_name: str) -> None:
    stamp = TextStamp(TEXT_FORMAT, view.basis.lineage, view.seq, view.basis.sum)
    listed = ", ".join(f"{name} {kind}" for name, kind in _STAMP.items())
    view.rows(f"create table {database_name}.stamp ({listed})")
    view.rows(f"insert into {database_name}.stamp values ($1, $2, $3, $4)", msgspec.structs.astuple(stamp))


def _attached(rows: Rows, path: str, length_bytes: int) -> TextStamp:
    """Attach a published index, a file of this length, and return its stamp.

    Raises: ``ViewDamaged`` when the file is none that can be used.
    """
    rows(f"attach '{quoted(path)}' as text (read_only)", ())
    inspection.check(rows, "text", {**tables.TABLES, "stamp": _STAMP}, length_bytes)
    found = rows(f"select {', '.join(_STAMP)} from text.stamp", ())
    if len(found) != 1 or found[0][0] != TEXT_FORMAT:
        raise ViewDamaged(f"{path} has no usable stamp")
    return TextStamp(*found[0])


def catch_up(view: View, since: int, read: Reader) -> None:
    """Take in what changed after a seq, and what had no document at hand and now has one."""
    changed = (
        f"select id from node where version > {since:d} "
        f"union select id from node_history where ended > {since:d} "
        f"union select n.id from node n join source s on s.path = n.path where s.version > {since:d}"
    )
    lacking = f"select id from {WHOLE['entity']} where lacks_body"
    if view.rows(f"{lacking} limit 1"):
        gather(view, read, lacking)
        changed += f" union select id from {documents_at_hand(None, lacking)} where text is not null"
    view.rows(f"create or replace temp table text_changed as {changed}")
    if not view.rows("select 1 from text_changed limit 1"):
        return
    changing = "select id from text_changed"
    gather(view, read, changing)
    view.rows(
        f"insert into text_touched select doc from text.entity where id in ({changing}) "
        "and doc not in (select doc from text_touched)"
    )
    view.rows(f"delete from text_tail_posting where doc in (select doc from text_tail_entity where id in ({changing}))")
    view.rows(f"delete from text_tail_entity where id in ({changing})")
    [(above,)] = view.rows("select coalesce(max(doc), 0) from text.entity")
    nodes = f"(select * from node where id in ({changing}))"
    tables.fill(view.rows, _TAIL, nodes, documents_at_hand(None, changing), above=above)


def tail_share(view: View) -> tuple[int, int]:
    """Return how many entities of the published part have moved or gone or came later, and how many it has."""
    [found] = view.rows(
        "select (select count(*) from text_touched) + (select count(*) from text_tail_entity), "
        "(select count(*) from text.entity)"
    )
    return found[0], found[1]


def fill_past(view: View, at: int, read: Reader) -> None:
    """Fill the index ``PAST`` with what stood at a seq."""
    gather(view, read, None, at)
    tables.create(view.rows, PAST)
    tables.fill(view.rows, PAST, asof.nodes(at), documents_at_hand(at))


def _detach(view: View) -> None:
    for table in tables.TABLES:
        view.rows(f"drop view if exists {WHOLE[table]}")
    view.rows("drop table if exists text_touched")
    view.rows("detach database if exists text")


def _overlay(view: View) -> None:
    tables.create(view.rows, _TAIL)
    view.rows("create table text_touched (doc integer)")
    for table, columns in tables.TABLES.items():
        listed = ", ".join(columns)
        kept = " where doc not in (select doc from text_touched)" if "doc" in columns else ""
        view.rows(
            f"create view {WHOLE[table]} as select {listed} from {_PUBLISHED[table]}{kept} "
            f"union all select {listed} from {_TAIL[table]}"
        )
