"""Attributes that a changeset adds under a name that is nearly that of a field: most likely the field was meant."""

from __future__ import annotations

from typing import Final

from kbcore.model.concepts import ORIGIN
from kbcore.model.graph import CORE_FIELDS, FORMER_KEY, STAMPS, Node
from kbcore.model.schema import EntityType, Schema
from kbcore.model.state import Changes
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.text.wording import pluralize
from kbcore.view.view import View

_PREFIX: Final = "attributes."
_LEAST_ALIKE: Final = 0.8
_MOST_NAMED: Final = 5
_FIELDS: Final = tuple(name for name in CORE_FIELDS if name not in {*STAMPS, "type", "links", "text_ref"})
_IN_USE: Final = """select distinct name from (
  select unnest(json_keys(attributes)) as name from node where type = $1 and id not in (select unnest($2::varchar[])))
where name in (select unnest($3::varchar[]))"""


def misspelled(view: View, changes: Changes, schema: Schema) -> list[str]:
    """Return a sentence for each new attribute whose name is like that of a field, and that no other entity has.

    ``view`` holds the changes. Types of KIP are left out: their attributes are free. What the schema declares is known,
    and so is what another entity of the type has.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for change in changes.nodes:
        definition = schema.entities.get(change.after.type) if change.after else None
        if change.after is None or definition is None or definition.origin == ORIGIN:
            continue
        for name in _new_names(change.before, change.after):
            if (definition.name, name) not in found and (near := _near(name, definition)):
                found[definition.name, name] = change.key, near
    changed = [change.key for change in changes.nodes]
    for kind in {kind for kind, _ in found}:
        names = [name for one, name in found if one == kind]
        for (known,) in view.rows(_IN_USE, [kind, changed, names]):
            del found[kind, known]
    warnings = [
        f"{in_quotes(name)} of {in_quotes(key)} is stored as an attribute: a {kind} has no field of that name. "
        + is_it([near])
        for (kind, name), (key, near) in found.items()
    ]
    left = len(warnings) - _MOST_NAMED
    more = [f"{pluralize(left, 'more attribute')} may be misspelled."] if left > 0 else []
    return [*warnings[:_MOST_NAMED], *more]


def _new_names(before: Node | None, after: Node) -> list[str]:
    known = before.fields if before else {}
    return [
        name.removeprefix(_PREFIX)
        for name in after.fields
        if name.startswith(_PREFIX) and name not in known and name != f"{_PREFIX}{FORMER_KEY}"
    ]


def _near(name: str, definition: EntityType) -> str:
    """Return the field of a type that is most like a name which is none of them, or the empty text."""
    if name in definition.attributes:
        return ""
    known = [*_FIELDS, *definition.attributes]
    return next(iter(near_ones(name, known, 1, least_alike=_LEAST_ALIKE, stems=False)), "")
