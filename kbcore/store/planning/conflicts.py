"""Plan what a client writes to contested fields: a plain write is refused, one that has seen the conflict settles it.

A field is contested where changes that have not seen each other give it different values (``graph.CONTESTED``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kbcore.errors.remedies import EdgeWords, decision, kb
from kbcore.model.changeset import EdgeWrite, EntityWrite
from kbcore.model.claims.fold import DELETED, ID
from kbcore.model.graph import CONTESTED, Link, Node, contested_note
from kbcore.store.planning.plan_builder import PlanBuilder
from kbcore.text.escaping import in_quotes

KEEP: Final = "keep"
"""The choice for an entity that is to stay although a change deletes it, and for the id that it has."""
CODE: Final = "contested"


def contested_in(element: Node | Link | None) -> dict[str, Any]:
    """Return the contested fields of an element, each with its values or its deletions."""
    head = f"{CONTESTED}."
    return (
        {name[len(head) :]: value for name, value in element.fields.items() if name.startswith(head)} if element else {}
    )


def choose(
    found: PlanBuilder,
    item: EntityWrite | EdgeWrite,
    old: Node | Link | None,
    wanted: Mapping[str, Any],
    unset: Iterable[str],
) -> tuple[dict[str, Any], list[str]]:
    """Return what an item sets and removes, with what ``item.resolve`` chooses; note what cannot be chosen."""
    contested, values, gone = contested_in(old), dict(wanted), [*unset]
    for field, choice in item.resolve.items():
        fault = _fault(item, field, choice, contested)
        if not fault and (field in gone or (field in values and field not in item.carried)):
            message = f"{in_quotes(field)} of {in_quotes(item.id)} is written and resolved at once."
            fault = "contradiction", message, "Leave one of the two out."
        if fault:
            found.wrong(f"{item.path}.resolve.{field}", *fault, subject=item.id)
        elif field in {DELETED, ID}:
            gone.append(contested_note(field))
        elif "value" in (value := contested[field][int(choice) - 1]):
            values[field] = value["value"]
        else:
            values.pop(field, None)
            gone.append(field)
    return values, gone


def _fault(
    item: EntityWrite | EdgeWrite, field: str, choice: int | str, contested: Mapping[str, Any]
) -> tuple[str, str, str] | None:
    """Return the code, message and remedy of a choice that cannot be made."""
    if field not in contested:
        listed = ", ".join(contested)
        hint = f"Contested are: {listed}." if listed else f"{kb('resolve')} lists what is contested."
        return "not_contested", f"{in_quotes(field)} of {in_quotes(item.id)} is not contested.", hint
    if field in {DELETED, ID}:
        return None if choice == KEEP else _fault_of_existence(item.id, field, choice, contested[field])
    count = len(contested[field])
    if isinstance(choice, int) and 1 <= choice <= count:
        return None
    message = f"There is no value {choice!r} of {in_quotes(field)} of {in_quotes(item.id)}; there are {count}."
    return "out_of_range", message, f"{kb('resolve', item.id)} lists them by number."


def _fault_of_existence(
    key: str, field: str, choice: int | str, values: Sequence[Mapping[str, Any]]
) -> tuple[str, str, str] | None:
    """Return why a choice other than "keep" cannot be made; the number of the id that is shown keeps it as well."""
    ids = [str(one.get("value")) for one in values] if field == ID else []
    chosen = ids[choice - 1] if isinstance(choice, int) and 1 <= choice <= len(ids) else "NEW"
    if chosen == key:
        return None
    other = kb("delete", key) if field == DELETED else kb("rename", key, chosen)
    return "bad_value", f"{in_quotes(field)} can only be kept here.", f'Send "keep", or {other}.'


def settle(
    found: PlanBuilder,
    item: EntityWrite | EdgeWrite,
    old: Node | Link | None,
    wanted: Mapping[str, Any],
    *,
    values: dict[str, Any],
    unset: list[str],
) -> None:
    """Have the contested fields that are written settled, or note that the writer has not seen the conflict.

    ``wanted`` is all that is to be set, ``values`` what differs from the state; both may have the value that is shown
    already, which settles a conflict as any other does.
    """
    for field in _written(item, contested_in(old), wanted, unset):
        if field in item.resolve or item.has_seen or found.expected_seq is not None:
            if field in wanted:
                values[field] = wanted[field]
            elif field not in unset:
                unset.append(field)
            unset.append(contested_note(field))
        else:
            edge = EdgeWords(item.type, item.from_id, item.to_id, item.kind) if isinstance(item, EdgeWrite) else None
            message, hint = refusal(item.id, field, edge)
            hint += " Or send the `seq` of the answer with the values as `expected_seq`."
            found.wrong(f"{item.path}.{field}", CODE, message, hint, subject=item.id)


def refusal(key: str, field: str, edge: EdgeWords | None = None) -> tuple[str, str]:
    """Return why a contested field is not written, and what can be done; ``edge`` is that of the id ``key``."""
    message = f"`{field}` of {in_quotes(key)} is contested: changes that have not seen each other set it."
    return message, f"Read the values with {kb('resolve', key)}, then {decision(key, field, 'N', edge)}."


def _written(
    item: EntityWrite | EdgeWrite, contested: Iterable[str], wanted: Iterable[str], unset: Iterable[str]
) -> list[str]:
    """Return the contested fields that an item writes, also one that it removes and of which no value is shown."""
    members = {f"{prefix}.{key}" for prefix, members in item.objects.items() for key in members}
    named = {*wanted, *unset, *item.removed, *members} - (item.carried - item.resolve.keys())
    return [field for field in contested if field in named]
