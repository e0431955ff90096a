"""The fields of one entity as a file states them: text, read by what the schema knows. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from kbcore.extract.facts import StatedEntity
from kbcore.model import verdict
from kbcore.model.graph import CORE_FIELDS, Node
from kbcore.model.schema import Attribute, EntityType, attribute_problem
from kbcore.model.values import field_problem, is_short, normal_time, value_problem

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,400}")
"""Longer ones are beyond every number of the other kind as well."""
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""The form of a number in documents; Python accepts more: ``nan``, ``1_000``, the digits of every script."""

_REMARK: Final = re.compile(r"([^\s()][^()]*?)[ \t]*\(([^()]*)\)")
"""A status and a remark in parentheses, such as ``retired (PR #12)``."""


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


def stated_by_clients(
    node: Node, definition: EntityType | None, unsaid: Collection[str] = frozenset()
) -> dict[str, Any]:
    """Return the fields of an entity that clients stated, in order; neither a default status nor a verdict is stated.

    ``definition`` is that of the entity's type, None when there is none any more; ``unsaid`` are the ids of entities
    whose status was a default when they got it.
    """
    default = node.fields.get("status") if node.id in unsaid else definition.status_default if definition else None
    return {
        name: value
        for name, value in sorted(node.fields.items())
        if name not in node.owners and name not in verdict.FIELDS and not (name == "status" and value == default)
    }


def unfit_fields(fields: Mapping[str, Any], definition: EntityType) -> dict[str, str]:
    """Return which of these fields a client could not state of an entity of this type, and why."""
    faults = {
        f"attributes.{name}": attribute_problem(attribute, fields[f"attributes.{name}"])
        for name, attribute in definition.attributes.items()
        if f"attributes.{name}" in fields
    }
    status = fields.get("status")
    if status is not None and definition.statuses and status not in definition.statuses:
        faults["status"] = f"must be one of {', '.join(definition.statuses)}"
    return {name: fault for name, fault in faults.items() if fault}


def _without_remark(status: str, statuses: Collection[str]) -> str:
    """Return a status without a remark in parentheses: one with a number or a URL, or after a listed one."""
    found = None if status in statuses else _REMARK.fullmatch(status)
    has_remark = found is not None and (
        found[1] in statuses or "://" in found[2] or any(letter.isdigit() for letter in found[2])
    )
    return found[1] if found and has_remark else status


def _value(name: str, stated: Any, definition: EntityType) -> tuple[Any, str]:
    """Return the value to keep for what a file typed, or what is wrong with it."""
    if name == "status" and isinstance(stated, str):
        stated = _without_remark(stated, definition.statuses)
    kind = CORE_FIELDS.get(name)
    if kind == "text" and type(stated) is str and stated and is_short(stated) and not stated.isspace():
        return stated, ""  # as most values are: nothing can be wrong with it
    if kind is not None:
        fault = field_problem(name, stated)
        if fault:
            return None, fault.message
        return (normal_time(stated) if kind == "time" else stated), ""
    declared = definition.attributes.get(name.removeprefix("attributes.")) if name.startswith("attributes.") else None
    value = _typed(declared, stated) if declared else stated
    fault = value_problem(value)
    if fault:
        return None, fault.message
    return value, (attribute_problem(declared, value) if declared else "")


def _typed(declared: Attribute, stated: Any) -> Any:
    """Return what a text means under a declared kind; files hold text, and only the schema knows better."""
    if not isinstance(stated, str):
        return stated
    if declared.type == "boolean" and stated.lower() in {"true", "false", "yes", "no", "on", "off"}:
        return stated.lower() in {"true", "yes", "on"}
    if declared.type == "list":
        return [part.strip() for part in stated.split(",") if part.strip()]
    if declared.type == "number":
        return _number(stated.strip())
    return stated


def _number(text: str) -> int | float | str:
    """Return the number that a text writes out, however large, or the text itself."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text
