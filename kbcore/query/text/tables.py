"""The tables that text is searched in, and how entities get into them. SQL alone: no file, no database of its own.

An index holds exactly the entities that it was filled with, each with the words of its fields and of its document. Two
indexes of the same entities and documents answer alike, however many steps either was filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kbcore import limits
from kbcore.query.known import Rows
from kbcore.query.text import words
from kbcore.view.tables import Columns

WEIGHTS: Final[Mapping[str, int]] = {"id": 8, "title": 5, "tags": 4, "attributes": 2, "body": 1}
"""How often a word counts by where it stands."""

ENTITY: Final[Columns] = {"doc": "INTEGER", "id": "VARCHAR", "length": "BIGINT", "lacks_body": "BOOLEAN"}
"""``doc`` is the number of an entity within the index, ``length`` the sum of its words, each as often as it counts."""
POSTING: Final[Columns] = {"term": "VARCHAR", "doc": "INTEGER", "weight": "INTEGER"}
TERM: Final[Columns] = {"term": "VARCHAR"}
"""The terms that are spelled, not counted: those without a digit."""
TABLES: Final[Mapping[str, Columns]] = {"entity": ENTITY, "posting": POSTING, "term": TERM}

_CHUNK_BYTES: Final = 16 * limits.MIB
_FIELDS_BYTES: Final = 640
"""So much text is taken in at once, counting so much for the fields of an entity, which bounds the memory that it
takes. Within a chunk postings are in order, so that few of them are read to find a term."""

NO_BODIES: Final = "(select '' as id, '' as text where false)"
"""Bodies for those who have none."""


class Index(msgspec.Struct, frozen=True):
    """Where an index stands: what the names of its tables begin with."""

    prefix: str

    def __getitem__(self, table: str) -> str:
        """Return the name of one of the ``TABLES``."""
        return self.prefix + table


def create(rows: Rows, index: Index) -> None:
    """Create the empty tables of an index, or empty those that there are."""
    for table, columns in TABLES.items():
        listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        rows(f"create or replace table {index[table]} ({listed})", ())


def fill(rows: Rows, index: Index, nodes: str, bodies: str = NO_BODIES, *, above: int = 0) -> None:
    """Add entities that an index does not hold.

    ``nodes`` is a relation with the columns of ``NODE``; ``bodies`` is one of ``id`` and ``text``, a row for each
    entity that a document of its own states, its text null where that is not at hand. No entity gets a number up to
    ``above``.
    """
    rows(
        "create or replace temp table text_new as select (row_number() over before "  # noqa: S608 - fixed names
        f"+ (select greatest(coalesce(max(doc), 0), {above:d}) from {index['entity']}))::integer as doc, n.id, "
        f"b.id is not null and b.text is null as lacks_body, (sum({_FIELDS_BYTES} + coalesce(strlen(b.text), 0)) "
        f"over before // {_CHUNK_BYTES})::integer as part from {nodes} n left join {bodies} b on b.id = n.id "
        "window before as (order by n.id rows unbounded preceding)",
        (),
    )
    for (part,) in rows("select distinct part from text_new order by part", ()):
        _fill_some(rows, index, f"(from text_new where part = {part:d})", nodes, bodies)
    rows("drop table text_new", ())


def _fill_some(rows: Rows, index: Index, new: str, nodes: str, bodies: str) -> None:
    """Add the entities of a relation that is a part of ``text_new``: what they say takes memory, all at once."""
    said = " union all ".join(
        f"select d.doc, {weight} as weight, unnest({words.pieces(_text(field))}) as piece "  # noqa: S608 - fixed names
        f"from {new} d join {bodies if field == 'body' else nodes} n on n.id = d.id"
        for field, weight in WEIGHTS.items()
    )
    rows(
        "create or replace temp table text_piece as select doc, piece, sum(weight)::integer as weight "  # noqa: S608
        f"from ({said}) group by all",
        (),
    )
    rows(
        f"insert into {index['entity']} select d.doc, d.id, coalesce(p.length, 0), d.lacks_body "  # noqa: S608
        f"from {new} d left join (select doc, sum(weight)::bigint as length from text_piece group by doc) p "
        "on p.doc = d.doc order by d.doc",
        (),
    )
    rows(
        "create or replace temp table text_posting_new as select term, doc, sum(weight)::integer as weight "  # noqa: S608
        f"from (select doc, weight, unnest(terms) as term from text_piece join (select piece, "
        f"{words.all_terms('read')} as terms from {_read_pieces(rows)}) using (piece)) "
        "group by all",
        (),
    )
    rows(f"insert into {index['posting']} from text_posting_new order by term, doc", ())
    rows(
        f"insert into {index['term']} select distinct term from text_posting_new where not "  # noqa: S608 - fixed names
        f"regexp_matches(term, '[0-9]') and term not in (select term from {index['term']}) order by term",
        (),
    )
    for table in ("text_piece", "text_posting_new"):
        rows(f"drop table {table}", ())


def _read_pieces(rows: Rows) -> str:
    """Return a relation of the pieces at hand, each with what it is read as, in several rows where that is several."""
    each = "(select distinct piece from text_piece)"
    odd = [piece for (piece,) in rows(f"select piece from {each} where {words.is_odd('piece')}", ())]  # noqa: S608
    if not odd:
        return f"(select piece, piece as read from {each})"  # noqa: S608 - fixed names
    rows(
        f"create or replace temp table text_odd as select piece, unnest({words.pieces('read')}) as read "  # noqa: S608
        "from (select unnest($1::varchar[]) as piece, unnest($2::varchar[]) as read)",
        [odd, [words.read(piece) for piece in odd]],
    )
    return (
        f"(select piece, piece as read from {each} where piece not in (select piece from text_odd) "  # noqa: S608
        "union all from text_odd)"
    )


def members() -> str:
    """Return the list of all plain values in the attributes of an entity, as text."""
    return (
        "[member[1] for member in list_zip(json_extract_string(n.attributes, '$..*'), "
        "json_type(n.attributes, '$..*')) if member[2] not in ('OBJECT', 'ARRAY')]"
    )


def _text(field: str) -> str:
    """Return the text of a field; a line break between two values, which no word holds."""
    return {
        "id": "concat_ws(chr(10), n.id, nullif(n.name, n.id))",
        "title": "n.title",
        "tags": "array_to_string(n.tags, chr(10))",
        "attributes": (
            "concat_ws(chr(10), n.status, n.owner, n.priority, n.severity, nullif(n.text_ref, n.path), "
            f"array_to_string(n.links, chr(10)), array_to_string({members()}, chr(10)))"
        ),
        "body": "n.text",
    }[field]
