"""The elements that a command writes: each as it is, what it is to become, and the item of a changeset. Pure.

What a command does not name stays: keys are set and dropped one by one, and the maps of the element follow from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from kbcore.kip.elements import link_json, node_json, without_stamps
from kbcore.kip.names import NODE_ATTRIBUTES, TypeNames
from kbcore.kip.syntax import AttributeChange, MapMember
from kbcore.model.graph import Link, Node, contested_note, nested
from kbcore.model.values import field_problem, is_same, meaning_problem, normal_time

CONFIDENCE: Final = "confidence"
"""The only metadata that is written to a field, that of an edge. KB's own fields keep who wrote, by what and when."""
CREATED: Final = "created_at"
UPDATED: Final = "updated_at"
"""The time of the last change: never written, because the next change would make it wrong."""

MERGED_FROM: Final = "_merged_from"
MERGED_VALUES: Final = "_merged_values"
"""The values that did not win in merges: entries with the ``id`` of what was merged, its ``attributes`` and
``metadata`` that did not win, and ``kept_keys``, the attributes that this side alone has. A capsule
carries them; none is removed.
"""

RESOLVE: Final = "_resolve"
"""The metadata of a block that chooses values of contested fields: by field, the number of the value, or "keep"."""

_TITLE: Final = "title"


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return values each once, in the order of their first occurrence."""
    found: dict[bytes, Any] = {}
    for one in values:
        found.setdefault(msgspec.json.encode(one, order="sorted"), one)
    return [*found.values()]


class Edits(msgspec.Struct):
    """The changes of a command to one element, by key."""

    attributes: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    dropped_attributes: set[str] = set()
    dropped_metadata: set[str] = set()
    places: dict[str, int] = {}
    """The offset of each ``attributes.<key>``, ``metadata.<key>`` and ``resolve.<field>`` in the text."""
    resolve: dict[str, int | str] = {}
    """The choices of ``RESOLVE``."""

    def set_members(self, attributes: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        """Set keys; what was set before under the same key is replaced."""
        self.attributes |= attributes
        self.metadata |= metadata

    def place(self, prefix: str, members: Iterable[MapMember | AttributeChange]) -> None:
        """Note where keys are set."""
        self.places |= {f"{prefix}.{member.key}": member.at for member in members}

    def __bool__(self) -> bool:
        """Return whether anything is set or dropped."""
        return bool(self.resolve or self.members())

    def choose(self, choices: Mapping[str, int | str]) -> None:
        """Choose values of contested fields."""
        self.resolve |= choices
        at = self.places.get(f"metadata.{RESOLVE}")
        self.places |= {} if at is None else {f"resolve.{field}": at for field in choices}

    def members(self) -> set[str]:
        """Return what is set or dropped, as ``attributes.<key>`` and ``metadata.<key>``."""
        attributes = {f"attributes.{key}" for key in self.attributes.keys() | self.dropped_attributes}
        return attributes | {f"metadata.{key}" for key in self.metadata.keys() | self.dropped_metadata}


class NodeDraft(msgspec.Struct):
    """A concept that a command names. ``type`` is KB's; ``old`` is None for a new one.

    One of the vocabulary that no record holds yet has an ``old`` and is not ``is_stored``.
    """

    id: str
    type: str
    name: str
    at: int
    old: Node | None = None
    is_stored: bool = False
    edits: Edits = msgspec.field(default_factory=Edits)
    is_end: bool = False
    """A link is written that begins or ends here, so that the concept must be written down too."""
    has_seen: bool = False
    """The command names the version that it has, and so has seen what is contested of it."""

    @property
    def version(self) -> int:
        """Return the present version, 0 for what is in no record."""
        return self.old.version if self.old else 0


class LinkDraft(msgspec.Struct):
    """A proposition that a command names; members as those of ``NodeDraft``."""

    id: str
    type: str
    kind: str
    from_id: str
    to_id: str
    at: int
    old: Link | None = None
    is_stored: bool = False
    edits: Edits = msgspec.field(default_factory=Edits)
    is_end: bool = False
    has_seen: bool = False
    is_stated: bool = False
    """The command states it, whether it exists already or not."""

    @property
    def version(self) -> int:
        """Return the present version, 0 for what is in no record."""
        return self.old.version if self.old else 0


def entity_item(draft: NodeDraft, names: TypeNames) -> dict[str, Any] | None:
    """Return the item of a changeset that writes a concept; None where there is nothing to write."""
    fields: Mapping[str, Any] = draft.old.fields if draft.old else {}
    is_native = names.is_named_by_id(draft.type)
    if draft.is_stored and not draft.edits and (is_native or "name" in fields):
        return None
    if draft.old is not None and not draft.is_stored and not draft.is_end and not changes_node(draft, names):
        return None
    item: dict[str, Any] = {"id": draft.id}
    attributes, metadata = nested(fields, "attributes"), nested(fields, "metadata")
    if not draft.is_stored:
        item |= {"type": draft.type, _TITLE: draft.name}
        item |= {} if is_native else {"name": draft.name}
        metadata = {"source": draft.old.source, **metadata} if draft.old else metadata
    elif not is_native and "name" not in fields:
        item["name"] = draft.name
    for key, value in draft.edits.attributes.items():
        _set_attribute(item, attributes, key, value, draft, is_native=is_native)
    for key in draft.edits.dropped_attributes:
        _drop_attribute(item, attributes, key, draft, is_native=is_native)
    for key, value in draft.edits.metadata.items():
        _set_metadata(metadata, key, value)
    _drop("metadata", metadata, draft.edits.dropped_metadata, draft)
    return item | _objects(draft, fields, attributes, metadata)


def _set_metadata(metadata: dict[str, Any], key: str, value: Any) -> None:
    if key in {MERGED_FROM, MERGED_VALUES}:
        metadata[key] = distinct([*metadata.get(key, ()), *value])
    else:
        metadata[key] = normal_time(value) if key == CREATED and _fits(key, value) else value


def _drop(part: str, members: dict[str, Any], keys: Iterable[str], draft: NodeDraft | LinkDraft) -> None:
    """Take keys out of a map. One that a file states becomes null, which is refused with the file's name."""
    owners: Mapping[str, str] = draft.old.owners if draft.old else {}
    for key in keys:
        if f"{part}.{key}" in owners:
            members[key] = None
        else:
            members.pop(key, None)


def _set_attribute(
    item: dict[str, Any], attributes: dict[str, Any], key: str, value: Any, draft: NodeDraft, *, is_native: bool
) -> None:
    """Set an attribute: in the field of its name, where that takes it, else among the attributes."""
    if key not in NODE_ATTRIBUTES:
        attributes[key] = value
    elif is_native:
        # What the field does not take is refused with the field's own words.
        item[key] = value
        attributes.pop(key, None)
    elif _fits(key, value) and not (key == _TITLE and value == draft.name):
        item[key] = value
        attributes.pop(key, None)
    else:
        _clear(item, key, draft)
        attributes[key] = value


def _drop_attribute(
    item: dict[str, Any], attributes: dict[str, Any], key: str, draft: NodeDraft, *, is_native: bool
) -> None:
    _drop("attributes", attributes, [key], draft)
    if key in NODE_ATTRIBUTES and is_native and draft.old and key in draft.old.fields:
        item[key] = None
    elif key in NODE_ATTRIBUTES:
        _clear(item, key, draft)
    elif key == "name" and is_native and draft.old and "name" in draft.old.fields:
        item["name"] = None


def _clear(item: dict[str, Any], key: str, draft: NodeDraft) -> None:
    """Empty the field of an attribute; a title goes back to the name."""
    item.pop(key, None)
    if key == _TITLE:
        item[_TITLE] = draft.name
    elif draft.old and key in draft.old.fields:
        item[key] = None


def changes_node(draft: NodeDraft, names: TypeNames, only: str = "") -> bool:
    """Return whether the edits change what is shown of a concept; ``only`` limits the question to one attribute."""
    if draft.old is None or (f"attributes.{only}" in draft.edits.resolve if only else draft.edits.resolve):
        return True
    shown = node_json(draft.old, names)
    if only:
        attributes = {only: draft.edits.attributes[only]} if only in draft.edits.attributes else {}
        return _changes(Edits(attributes, {}, draft.edits.dropped_attributes & {only}), shown["attributes"], {})
    return _changes(draft.edits, shown["attributes"], shown["metadata"])


def is_restatement(draft: NodeDraft, names: TypeNames) -> bool:
    """Return whether the edits say of a concept what is shown of it, and nothing else but when that was written."""
    if draft.old is None or draft.edits.resolve:
        return False
    shown = node_json(draft.old, names)
    edits = msgspec.structs.replace(draft.edits, metadata=without_stamps(draft.edits.metadata))
    return not _changes(edits, shown["attributes"], shown["metadata"])


def _changes_link(draft: LinkDraft) -> bool:
    if draft.old is None or draft.edits.resolve:
        return True
    shown = link_json(draft.old)
    return _changes(draft.edits, shown["attributes"], shown["metadata"])


def _changes(edits: Edits, attributes: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    of_metadata = edits.metadata, edits.dropped_metadata, metadata
    return any(
        any(key not in shown or not is_same(shown[key], value) for key, value in wanted.items())
        or any(key in shown for key in dropped)
        for wanted, dropped, shown in ((edits.attributes, edits.dropped_attributes, attributes), of_metadata)
    )


def edge_item(draft: LinkDraft) -> dict[str, Any] | None:
    """Return the item of a changeset that writes a proposition; None where there is nothing to write."""
    is_new = not draft.is_stored and (draft.is_stated or draft.is_end)
    if not draft.edits and not is_new and not draft.is_stated:
        return None
    if draft.old is not None and not draft.is_stored and not draft.is_end and not _changes_link(draft):
        return None
    fields: Mapping[str, Any] = draft.old.fields if draft.old else {}
    item: dict[str, Any] = {"type": draft.type, "from": draft.from_id, "to": draft.to_id}
    item |= {"kind": draft.kind} if draft.kind else {}
    attributes, metadata = nested(fields, "attributes"), nested(fields, "metadata")
    if draft.old is not None and not draft.is_stored:
        item["confidence"] = fields["confidence"]
        metadata = {"source": draft.old.statements[0].source, "author": draft.old.created_by, **metadata}
    attributes |= draft.edits.attributes
    _drop("attributes", attributes, draft.edits.dropped_attributes, draft)
    for key, value in draft.edits.metadata.items():
        if key == CONFIDENCE and _fits(key, value):
            item[key] = value
            metadata.pop(key, None)
        else:
            _set_metadata(metadata, key, value)
            if key == CONFIDENCE and key in fields:
                item[key] = None
    _drop("metadata", metadata, draft.edits.dropped_metadata, draft)
    if CONFIDENCE in draft.edits.dropped_metadata and CONFIDENCE in fields:
        item[CONFIDENCE] = None
    return item | _objects(draft, fields, attributes, metadata)


def _objects(
    draft: NodeDraft | LinkDraft, fields: Mapping[str, Any], attributes: dict[str, Any], metadata: dict[str, Any]
) -> dict[str, Any]:
    """Return the maps of an element, to take the place of those that are stored, and its choices.

    One that is as it is stored is left out, unless the command names a contested member of it.
    """
    maps = {"attributes": attributes, "metadata": metadata}
    stored = fields if draft.is_stored else {}
    contested = {name.partition(".")[0] for name in draft.edits.members() if contested_note(name) in stored}
    changed = {
        name: members
        for name, members in maps.items()
        if name in contested or not is_same(members, nested(stored, name))
    }
    chosen = {"resolve": draft.edits.resolve} if draft.edits.resolve else {}
    return {**changed, "replace": True, **chosen} if changed else chosen


def _fits(field: str, value: Any) -> bool:
    """Return whether a field takes a value; an empty text says nothing and is kept as it was given."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return False
    return field_problem(field, value) is None and meaning_problem(field, value) is None
