"""A type or predicate that a branch defines stays as long as anything uses it, whoever deletes or renames it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kbcore.concepts import DEFINING, TYPE
from kbcore.model import Node
from kbcore.phrases import some_of
from kbcore.planning.findings import Findings
from kbcore.state import Changes
from kbcore.visible import in_quotes


def check_defined(found: Findings, changes: Changes, paths: Mapping[str, str]) -> None:
    """Note each definition that goes with the changeset and is used by what stays.

    ``paths`` has the place of each element that the changeset names.
    """
    for change in changes.nodes:
        if change.before is None or change.before.type not in DEFINING:
            continue
        name, is_type = _name(change.before), change.before.type == TYPE
        if name in (found.schema.entities if is_type else found.schema.edges):
            continue
        users = found.around.users(change.before.type, name, _gone(changes, name, is_type=is_type))
        if users.number:
            what = "type" if is_type else "predicate"
            message = f"The {what} {in_quotes(name)} is used by {some_of(users.first, len(users.first), users.number)}."
            hint = "Delete what uses it first, or keep the definition."
            found.wrong(paths.get(change.key, "$"), "in_use", message, hint)


def _name(node: Node) -> str:
    return str(node.fields.get("name") or node.id.removeprefix(f"{node.type}:"))


def _gone(changes: Changes, name: str, *, is_type: bool) -> set[str]:
    """Return the elements that do not use a type or predicate of this name any more."""
    if is_type:
        return {one.key for one in changes.nodes if one.after is None or one.after.type != name}
    return {one.key for one in changes.links if one.after is None or not one.after.stands}
