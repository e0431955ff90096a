"""The graph as plain values: nodes (entities), links (edges) and source files, each at one seq.

Values are never changed in place: a change makes a new value, so "before" and "after" are always available.

A node's facts are one flat map of field names. Core fields go by their own name (``title``, ``tags``); what a
type or a project adds is ``attributes.<key>``; facts about the record itself are ``metadata.<key>``. The first
dot ends the prefix, so keys may hold dots. ``owners`` maps a field to the file that states it; a field without
an owner was set by a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from kbcore.model.schema import is_hidden

FieldKind = Literal["text", "list", "time"]

CORE_FIELDS: Final[Mapping[str, FieldKind]] = {
    "type": "text",
    "name": "text",
    "title": "text",
    "status": "text",
    "created_at": "time",
    "updated_at": "time",
    "source": "text",
    "tags": "list",
    "owner": "text",
    "priority": "text",
    "severity": "text",
    "links": "list",
    "text_ref": "text",
}
STAMPS: Final[tuple[str, ...]] = ("created_at", "updated_at", "source")
"""Fields that a commit fills in when no source states them; they are members of ``Node`` and ``Link``."""

OBJECT_FIELDS: Final = ("attributes", "metadata")
CLIENT: Final = ""
"""The source of a statement made by a person or an agent, as opposed to a file's path."""

CONTESTED: Final = "contested"
"""Begins the names of fields that say of another field which values changes give it that have not seen each other.

``contested.title`` is a list, the value that is shown first: ``value`` (left out where it is removed) and ``changes``,
each with ``change``, ``actor``, ``at`` and ``file``. ``contested.id`` is about ids; ``contested.deleted`` has changes
that delete the entity and have not seen all of it.
"""
_CONTESTED_NOTE: Final = f"{CONTESTED}."

PROPOSED: Final = "proposed"
"""The key in the metadata, and the member of an answer, that says what nobody has accepted yet (``proposals``)."""
_PROPOSED_MARK: Final = f"metadata.{PROPOSED}"

FILE: Final = "attributes.file"
"""The field with the file that holds a symbol."""

FORMER_KEY: Final = "former_ids"
FORMER_IDS: Final = f"attributes.{FORMER_KEY}"
"""The field with the ids that an entity had before: each goes on to mean it, and names no other entity."""

INDEX_SUFFIX: Final = ".scip"
"""The ending of the names of SCIP indexes: files that state edges between entities of other files."""

OTHER_NAMES: Final = (("name", "title"), ("sourceFile", "file"), ("source_file", "file"))
"""Keys that a manifest may write for those that KB has."""
UNKNOWN_STATUS: Final = "unknown-status"
"""The rule on statuses, which a sync looks at as well."""
SECRET_VALUE: Final = "secret_value"  # noqa: S105 - a code
"""The code of the problem that a file gives a value which looks like a secret and is not recorded."""
NOTES_OF_RULES: Final = {
    "unknown_status": UNKNOWN_STATUS,
    "unresolved_path": "unresolved-reference",
    SECRET_VALUE: "secret",
}
"""By the code of a problem of a file: the rule that reports it, as what it is about is in the state."""


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An entity. ``version`` is the seq that last changed it, ``created_seq`` the one that made it."""

    id: str
    fields: dict[str, Any]
    owners: dict[str, str]
    created_at: str
    updated_at: str
    source: str
    created_seq: int
    version: int

    @property
    def type(self) -> str:
        """Return the entity's type."""
        return str(self.fields.get("type", ""))

    @property
    def path(self) -> str:
        """Return the file that defines the entity, or the empty text when a client did."""
        return self.owners.get("type", CLIENT)

    @property
    def is_of_code(self) -> bool:
        """Tell whether the source file that holds the entity is what states it."""
        return self.path != CLIENT and self.fields.get(FILE) == self.path

    @property
    def is_of_code_or_index(self) -> bool:
        """Tell whether the entity is read out of source code, or out of an index of it."""
        return self.is_of_code or self.path.endswith(INDEX_SUFFIX)

    @property
    def is_hidden(self) -> bool:
        """Tell whether the entity is left out of what names neither it nor its type."""
        return is_hidden(self.type, self.id)


def contested_note(field: str) -> str:
    """Return the field that says that another one is contested."""
    return _CONTESTED_NOTE + field


def is_contested_note(name: str) -> bool:
    """Tell whether a field says that another one is contested."""
    return name.startswith(_CONTESTED_NOTE)


def proposed_mark(field: str) -> str:
    """Return the field that holds the proposed value of another one; of "" the one that is true in what is proposed."""
    return f"{_PROPOSED_MARK}.{field}" if field else _PROPOSED_MARK


def is_proposed_mark(name: str) -> bool:
    """Tell whether a field says that something is proposed."""
    return name.startswith(_PROPOSED_MARK) and (len(name) == len(_PROPOSED_MARK) or name[len(_PROPOSED_MARK)] == ".")


def is_proposed(element: Node | Link | None) -> bool:
    """Tell whether an element as a whole is proposed. What a file states is accepted with the file."""
    if element is None or element.fields.get(_PROPOSED_MARK) is not True:
        return False
    if isinstance(element, Node):
        return element.path == CLIENT
    return all(one.src == CLIENT for one in element.statements)


def proposed_values(element: Node | Link) -> dict[str, dict[str, Any]]:
    """Return by field what is proposed for it: ``value``, or nothing where it is to be removed."""
    head = f"{_PROPOSED_MARK}."
    found = {name[len(head) :]: value for name, value in element.fields.items() if name.startswith(head)}
    return {name: value if isinstance(value, dict) else {} for name, value in sorted(found.items())}


def _proposed_json(element: Node | Link) -> Any:
    """Return what an answer says of an element of which something is proposed: true for all of it; else None."""
    if is_proposed(element):
        return True
    return {name: value.get("value") for name, value in proposed_values(element).items()} or None


def former_ids(node: Node | None) -> tuple[str, ...]:
    """Return the ids that an entity had before it was renamed."""
    return former_ids_of(node.fields) if node else ()


def former_ids_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the former ids among the fields of an entity; a single text is one id."""
    value = fields.get(FORMER_IDS)
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(one for one in items if isinstance(one, str) and one))


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True, gc=False):
    """The source of a link: a file's path or the client.

    ``said`` is the id of the entity whose document named the other end without a type (a bare link), else "".
    ``via`` is the client's own name of its source, for a statement of a client.
    """

    src: str
    said: str = ""
    via: str = ""

    @property
    def source(self) -> str:
        """Return what to show as the source of this statement."""
        return self.src or self.via


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An edge. It is resolved while both ends exist and its type is known; a bare link to an unknown id has type "".

    ``fields`` holds ``confidence``, ``attributes.<key>`` and ``metadata.<key>``. An end is the id of a node or
    of another link.
    """

    id: str
    type: str
    kind: str
    from_id: str
    to_id: str
    fields: dict[str, Any]
    owners: dict[str, str]
    statements: tuple[Statement, ...]
    is_resolved: bool = msgspec.field(name="stands")
    created_at: str
    created_by: str
    created_seq: int
    version: int


class NoteOnFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One problem that was found when a file was last read; ``line`` 0 is the whole file.

    ``id`` is the entity that it is about, and no other one of the file; "" where it may be about several. ``values``
    say without words what is wrong, where the same may be wrong with several: the type that there is not.
    """

    line: int
    code: str
    message: str
    hint: str = ""
    severity: str = "error"
    id: str = ""
    values: tuple[str, ...] = ()


class SyncedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A file that an extractor read: the SHA-256 of the content last taken in, and whether all of it was."""

    path: str
    hash: str
    extractor: str
    is_ok: bool
    problems: tuple[NoteOnFile, ...]
    version: int

    def may_be_newer(self, entity_id: str) -> bool:
        """Tell whether the file could not be read whole and may say something else of this entity than is known."""
        errors = [one.id for one in self.problems if one.severity != "warning"]
        return not self.is_ok and (not errors or "" in errors or entity_id in errors)


def nested(fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the members of ``attributes`` or ``metadata`` out of a flat field map, keys sorted."""
    head = prefix + "."
    return {key[len(head) :]: fields[key] for key in sorted(fields) if key.startswith(head)}


def _in_order(value: Any) -> Any:
    """Return a value with the members of objects by name: an answer has the same bytes wherever the value comes from.

    In memory it is as it was written, in a database as it is encoded there.
    """
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return type(value)(map(_in_order, value)) if isinstance(value, list | tuple) else value


def entity_json(node: Node) -> dict[str, Any]:
    """Return an entity as the contract shows it: every field that is set, and ``version``."""
    shown: dict[str, Any] = {"id": node.id}
    stamps = {"created_at": node.created_at, "updated_at": node.updated_at, "source": node.source}
    for name in CORE_FIELDS:
        value = stamps[name] if name in stamps else node.fields.get(name)
        if value is not None and not (name == "name" and value == node.id):
            shown[name] = value
    for prefix in (*OBJECT_FIELDS, CONTESTED):
        members = _in_order(nested(node.fields, prefix))
        if members:
            shown[prefix] = members
    _show_proposed(shown, node)
    shown["version"] = node.version
    return shown


def _show_proposed(shown: dict[str, Any], element: Node | Link) -> None:
    """Say what of an element is proposed, in place of the marks in its metadata."""
    metadata = shown.get("metadata", {})
    kept = {key: value for key, value in metadata.items() if not is_proposed_mark(f"metadata.{key}")}
    if len(kept) < len(metadata):
        shown.pop("metadata")
        shown |= {"metadata": kept} if kept else {}
        said = _proposed_json(element)
        shown |= {PROPOSED: said} if said else {}


def edge_json(link: Link) -> dict[str, Any]:
    """Return an edge as the contract shows it; ``sources`` lists every file or client that states it."""
    shown: dict[str, Any] = {"type": link.type, "from": link.from_id, "to": link.to_id}
    if link.kind:
        shown["kind"] = link.kind
    if "confidence" in link.fields:
        shown["confidence"] = link.fields["confidence"]
    for prefix in (*OBJECT_FIELDS, CONTESTED):
        members = _in_order(nested(link.fields, prefix))
        if members:
            shown[prefix] = members
    _show_proposed(shown, link)
    shown |= {
        "created_at": link.created_at,
        "created_by": link.created_by,
        "source": link.statements[0].source,
        "sources": [statement.source for statement in link.statements],
        "version": link.version,
    }
    if not link.is_resolved:
        shown["unresolved"] = True
    return shown
