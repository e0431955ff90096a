"""Relations for the SQL of a project's own rules: names and columns that stay, whatever the view is made of.

Each is a copy that is made for the rules; the tables of the view itself cannot be read by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kbcore.view.tables import MAY_LACK_AN_END


class Column(msgspec.Struct, frozen=True):
    """One column: its name, its type in DuckDB, what it means, and the expression over the view that gives it."""

    name: str
    type: str
    meaning: str
    made_of: str = ""


class Relation(msgspec.Struct, frozen=True):
    """One relation: its name, what a row of it is, its columns, and the part of the view that it is made of."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    origin: str

    @property
    def select(self) -> str:
        """Return the SQL over the tables of the view that gives the rows."""
        cells = ", ".join(f'cast({one.made_of or one.name} as {one.type}) as "{one.name}"' for one in self.columns)
        return f"select {cells} from {self.origin}"


_VERSION: Final = Column("version", "BIGINT", "the seq that last changed it")
_CREATED: Final = Column("created_seq", "BIGINT", "the seq that made it")
_ENDED: Final = Column("ended", "BIGINT", "the seq that ended this state; the present state is not in the history")
_OBJECTS: Final = (
    Column("attributes", "JSON", "an object, `{}` when there are none; `attributes ->> 'kind'` is one of them as text"),
    Column("metadata", "JSON", "an object, as above"),
)

_ENTITY: Final = (
    Column("id", "VARCHAR", "the id"),
    Column("type", "VARCHAR", "`req`, `test`, … or a type of the project"),
    Column("title", "VARCHAR", "the title"),
    Column("status", "VARCHAR", "the status"),
    Column("owner", "VARCHAR", "a person or a team, or null"),
    Column("priority", "VARCHAR", "the priority, or null"),
    Column("severity", "VARCHAR", "the severity, or null"),
    Column("tags", "VARCHAR[]", "the tags, `[]` when there are none", "coalesce(tags, [])"),
    Column("links", "VARCHAR[]", "the URLs, `[]` when there are none", "coalesce(links, [])"),
    Column("text_ref", "VARCHAR", "where its text is: a path, perhaps with `#anchor`, or null"),
    *_OBJECTS,
    Column("file", "VARCHAR", "the file that defines it, null for an entity of a client", "nullif(path, '')"),
    Column("files", "VARCHAR[]", "all files that state one of its fields"),
    Column("created_at", "TIMESTAMP", "when it was made, in UTC like all times"),
    Column("updated_at", "TIMESTAMP", "when it was last changed"),
    Column("source", "VARCHAR", "through what it was last stated: a file, `cli`, `mcp`, …"),
    _CREATED,
    _VERSION,
)
_ENDS: Final = (
    Column("type", "VARCHAR", "`implements`, `verified_by`, … or a type of the project"),
    Column("kind", "VARCHAR", "what a `relates_to` means, null for types that need no kind", "nullif(kind, '')"),
    Column("from_id", "VARCHAR", "the entity that it comes from, or the id of an edge"),
    Column("to_id", "VARCHAR", "the entity that it leads to, or the id of an edge"),
)
_STATED: Final = (
    Column("files", "VARCHAR[]", "the files that state it, `[]` when only clients do"),
    Column("created_at", "TIMESTAMP", "when it was first stated"),
    Column("created_by", "VARCHAR", "who first stated it"),
)
_EDGE: Final = (
    Column("id", "VARCHAR", "the id, `link:…`"),
    *_ENDS,
    Column("confidence", "DOUBLE", "from 0 to 1, or null"),
    *_OBJECTS,
    *_STATED,
    Column("source", "VARCHAR", "through what it was stated, the first where there are several"),
    _CREATED,
    _VERSION,
)

_LISTED: Final = (
    Relation("entity", "an entity in its present state", _ENTITY, "node"),
    Relation("edge", "a resolved edge: both its ends exist", _EDGE, "link where is_resolved"),
    Relation(
        "unresolved",
        "an unresolved edge: one of its ends does not exist; none of a text or an index to what need not be an entity",
        (
            Column("type", "VARCHAR", "the type of edge, null while it is not known", "nullif(type, '')"),
            *_ENDS[1:],
            *_STATED,
            _VERSION,
        ),
        f"link where not is_resolved and not {MAY_LACK_AN_END}",
    ),
    Relation(
        "file",
        "a file that KB reads",
        (
            Column("path", "VARCHAR", "its path from the root"),
            Column("extractor", "VARCHAR", "what reads it: `markdown`, …", "split_part(extractor, '/', 1)"),
            Column("hash", "VARCHAR", "the SHA-256 of the content that was last read"),
            Column("is_whole", "BOOLEAN", "whether all of it could be read", "is_ok"),
            _VERSION,
        ),
        "source",
    ),
    Relation(
        "record",
        "a record of the journal",
        (
            Column("seq", "BIGINT", "its number"),
            Column("changeset_id", "VARCHAR", "the id of its changeset"),
            Column(
                "at", "TIMESTAMP", "when it was written; from here on null for a record that was pruned", "written_at"
            ),
            Column("actor", "VARCHAR", "who wrote it"),
            Column("source", "VARCHAR", "through what: `cli`, `mcp`, `sync`, …"),
            Column("tool", "VARCHAR", "with which program"),
            Column("message", "VARCHAR", "why"),
            Column("commit", "VARCHAR", "the commit that was checked out, empty for none"),
            Column("session", "VARCHAR", "what the writes of one client belong to, empty for none"),
            Column("created", "BIGINT", "how many entities it made"),
            Column("updated", "BIGINT", "how many entities it changed"),
            Column("deleted", "BIGINT", "how many entities it removed"),
            Column("renamed", "BIGINT", "how many entities it gave another id, which the others do not count"),
            Column("edges", "BIGINT", "how many edges it made, changed or removed"),
        ),
        "record",
    ),
    Relation("entity_history", "an earlier state of an entity", (*_ENTITY, _ENDED), "node_history"),
    Relation("edge_history", "an earlier state of an edge", (*_EDGE, _ENDED), "link_history where is_resolved"),
)
RELATIONS: Final[Mapping[str, Relation]] = {one.name: one for one in _LISTED}

INSTEAD: Final[Mapping[str, str]] = {
    "node": "entity",
    "link": "edge",
    "source": "file",
    "node_history": "entity_history",
    "link_history": "edge_history",
    "entities": "entity",
    "edges": "edge",
}
"""The relation that is meant by a name that is none: the view's own, and what comes to mind."""


class SqlRefused(Exception):
    """The database's reason against a statement.

    ``is_limit`` when it takes more than it may, ``is_memory`` when that is memory, ``is_time`` when it is time.
    ``cause`` is the setting of the user that was the limit, "" where the rule or the repository set it.
    """

    def __init__(
        self, said: str, *, is_limit: bool = False, is_memory: bool = False, is_time: bool = False, cause: str = ""
    ) -> None:
        super().__init__(said)
        self.cause = cause
        self.is_limit = is_limit
        self.is_time = is_time
        self.is_memory = is_memory
