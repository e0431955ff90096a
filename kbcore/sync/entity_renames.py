"""The ids that entities of files had before: which renames a sync carries out, and what is known of the past. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kbcore.extract.facts import StatedEntity
from kbcore.git.file_dates import DocumentDates
from kbcore.ids import check_id
from kbcore.model.folding import apply
from kbcore.model.graph import FORMER_IDS, Node, former_ids, former_ids_of
from kbcore.model.record import Operation
from kbcore.model.renames import earlier_id, edge_ops, rename_ops
from kbcore.model.state import Stamp, State
from kbcore.sync.begun_renames import BegunRename
from kbcore.sync.id_ownership import FileReading, HeldBack


class Past(msgspec.Struct, frozen=True):
    """The history of entities.

    ``removed`` are those that went with their files, by id: what clients stated of them comes back with the id.
    ``unsaid`` are the ids of those whose status was not stated: it is the default of that time. ``renamed``
    has the present id of each entity that was renamed, by a former one, which names no other entity. ``begun`` is a
    rename of which these files have what it writes, and of which no record is known; or one that their code shows.
    ``released`` has the holder of each former id that a symbol of source code has now: names are used again there.
    """

    removed: Mapping[str, Node] = {}
    unsaid: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = {}
    begun: tuple[BegunRename, ...] = ()
    dates: Mapping[str, DocumentDates] = {}
    """The dates of files with new entities, as git has them."""
    released: Mapping[str, str] = {}
    holders: Mapping[str, Sequence[str]] = {}
    """The entities of the records that have a former id which these files name, in the order of ids."""
    has_changes: bool = False
    """Changes of clients say what holds of an entity that has an earlier id again: nothing stated of the later one."""
    claimed: Mapping[str, bool] = {}
    """Ids that these files name as former ones and that changes of clients give to an entity (True) or take away."""


class RenamePlan(msgspec.Struct):
    """The operations that give entities the ids that files state now; ``types`` are the types of these, by id.

    ``absorbed`` are the entities that go or went with their files, by the id of the one that gets what clients stated
    of them: it has that id again, or it takes theirs as a former one.
    """

    ops: list[Operation]
    types: dict[str, str]
    absorbed: dict[str, list[Node]]


def plan_renames(readings: Sequence[FileReading], gone: frozenset[str], state: State, past: Past) -> RenamePlan:
    """Return the renames that these files state: an entity goes, and one comes that had its id before, or has it next.

    So a rename that git brings keeps what clients stated of the entity, as `kb rename` does where it is typed. An id
    that comes names the one that goes among its former ids; where a rename is undone, the one that goes names it.
    An entity gets the edges of each other former id that it takes.
    """
    going = _going(readings, gone, state, past)
    plan = RenamePlan([], {}, {})
    if not (going or past.removed or past.renamed or past.begun):
        return plan
    stated = {one.id: one for reading in readings for one in reading.facts.entities}
    path_of = {one.id: reading.path for reading in readings for one in reading.facts.entities}
    undone = () if past.has_changes else going.items()
    before = {former: key for key, node in undone if not node.is_of_code for former in former_ids(node)}
    begun = {one.new: one.old for one in past.begun}
    now = state
    for key in dict.fromkeys((*stated, *begun)):
        if check_id(key) or past.renamed.get(key, key) != key:
            continue
        there = state.nodes.get(key)
        claimed = [one for one in reversed(_former_ids(stated.get(key))) if past.renamed.get(one) == key]
        if not (claimed or key in before or key in begun or key in past.removed):
            continue
        own = "" if there else earlier_id([*claimed, before.get(key, "")], path_of.get(key, ""), going)
        old = own if there or begun.get(key, "") not in going else begun[key]
        known = former_ids(there or going.get(old))
        earlier = [one for one in claimed if one not in {old, *known} and (one in going or one not in state.nodes)]
        node = going.pop(old, None)
        plan.absorbed[key] = _absorbed(None if there or node else past.removed.get(key), earlier, going, past)
        if node is None and not any(map(state.links_of, earlier)):
            continue
        if now is state:
            now = state.copied()
        if node:
            _carry_out(plan, now, rename_ops(now, node, _with_id(node, key, stated.get(key), past.begun)))
        for one in earlier:
            _carry_out(plan, now, edge_ops(now, one, key))
        plan.types.update((key, one.type) for one in (node, there) if one)
    return plan


def _going(readings: Sequence[FileReading], gone: frozenset[str], state: State, past: Past) -> dict[str, Node]:
    """Return the entities that no file states any more, and those without a file of which a rename began."""
    stated = {one.id for reading in readings for one in reading.facts.entities}
    paths = {reading.path for reading in readings} | gone
    going = {key: node for key, node in state.nodes.items() if key not in stated and node.path and node.path in paths}
    if going:
        held = HeldBack(readings)
        going = {key: node for key, node in going.items() if node.path in gone or not held.has(node.path, key, node)}
    for one in past.begun:
        unstated = state.nodes.get(one.old)
        if unstated and not unstated.path and one.old not in stated:
            going[one.old] = unstated
    return going


def _carry_out(plan: RenamePlan, state: State, ops: Sequence[Operation]) -> None:
    apply(state, Stamp(0, "", "", ""), ops)
    plan.ops += ops


def _absorbed(own: Node | None, earlier: Sequence[str], going: dict[str, Node], past: Past) -> list[Node]:
    """Return the entities of which an entity gets what clients stated; those that go now are taken out of ``going``.

    ``own`` is the one that had its id before. One that had been renamed to another of them is that one.
    """
    found = [own] if own else []
    for one in earlier:
        is_known = any(one in former_ids(node) for node in found)
        node = going.pop(one, None) or (None if is_known else past.removed.get(one))
        if node:
            found.append(node)
    return found


def _former_ids(stated: StatedEntity | None) -> tuple[str, ...]:
    return former_ids_of(stated.fields if stated else {})


def _with_id(node: Node, key: str, stated: StatedEntity | None, renames: Sequence[BegunRename]) -> Node:
    """Return an entity with another id, which is no former id of it any more; those that a file states stay its."""
    fields = dict(node.fields)
    begun = next((one for one in renames if (one.old, one.new) == (node.id, key)), None)
    if begun and not (stated and former_ids_of(stated.fields)):
        fields.pop(FORMER_IDS, None)
        fields |= {FORMER_IDS: list(begun.former)} if begun.former else {}
        owners = {name: owner for name, owner in node.owners.items() if name != FORMER_IDS}
        return msgspec.structs.replace(node, id=key, fields=fields, owners=owners)
    if key in former_ids(node) and FORMER_IDS not in node.owners:
        left = [one for one in former_ids(node) if one != key]
        fields |= {FORMER_IDS: left}
        if not left:
            del fields[FORMER_IDS]
    return msgspec.structs.replace(node, id=key, fields=fields)
