"""What a client asks for: entities and edges to write or remove, all or nothing. Shape only, no state.

``parse`` and ``parse_deletion`` turn the JSON of a request into plain values and report every fault of shape at
once, each with its JSON path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidChangeset, LimitExceeded, Problem
from kbcore.ids import check_id
from kbcore.model import CORE_FIELDS, OBJECT_FIELDS
from kbcore.reader import Reader, kind_of
from kbcore.values import field_problem

EDGE_FIELDS: Final = ("confidence", "created_at", "created_by", "source")
_ENTITY_KEYS: Final = ("id", *CORE_FIELDS, *OBJECT_FIELDS)
_EDGE_KEYS: Final = ("type", "kind", "from", "to", *EDGE_FIELDS, *OBJECT_FIELDS)
_KEYS: Final = ("changeset_id", "message", "expected_seq", "dry_run", "entities", "edges")
_DELETION_KEYS: Final = ("changeset_id", "message", "dry_run", "cascade", "entities", "edges")


class EntityWrite(msgspec.Struct, frozen=True):
    """One entity to write. ``values`` replaces fields, ``objects`` replaces attributes or metadata whole."""

    path: str
    id: str
    values: dict[str, Any] = {}
    objects: dict[str, dict[str, Any]] = {}
    removed: tuple[str, ...] = ()


class EdgeWrite(msgspec.Struct, frozen=True):
    """One edge to write; the members are those of ``EntityWrite``."""

    path: str
    type: str
    from_id: str
    to_id: str
    kind: str = ""
    values: dict[str, Any] = {}
    objects: dict[str, dict[str, Any]] = {}
    removed: tuple[str, ...] = ()


class EntityDelete(msgspec.Struct, frozen=True):
    """One entity to remove, and the version that the client read."""

    path: str
    id: str
    expected_version: int | None = None


class EdgeDelete(msgspec.Struct, frozen=True):
    """One edge to remove."""

    path: str
    type: str
    from_id: str
    to_id: str
    kind: str = ""
    expected_version: int | None = None


class Changeset(msgspec.Struct, frozen=True):
    """A whole request, valid in shape. ``digest`` is the SHA-256 of its content, without ``dry_run``."""

    changeset_id: str = ""
    message: str = ""
    expected_seq: int | None = None
    dry_run: bool = False
    cascade: bool = False
    entities: tuple[EntityWrite, ...] = ()
    edges: tuple[EdgeWrite, ...] = ()
    entity_deletes: tuple[EntityDelete, ...] = ()
    edge_deletes: tuple[EdgeDelete, ...] = ()
    digest: str = ""


def parse(request: Any) -> Changeset:
    """Return the changeset that a JSON request asks for.

    Raises: ``InvalidChangeset`` with every fault of shape; ``LimitExceeded`` when it names too much.
    """
    reader = Reader()
    whole = _whole(reader, request, _KEYS)
    entities = []
    for path, item in reader.items(whole, "entities"):
        reader.keys(path, item, _ENTITY_KEYS)
        key = reader.id(path, item, "id")
        values, objects, removed = reader.fields(path, item, tuple(CORE_FIELDS), field_problem)
        entities.append(EntityWrite(path, key, values, objects, removed))
    edges = []
    for path, item in reader.items(whole, "edges"):
        reader.keys(path, item, _EDGE_KEYS)
        ends = _ends(reader, path, item)
        values, objects, removed = reader.fields(path, item, EDGE_FIELDS, field_problem)
        edges.append(EdgeWrite(path, *ends, values, objects, removed))
    if not entities and not edges and not reader.problems:
        reader.wrong("$", "empty", "The changeset names nothing.", "Give `entities`, `edges` or both.")
    _no_twice(reader, entities, edges)
    return _finish(
        reader,
        whole,
        Changeset(
            entities=tuple(entities),
            edges=tuple(edges),
            expected_seq=reader.number("$", whole, "expected_seq"),
        ),
    )


def parse_deletion(request: Any, *, needs_version: bool = False) -> Changeset:
    """Return the changeset that a JSON request to delete asks for.

    With ``needs_version`` every item must name the version that the client read.

    Raises: ``InvalidChangeset`` with every fault of shape; ``LimitExceeded`` beyond the limit of one call.
    """
    reader = Reader()
    whole = _whole(reader, request, _DELETION_KEYS)
    entities = []
    for path, item in reader.items(whole, "entities"):
        reader.keys(path, item, ("id", "expected_version"))
        version = reader.number(path, item, "expected_version")
        if needs_version and version is None:
            reader.wrong(
                f"{path}.expected_version",
                "missing_field",
                "`expected_version` is missing.",
                "Read the entity first and send the `version` that the answer shows.",
            )
        entities.append(EntityDelete(path, reader.id(path, item, "id"), version))
    edges = []
    for path, item in reader.items(whole, "edges"):
        reader.keys(path, item, ("type", "kind", "from", "to", "expected_version"))
        edges.append(EdgeDelete(path, *_ends(reader, path, item), reader.number(path, item, "expected_version")))
    if not entities and not edges and not reader.problems:
        reader.wrong("$", "empty", "Nothing is named.", "Give `entities`, `edges` or both.")
    if len(entities) + len(edges) > limits.MAX_DELETE_IDS:
        raise LimitExceeded(
            f"{len(entities) + len(edges)} items in one delete; the limit is {limits.MAX_DELETE_IDS}. "
            "Nothing was deleted."
        )
    _no_twice(reader, entities, edges)
    changeset = Changeset(
        entity_deletes=tuple(entities), edge_deletes=tuple(edges), cascade=reader.flag("$", whole, "cascade")
    )
    return _finish(reader, whole, changeset)


def _whole(reader: Reader, request: Any, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(request, dict):
        raise InvalidChangeset(
            f"A changeset must be an object, not {kind_of(request)}.",
            details=[Problem("$", "wrong_type", "Must be an object.", f"Its members: {', '.join(allowed)}.")],
        )
    reader.keys("$", request, allowed)
    return request


def _ends(reader: Reader, path: str, item: Mapping[str, Any]) -> tuple[str, str, str, str]:
    kind = reader.text(path, item, "kind")
    fault = check_id(kind) if kind else None
    if fault or len(kind) > limits.MAX_NAME_CHARS:
        message = f"`kind` {fault or 'is too long'}."
        reader.wrong(f"{path}.kind", "bad_name", message, f"Use at most {limits.MAX_NAME_CHARS} characters.")
    name = reader.text(path, item, "type", is_required=True)
    from_id = reader.id(path, item, "from", may_be_link=True)
    return name, from_id, reader.id(path, item, "to", may_be_link=True), kind


def _no_twice(
    reader: Reader,
    entities: list[EntityWrite] | list[EntityDelete],
    edges: list[EdgeWrite] | list[EdgeDelete],
) -> None:
    """Refuse one element named twice: which of the two would hold is nobody's guess."""
    seen: dict[tuple[str, ...], str] = {}
    for entity in entities:
        first = seen.setdefault((entity.id,), entity.path)
        if first != entity.path and entity.id:
            reader.wrong(entity.path, "duplicate", f"{entity.id!r} is named twice; first at {first}.", "Merge the two.")
    for edge in edges:
        first = seen.setdefault((edge.type, edge.kind, edge.from_id, edge.to_id), edge.path)
        if first != edge.path:
            reader.wrong(edge.path, "duplicate", f"The same edge stands at {first}.", "Merge the two.")


def _finish(reader: Reader, whole: Mapping[str, Any], changeset: Changeset) -> Changeset:
    changeset_id = reader.text("$", whole, "changeset_id")
    fault = check_id(changeset_id) if changeset_id else None
    if fault or len(changeset_id) > limits.MAX_CHANGESET_ID_CHARS:
        reader.wrong(
            "$.changeset_id",
            "bad_id",
            f"`changeset_id` {fault or 'is too long'}.",
            f"Use at most {limits.MAX_CHANGESET_ID_CHARS} characters, such as a UUID.",
        )
    changeset = msgspec.structs.replace(
        changeset,
        changeset_id=changeset_id,
        message=reader.text("$", whole, "message"),
        dry_run=reader.flag("$", whole, "dry_run"),
    )
    if reader.problems:
        shown = reader.problems[: limits.MAX_PROBLEMS]
        raise InvalidChangeset(_count(len(reader.problems)), details=shown)
    named = len(changeset.entities) + len(changeset.edges)
    if named > limits.MAX_CHANGESET_ITEMS:
        raise LimitExceeded(f"The changeset names {named} elements; the limit is {limits.MAX_CHANGESET_ITEMS}.")
    return msgspec.structs.replace(changeset, digest=_digest(changeset))


def _count(number: int) -> str:
    return f"The changeset has {number} problem{'' if number == 1 else 's'}; nothing was written."


def _digest(changeset: Changeset) -> str:
    """Return the SHA-256 of what is asked for, whatever order the client wrote its keys in."""
    content = msgspec.structs.replace(changeset, dry_run=False, changeset_id="", digest="")
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
