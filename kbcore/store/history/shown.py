"""Changes as the front ends show them: an element before and after, and what differs field by field. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kbcore.model.graph import CLIENT, Link, Node, SyncedFile, edge_json, entity_json
from kbcore.model.record import (
    ChangeOperation,
    DropNode,
    ForgetSource,
    Operation,
    PutNode,
    ReadSource,
    StateLink,
    TakeChange,
    WithdrawLink,
)
from kbcore.model.state import ElementChange
from kbcore.model.values import is_same

Fields = dict[str, Any]


def node_fields(node: Node | None) -> Fields:
    """Return what an entity says, flat; the time of an update only where it is stated."""
    if node is None:
        return {}
    fields: Fields = {**node.fields, "created_at": node.created_at, "source": node.source}
    return fields | ({"updated_at": node.updated_at} if "updated_at" in node.owners else {})


def link_fields(link: Link | None) -> Fields:
    """Return what an edge says, flat, and who states it."""
    if link is None:
        return {}
    fields: Fields = {**link.fields, "created_at": link.created_at, "created_by": link.created_by}
    fields["sources"] = [statement.source for statement in link.statements]
    return fields if link.is_resolved else {**fields, "unresolved": True}


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that differ, in order."""
    names = sorted(before.keys() | after.keys())
    return [name for name in names if name not in before or name not in after or not is_same(before[name], after[name])]


def entity_change(change: ElementChange[Node]) -> dict[str, Any]:
    """Return the change of one entity; ``fields`` lists what an update changed, also in nothing but its owner.

    Of one that was renamed ``was`` is its id before.
    """
    before, after = change.before, change.after
    is_renamed = before is not None and after is not None and before.id != after.id
    shown: dict[str, Any] = {
        "id": change.key,
        **({"was": before.id} if before is not None and is_renamed else {}),
        "change": "renamed" if is_renamed else word(before, after),
        "before": entity_json(before) if before else None,
        "after": entity_json(after) if after else None,
    }
    if before and after:
        fields = _fields(node_fields(before), node_fields(after), before.owners, after.owners)
        if not fields and before.updated_at != after.updated_at:
            fields = {"updated_at": {"before": before.updated_at, "after": after.updated_at}}
        shown["fields"] = fields
    return shown


def edge_change(change: ElementChange[Link]) -> dict[str, Any]:
    """Return the change of one edge, in the shape of ``entity_change``; the edge is named by type, kind and ends.

    ``confirmed`` is there when it was only that.
    """
    before, after = change.before, change.after
    shown = edge_name(after or before)
    shown |= {
        "change": word(before, after),
        "before": edge_json(before) if before else None,
        "after": edge_json(after) if after else None,
    }
    if before and after:
        shown["fields"] = _fields(link_fields(before), link_fields(after), before.owners, after.owners)
        if is_confirmed(change):
            shown["confirmed"] = True
    return shown


def is_confirmed(change: ElementChange[Link]) -> bool:
    """Tell whether a change of an edge is a confirmation: nothing but its version moved."""
    before, after = change.before, change.after
    return before is not None and after is not None and replace(before, version=after.version) == after


def edge_name(link: Link | None) -> dict[str, Any]:
    """Return what names an edge: type, kind if it has one, and both ends."""
    if link is None:
        return {}
    kind = {"kind": link.kind} if link.kind else {}
    return {"type": link.type, **kind, "from": link.from_id, "to": link.to_id}


def file_change(change: ElementChange[SyncedFile]) -> dict[str, Any]:
    """Return what a sync newly knew of one file."""
    return {
        "path": change.key,
        "change": word(change.before, change.after),
        "before": _file_json(change.before),
        "after": _file_json(change.after),
    }


def stated_operation(op: Operation) -> dict[str, Any]:
    """Return what an operation states, in the shape of a change; what the element was before and is after is not known.

    The version that it was made on tells whether the element existed.
    """
    common: dict[str, Any] = {"change": _change_of(op), "partial": True, "before": None}
    if isinstance(op, PutNode):
        return {"element": "entity", "id": op.id, **common, "after": {"id": op.id, **op.set}, "unset": list(op.unset)}
    if isinstance(op, DropNode):
        return {"element": "entity", "id": op.id, **common, "after": None}
    if isinstance(op, ReadSource):
        known = {"hash": op.hash, "extractor": op.extractor, "ok": op.is_ok, "problems": len(op.problems)}
        return {"element": "file", "path": op.path, **common, "after": known}
    if isinstance(op, ForgetSource):
        return {"element": "file", "path": op.path, **common, "after": None}
    if isinstance(op, ChangeOperation):
        return {"element": "change", "id": op.id, "file": op.file, **common, "after": None}
    edge = {"element": "edge", "type": op.type, **({"kind": op.kind} if op.kind else {})}
    edge |= {"from": op.from_id, "to": op.to_id, **common}
    if isinstance(op, StateLink):
        return {**edge, "after": dict(op.set), "unset": list(op.unset), "stated_by": op.src}
    if isinstance(op, WithdrawLink):
        return {**edge, "after": None, "withdrawn_by": op.src}
    return {**edge, "after": None, "confirmed": True}


def moved_change(op: ChangeOperation) -> dict[str, Any]:
    """Return where a change is from that came with a record or went, and who made it; ``own`` is of this journal."""
    found: dict[str, Any] = {"change": op.id, **({"file": op.file} if op.file else {})}
    if not isinstance(op, TakeChange):
        return {**found, "gone": True}
    if op.change is None:
        return {**found, "own": True}
    said = {"message": op.change.message} if op.change.message else {}
    return {**found, "actor": op.change.actor, "at": op.change.at, **said}


def _change_of(op: Operation) -> str:
    """Return what an operation says that it does to an element."""
    if isinstance(op, ChangeOperation):
        return "created" if isinstance(op, TakeChange) else "deleted"
    return "deleted" if isinstance(op, DropNode | ForgetSource) else "updated" if op.base else "created"


def word(before: object, after: object) -> str:
    """Return what happened to an element."""
    if before is None:
        return "created"
    return "updated" if after is not None else "deleted"


def _file_json(source: SyncedFile | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {"hash": source.hash, "extractor": source.extractor, "ok": source.is_ok, "problems": len(source.problems)}


def _fields(
    before: Fields, after: Fields, owned_before: Mapping[str, str], owned_after: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    shown: dict[str, dict[str, Any]] = {
        name: {"before": before.get(name), "after": after.get(name)} for name in differing(before, after)
    }
    for name in sorted(owned_before.keys() | owned_after.keys()):
        owners = (owned_before.get(name, CLIENT), owned_after.get(name, CLIENT))
        if owners[0] != owners[1]:
            values = {"before": before.get(name), "after": after.get(name)}
            stated_by = {"before": owners[0], "after": owners[1]}
            shown[name] = {**shown.get(name, values), "stated_by": stated_by}
    return shown
