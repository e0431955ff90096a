"""The keys that ``--where``, ``--sort`` and ``--fields`` take, and the column that each of them means.

Only the columns named here ever enter SQL by name; what a user types is looked up here or bound
as a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from kbcore.model.graph import CONTESTED, CORE_FIELDS, OBJECT_FIELDS, PROPOSED, Node, entity_json

EDGE: Final = "edge"
"""The TYPE of a query that asks for edges themselves."""

KeyKind = Literal["text", "list", "number", "flag", "time", "stated_by", "member"]


class Key(msgspec.Struct, frozen=True):
    """One thing to compare or to order by: a column, or the member of a JSON column."""

    kind: KeyKind
    column: str
    member: str = ""


def _texts(*names: str) -> dict[str, Key]:
    return {name: Key("text", name) for name in names}


_CONTESTED: Final = Key("flag", CONTESTED)
_PROPOSED: Final = Key("flag", "metadata", PROPOSED)
_TAGS: Final = Key("list", "tags")
_STATED_BY: Final = Key("stated_by", "source")
ENTITY_KEYS: Final[Mapping[str, Key]] = {
    **_texts("id", "type", "name", "title", "status", "owner", "priority", "severity", "source", "path"),
    "text_ref": Key("text", "text_ref"),
    "created_at": Key("time", "created_at"),
    "updated_at": Key("time", "updated_at"),
    "version": Key("number", "version"),
    "tag": _TAGS,
    "tags": _TAGS,
    "links": Key("list", "links"),
    "contested": _CONTESTED,
    PROPOSED: _PROPOSED,
}
RESOLVED: Final = Key("flag", "is_resolved")
EDGE_KEYS: Final[Mapping[str, Key]] = {
    **_texts("type", "kind", "created_by", "id"),
    "from": Key("text", "from_id"),
    "to": Key("text", "to_id"),
    "source": _STATED_BY,
    "sources": _STATED_BY,
    "resolved": RESOLVED,
    "confidence": Key("number", "confidence"),
    "created_at": Key("time", "created_at"),
    "version": Key("number", "version"),
    "contested": _CONTESTED,
    PROPOSED: _PROPOSED,
}
_FORMER_EDGE_KEYS: Final = {"stands": "resolved"}
"""Names that keys of edges had in earlier versions, which are still read."""

_PATHS: Final = {("path", ""), ("source", ""), ("text_ref", ""), ("attributes", "file")}

MEMBERS: Final = tuple(f"{prefix}.NAME" for prefix in OBJECT_FIELDS)
"""The keys and fields of the members of objects, as messages write them."""

SNIPPET: Final = "snippet"
"""A field of what a text found."""

_ENTITY_FIELDS: Final = ("id", *CORE_FIELDS, *OBJECT_FIELDS, CONTESTED, PROPOSED, "version", "stale", "path", SNIPPET)
_EDGE_FIELDS: Final = (
    *("id", "type", "from", "to", "kind", "confidence", "created_at", "created_by", "source", "sources"),
    *(*OBJECT_FIELDS, CONTESTED, PROPOSED, "version", "unresolved"),
)
_ENTITY_PROVENANCE: Final = {"created_at", "updated_at", "source"}
_EDGE_PROVENANCE: Final = {"created_at", "created_by", "source", "sources", "version"}
_ALWAYS: Final = {"id", "type", "from", "to", "kind", "unresolved", "stale", PROPOSED}


def key_of(name: str, *, is_edge: bool) -> Key | None:
    """Return what a key of ``--where`` or ``--sort`` means, or None when it means nothing.

    For entities a bare name that is no core field is an attribute.
    """
    known = EDGE_KEYS if is_edge else ENTITY_KEYS
    name = _FORMER_EDGE_KEYS.get(name, name) if is_edge else name
    if name in known:
        return known[name]
    prefix, dot, member = name.partition(".")
    if dot and prefix in OBJECT_FIELDS:
        return Key("member", prefix, member) if member else None
    return None if is_edge or not name else Key("member", "attributes", name)


def is_path_key(name: str, *, is_edge: bool) -> bool:
    """Return whether a key is compared with paths of files."""
    key = key_of(name, is_edge=is_edge)
    if key is None:
        return False
    return key.kind == "stated_by" or (key.column, key.member) in _PATHS


def key_names(*, is_edge: bool) -> list[str]:
    """Return the keys there are, for messages; not the id of an edge, which few have ever seen."""
    known = [name for name in EDGE_KEYS if name != "id"] if is_edge else ENTITY_KEYS
    return [*known, *MEMBERS]


def field_of(name: str, *, is_edge: bool) -> str | None:
    """Return the full name of a field to show (``attributes.kind`` for ``kind``), or None for no field."""
    if name in (_EDGE_FIELDS if is_edge else _ENTITY_FIELDS):
        return name
    prefix, dot, member = name.partition(".")
    if dot and prefix in OBJECT_FIELDS:
        return name if member else None
    return None if is_edge or not name else f"attributes.{name}"


def field_names(*, is_edge: bool) -> list[str]:
    """Return the fields that can be shown, for messages."""
    return [*(_EDGE_FIELDS if is_edge else _ENTITY_FIELDS), *MEMBERS]


def shown_entity(node: Node, fields: Sequence[str]) -> dict[str, Any]:
    """Return an entity in JSON, with its ``path`` where that is asked for."""
    return entity_json(node) | ({"path": node.path} if node.path and "path" in fields else {})


def project(shown: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Return only these fields of an entity or edge in JSON, and always what identifies it.

    ``fields`` are full names, as ``check`` returns them; none at all means every field.
    """
    if not fields:
        return dict(shown)
    members: dict[str, set[str]] = {prefix: set() for prefix in OBJECT_FIELDS}
    for field in fields:
        prefix, dot, member = field.partition(".")
        if dot:
            members[prefix].add(member)
    picked: dict[str, Any] = {}
    for name, value in shown.items():
        wanted = members.get(name)
        if name in fields or (name in _ALWAYS and (name != "type" or "from" in shown)):
            picked[name] = value
        elif wanted:
            found = {member: value[member] for member in value if member in wanted}
            picked |= {name: found} if found else {}
    return picked


def without_provenance(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entity or edge in JSON without who stated it, when and where."""
    left_out = _EDGE_PROVENANCE if "from" in shown else _ENTITY_PROVENANCE
    return {name: value for name, value in shown.items() if name not in left_out}
