"""A client's request: entities and edges to write or remove, all or nothing. Shape only, no state.

``parse`` and ``parse_deletion`` turn the JSON of a request into plain values. What cannot be read is among the problems
of the changeset, each with its JSON path; what can be read is returned as well, so that planning adds what is wrong
with that, and refuses all of it at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec

from kbcore import limits
from kbcore.errors import InvalidChangeset, LimitExceeded, Problem, of_problems
from kbcore.errors.remedies import kb
from kbcore.ids import NUMBER_MARK, check_id, link_id
from kbcore.model.graph import CONTESTED, CORE_FIELDS, OBJECT_FIELDS, STAMPS
from kbcore.model.request_reader import RequestReader, kind_of
from kbcore.model.values import ValueFault, field_problem, meaning_problem

Mode = Literal["create", "update", "upsert"]
"""The mode of a write: the element must be new, must exist, or may be either."""
MODES: Final[tuple[Mode, ...]] = ("create", "update", "upsert")
EDGE_STAMPS: Final = ("created_at", "created_by", "source")
_ENTITY_FIELDS: Final = tuple(name for name in CORE_FIELDS if name not in STAMPS)
_EDGE_FIELDS: Final = ("confidence",)
_ENTITY_KEYS: Final = ("id", "create", "replace", "resolve", *_ENTITY_FIELDS, *OBJECT_FIELDS)
_EDGE_KEYS: Final = ("type", "kind", "from", "to", "create", "replace", "resolve", *_EDGE_FIELDS, *OBJECT_FIELDS)
SET_BY_KB: Final = "set_by_kb"
"""The code of a field that a client sends and only KB sets."""
_EDGE: Final = '{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}'
LEAVE_OUT: Final = (
    "Leave it out: KB notes by itself who writes, when, and with what. "
    f"To keep what an export says, {kb('apply', '--import', 'FILE', lead='run')}."
)
_KEYS: Final = ("changeset_id", "message", "expected_seq", "mode", "dry_run", "entities", "edges")
_DELETION_KEYS: Final = ("changeset_id", "message", "dry_run", "cascade", "entities", "edges")
_LISTS: Final = ("entities", "edges")
_FRAME: Final = ("changeset_id", "dry_run")
"""Members that say how a request is sent, not what it asks for."""
_DIGEST_FORM: Final = 1


class EntityWrite(msgspec.Struct, frozen=True):
    """One entity to write. ``values`` replaces fields; the members of ``objects`` are those of attributes and metadata.

    Members take the place of those of the same key, and null removes one. With ``replaces`` an object takes the
    place of the old one whole, and null is a value. By ``mode`` the entity must not exist yet, or must exist.

    What could not be read is left out, an id that could not is "", and ``is_whole`` is then false: nobody can tell what
    an item that is not whole leaves out on purpose.
    """

    path: str
    id: str
    values: dict[str, Any] = {}
    objects: dict[str, dict[str, Any]] = {}
    removed: tuple[str, ...] = ()
    is_whole: bool = True
    replaces: bool = False
    mode: Mode = "upsert"
    is_import: bool = False
    """True if it may set what KB sets otherwise."""
    is_of_kip: bool = False
    """True if a command of KIP writes it, which may say in metadata when and by whom it was made."""
    resolve: dict[str, int | str] = {}
    """By contested field: the number of its value that is to hold, from 1, or "keep"."""
    has_seen: bool = False
    """True if its writer names the version that the element has, and so has seen what is contested of it."""
    carried: frozenset[str] = frozenset()
    """Members of its objects that are as they were: it names them because an object is written whole."""
    is_unnamed: bool = False
    """True if its writer leaves the id to KB: then ``id`` is its place, and ``NUMBER_MARK``."""


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
    is_whole: bool = True
    replaces: bool = False
    mode: Mode = "upsert"
    is_import: bool = False
    is_of_kip: bool = False
    resolve: dict[str, int | str] = {}
    has_seen: bool = False
    carried: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """Return the id of the edge that is named, "" when what names it could not be read."""
        return _edge_id(self)


class EntityDelete(msgspec.Struct, frozen=True):
    """One entity to remove, and the version that the client read; an id that could not be read is ""."""

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

    @property
    def id(self) -> str:
        """Return the id of the edge that is named, "" when what names it could not be read."""
        return _edge_id(self)


class Changeset(msgspec.Struct, frozen=True):
    """A whole request, as far as it can be read. Whoever plans it refuses it when there are ``problems``.

    ``unread`` names the lists ("entities", "edges") of which not every item is known by its id, so that what is missing
    may be meant by one of them. ``digest`` is that of ``digest_of``, "" where there are problems.
    """

    changeset_id: str = ""
    message: str = ""
    expected_seq: int | None = None
    dry_run: bool = False
    cascade: bool = False
    is_review: bool = False
    """True for a decision on what is proposed, which alone may write the marks of it (``model.proposals``)."""
    entities: tuple[EntityWrite, ...] = ()
    edges: tuple[EdgeWrite, ...] = ()
    entity_deletes: tuple[EntityDelete, ...] = ()
    edge_deletes: tuple[EdgeDelete, ...] = ()
    digest: str = ""
    problems: tuple[Problem, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return how many items it has."""
        return len(self.entities) + len(self.edges) + len(self.entity_deletes) + len(self.edge_deletes)


AnyItem = EntityWrite | EdgeWrite | EntityDelete | EdgeDelete
Item = TypeVar("Item", EntityWrite, EdgeWrite, EntityDelete, EdgeDelete)


def parse(
    request: Any, *, most: int = limits.MAX_CHANGESET_ITEMS, is_import: bool = False, is_of_kip: bool = False
) -> Changeset:
    """Return the changeset that a JSON request asks for, with every fault of shape among its problems.

    Only an import may say when and by whom something was made, and through what: ``STAMPS`` and ``EDGE_STAMPS``. A
    command of KIP says it in metadata.

    Raises: ``InvalidChangeset`` when the request is no object; ``LimitExceeded`` for more than ``most`` elements.
    """
    reader = RequestReader()
    whole = _whole(reader, request, _KEYS)
    _check_count(whole, most, "in one changeset")
    mode: Mode = reader.choice("$", whole, "mode", MODES) or "upsert"
    entities = [
        msgspec.structs.replace(_entity(reader, path, item, mode, is_import=is_import), is_of_kip=is_of_kip)
        for path, item in reader.items(whole, "entities", '{"id": "REQ-1", "type": "req", "title": "…"}')
    ]
    edges = [
        msgspec.structs.replace(_edge(reader, path, item, mode, is_import=is_import), is_of_kip=is_of_kip)
        for path, item in reader.items(whole, "edges", _EDGE)
    ]
    is_empty_export = {"entities", "edges"} <= whole.keys()  # two empty lists say that there is nothing to change
    if not entities and not edges and not is_empty_export and not reader.problems:
        reader.wrong("$", "empty", "The changeset names nothing.", "Give `entities`, `edges` or both.")
    changeset = Changeset(
        entities=_once(reader, entities),
        edges=_once(reader, edges),
        expected_seq=reader.number("$", whole, "expected_seq"),
        unread=_unread(whole, _KEYS, entities, edges),
    )
    return _finish(reader, whole, changeset, "upsert")


def parse_deletion(request: Any, *, needs_version: bool = False) -> Changeset:
    """Return the changeset that a JSON request to delete asks for, with every fault of shape among its problems.

    With ``needs_version`` every entity must come with the version that the client read.

    Raises: ``InvalidChangeset`` when the request is no object; ``LimitExceeded`` beyond the limit of one call.
    """
    reader = RequestReader()
    whole = _whole(reader, request, _DELETION_KEYS)
    _check_count(whole, limits.MAX_DELETE_IDS, "in one delete")
    entities = [
        _entity_delete(reader, path, item, needs_version=needs_version)
        for path, item in reader.items(whole, "entities", '{"id": "REQ-1", "expected_version": 5}')
    ]
    edges = [_edge_delete(reader, path, item) for path, item in reader.items(whole, "edges", _EDGE)]
    if not entities and not edges and not reader.problems:
        reader.wrong("$", "empty", "Nothing is named.", "Give `entities`, `edges` or both.")
    changeset = Changeset(
        entity_deletes=_once(reader, entities),
        edge_deletes=_once(reader, edges),
        cascade=reader.flag("$", whole, "cascade"),
        unread=_unread(whole, _DELETION_KEYS, entities, edges),
    )
    if changeset.unread or whole.keys() - {*_DELETION_KEYS} or not isinstance(whole.get("cascade", False), bool):
        # What still points at an entity may be meant to go too: to say that it does is for the next time.
        changeset = msgspec.structs.replace(changeset, cascade=True)
    return _finish(reader, whole, changeset, "delete")


def check_frame(changeset_id: str, message: str) -> None:
    """Refuse a message or an id that no changeset may have. Raises: ``InvalidChangeset``."""
    frame = parse({"changeset_id": changeset_id or None, "message": message})
    problems = [problem for problem in frame.problems if problem.code != "empty"]  # it names no items, and need not
    if problems:
        raise of_problems(InvalidChangeset, "The request is not valid", problems)


def digest_of(asked: str, members: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a client asks for: by it a request that is sent again is known, for ever.

    It is taken of JSON in UTF-8, keys in the order of code points, without spaces: ``["kb-request",1,ASKED,MEMBERS]``.
    ASKED is the kind of request, such as ``upsert``; MEMBERS are those that the client sent, without ``changeset_id``
    and ``dry_run`` and without those that say nothing (null, false, "" or an empty list). Nothing of how KB keeps a
    request enters. Another form gets another number; the old one is then still known.
    """
    content = {
        name: value
        for name, value in members.items()
        if name not in _FRAME and not (value is None or value is False or value in ("", []))
    }
    whole = ["kb-request", _DIGEST_FORM, asked, content]
    text = json.dumps(whole, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _whole(reader: RequestReader, request: Any, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(request, dict):
        message = f"A changeset must be an object, not {kind_of(request)}."
        hint = f"Its members: {', '.join(allowed)}."
        raise InvalidChangeset(message, hint=hint, details=[Problem("$", "wrong_type", message, hint)], says_first=True)
    reader.keys("$", request, allowed)
    return request


def _entity(reader: RequestReader, path: str, item: Mapping[str, Any], mode: Mode, *, is_import: bool) -> EntityWrite:
    before = len(reader.problems)
    its_mode = "create" if reader.flag(path, item, "create") else mode
    set_by_kb = STAMPS if is_import else (*STAMPS, "created_by")
    stamps = _stamps(reader, path, item, set_by_kb, _ENTITY_KEYS, is_import=is_import)
    is_unnamed = its_mode != "update" and not is_import and item.get("id") is None and isinstance(item.get("type"), str)
    if is_unnamed:
        key = f"{path.removeprefix('$.')}{NUMBER_MARK}"
    elif item.get("id") is None and its_mode != "update" and not is_import:
        hint = "Add the `id` of what is to be changed; what is new needs a `type`, and KB gives the id."
        reader.wrong(f"{path}.id", "missing_field", "`id` is missing.", hint)
        key = ""
    else:
        key = _id(reader, path, item, "id")
    values, objects, removed = reader.fields(path, item, (*_ENTITY_FIELDS, *stamps), _entity_field_problem)
    replaces = reader.flag(path, item, "replace")
    is_whole = len(reader.problems) == before
    resolve = _choices(reader, path, item)
    return EntityWrite(
        path,
        key,
        values,
        objects,
        removed,
        is_whole,
        replaces,
        its_mode,
        is_import,
        resolve=resolve,
        is_unnamed=is_unnamed,
    )


def _stamps(
    reader: RequestReader,
    path: str,
    item: Mapping[str, Any],
    stamps: tuple[str, ...],
    keys: tuple[str, ...],
    *,
    is_import: bool,
) -> tuple[str, ...]:
    """Return the stamps that this item may set; note those that it must not have, and members that are unknown."""
    if is_import:
        # What was contested where the export was made is so by changes, which an export does not have.
        reader.keys(path, item, (*keys, *stamps, CONTESTED))
        return stamps
    reader.keys(path, {name: item[name] for name in item if name not in stamps}, keys)
    for name in stamps:
        if name in item:
            reader.wrong(f"{path}.{name}", SET_BY_KB, f"`{name}` is set by KB, not by a client.", LEAVE_OUT)
    return ()


def _entity_field_problem(name: str, value: Any) -> ValueFault | None:
    return field_problem(name, value) or meaning_problem(name, value)


def _edge(reader: RequestReader, path: str, item: Mapping[str, Any], mode: Mode, *, is_import: bool) -> EdgeWrite:
    before = len(reader.problems)
    stamps = _stamps(reader, path, item, EDGE_STAMPS, _EDGE_KEYS, is_import=is_import)
    ends = _ends(reader, path, item)
    values, objects, removed = reader.fields(path, item, (*_EDGE_FIELDS, *stamps), field_problem)
    replaces = reader.flag(path, item, "replace")
    its_mode = "create" if reader.flag(path, item, "create") else mode
    is_whole = len(reader.problems) == before
    resolve = _choices(reader, path, item)
    return EdgeWrite(path, *ends, values, objects, removed, is_whole, replaces, its_mode, is_import, resolve=resolve)


def _choices(reader: RequestReader, path: str, item: Mapping[str, Any]) -> dict[str, int | str]:
    """Return which value of each contested field is to hold."""
    value = item.get("resolve", {})
    is_valid = isinstance(value, dict) and all(
        choice == "keep" or (isinstance(choice, int) and not isinstance(choice, bool)) for choice in value.values()
    )
    if is_valid:
        return dict(value)
    hint = 'For example {"title": 2}, or {"deleted": "keep"}.'
    reader.wrong(f"{path}.resolve", "wrong_type", "`resolve` must map fields to numbers of values.", hint)
    return {}


def _entity_delete(reader: RequestReader, path: str, item: Mapping[str, Any], *, needs_version: bool) -> EntityDelete:
    reader.keys(path, item, ("id", "expected_version"))
    version = reader.number(path, item, "expected_version")
    if needs_version and item.get("expected_version") is None:
        hint = "Read the entity first and send the `version` that the answer shows."
        reader.wrong(f"{path}.expected_version", "missing_field", "`expected_version` is missing.", hint)
    return EntityDelete(path, _id(reader, path, item, "id"), version)


def _edge_delete(reader: RequestReader, path: str, item: Mapping[str, Any]) -> EdgeDelete:
    reader.keys(path, item, ("type", "kind", "from", "to", "expected_version"))
    ends = _ends(reader, path, item)
    return EdgeDelete(path, *ends, reader.number(path, item, "expected_version"))


def _id(reader: RequestReader, path: str, item: Mapping[str, Any], key: str, *, may_be_link: bool = False) -> str:
    """Return a required id, "" when it cannot be one."""
    if item.get(key) == "":
        reader.wrong(f"{path}.{key}", "missing_field", f"`{key}` is empty.", "An id has at least one character.")
        return ""
    before = len(reader.problems)
    value = reader.id(path, item, key, may_be_link=may_be_link)
    return value if len(reader.problems) == before else ""


def _ends(reader: RequestReader, path: str, item: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return type, ends and kind of an edge, each "" when it cannot be read; without its kind no type is known."""
    before = len(reader.problems)
    kind = reader.text(path, item, "kind")
    fault = check_id(kind) if kind and len(reader.problems) == before else None
    if fault or len(kind) > limits.MAX_NAME_CHARS:
        message = f"`kind` {fault or 'is too long'}."
        reader.wrong(f"{path}.kind", "bad_name", message, f"Use at most {limits.MAX_NAME_CHARS} characters.")
    name = reader.text(path, item, "type", is_required=True)
    if len(reader.problems) > before:
        name = kind = ""
    from_id = _id(reader, path, item, "from", may_be_link=True)
    return name, from_id, _id(reader, path, item, "to", may_be_link=True), kind


def _edge_id(edge: EdgeWrite | EdgeDelete) -> str:
    is_named = edge.type and edge.from_id and edge.to_id
    return link_id(edge.type, edge.kind, edge.from_id, edge.to_id) if is_named else ""


def _once(reader: RequestReader, items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items without those that name an element again: which of the two would count is not known."""
    seen: dict[str, Item] = {}
    for item in items:
        first = seen.setdefault(item.id or item.path, item)
        if first is not item:
            reader.wrong(item.path, "duplicate", f"{first.path} names the same.", "Merge the two.")
    return tuple(seen.values())


def _unread(whole: Mapping[str, Any], allowed: tuple[str, ...], *items: Iterable[AnyItem]) -> tuple[str, ...]:
    """Return the lists of which not every item is known by its id; a misspelt member that is a list may be any."""
    if any(isinstance(whole[name], list | dict) for name in whole.keys() - set(allowed)):
        return _LISTS
    known = {name: sum(bool(item.id) for item in part) for name, part in zip(_LISTS, items, strict=True)}
    lists = {name: [] if whole.get(name) is None else whole[name] for name in _LISTS}
    return tuple(name for name, found in lists.items() if not isinstance(found, list) or len(found) != known[name])


def _check_count(whole: Mapping[str, Any], most: int, where: str) -> None:
    """Refuse too many items before any of them is read."""
    number = sum(len(found) for name in _LISTS if isinstance(found := whole.get(name), list))
    if number > most:
        raise LimitExceeded(f"{number} items {where}; the limit is {most}.")


def _finish(reader: RequestReader, whole: Mapping[str, Any], changeset: Changeset, asked: str) -> Changeset:
    changeset_id = reader.text("$", whole, "changeset_id")
    fault = check_id(changeset_id) if changeset_id else "is empty" if whole.get("changeset_id") == "" else None
    if fault or len(changeset_id) > limits.MAX_CHANGESET_ID_CHARS:
        message = f"`changeset_id` {fault or 'is too long'}."
        hint = f"Use 1 to {limits.MAX_CHANGESET_ID_CHARS} characters, such as a UUID, or leave it out."
        reader.wrong("$.changeset_id", "bad_id", message, hint)
    framed = msgspec.structs.replace(
        changeset,
        changeset_id=changeset_id,
        message=reader.text("$", whole, "message"),
        dry_run=reader.flag("$", whole, "dry_run"),
        problems=tuple(reader.problems),
    )
    return framed if reader.problems else msgspec.structs.replace(framed, digest=digest_of(asked, whole))
