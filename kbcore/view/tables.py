"""The tables of the view, and how a graph value becomes a row and comes back.

Every table has three forms. ``base.X`` is the published part, read-only and the same for every process. ``X_tail``
holds what came after it, in memory. ``X`` is the view over both that queries read; the keys in ``X_touched`` have
moved from the base to the tail. A base that is a view's own has no tail: new rows are added to it.
Superseded rows go to ``X_history`` with the seq that ended them, so an element existed at seq S exactly when
``version <= S`` and ``ended > S`` (or it still exists).
``node`` and ``node_history`` lack the entities of hidden types; ``any_node`` and ``any_node_history`` have all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kbcore.model.graph import (
    CONTESTED,
    CORE_FIELDS,
    INDEX_SUFFIX,
    OBJECT_FIELDS,
    Link,
    Node,
    NoteOnFile,
    Statement,
    SyncedFile,
)
from kbcore.model.schema import GENERATED_DIGITS, HIDDEN, MENTIONS

VIEW_FORMAT: Final = 12
SMALL_LIST: Final = 128
"""So many keys, more than those of a page, are written out in a statement, because DuckDB then uses its index: of
100,000 entities, 101 take 8 ms of CPU so, and 17 to 22 ms by a join with the list."""

Columns = Mapping[str, str]

NODE: Final[Columns] = {
    "id": "VARCHAR",
    "type": "VARCHAR",
    "name": "VARCHAR",
    "title": "VARCHAR",
    "status": "VARCHAR",
    "created_at": "VARCHAR",
    "updated_at": "VARCHAR",
    "source": "VARCHAR",
    "tags": "VARCHAR[]",
    "owner": "VARCHAR",
    "priority": "VARCHAR",
    "severity": "VARCHAR",
    "links": "VARCHAR[]",
    "text_ref": "VARCHAR",
    "attributes": "JSON",
    "metadata": "JSON",
    "contested": "JSON",
    "owners": "JSON",
    "path": "VARCHAR",
    "files": "VARCHAR[]",
    "created_seq": "BIGINT",
    "version": "BIGINT",
}
"""``name`` is the id where no other is given; ``owners`` maps a field to the file that states it; ``path`` is the
file that defines the entity ("" for a client's); ``files`` are all files that own one of its fields; ``contested`` has
the values of each field that changes state otherwise (``graph.CONTESTED``)."""

LINK: Final[Columns] = {
    "id": "VARCHAR",
    "type": "VARCHAR",
    "kind": "VARCHAR",
    "from_id": "VARCHAR",
    "to_id": "VARCHAR",
    "is_resolved": "BOOLEAN",
    "confidence": "DOUBLE",
    "attributes": "JSON",
    "metadata": "JSON",
    "contested": "JSON",
    "created_at": "VARCHAR",
    "created_by": "VARCHAR",
    "source": "VARCHAR",
    "statements": "JSON",
    "owners": "JSON",
    "files": "VARCHAR[]",
    "created_seq": "BIGINT",
    "version": "BIGINT",
}
"""``is_resolved`` is false for an unresolved link (an end is missing); ``files`` are the files that state it."""

IS_TEXT_OF: Final = "case when json_extract_string(n.owners, '$.text_ref') = n.text_ref then n.text_ref end"
"""The file that states that it is the text of the entity ``n``, null where none does."""
FILE_OF: Final = (
    "coalesce(case when n.type = 'symbol' then json_extract_string(n.attributes, '$.file') end, "
    f"nullif(n.path, ''), {IS_TEXT_OF}, '')"
)
"""The file whose owners an entity ``n`` has: where a symbol is said to be, else which states it, or has its text."""

IS_MENTION: Final = f"(type = '{MENTIONS}' and len(files) > 0)"
"""The condition that a link is in the text of a document."""
IS_OF_CODE: Final = "(path <> '' and coalesce(json_extract_string(attributes, '$.file') = path, false))"
"""Entities that the source file states which holds them, as ``Node.is_of_code``."""
IS_OF_CODE_OR_INDEX: Final = f"({IS_OF_CODE} or ends_with(path, '{INDEX_SUFFIX}'))"
"""Those, and symbols that an index of source code states, as ``Node.is_of_code_or_index``."""
MAY_LACK_AN_END: Final = f"""(not is_resolved and (({IS_MENTION} and regexp_matches(to_id, '(?i)\\.(md|markdown|rst)$'))
  or coalesce(ends_with(files[1], '{INDEX_SUFFIX}'), false)))"""
"""The condition that nothing is wrong with an unresolved link: one in the text of a document to a page that is no
entity, or one of an index between symbols that are not there."""

SOURCE: Final[Columns] = {
    "path": "VARCHAR",
    "hash": "VARCHAR",
    "extractor": "VARCHAR",
    "is_ok": "BOOLEAN",
    "problems": "JSON",
    "version": "BIGINT",
}

RECORD: Final[Columns] = {
    "seq": "BIGINT",
    "changeset_id": "VARCHAR",
    "digest": "VARCHAR",
    "written_at": "VARCHAR",
    "clock": "VARCHAR",
    "actor": "VARCHAR",
    "source": "VARCHAR",
    "tool": "VARCHAR",
    "message": "VARCHAR",
    "repair": "VARCHAR",
    "commit": "VARCHAR",
    "session": "VARCHAR",
    "epoch": "VARCHAR",
    "holes": "VARCHAR",
    "stated": "VARCHAR",
    "sum": "VARCHAR",
    "file": "VARCHAR",
    "offset_bytes": "BIGINT",
    "length_bytes": "BIGINT",
    "created": "BIGINT",
    "updated": "BIGINT",
    "deleted": "BIGINT",
    "renamed": "BIGINT",
    "moved": "VARCHAR",
    "edges": "BIGINT",
    "changes": "BIGINT",
}
"""``clock`` is the wall clock where it was behind (``clock.Moment``).

``holes`` is not "" in the record of a salvage: the missing records, as JSON. ``stated`` is not null in a record that
the log lists although later ones are missing: what it changed, as JSON (``touched.TouchedElement``, entities first);
where earlier ones are missing as well, what it says that it changed.

``file``, ``offset_bytes`` and ``length_bytes`` say where the record's line is in the journal; the last ones
count entities and edges that it changed. ``moved`` has what got another id where it renamed entities, as JSON
(``renames.Moved``), else "". ``changes`` counts the shared
changes that came or went with it (``record.TakeChange``). Of a record whose line was pruned, ``file`` is "" and only
``seq``, ``changeset_id`` and ``digest`` are known.
"""

ELEMENTS: Final[Mapping[str, tuple[str, Columns]]] = {
    "node": ("id", NODE),
    "link": ("id", LINK),
    "source": ("path", SOURCE),
}
"""The tables that have a key, a tail and a history."""

WHOLE: Final[Mapping[str, str]] = {"node": "any_node", "node_history": "any_node_history"}
"""Relations with all rows, by the name of the one without those of hidden entities."""

IS_HIDDEN: Final = " or ".join(
    f"(type = '{name}' and regexp_full_match(id, '{name}:[0-9a-f]{{{GENERATED_DIGITS}}}'))" for name in HIDDEN
)
"""The condition that ``schema.is_hidden`` tests, on a row of ``node`` or ``node_history``."""

Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Answers one statement over the tables: SQL and its parameters."""
AskBase = Callable[..., list[tuple[Any, ...]]]
"""Answers one statement over the base of a view alone: SQL, and after it the parameters."""

_PLAIN: Final = tuple(name for name in CORE_FIELDS if name not in {"created_at", "updated_at", "source", "name"})
_EMPTY: Final = "{}"
_encode = msgspec.json.Encoder(order="sorted").encode
_notes = msgspec.json.Decoder(tuple[NoteOnFile, ...])
_said = msgspec.json.Decoder(tuple[Statement, ...])
_object = msgspec.json.Decoder(dict[str, Any])
_names = msgspec.json.Decoder(dict[str, str])


class Likeness(NamedTuple):
    """The common key of alike nodes, as SQL over the columns of ``node`` and as a function; "" is like nothing.

    It is one text of each node, or, where the SQL gives a list, any of several.
    """

    sql: str
    keys: Callable[[Node], Sequence[str]]
    is_list: bool = False


def _aliases(node: Node) -> Sequence[str]:
    named = node.fields.get("attributes.aliases")
    return [one for one in named if isinstance(one, str)] if isinstance(named, list | tuple) else ()


ALIASES: Final = Likeness(
    "if(contains(attributes, '\"aliases\"'), json_extract_string(attributes, '$.aliases[*]'), [])",
    _aliases,
    is_list=True,
)


def _text(value: Any) -> str:
    return _encode(value).decode()


def files_of(element: Node | Link) -> set[str]:
    """Return the files that own a field of a node, or that state a link."""
    if isinstance(element, Node):
        return set(element.owners.values())
    return {statement.src for statement in element.statements if statement.src}


def _object_texts(fields: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the members of ``attributes``, ``metadata`` and ``contested`` as JSON text, keys sorted."""
    attributes: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    contested: dict[str, Any] = {}
    for key, value in fields.items():
        if "." in key:
            prefix, _, name = key.partition(".")
            if prefix == "attributes":
                attributes[name] = value
            elif prefix == "metadata":
                metadata[name] = value
            elif prefix == CONTESTED:
                contested[name] = value
    return (
        _text(attributes) if attributes else _EMPTY,
        _text(metadata) if metadata else _EMPTY,
        _text(contested) if contested else _EMPTY,
    )


def node_row(node: Node) -> dict[str, Any]:
    """Return the row of a node; JSON columns are JSON text."""
    get, owners = node.fields.get, node.owners
    attributes, metadata, contested = _object_texts(node.fields)
    return {
        "id": node.id,
        "type": get("type"),
        "name": get("name", node.id),
        "title": get("title"),
        "status": get("status"),
        "created_at": node.created_at,
        "updated_at": node.updated_at,
        "source": node.source,
        "tags": get("tags"),
        "owner": get("owner"),
        "priority": get("priority"),
        "severity": get("severity"),
        "links": get("links"),
        "text_ref": get("text_ref"),
        "attributes": attributes,
        "metadata": metadata,
        "contested": contested,
        "owners": _text(owners) if owners else _EMPTY,
        "path": node.path,
        "files": sorted(files_of(node)) if owners else [],
        "created_seq": node.created_seq,
        "version": node.version,
    }


def node_of(row: Sequence[Any]) -> Node:
    """Return the node of a row whose cells are in the order of ``NODE``."""
    cells = dict(zip(NODE, row, strict=False))
    fields = {name: cells[name] for name in _PLAIN if cells[name] is not None}
    if cells["name"] != cells["id"]:
        fields["name"] = cells["name"]
    _add_members(fields, cells)
    return Node(
        id=cells["id"],
        fields=fields,
        owners=_names.decode(cells["owners"]),
        created_at=cells["created_at"],
        updated_at=cells["updated_at"],
        source=cells["source"],
        created_seq=cells["created_seq"],
        version=cells["version"],
    )


def _add_members(fields: dict[str, Any], cells: Mapping[str, Any]) -> None:
    """Add the members of the objects of a row to the fields of a node or a link."""
    for prefix in (*OBJECT_FIELDS, CONTESTED):
        if cells[prefix] != "{}":
            fields |= {f"{prefix}.{key}": value for key, value in _object.decode(cells[prefix]).items()}


def link_row(link: Link) -> dict[str, Any]:
    """Return the row of a link; JSON columns are JSON text."""
    attributes, metadata, contested = _object_texts(link.fields)
    return {
        "id": link.id,
        "type": link.type,
        "kind": link.kind,
        "from_id": link.from_id,
        "to_id": link.to_id,
        "is_resolved": link.is_resolved,
        "confidence": link.fields.get("confidence"),
        "attributes": attributes,
        "metadata": metadata,
        "contested": contested,
        "created_at": link.created_at,
        "created_by": link.created_by,
        "source": link.statements[0].source,
        "statements": _text(link.statements),
        "owners": _text(link.owners) if link.owners else _EMPTY,
        "files": sorted(files_of(link)),
        "created_seq": link.created_seq,
        "version": link.version,
    }


def may_lack_an_end(link: Link) -> bool:
    """Tell what ``MAY_LACK_AN_END`` asks of a row."""
    return not link.is_resolved and needs_no_end(link.type, link.to_id, sorted(files_of(link)))


def needs_no_end(type_: str, to_id: str, files: Sequence[str]) -> bool:
    """Tell what ``MAY_LACK_AN_END`` asks of an unresolved link that these files state, in their order."""
    is_page = type_ == MENTIONS and to_id.lower().endswith((".md", ".markdown", ".rst"))
    return bool(files) and (is_page or files[0].endswith(INDEX_SUFFIX))


def link_of(row: Sequence[Any]) -> Link:
    """Return the link of a row whose cells are in the order of ``LINK``."""
    cells = dict(zip(LINK, row, strict=False))
    fields: dict[str, Any] = {} if cells["confidence"] is None else {"confidence": cells["confidence"]}
    _add_members(fields, cells)
    return Link(
        id=cells["id"],
        type=cells["type"],
        kind=cells["kind"],
        from_id=cells["from_id"],
        to_id=cells["to_id"],
        fields=fields,
        owners=_names.decode(cells["owners"]),
        statements=_said.decode(cells["statements"]),
        is_resolved=cells["is_resolved"],
        created_at=cells["created_at"],
        created_by=cells["created_by"],
        created_seq=cells["created_seq"],
        version=cells["version"],
    )


def source_row(source: SyncedFile) -> dict[str, Any]:
    """Return the row of a source file."""
    return {
        "path": source.path,
        "hash": source.hash,
        "extractor": source.extractor,
        "is_ok": source.is_ok,
        "problems": _text(source.problems),
        "version": source.version,
    }


def source_of(row: Sequence[Any]) -> SyncedFile:
    """Return the source file of a row whose cells are in the order of ``SOURCE``."""
    path, digest, extractor, is_ok, problems, version = row[: len(SOURCE)]
    return SyncedFile(path, digest, extractor, is_ok, _notes.decode(problems), version)
