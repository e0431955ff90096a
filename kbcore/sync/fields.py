"""The fields of one entity as a file states them: text, read by what the schema knows. Pure."""

from __future__ import annotations

from typing import Any

from kbcore.extract.facts import StatedEntity
from kbcore.model import CORE_FIELDS, Node
from kbcore.schema import Attribute, EntityType, attribute_problem
from kbcore.values import field_problem, normal_time, value_problem


def stated_fields(entity: StatedEntity, definition: EntityType) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values to keep, and what is wrong with each that cannot be kept."""
    wanted: dict[str, Any] = {"type": entity.type}
    faults: dict[str, str] = {}
    for name, stated in entity.fields.items():
        value, fault = _value(name, stated, definition)
        if fault:
            faults[name] = fault
        else:
            wanted[name] = value
    return wanted, faults


def stated_by_clients(node: Node, definition: EntityType | None) -> dict[str, Any]:
    """Return the fields of an entity that clients stated, in order; a default status is nobody's statement.

    ``definition`` is that of the entity's type, None when there is none any more.
    """
    default = definition.status_default if definition else None
    return {
        name: value
        for name, value in sorted(node.fields.items())
        if name not in node.owners and not (name == "status" and value == default)
    }


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
