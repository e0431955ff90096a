"""The entities that files state: who owns which id, and the fields that each file sets and withdraws. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from kbcore.extract.facts import Facts, FileProblem, Severity, StatedEntity
from kbcore.ids import check_id
from kbcore.model import CLIENT, STAMPS, Node
from kbcore.record import DropNode, Operation, PutNode
from kbcore.schema import EntityType, Schema
from kbcore.state import State
from kbcore.suggest import did_you_mean
from kbcore.sync.fields import stated_by_clients, stated_fields
from kbcore.values import is_same

DUPLICATE: Final = "duplicate_id"


class Reading(msgspec.Struct, frozen=True):
    """One file as it was read just now: SHA-256 of its content, the extractor, and what it states."""

    path: str
    hash: str
    extractor: str
    facts: Facts


class EntityPlan(msgspec.Struct):
    """What the files' entities come to.

    ``accepted`` maps a path to the ids that it states and keeps; ``types`` an id to its type after the sync where
    that changes (None: it goes); ``partial`` are the files from which nothing may be taken away.
    """

    ops: list[Operation]
    accepted: dict[str, list[str]]
    types: dict[str, str | None]
    partial: set[str]
    problems: list[tuple[str, FileProblem]]
    warnings: list[str]


def plan_entities(
    readings: Sequence[Reading], gone: frozenset[str], state: State, schema: Schema, former: Mapping[str, Node]
) -> EntityPlan:
    """Return the operations that bring the entities of these files to what the files say.

    ``former`` holds entities that went with their files: what clients stated of them comes back with the id.
    """
    plan = EntityPlan([], {}, {}, {one.path for one in readings if not one.facts.is_complete}, [], [])
    claims = _claims(readings, gone, state)
    lost = _lost(readings, gone, state, claims)
    for reading in readings:
        accepted = plan.accepted.setdefault(reading.path, [])
        for entity in reading.facts.entities:
            owner = claims[entity.id]
            if owner != reading.path:
                message = f"The id {entity.id!r} is already stated by {owner}."
                hint = "Give one of the two another id; until then this one is left out."
                plan.problems.append((reading.path, FileProblem(entity.line, DUPLICATE, message, hint)))
            elif entity.id in accepted:
                message = f"The id {entity.id!r} stands twice in this file."
                plan.problems.append(
                    (reading.path, FileProblem(entity.line, "repeated_id", message, "Give each its own id."))
                )
            else:
                case = _Case(plan, reading, entity, state.nodes.get(entity.id), former.get(entity.id))
                if _plan_entity(case, schema, lost.get(entity.id, frozenset())):
                    accepted.append(entity.id)
    _drop(plan, state, schema, claims, lost)
    return plan


def _claims(readings: Sequence[Reading], gone: frozenset[str], state: State) -> dict[str, str]:
    """Return the file that keeps each stated id: the one that has it as long as it states it, else the first."""
    stated = {reading.path: {entity.id for entity in reading.facts.entities} for reading in readings}
    partial = {reading.path for reading in readings if not reading.facts.is_complete}
    claims: dict[str, str] = {}
    for reading in readings:
        for entity in reading.facts.entities:
            node = state.nodes.get(entity.id)
            holder = node.path if node else CLIENT
            is_held = holder and holder not in gone
            if is_held and holder in stated and holder not in partial:
                is_held = entity.id in stated[holder]
            claims.setdefault(entity.id, holder if is_held else reading.path)
    return claims


def _lost(
    readings: Sequence[Reading], gone: frozenset[str], state: State, claims: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """Return, for each node, the files that stated something of it and do so no more."""
    whole = {
        reading.path: {one.id for one in reading.facts.entities} for reading in readings if reading.facts.is_complete
    }
    return {
        key: frozenset(
            owner
            for owner in set(node.owners.values())
            if owner in gone or (owner in whole and (key not in whole[owner] or claims.get(key) != owner))
        )
        for key, node in state.nodes.items()
        if node.owners
    }


class _Case:
    """One entity of one file, and the node that stands under its id, or stood there before its file went."""

    def __init__(
        self, plan: EntityPlan, reading: Reading, entity: StatedEntity, node: Node | None, former: Node | None
    ) -> None:
        self.plan = plan
        self.path = reading.path
        self.entity = entity
        self.node = node
        self.former = former
        self.told = {problem.code for problem in reading.facts.problems}

    def wrong(self, name: str, code: str, message: str, hint: str) -> None:
        """Note an error at the line that states a field; nothing is then taken away on behalf of this file."""
        line = self.entity.lines.get(name, self.entity.line)
        self.plan.problems.append((self.path, FileProblem(line, code, message, hint)))
        self.plan.partial.add(self.path)

    def note(self, code: str, message: str, hint: str, severity: Severity = "note") -> None:
        """Note something that keeps nothing from being taken in."""
        self.plan.problems.append((self.path, FileProblem(self.entity.line, code, message, hint, severity)))


def _plan_entity(case: _Case, schema: Schema, lost: frozenset[str]) -> bool:
    """Plan one entity of one file. Returns whether the entity stands; what is wrong with it is in the plan."""
    entity, node, path = case.entity, case.node, case.path
    definition = _definition(case, schema)
    if definition is None:
        _take_over(case, lost, {})
        return False
    wanted, faults = stated_fields(entity, definition)
    _check_status(case, definition, wanted.get("status"))
    for name, fault in faults.items():
        case.wrong(name, "bad_value", f"`{name}` {fault}.", "Mend it; until then the last known value is kept.")
    known = _shown(node)
    owners = node.owners if node else {}
    mine = {name for name, owner in owners.items() if owner == path or owner in lost}
    present = wanted.keys() | (known.keys() if path in case.plan.partial else known.keys() - mine)
    present -= _outdated_default(case, schema)
    regained = _regained(case, schema, wanted)
    default = _default(case, definition, present | regained.keys())
    if default is None:
        return False
    given = {**regained, **default}
    if path in case.plan.partial:
        _take_over(case, lost, wanted)
    unset = () if path in case.plan.partial else tuple(sorted(mine - wanted.keys() - given.keys()))
    values = {
        name: value
        for name, value in wanted.items()
        if name not in known or not is_same(known[name], value) or owners.get(name) != path
    }
    _tell(case, values, regained)
    base = node.version if node else 0
    if values or unset:
        case.plan.ops.append(PutNode(id=entity.id, base=base, set=values, unset=unset, src=path))
    if given:
        case.plan.ops.append(PutNode(id=entity.id, base=base, set=given))
    if node is None or node.type != entity.type:
        case.plan.types[entity.id] = entity.type
    return True


def _tell(case: _Case, values: Mapping[str, Any], regained: Mapping[str, Any]) -> None:
    """Warn of what the file takes over from clients, and of what clients had stated and stands again."""
    known, owners = _shown(case.node), case.node.owners if case.node else {}
    for name, value in values.items():
        if name in known and name not in owners and not is_same(known[name], value):
            message = f"{case.path} now states `{name}` of {case.entity.id}, which was {known[name]!r}."
            case.plan.warnings.append(message)
    if regained:
        message = f"{case.entity.id} is back, with what clients had stated of it: {', '.join(regained)}."
        case.plan.warnings.append(message)


def _check_status(case: _Case, definition: EntityType, status: str | None) -> None:
    if status and definition.statuses and status not in definition.statuses:
        message = f"{status!r} is no status of a {definition.name}."
        case.note("unknown_status", message, f"Use one of: {', '.join(definition.statuses)}.", "warning")


def _take_over(case: _Case, lost: frozenset[str], wanted: Mapping[str, Any]) -> None:
    """Let a file that moved, and could not be read whole, own what is kept of it until it can be."""
    known, node = _shown(case.node), case.node
    if node is None:
        return
    kept = {name: known[name] for name, owner in node.owners.items() if owner in lost and name not in wanted}
    if kept:
        case.plan.ops.append(PutNode(id=node.id, base=node.version, set=kept, src=case.path))


def _definition(case: _Case, schema: Schema) -> EntityType | None:
    fault = check_id(case.entity.id)
    if fault:
        case.wrong("id", "bad_id", f"{case.entity.id!r} cannot be an id: {fault}.", "Choose another id.")
        return None
    definition = schema.entities.get(case.entity.type)
    if definition is None:
        hint = did_you_mean(case.entity.type, schema.entities) + " A new type goes into .kb/schema/."
        case.wrong("type", "unknown_type", f"There is no entity type {case.entity.type!r}.", hint)
    return definition


def _default(case: _Case, definition: EntityType, present: AbstractSet[str]) -> dict[str, Any] | None:
    """Return what stands in for required fields that nobody states; None when the entity cannot stand."""
    default = {}
    for name in definition.required_fields:
        if name in present:
            continue
        if name == "status":
            default["status"] = definition.status_default
            message = f"No status is stated; {case.entity.id} gets {definition.status_default!r}."
            case.note("default_status", message, "Add `status:` to say otherwise.")
            continue
        if f"missing_{name}" not in case.told:
            message = f"`{name}` of {case.entity.id} is missing."
            case.wrong(name, "missing_field", message, f"Add `{name}:` to the file.")
        if case.node is None:
            return None
    return default


def _regained(case: _Case, schema: Schema, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what clients had stated of an entity that comes back, and its file does not state."""
    former = case.former
    if case.node or not former:
        return {}
    stated = stated_by_clients(former, schema.entities.get(former.type))
    return {name: value for name, value in stated.items() if name not in wanted}


def _outdated_default(case: _Case, schema: Schema) -> set[str]:
    """Return the status as one that nobody states, when it is the default of a type that the entity leaves."""
    node = case.node
    if node is None or node.type == case.entity.type:
        return set()
    by_clients = stated_by_clients(node, schema.entities.get(node.type))
    return {"status"} - by_clients.keys() - node.owners.keys() - case.entity.fields.keys()


def _shown(node: Node | None) -> dict[str, Any]:
    if node is None:
        return {}
    owned_stamps: dict[str, Any] = {name: getattr(node, name) for name in STAMPS if name in node.owners}
    return {**node.fields, **owned_stamps}


def _drop(
    plan: EntityPlan, state: State, schema: Schema, claims: Mapping[str, str], lost: Mapping[str, frozenset[str]]
) -> None:
    """Remove entities whose file is gone or states them no more, unless another file has taken them over."""
    for key, owners in lost.items():
        if not owners or key in claims:
            continue
        node = state.nodes[key]
        if node.path in owners and node.path not in plan.partial:
            plan.ops.append(DropNode(id=key, base=node.version))
            plan.types[key] = None
            kept = stated_by_clients(node, schema.entities.get(node.type))
            if kept:
                message = f"{key} went with {node.path}, and what clients stated of it: {', '.join(kept)}."
                plan.warnings.append(f"{message} It comes back with the id; until then the history has it.")
        elif node.path not in owners:
            unset = tuple(sorted(name for name, owner in node.owners.items() if owner in owners))
            plan.ops.append(PutNode(id=key, base=node.version, unset=unset))
