"""Words such as ``status=done`` and ``tags+=web``, as changes of fields, and the values that they give."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import kb
from kbcore.model import verdict
from kbcore.model.graph import CORE_FIELDS, OBJECT_FIELDS, Node
from kbcore.model.schema import EntityType, Schema
from kbcore.model.values import field_problem, meaning_problem
from kbcore.text import json_reader
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of

_ASSIGNMENT: Final = re.compile(r"(?P<name>[^=]*?)(?P<how>\+=|-=|:=|=)(?P<value>.*)", re.DOTALL)
_OF_LISTS: Final = frozenset({"+=", "-="})
_STAMPED: Final = frozenset({"created_at", "updated_at", "source"})
_MOST_NAMED: Final = 10
EXAMPLES: Final = "For example status=done, tags+=web, owner= (removes it) or attributes.size:=3."


class FieldChange(NamedTuple):
    """One change of a field: its flat name, what to do (``=``, ``+=``, ``-=`` or ``:=``), and the value as text."""

    name: str
    how: str
    value: str


def assignment(text: str, schema: Schema) -> FieldChange:
    """Return what ``field=value`` asks for; a name that is no field of its own is that of an attribute.

    Raises: ``InvalidQuery``.
    """
    found = _ASSIGNMENT.fullmatch(text)
    if found is None or not found["name"]:
        raise InvalidQuery(f"{in_quotes(text[:80])} sets no field.", hint=EXAMPLES)
    name = found["name"].replace("-", "_") if found["name"].replace("-", "_") in CORE_FIELDS else found["name"]
    prefix, _, member = name.partition(".")
    if name == "id":
        raise InvalidQuery("An id is not set.", hint=f"{kb('rename', 'OLD', 'NEW')} changes it wherever it is named.")
    if name in schema.edges or name in OBJECT_FIELDS or (prefix in OBJECT_FIELDS and not member):
        what = f"{in_quotes(name)} is an edge" if name in schema.edges else f"{in_quotes(name)} is no single field"
        hint = (
            f"{kb('link', 'ID', name, 'OTHER')} states one."
            if name in schema.edges
            else f"Name a member, as {name}.key."
        )
        raise InvalidQuery(f"{what}.", hint=hint)
    if name in _STAMPED:
        raise InvalidQuery(f"`{name}` is set by KB itself.", hint="Leave it out.")
    flat = name if name in CORE_FIELDS or prefix in OBJECT_FIELDS else f"attributes.{name}"
    if flat in verdict.FIELDS and found["value"]:
        raise InvalidQuery(verdict.set_by_results(flat), hint=verdict.SET_HINT)
    return FieldChange(flat, found["how"], found["value"])


def values_of(node: Node, asked: Sequence[FieldChange], schema: Schema) -> dict[str, Any]:
    """Return the new value of each field, None for one that is removed; changes of one list come one after the other.

    Raises: ``InvalidQuery`` for a value that its field cannot have.
    """
    values: dict[str, Any] = {}
    whole = Counter(one.name for one in asked if one.how not in _OF_LISTS)
    for one in asked:
        if whole[one.name] and one.name in values:
            hint = "Give each field one value, or add to its list and remove from it: tags+=a tags-=b."
            raise InvalidQuery(f"`{one.name}` is set twice.", hint=hint)
        old = values[one.name] if one.name in values else node.fields.get(one.name)
        values[one.name] = _value(one, old, _kind(schema, node.type, one.name))
        value = values[one.name]
        if value is not None and "." not in one.name:
            fault = field_problem(one.name, value) or meaning_problem(one.name, value)
            if fault:
                raise InvalidQuery(f"`{one.name}` {fault.message}.", hint=fault.hint)
    return values


def _kind(schema: Schema, type_: str, name: str) -> str:
    """Return the type of a field: that which is declared, else "any"."""
    return CORE_FIELDS[name] if name in CORE_FIELDS else declared_kind(schema.entities.get(type_), name)


def declared_kind(definition: EntityType | None, name: str) -> str:
    """Return the type that is declared for an attribute, else "any"."""
    attribute = definition.attributes.get(name.removeprefix("attributes.")) if definition else None
    return attribute.type if attribute and name.startswith("attributes.") else "any"


def _value(one: FieldChange, old: Any, kind: str) -> Any:
    """Return the value that an assignment gives its field."""
    is_list = kind == "list" or (kind == "any" and isinstance(old, list))
    items = [item for part in one.value.split(",") if (item := part.strip())]
    if one.how in _OF_LISTS:
        if not is_list and (old is not None or kind != "any"):
            raise InvalidQuery(f"`{one.name}` is no list.", hint=f"Set it: {one.name}=….")
        return _list(one, old if isinstance(old, list) else [], items)
    if one.how == ":=":
        return _json(one)
    if one.value == "":
        return None
    if is_list:
        return items
    if kind in {"number", "boolean", "object"}:
        return _value(one._replace(how=":="), old, kind)
    return one.value


def _list(one: FieldChange, before: Sequence[Any], items: Sequence[str]) -> list[Any] | None:
    """Return a list with items added or removed, None for an empty one. An item that is no text is named as in JSON."""
    if not items:
        raise InvalidQuery(f"`{one.name}{one.how}` names no item.", hint=f"For example {one.name}{one.how}a,b.")
    texts = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in before]
    if one.how == "-=":
        missing = next((item for item in items if item not in texts), None)
        if missing is not None:
            hint = f"It has {some_of(texts, _MOST_NAMED)}." if texts else "It is empty."
            raise InvalidQuery(f"`{one.name}` has no {in_quotes(missing)}.", hint=hint)
        return [item for item, text in zip(before, texts, strict=True) if text not in items] or None
    if texts != list(before):
        message = f"`{one.name}` has items that are no text, and += adds text."
        raise InvalidQuery(message, hint=f"Set all of it as JSON: {one.name}:=[…].")
    return [*before, *(item for item in dict.fromkeys(items) if item not in before)]


def _json(one: FieldChange) -> Any:
    tree = json_reader.read(one.value)
    if tree.problems or not one.value.strip():
        reason = f": {tree.problems[0].message}" if tree.problems else ""
        message = f"`{one.name}`: {in_quotes(one.value[:80])} is not JSON{reason}."
        raise InvalidQuery(message, hint="With := the value is JSON; with = it is text.")
    return tree.root
