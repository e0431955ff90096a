"""From one value of an element to another: the operations that lead there, and the undo of a change. Pure.

Applied to ``now``, the operations give ``wanted`` in every field, owner and statement; only what a commit stamps
(version, and the time of the update) is that of the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kbcore.model.folding import apply
from kbcore.model.graph import (
    CLIENT,
    STAMPS,
    Link,
    Node,
    Statement,
    SyncedFile,
    contested_note,
    is_contested_note,
)
from kbcore.model.record import DropNode, ForgetSource, Operation, PutNode, ReadSource, StateLink, WithdrawLink
from kbcore.model.state import Stamp, State
from kbcore.model.values import is_same

Units = dict[str, Any]
"""The parts of an element: each field with its owner, each stamp, each statement, under a name of its own."""

SAYS = "says:"
"""Begins the name of the unit that is one source's statement of a link."""

_LINK_STAMPS = ("created_at", "created_by")


def node_units(node: Node | None) -> Units:
    """Return what of an entity can change by itself: (value, owner) of each field, and the stamps that stay."""
    if node is None:
        return {}
    units: Units = _field_units(node)
    for name in STAMPS:
        if name != "updated_at" or name in node.owners:
            units[name] = (getattr(node, name), node.owners.get(name, CLIENT))
    return units


def link_units(link: Link | None) -> Units:
    """Return what of an edge can change by itself: its fields, its stamps, and who states it."""
    if link is None:
        return {}
    units: Units = _field_units(link)
    units |= {name: (getattr(link, name), CLIENT) for name in _LINK_STAMPS}
    return units | {SAYS + statement.src: statement for statement in link.statements}


def _field_units(element: Node | Link) -> Units:
    """Return the fields; that one is contested is no unit, since what sets the field settles it."""
    fields, owners = element.fields.items(), element.owners
    return {name: (value, owners.get(name, CLIENT)) for name, value in fields if not is_contested_note(name)}


def _settled(now: Node | Link | None, names: Iterable[str]) -> list[str]:
    """Return the notes that fields are contested which operations on these fields settle."""
    return [note for note in map(contested_note, names) if now is not None and note in now.fields]


def differs(one: Any, other: Any) -> bool:
    """Tell whether two units are not the same, as they are written."""
    return one != other or not is_same(one, other)


def node_from(node: Node, units: Mapping[str, Any]) -> Node:
    """Return the node with these units in place of its own."""
    stamps = {name: units[name][0] for name in STAMPS if name in units}
    fields = {name: value for name, (value, _) in units.items() if name not in STAMPS}
    owners = {name: owner for name, (_, owner) in units.items() if owner != CLIENT}
    return msgspec.structs.replace(node, fields=fields, owners=owners, **stamps)


def link_from(link: Link, units: Mapping[str, Any]) -> Link:
    """Return the link with these units in place of its own, without the fields of those who state it no more."""
    statements = tuple(sorted(unit for name, unit in units.items() if name.startswith(SAYS)))
    sources = {statement.src for statement in statements}
    kept = {
        name: unit
        for name, unit in units.items()
        if not name.startswith(SAYS) and name not in _LINK_STAMPS and unit[1] in sources
    }
    return msgspec.structs.replace(
        link,
        fields={name: value for name, (value, _) in kept.items()},
        owners={name: owner for name, (_, owner) in kept.items() if owner != CLIENT},
        statements=statements,
        **{name: units[name][0] for name in _LINK_STAMPS if name in units},
    )


def node_ops(now: Node | None, wanted: Node | None, *, restamp: bool = False) -> list[Operation]:
    """Return the operations that turn an entity into what is wanted; None where it does not exist.

    With ``restamp``, a difference in nothing but the time of the last update is one as well.
    """
    if wanted is None:
        return [DropNode(id=now.id, base=now.version)] if now else []
    units, old = node_units(wanted), node_units(now)
    unset = tuple(sorted(name for name in old if name not in units))
    by_owner: dict[str, dict[str, Any]] = {}
    for name, (value, owner) in sorted(units.items()):
        if differs(old.get(name), (value, owner)):
            by_owner.setdefault(owner, {})[name] = value
    if not by_owner and not unset:
        is_same = now is None or now.updated_at == wanted.updated_at or not restamp
        return [] if is_same else [PutNode(id=wanted.id, base=_base(now), set={"updated_at": wanted.updated_at})]
    unset = (*unset, *_settled(now, [*unset, *(name for values in by_owner.values() for name in values)]))
    source, source_owner = units["source"]
    ops = _puts(now, wanted.id, by_owner, unset, last=source_owner)
    if _after(now, ops).source != source:
        # A file that sets a field becomes the source, unless the source is stated with it.
        by_owner.setdefault(source_owner, {})["source"] = source
        ops = _puts(now, wanted.id, by_owner, unset, last=source_owner)
    return list(ops)


def _puts(
    now: Node | None, key: str, by_owner: Mapping[str, dict[str, Any]], unset: tuple[str, ...], *, last: str
) -> list[PutNode]:
    order = sorted(by_owner, key=lambda owner: (owner == last, owner == CLIENT, owner)) or [CLIENT]
    return [
        PutNode(
            id=key, base=_base(now), set=by_owner.get(owner, {}), unset=unset if owner == order[0] else (), src=owner
        )
        for owner in order
    ]


def _after(now: Node | None, ops: list[PutNode]) -> Node:
    """Return what the operations make of an entity, by folding them."""
    state = State([now] if now else [])
    apply(state, Stamp(0, "", "", ""), ops)
    return state.nodes[ops[0].id]


def link_ops(now: Link | None, wanted: Link | None) -> list[Operation]:
    """Return the operations that turn an edge into what is wanted; None where no source states it.

    New statements come before old ones are withdrawn, so that the edge never goes in between.
    """
    if wanted is None:
        return _withdrawals(now, now.statements if now else ())
    units, old = link_units(wanted), link_units(now)
    stays = {statement.src for statement in wanted.statements}
    by_source: dict[str, dict[str, Any]] = {
        statement.src: {} for statement in wanted.statements if old.get(SAYS + statement.src) != statement
    }
    for name, unit in sorted(units.items()):
        if not name.startswith(SAYS) and differs(old.get(name), unit):
            by_source.setdefault(unit[1], {})[name] = unit[0]
    unset = tuple(sorted(name for name, unit in old.items() if name not in units and _is_left(name, unit, stays)))
    unset = (*unset, *_settled(now, [*unset, *(name for values in by_source.values() for name in values)]))
    if unset and not by_source:
        by_source[wanted.statements[0].src] = {}
    said = {statement.src: statement for statement in wanted.statements}
    ops: list[Operation] = []
    for source in sorted(by_source):
        values = by_source[source]
        mine = said.get(source)
        if source == CLIENT and mine:
            values["source"] = mine.via
        ops.append(
            StateLink(
                type=wanted.type,
                kind=wanted.kind,
                from_id=wanted.from_id,
                to_id=wanted.to_id,
                base=_base(now),
                set=values,
                unset=() if ops else unset,
                src=source,
                said=mine.said if mine else "",
            )
        )
    gone = [statement for statement in (now.statements if now else ()) if statement.src not in stays]
    if CLIENT in by_source and CLIENT not in stays and all(statement.src != CLIENT for statement in gone):
        # Only a client may state when an edge was made; that statement is lent for the length of the record.
        gone.append(Statement(CLIENT))
    return ops + _withdrawals(now or wanted, gone, base=_base(now))


def _is_left(name: str, unit: Any, stays: set[str]) -> bool:
    """Tell whether a field of an edge stays until it is removed; it goes by itself with its owner's statement."""
    return not name.startswith(SAYS) and unit[1] in stays


def _withdrawals(link: Link | None, statements: Iterable[Statement], base: int | None = None) -> list[Operation]:
    if link is None:
        return []
    return [
        WithdrawLink(
            type=link.type,
            kind=link.kind,
            from_id=link.from_id,
            to_id=link.to_id,
            base=link.version if base is None else base,
            src=statement.src,
        )
        for statement in statements
    ]


def source_ops(now: SyncedFile | None, wanted: SyncedFile | None) -> list[Operation]:
    """Return the operation that turns the note on a file into what is wanted; None where there is none."""
    if wanted is None:
        return [ForgetSource(path=now.path, base=now.version)] if now else []
    if now and msgspec.structs.replace(wanted, version=now.version) == now:
        return []
    return [
        ReadSource(
            path=wanted.path,
            hash=wanted.hash,
            extractor=wanted.extractor,
            base=now.version if now else 0,
            is_ok=wanted.is_ok,
            problems=wanted.problems,
        )
    ]


def _base(now: Node | Link | None) -> int:
    return now.version if now else 0
