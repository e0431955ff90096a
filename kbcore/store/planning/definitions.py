"""A type or predicate that a branch defines is kept as long as it is used: its removal or rename is refused. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from kbcore.model.concepts import DEFINING, TYPE
from kbcore.model.graph import Node
from kbcore.model.schema import Schema
from kbcore.model.state import Changes
from kbcore.store.planning.plan_builder import PlanBuilder, Users
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of

UsersOf = Callable[[str, str, Collection[str]], Users]
"""Returns what else than these elements uses what a definition of this type and name defines."""


def check_defined(found: PlanBuilder, changes: Changes, paths: Mapping[str, str]) -> None:
    """Note each definition that goes with the changeset and is used by what stays.

    ``paths`` has the place of each element that the changeset names.
    """
    for key, message in missed(changes, found.schema, found.around.users):
        hint = "Delete what uses it first, or keep the definition."
        found.wrong(paths.get(key, "$"), "in_use", message, hint, subject=key)


def missed(changes: Changes, schema: Schema, users_of: UsersOf) -> Iterator[tuple[str, str]]:
    """Yield each definition that goes with these changes and is used by what stays: its id, and by what it is used.

    ``schema`` is that of the branch after the changes.
    """
    for change in changes.nodes:
        if change.before is None or change.before.type not in DEFINING:
            continue
        name, is_type = _name(change.before), change.before.type == TYPE
        if name in (schema.entities if is_type else schema.edges):
            continue
        users = users_of(change.before.type, name, _gone(changes, name, is_type=is_type))
        if users.number:
            what = "type" if is_type else "predicate"
            said = some_of(users.first, len(users.first), users.number)
            yield change.key, f"The {what} {in_quotes(name)} is used by {said}."


def _name(node: Node) -> str:
    return str(node.fields.get("name") or node.id.removeprefix(f"{node.type}:"))


def _gone(changes: Changes, name: str, *, is_type: bool) -> set[str]:
    """Return the elements that do not use a type or predicate of this name any more."""
    if is_type:
        return {one.key for one in changes.nodes if one.after is None or one.after.type != name}
    return {one.key for one in changes.links if one.after is None or not one.after.is_resolved}
