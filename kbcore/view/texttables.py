"""The text index of a branch within the database of a view: a published part, and a tail laid over it.

As with the view itself, ``text.X`` is attached read-only and the same for every process, ``text_tail_X`` holds what
came later, and ``text_X`` is the view over both. Documents go by the hash of their file: ``text_body`` has those that
are at hand, the kept ones and those read by this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from kbcore.errors import ViewDamaged
from kbcore.query import asof
from kbcore.query.text import tables
from kbcore.query.text.tables import Index
from kbcore.view import database
from kbcore.view.database import quoted
from kbcore.view.view import View

TEXT_FORMAT: Final = 3
WHOLE: Final = Index("text_")
PAST: Final = Index("text_past_")
_PUBLISHED: Final = Index("text.")
_FRESH: Final = Index("text_fresh.")
_TAIL: Final = Index("text_tail_")
_ORDERS: Final = {"entity": "doc", "posting": "term, doc", "term": "term"}
"""How the rows of a published index lie, so that few of them are read to find a term."""
_CHUNK_CHARS: Final = 2_000_000
"""So much text is handed to the database at once."""
_ONE_TO_ONE: Final = "markdown"
"""The extractor whose files each state one entity."""

Reader = Callable[[Sequence[tuple[str, str]]], Iterable[tuple[str, str]]]
"""Reads documents: paths with the hashes that their files must have, to hashes and texts; others are left out."""


class TextStamp(msgspec.Struct, frozen=True):
    """What a published index was filled from: the record at ``seq`` of a history."""

    format: int
    lineage: str
    seq: int
    sum: str


def attach_bodies(view: View, path: str) -> None:
    """Begin with the documents that were kept in a file, "" for none. Raises: ``ViewDamaged`` for another file."""
    view.rows("drop view if exists text_body")
    view.rows("detach database if exists text_kept")
    view.rows("create table if not exists text_read (hash varchar, text varchar)")
    kept = ""
    if path:
        view.rows(f"attach '{quoted(path)}' as text_kept (read_only)")
        kept = " union all select hash, text from text_kept.body where hash not in (select hash from text_read)"
    view.rows(f"create view text_body as select hash, text from text_read{kept}")


def bodies_share(view: View) -> tuple[int, int]:
    """Return how many documents this process has read, and how many are kept in the file."""
    read, whole = (view.rows(f"select count(*) from {table}")[0][0] for table in ("text_read", "text_body"))
    return read, whole - read


def keep_bodies(view: View, path: str, limit_bytes: int) -> None:
    """Write all documents at hand to a new file, as many as fit, those in use first, and go on with that file.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    view.rows(database.attaching_new(path, "text_fresh"))
    try:
        view.rows(
            "create table text_fresh.body as select hash, text from text_body where hash in (select hash from "
            "(select hash, sum(length_bytes) over (order by is_used desc, hash) as total_bytes from (select hash, "
            f"strlen(text) as length_bytes, hash in (select hash from {_documents(None)}) as is_used from text_body)) "
            f"where total_bytes <= {limit_bytes:d}) order by hash"
        )
        view.rows("force checkpoint text_fresh")
    finally:
        view.rows("detach text_fresh")
    attach_bodies(view, path)
    view.rows("delete from text_read")


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
    attach(view, path)


def attach(view: View, path: str) -> int | None:
    """Stand on a published index and return the seq that it was filled at; None when it is not one of this history.

    Raises: ``ViewDamaged`` when it is no index.
    """
    _detach(view)
    stamp = _attached(view.rows, path)
    is_known = stamp.lineage == view.basis.lineage and view.basis.history_from <= stamp.seq <= view.seq
    if not is_known or view.rows("select sum from record where seq = ?", [stamp.seq]) != [(stamp.sum,)]:
        return None
    _overlay(view)
    return stamp.seq


def inspect(path: str, bodies_path: str, temp_dir: str) -> tuple[int, int]:
    """Return the seq of a published index and how many entities it has; ``bodies_path`` is "" where none are kept.

    Raises: ``ViewDamaged`` when one of the two files cannot be used.
    """
    with contextlib.closing(database.connect(temp_dir)) as connection, database.explained_all():
        stamp = _attached(lambda sql: connection.execute(sql).fetchall(), path)
        [(entities,)] = connection.execute("select count(*) from text.entity").fetchall()
        if bodies_path:
            connection.execute(f"attach '{quoted(bodies_path)}' as text_kept (read_only)")
            connection.execute("select hash, text from text_kept.body limit 0")
    return stamp.seq, entities


def _stamp(view: View, database_name: str) -> None:
    stamp = TextStamp(TEXT_FORMAT, view.basis.lineage, view.seq, view.basis.sum)
    sql = f"create table {database_name}.stamp as select $1::integer, $2, $3::bigint, $4"
    view.rows(sql, msgspec.structs.astuple(stamp))


def _attached(rows: Callable[[str], list[tuple[Any, ...]]], path: str) -> TextStamp:
    """Attach a published index and return its stamp. Raises: ``ViewDamaged`` when it has none that can be used."""
    rows(f"attach '{quoted(path)}' as text (read_only)")
    there = rows("select 1 from duckdb_tables() where database_name = 'text' and table_name = 'stamp'")
    [row] = (rows("from text.stamp") if there else []) or [()]
    if len(row) != len(TextStamp.__struct_fields__) or row[0] != TEXT_FORMAT:
        raise ViewDamaged(f"{path} has no usable stamp")
    return TextStamp(*row)


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


def gather(view: View, read: Reader, ids: str | None, at: int | None = None) -> None:
    """Read the documents that are not at hand; ``ids`` is SQL for the entities meant, None for all of them."""
    wanted = view.rows(
        f"select distinct path, hash from {_documents(at, ids)} where hash not in (select hash from text_body) "
        "order by path"
    )
    for chunk in _chunks(read([(path, hash_) for path, hash_ in wanted])):
        texts = dict(chunk)  # two files may say the same
        view.rows(
            "insert into text_read select hash, text from (select unnest($1::varchar[]) as hash, "
            "unnest($2::varchar[]) as text) where hash not in (select hash from text_read)",
            [list(texts), list(texts.values())],
        )


def hashes(view: View, paths: Sequence[str], at: int | None) -> dict[str, str]:
    """Return by path the hashes of those of these files that state one entity each, as of a seq."""
    if at is None:
        found = [(source.path, source.hash, source.extractor) for source in view.sources(paths)]
    else:
        sql = f"select path, hash, extractor from {asof.sources(at)} s where path in (select unnest($1::varchar[]))"
        found = view.rows(sql, [list(paths)])
    return {path: digest for path, digest, extractor in found if digest and extractor.split("/")[0] == _ONE_TO_ONE}


def bodies(view: View, digests: Sequence[str], most_chars: int) -> dict[str, str]:
    """Return the documents with these hashes, as far as they are at hand, each to so many characters."""
    listed = ", ".join(f"${at}" for at in range(2, len(digests) + 2))
    sql = f"select hash, left(text, $1) from text_body where hash in ({listed})"
    return dict(view.rows(sql, [most_chars, *digests])) if digests else {}


def _documents(at: int | None, ids: str | None = None) -> str:
    """Return a relation of the entities that a document of their own states, with its path and hash as of a seq."""
    limited = f" and n.id in ({ids})" if ids else ""
    return (
        f"(select n.id, s.path, s.hash from {asof.nodes(at)} n join {asof.sources(at)} s on s.path = n.path "
        f"where split_part(s.extractor, '/', 1) = '{_ONE_TO_ONE}' and s.hash <> ''{limited})"
    )


def documents_at_hand(at: int | None, ids: str | None = None) -> str:
    """Return a relation of the entities that a document of their own states, with its text where that is at hand."""
    return f"(select d.id, b.text from {_documents(at, ids)} d left join text_body b on b.hash = d.hash)"


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


def _chunks(found: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    chunk, chars = [], 0
    for one in found:
        chunk.append(one)
        chars += len(one[1])
        if chars >= _CHUNK_CHARS:
            yield chunk
            chunk, chars = [], 0
    if chunk:
        yield chunk
