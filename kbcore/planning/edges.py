"""Plan the edges that a client writes, and check their ends in the state after the whole changeset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbcore.changeset import EdgeWrite
from kbcore.model import CLIENT, OBJECT_FIELDS, Link
from kbcore.planning.findings import Findings, edge_key, edge_words, replaced
from kbcore.record import StateLink
from kbcore.schema import LINK
from kbcore.suggest import did_you_mean
from kbcore.values import is_same, normal_time


def plan_edge(found: Findings, item: EdgeWrite) -> None:
    """Add the operation that states one edge, or the problems that stand against it."""
    if not _is_defined(found, item):
        return
    old = found.state.links.get(edge_key(item))
    fields, owners = (old.fields, old.owners) if old else ({}, {})
    wanted, unset = _wanted(item, fields, owners)
    shown = _shown(old)
    values = {name: value for name, value in wanted.items() if name not in shown or not is_same(shown[name], value)}
    found.check_owned(item.path, edge_words(item), owners, [*values, *unset])
    is_stated = old is not None and any(statement.src == CLIENT for statement in old.statements)
    if values or unset or not is_stated:
        found.ops.append(
            StateLink(
                type=item.type,
                kind=item.kind,
                from_id=item.from_id,
                to_id=item.to_id,
                base=old.version if old else 0,
                set=values,
                unset=tuple(unset),
            )
        )


def _is_defined(found: Findings, item: EdgeWrite) -> bool:
    definition = found.schema.edges.get(item.type)
    if definition is None:
        hint = did_you_mean(item.type, found.schema.edges)
        found.wrong(f"{item.path}.type", "unknown_edge", f"There is no edge type {item.type!r}.", hint)
        return False
    if definition.needs_kind and not item.kind:
        hint = 'Say how the two relate, e.g. "kind": "see_also".'
        found.wrong(f"{item.path}.kind", "missing_field", f"`{item.type}` needs a `kind`.", hint)
    elif item.kind and not definition.needs_kind:
        found.wrong(f"{item.path}.kind", "unknown_field", f"`{item.type}` has no `kind`.", "Leave `kind` out.")
    return True


def _wanted(item: EdgeWrite, fields: Mapping[str, Any], owners: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    wanted = {name: normal_time(value) if name == "created_at" else value for name, value in item.values.items()}
    unset = [name for name in item.removed if name in fields]
    for prefix in OBJECT_FIELDS:
        if prefix in item.objects or prefix in item.removed:
            more, gone = replaced(fields, owners, prefix, item.objects.get(prefix, {}))
            wanted |= more
            unset += gone
    return wanted, unset


def _shown(old: Link | None) -> dict[str, Any]:
    if old is None:
        return {}
    via = next((statement.via for statement in old.statements if statement.src == CLIENT), None)
    stamps = {"created_at": old.created_at, "created_by": old.created_by, "source": via}
    return {**old.fields, **stamps}


def check_ends(found: Findings, item: EdgeWrite, refused: frozenset[str]) -> None:
    """Note what is wrong with the ends of an edge, in the state after the changeset.

    ``refused`` are entities of the changeset that are at fault themselves: that is said once.
    """
    ends = {"from": item.from_id, "to": item.to_id}
    types = {side: end_type(found, end) for side, end in ends.items()}
    for side, end in ends.items():
        if types[side] is None and end not in refused:
            hint = found.hint_for_id(end) + "Or create it in the same changeset, under `entities`."
            found.wrong(f"{item.path}.{side}", "unknown_entity", f"There is no entity {end!r}.", hint)
    definition = found.schema.edges.get(item.type)
    from_type, to_type = types["from"], types["to"]
    if definition and from_type and to_type and not found.schema.fits(item.type, from_type, to_type):
        wants = f"{' or '.join(definition.from_types)} to {' or '.join(definition.to_types)}"
        message = f"`{item.type}` leads from {wants}, not from {from_type} to {to_type}."
        found.wrong(item.path, "endpoint_type", message, _fitting(found, from_type, to_type))


def check_retyped(found: Findings, key: str, new_type: str, path: str) -> None:
    """Note the standing edges that an entity's new type does not fit."""
    for link in found.state.links_of(key):
        ends = (end_type(found, link.from_id) or "", end_type(found, link.to_id) or "")
        if link.stands and not found.schema.fits(link.type, *ends):
            message = f"{key} cannot become a {new_type}: {edge_words(link)} would not fit."
            found.wrong(f"{path}.type", "endpoint_type", message, "Delete that edge first.")


def end_type(found: Findings, end: str) -> str | None:
    """Return the type of what an id names in the state as it is now, or None when it names nothing."""
    node = found.state.nodes.get(end)
    if node:
        return node.type
    return LINK if found.state.exists(end) else None


def _fitting(found: Findings, from_type: str, to_type: str) -> str:
    straight = [name for name in found.schema.edges if found.schema.fits(name, from_type, to_type)]
    turned = [
        f"{name} (ends swapped)"
        for name in found.schema.edges
        if name not in straight and found.schema.fits(name, to_type, from_type)
    ]
    return f"These fit: {', '.join([*straight, *turned])}."
