"""Fold operations into state. Pure: the same operations on the same state always give the same state.

A full replay and a working set of a few elements give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from kbcore.ids import link_id
from kbcore.model.graph import CLIENT, STAMPS, Link, Node, Statement, SyncedFile
from kbcore.model.record import (
    ConfirmLink,
    DropNode,
    ForgetSource,
    Operation,
    PutNode,
    ReadSource,
    StateLink,
    WithdrawLink,
)
from kbcore.model.state import Changes, ElementChange, Stamp, State
from kbcore.model.values import is_same

E = TypeVar("E")
_LINK_STAMPS: Final[tuple[str, ...]] = ("created_at", "created_by", "source")


class _Before:
    """The first value of each element that a record touches: what makes the list of changes."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node | None] = {}
        self.links: dict[str, Link | None] = {}
        self.sources: dict[str, SyncedFile | None] = {}


def apply(state: State, stamp: Stamp, ops: Iterable[Operation]) -> Changes:
    """Fold the operations of one record into the state and return what changed.

    An operation that sets what is there already changes nothing, and bumps no version. That a change came or went
    changes nothing either: what that comes to is in other operations.
    """
    before = _Before()
    for op in ops:
        if type(op) is PutNode:
            _put(state, stamp, op, before)
        elif type(op) is StateLink:
            _state_link(state, stamp, op, before)
        elif type(op) is DropNode:
            if op.id in state.nodes:
                before.nodes.setdefault(op.id, state.nodes.pop(op.id))
        elif type(op) is WithdrawLink:
            _withdraw_link(state, stamp, op, before)
        elif type(op) is ConfirmLink:
            _confirm_link(state, stamp, op, before)
        elif type(op) is ReadSource or type(op) is ForgetSource:
            _note_source(state, stamp, op, before)
    _settle(state, stamp, before)
    return _changes(state, before)


def _merge(
    op: PutNode | StateLink, fields: Mapping[str, Any], owners: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return fields and owners after the operation's values were set and removed."""
    merged = {**fields, **op.set}
    if op.src != CLIENT:
        owned = {**owners, **dict.fromkeys(op.set, op.src)} if owners else dict.fromkeys(op.set, op.src)
    else:
        owned = {name: owner for name, owner in owners.items() if name not in op.set}
    for name in op.unset:
        merged.pop(name, None)
        owned.pop(name, None)
    return merged, owned


def _is_same(op: PutNode | StateLink, fields: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Tell whether the fields are the old ones, as they are written: 1 is neither true nor 1.0."""
    return fields == old and all(is_same(old[name], op.set[name]) for name in op.set if name in old)


def _holds(element: Node | Link | None, stated: Mapping[str, Any]) -> bool:
    """Tell whether an element carries these stamps already."""
    return all(getattr(element, name) == value for name, value in stated.items())


def _put(state: State, stamp: Stamp, op: PutNode, before: _Before) -> None:
    old = state.nodes.get(op.id)
    before.nodes.setdefault(op.id, old)
    fields, owners = _merge(op, old.fields if old else {}, old.owners if old else {})
    if fields.get("name") == op.id:
        # An entity is called by its id unless somebody says otherwise; saying so is saying nothing.
        del fields["name"]
        owners.pop("name", None)
    stated = {name: fields.pop(name) for name in STAMPS if name in fields}
    if old is not None and _holds(old, stated) and owners == old.owners and _is_same(op, fields, old.fields):
        return
    kept = {name: getattr(old, name) for name in ("updated_at", "source") if name in owners} if old else {}
    state.nodes[op.id] = Node(
        id=op.id,
        fields=fields,
        owners=owners,
        created_at=stated.get("created_at") or (old.created_at if old else stamp.at),
        updated_at=stated.get("updated_at") or kept.get("updated_at") or stamp.at,
        source=stated.get("source") or kept.get("source") or op.src or (old.source if old else stamp.source),
        created_seq=old.created_seq if old else stamp.seq,
        version=stamp.seq,
    )


def _state_link(state: State, stamp: Stamp, op: StateLink, before: _Before) -> None:
    if "confidence" in op.set:
        # 1 and 1.0 are one confidence, whoever wrote it.
        op = msgspec.structs.replace(op, set={**op.set, "confidence": float(op.set["confidence"])})
    key = link_id(op.type, op.kind, op.from_id, op.to_id)
    old = state.links.get(key)
    before.links.setdefault(key, old)
    fields, owners = _merge(op, old.fields if old else {}, old.owners if old else {})
    stated: dict[str, Any] = {name: fields.pop(name) for name in _LINK_STAMPS if name in fields}
    mine = next((s for s in old.statements if s.src == op.src), None) if old else None
    via = "" if op.src else stated.pop("source", mine.via if mine else stamp.source)
    statements: tuple[Statement, ...] = (Statement(op.src, op.said, via),)
    if old:
        statements = tuple(sorted((*(s for s in old.statements if s is not mine), *statements)))
    if (
        old is not None
        and (owners, statements) == (old.owners, old.statements)
        and _is_same(op, fields, old.fields)
        and _holds(old, stated)
    ):
        return
    state.put_link(
        Link(
            id=key,
            type=op.type,
            kind=op.kind,
            from_id=op.from_id,
            to_id=op.to_id,
            fields=fields,
            owners=owners,
            statements=statements,
            # For a new link a guess, nearly always right; settling looks again when all of the record is folded.
            is_resolved=old.is_resolved if old else _is_resolved(state, op.type, op.from_id, op.to_id),
            created_at=stated.get("created_at") or (old.created_at if old else stamp.at),
            created_by=stated.get("created_by") or (old.created_by if old else stamp.actor),
            created_seq=old.created_seq if old else stamp.seq,
            version=stamp.seq,
        )
    )


def _withdraw_link(state: State, stamp: Stamp, op: WithdrawLink, before: _Before) -> None:
    key = link_id(op.type, op.kind, op.from_id, op.to_id)
    old = state.links.get(key)
    if old is None or all(statement.src != op.src for statement in old.statements):
        return
    before.links.setdefault(key, old)
    statements = tuple(statement for statement in old.statements if statement.src != op.src)
    if not statements:
        state.drop_link(old)
        return
    gone = {name for name, owner in old.owners.items() if owner == op.src and op.src != CLIENT}
    if op.src == CLIENT:
        gone = {name for name in old.fields if name not in old.owners}
    fields = {name: value for name, value in old.fields.items() if name not in gone}
    owners = {name: owner for name, owner in old.owners.items() if name not in gone}
    left = msgspec.structs.replace(old, fields=fields, owners=owners, statements=statements, version=stamp.seq)
    state.put_link(left)


def _confirm_link(state: State, stamp: Stamp, op: ConfirmLink, before: _Before) -> None:
    key = link_id(op.type, op.kind, op.from_id, op.to_id)
    old = state.links.get(key)
    if old is not None:
        before.links.setdefault(key, old)
        state.put_link(msgspec.structs.replace(old, version=stamp.seq))


def _note_source(state: State, stamp: Stamp, op: ReadSource | ForgetSource, before: _Before) -> None:
    old = state.sources.get(op.path)
    before.sources.setdefault(op.path, old)
    if isinstance(op, ForgetSource):
        state.sources.pop(op.path, None)
        return
    new = SyncedFile(op.path, op.hash, op.extractor, op.is_ok, op.problems, stamp.seq)
    if old is None or msgspec.structs.replace(new, version=old.version) != old:
        state.sources[op.path] = new


def _settle(state: State, stamp: Stamp, before: _Before) -> None:
    """Decide again which links are resolved: those that changed, and those with an end that changed."""
    pending = dict.fromkeys(before.links)
    for key, old in before.nodes.items():
        if (old is None) != (key not in state.nodes):
            _unsettle(state, pending, key, has_come=old is None)
    for key, was in before.links.items():
        now = state.links.get(key)
        has_come = now is not None and now.is_resolved
        if (was is not None and was.is_resolved) != has_come:
            _unsettle(state, pending, key, has_come=has_come)
    while pending:
        turn, pending = pending, {}
        for key in turn:
            link = state.links.get(key)
            if link is None:
                continue
            is_resolved = _is_resolved(state, link.type, link.from_id, link.to_id)
            if is_resolved != link.is_resolved:
                before.links.setdefault(key, link)
                state.put_link(msgspec.structs.replace(link, is_resolved=is_resolved, version=stamp.seq))
                _unsettle(state, pending, key, has_come=is_resolved)


def _unsettle(state: State, pending: dict[str, None], end: str, *, has_come: bool) -> None:
    """Add the links that a new end may resolve, or that the removal of one makes unresolved."""
    for key in state.unresolved_at(end) if has_come else [link.id for link in state.links_of(end)]:
        pending[key] = None


def _is_resolved(state: State, edge_type: str, from_id: str, to_id: str) -> bool:
    """Tell whether a link is resolved: its type is known, and both its ends exist."""
    return bool(edge_type) and state.exists(from_id) and state.exists(to_id)


def _changes(state: State, before: _Before) -> Changes:
    """Return what differs from before. An element that came and went within the record is no change."""

    def differing(old: Mapping[str, E | None], now: Mapping[str, E]) -> tuple[ElementChange[E], ...]:
        if not old:
            return ()
        found = [(key, was, now.get(key)) for key, was in old.items()]
        return tuple([ElementChange(key, was, is_now) for key, was, is_now in found if was is not is_now])

    return Changes(
        differing(before.nodes, state.nodes),
        differing(before.links, state.links),
        differing(before.sources, state.sources),
    )
