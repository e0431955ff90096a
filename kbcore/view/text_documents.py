"""The documents for search within the database of a view, by the hash of their file.

``text_body`` has them all, each once: those that are kept in a file for all branches, which is attached read-only, and
in ``text_read`` those that this process has read. A file of them is written once and never changed after.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kbcore.model.graph import Node
from kbcore.view import as_of, database, inspection
from kbcore.view.database import Room, quoted
from kbcore.view.tables import Columns
from kbcore.view.view import View

_TABLES: Final[Mapping[str, Columns]] = {"body": {"hash": "VARCHAR", "text": "VARCHAR"}}
_CHUNK_CHARS: Final = 2_000_000
"""Text that is handed to the database at once."""
_ONE_TO_ONE: Final = "markdown"
"""The extractor whose files each state one entity."""
_BY_REFERENCE: Final = "sources"
"""The extractor whose files state that they are the text of an entity, where they are."""

HAS_OWN_TEXT: Final = "s.path = n.text_ref and json_extract_string(n.owners, '$.text_ref') = s.path"
"""The condition that the file ``s`` states that it is the text of the entity ``n``."""

Reader = Callable[[Sequence[tuple[str, str]]], Iterable[tuple[str, str]]]
"""Reads documents: paths with the hashes that their files must have, to hashes and texts; others are left out."""


def attach_bodies(view: View, path: str, length_bytes: int | None = None) -> None:
    """Begin with the documents that were kept in a file of this length, "" for none.

    The length is None where this process has just written the file.

    Raises: ``ViewDamaged`` for another file.
    """
    view.rows("drop view if exists text_body")
    view.rows("detach database if exists text_kept")
    view.rows("create table if not exists text_read (hash varchar, text varchar)")
    kept = ""
    if path:
        view.rows(f"attach '{quoted(path)}' as text_kept (read_only)")
        if length_bytes is not None:
            inspection.check(view.rows, "text_kept", _TABLES, length_bytes)
        kept = " union all select hash, text from text_kept.body where hash not in (select hash from text_read)"
    view.rows(f"create view text_body as select hash, text from text_read{kept}")


def bodies_share(view: View) -> tuple[int, int]:
    """Return how many documents this process has read, and how many are kept in the file."""
    read, whole = (view.rows(f"select count(*) from {table}")[0][0] for table in ("text_read", "text_body"))
    return read, whole - read


def keep_bodies(view: View, path: str, limit_bytes: int) -> None:
    """Write all documents available to a new file, as many as fit, those in use first, and go on with that file.

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


def documents_held(view: View) -> set[str]:
    """Return the hashes of all documents that a view shows."""
    return {hash_ for (hash_,) in view.rows(f"select hash from {_documents(None)}")}


def forget(path: str, target: str, held: Sequence[str], room: Room, length_bytes: int) -> int:
    """Write kept documents to a new file without those that have other hashes than these; return how many these are.

    Nothing is written where there are none, or for the target "". Raises: ``ViewDamaged`` when a file cannot be used.
    """
    with contextlib.closing(database.connect(room)) as connection, database.explained_all():
        connection.execute(f"attach '{quoted(path)}' as text_kept (read_only)")
        inspection.check(connection.rows, "text_kept", _TABLES, length_bytes)
        connection.execute("create table held as select unnest($1::varchar[]) as hash", [held])
        is_held = "hash in (select hash from held)"
        [(gone,)] = connection.execute(f"select count(*) from text_kept.body where not {is_held}").fetchall()
        if gone and target:
            connection.execute(database.attaching_new(target, "fresh"))
            connection.execute(f"create table fresh.body as from text_kept.body where {is_held} order by hash")
            connection.execute("force checkpoint fresh")
    return int(gone)


def count_kept(path: str, room: Room, length_bytes: int) -> int:
    """Return how many documents are kept in a file of this length. Raises: ``ViewDamaged`` when it cannot be used."""
    with contextlib.closing(database.connect(room)) as connection, database.explained_all():
        connection.execute(f"attach '{quoted(path)}' as text_kept (read_only)")
        inspection.check(connection.rows, "text_kept", _TABLES, length_bytes)
        [(kept, _)] = connection.execute("select count(hash), max(text) from text_kept.body").fetchall()
    return int(kept)


def gather(view: View, read: Reader, ids: str | None, at: int | None = None) -> None:
    """Read the documents that are not available; ``ids`` is SQL for the entities meant, None for all of them."""
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


def documents_of(view: View, entities: Sequence[Node], at: int | None) -> dict[str, tuple[str, str]]:
    """Return by id the documents that these entities have as of a seq, each with its hash."""
    paths = sorted({one for node in entities for one in (node.path, _own_text(node)) if one})
    if not paths:
        return {}
    if at is None:
        found = [(source.path, source.hash, source.extractor) for source in view.sources(paths)]
    else:
        sql = f"select path, hash, extractor from {as_of.sources(at)} s where path in (select unnest($1::varchar[]))"
        found = view.rows(sql, [list(paths)])
    known = {(path, extractor.split("/")[0]): (path, digest) for path, digest, extractor in found if digest}
    each = ((n.id, known.get((_own_text(n), _BY_REFERENCE)) or known.get((n.path, _ONE_TO_ONE))) for n in entities)
    return {key: document for key, document in each if document}


def _own_text(node: Node) -> str:
    """Return the file that states that it is the text of an entity, "" where none does."""
    path = str(node.fields.get("text_ref", ""))
    return path if node.owners.get("text_ref") == path else ""


def bodies(view: View, digests: Sequence[str], most_chars: int) -> dict[str, str]:
    """Return the documents with these hashes, as far as they are available, each to so many characters."""
    listed = ", ".join(f"${at}" for at in range(2, len(digests) + 2))
    sql = f"select hash, left(text, $1) from text_body where hash in ({listed})"
    return dict(view.rows(sql, [most_chars, *digests])) if digests else {}


def _documents(at: int | None, ids: str | None = None) -> str:
    """Return a relation of the entities that a document of their own states, with its path and hash as of a seq."""
    limited = f" and n.id in ({ids})" if ids else ""
    return (
        f"(select n.id, s.path, s.hash from {as_of.nodes(at)} n join {as_of.sources(at)} s on s.path = n.path "
        f"where split_part(s.extractor, '/', 1) = '{_ONE_TO_ONE}' and s.hash <> ''{limited} union all "
        f"select n.id, s.path, s.hash from {as_of.nodes(at)} n join {as_of.sources(at)} s on {HAS_OWN_TEXT} "
        f"where split_part(s.extractor, '/', 1) = '{_BY_REFERENCE}' and s.hash <> ''{limited})"
    )


def available_documents(at: int | None, ids: str | None = None) -> str:
    """Return a relation of the entities that a document of their own states, with its text where that is available."""
    return f"(select d.id, b.text from {_documents(at, ids)} d left join text_body b on b.hash = d.hash)"


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
