"""The entities that files state: who owns which id, and the fields that each file sets and withdraws. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.extract.facts import Facts, FileProblem, StatedEntity
from kbcore.ids import check_id
from kbcore.model import CLIENT, CORE_FIELDS, STAMPS, Node
from kbcore.record import DropNode, Operation, PutNode
from kbcore.schema import Attribute, EntityType, Schema, attribute_problem
from kbcore.state import State
from kbcore.suggest import did_you_mean
from kbcore.values import field_problem, normal_time, value_problem

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


def plan_entities(readings: Sequence[Reading], gone: frozenset[str], state: State, schema: Schema) -> EntityPlan:
    """Return the operations that bring the entities of these files to what the files say."""
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
            elif _plan_entity(plan, reading.path, entity, state.nodes.get(entity.id), schema, lost):
                accepted.append(entity.id)
    _drop(plan, state, claims, lost)
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
) -> dict[str, set[str]]:
    """Return, for each node, the files that stated something of it and do so no more."""
    whole = {
        reading.path: {one.id for one in reading.facts.entities} for reading in readings if reading.facts.is_complete
    }
    return {
        key: {
            owner
            for owner in set(node.owners.values())
            if owner in gone or (owner in whole and (key not in whole[owner] or claims.get(key) != owner))
        }
        for key, node in state.nodes.items()
        if node.owners
    }


def _plan_entity(  # noqa: PLR0913, PLR0917 - one step of a plan, with all that it needs in plain sight
    plan: EntityPlan,
    path: str,
    entity: StatedEntity,
    node: Node | None,
    schema: Schema,
    lost: Mapping[str, set[str]],
) -> bool:
    """Plan one entity of one file. Returns whether the entity stands; what is wrong with it is in the plan."""

    def wrong(name: str, code: str, message: str, hint: str, severity: Any = "error") -> None:
        line = entity.lines.get(name, entity.line)
        plan.problems.append((path, FileProblem(line, code, message, hint, severity)))
        if severity == "error":
            plan.partial.add(path)

    fault = check_id(entity.id)
    definition = schema.entities.get(entity.type)
    if fault or definition is None:
        if fault:
            wrong("id", "bad_id", f"{entity.id!r} cannot be an id: {fault}.", "Choose another id.")
        else:
            hint = did_you_mean(entity.type, schema.entities) + " A new type goes into .kb/schema/."
            wrong("type", "unknown_type", f"There is no entity type {entity.type!r}.", hint)
        return False
    wanted: dict[str, Any] = {"type": entity.type}
    for name, stated in entity.fields.items():
        value, problem = _value(name, stated, definition)
        if problem:
            wrong(name, "bad_value", f"`{name}` {problem}.", "Mend it; until then the last known value is kept.")
        else:
            wanted[name] = value
    known = _shown(node)
    mine = {
        name
        for name, owner in (node.owners if node else {}).items()
        if owner == path or owner in lost.get(entity.id, ())
    }
    kept = {name for name in known if name not in mine}
    is_partial = path in plan.partial
    default: dict[str, Any] = {}
    for name in (
        *definition.required,
        *(f"attributes.{key}" for key, one in definition.attributes.items() if one.required),
    ):
        if name in wanted or name in kept or (is_partial and name in known):
            continue
        if name == "status":
            default = {"status": definition.status_default}
            message = f"No status is stated; {entity.id} gets {definition.status_default!r}."
            wrong(name, "default_status", message, "Add `status:` to say otherwise.", "note")
            continue
        wrong(name, "missing_field", f"`{name}` of {entity.id} is missing.", f"Add `{name}:` to the file.")
        if node is None:
            return False
        is_partial = True
    unset = () if is_partial else tuple(sorted(mine - wanted.keys() - default.keys()))
    values = {
        name: value
        for name, value in wanted.items()
        if name not in known or known[name] != value or (node and node.owners.get(name) != path)
    }
    for name, value in values.items():
        if node and name in kept and name not in node.owners and known[name] != value and name not in STAMPS:
            plan.warnings.append(f"{path} now states `{name}` of {entity.id}, which was {known[name]!r}.")
    _add_puts(plan, path, entity, node, values=values, unset=unset, default=default)
    return True


def _add_puts(
    plan: EntityPlan,
    path: str,
    entity: StatedEntity,
    node: Node | None,
    *,
    values: dict[str, Any],
    unset: tuple[str, ...],
    default: dict[str, Any],
) -> None:
    base = node.version if node else 0
    if values or unset:
        plan.ops.append(PutNode(id=entity.id, base=base, set=values, unset=unset, src=path))
    if default:
        plan.ops.append(PutNode(id=entity.id, base=base, set=default))
    if node is None or node.type != entity.type:
        plan.types[entity.id] = entity.type


def _shown(node: Node | None) -> dict[str, Any]:
    if node is None:
        return {}
    owned_stamps: dict[str, Any] = {name: getattr(node, name) for name in STAMPS if name in node.owners}
    return {**node.fields, **owned_stamps}


def _value(name: str, stated: Any, definition: EntityType) -> tuple[Any, str]:
    """Return the value to keep for what a file typed, or what is wrong with it."""
    if name in CORE_FIELDS:
        fault = field_problem(name, stated)
        if fault:
            return None, fault.message
        return (normal_time(stated) if CORE_FIELDS[name] == "time" else stated), ""
    fault = value_problem(stated)
    if fault:
        return None, fault.message
    declared = definition.attributes.get(name.removeprefix("attributes.")) if name.startswith("attributes.") else None
    if declared is None:
        return stated, ""
    value = _typed(declared, stated)
    return value, attribute_problem(declared, value)


def _typed(declared: Attribute, stated: Any) -> Any:
    """Return what a text means under a declared kind; files hold text, and only the schema knows better."""
    if not isinstance(stated, str):
        return stated
    if declared.type == "boolean" and stated.lower() in {"true", "false", "yes", "no", "on", "off"}:
        return stated.lower() in {"true", "yes", "on"}
    if declared.type == "list":
        return [part.strip() for part in stated.split(",") if part.strip()]
    if declared.type == "number":
        try:
            return int(stated) if stated.lstrip("+-").isdigit() else float(stated)
        except ValueError:
            return stated
    return stated


def _drop(plan: EntityPlan, state: State, claims: Mapping[str, str], lost: Mapping[str, set[str]]) -> None:
    """Remove entities whose file is gone or states them no more, unless another file has taken them over."""
    for key, owners in lost.items():
        if not owners or key in claims:
            continue
        node = state.nodes[key]
        if node.path in owners and node.path not in plan.partial:
            plan.ops.append(DropNode(id=key, base=node.version))
            plan.types[key] = None
        elif node.path not in owners:
            unset = tuple(sorted(name for name, owner in node.owners.items() if owner in owners))
            plan.ops.append(PutNode(id=key, base=node.version, unset=unset))
