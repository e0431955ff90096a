"""Plan what a client writes to contested fields: a plain write is refused, one that has seen the conflict settles it.

A field is contested where changes that have not seen each other give it different values (``graph.CONTESTED``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kbcore.model.changeset import EdgeWrite, EntityWrite
from kbcore.model.claims.fold import DELETED, ID
from kbcore.model.graph import CONTESTED, Link, Node, contested_note
from kbcore.remedies import kb
from kbcore.store.planning.findings import PlanBuilder
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
    found: PlanBuilder, item: EntityWrite | EdgeWrite, old: Node | Link | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that ``item.resolve`` sets, and those that it removes; note each choice that cannot be made."""
    contested, wanted, unset = contested_in(old), dict[str, Any](), list[str]()
    for field, choice in item.resolve.items():
        place = f"{item.path}.resolve.{field}"
        if field not in contested:
            hint = (
                f"Contested are: {', '.join(contested)}." if contested else f"{kb('resolve')} lists what is contested."
            )
            found.wrong(place, "not_contested", f"{in_quotes(field)} of {in_quotes(item.id)} is not contested.", hint)
        elif field in {DELETED, ID}:
            if choice == KEEP:
                unset.append(contested_note(field))
            else:
                other = kb("delete", item.id) if field == DELETED else kb("rename", item.id, "NEW")
                found.wrong(
                    place, "bad_value", f"{in_quotes(field)} can only be kept here.", f'Send "keep", or {other}.'
                )
        elif isinstance(choice, int) and 1 <= choice <= len(contested[field]):
            value = contested[field][choice - 1]
            if "value" in value:
                wanted[field] = value["value"]
            else:
                unset.append(field)
        else:
            message = f"There is no value {choice!r} of {in_quotes(field)}; there are {len(contested[field])}."
            found.wrong(place, "out_of_range", message, f"{kb('resolve')} lists them by number.")
    return wanted, unset


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
    contested = contested_in(old)
    for field in _written(contested, wanted, unset):
        if item.resolve or found.expected_seq is not None:
            if field in wanted:
                values[field] = wanted[field]
            unset.append(contested_note(field))
        else:
            message, hint = refusal(item.id, field)
            hint += " Or send the `seq` of the answer with the values as `expected_seq`."
            found.wrong(f"{item.path}.{field}", CODE, message, hint, subject=item.id)


def refusal(key: str, field: str) -> tuple[str, str]:
    """Return why a contested field is not written, and what can be done."""
    message = f"`{field}` of {in_quotes(key)} is contested: changes that have not seen each other set it."
    return message, f"Read the values with {kb('resolve', key)}, then {kb('resolve', key, field, '--take', 'N')}."


def _written(contested: Mapping[str, Any], wanted: Mapping[str, Any], unset: Iterable[str]) -> list[str]:
    removed = set(unset)
    return [field for field in contested if field in wanted or field in removed]
