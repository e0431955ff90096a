"""Reads the members of a definition in a schema file: texts, lists, flags, attributes.

Scalars come as text, as typed. Each function returns what the member says; when it cannot be used, that is a
problem, and what is returned is harmless.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, cast, get_args

from kbcore import limits
from kbcore.model.graph import CORE_FIELDS, OBJECT_FIELDS, STAMPS
from kbcore.model.schema import Attribute, AttributeType, Impact
from kbcore.model.values import text_problem
from kbcore.text.validator import ConfigNode, shown

ATTRIBUTE_KEYS: Final = ("type", "required", "values", "keys", "description")
IMPACTS: Final[tuple[str, ...]] = get_args(Impact)
ATTRIBUTE_TYPES: Final[tuple[str, ...]] = get_args(AttributeType)
ALWAYS_REQUIRED: Final = ("title", "status")
"""Fields that every entity has, whatever its type."""

_REQUIRABLE: Final = tuple(name for name in CORE_FIELDS if name not in {"type", "name", *STAMPS})
_FIELD_NAMES: Final = frozenset({"id", *CORE_FIELDS, *OBJECT_FIELDS})
_FLAGS: Final = {"true": True, "false": False}


def text(spot: ConfigNode) -> str:
    """Return a description; one that is empty is none."""
    if spot.value is None:
        return ""
    if not isinstance(spot.value, str):
        spot.must_be("text", "Put it in quotes, on one line.")
        return ""
    fault = text_problem(spot.value)
    if fault:
        spot.wrong(fault.code, f"This text {fault.message}.", fault.hint)
    elif not spot.value.replace("\n", "").isprintable():
        spot.wrong("bad_text", "This text holds a control character.", "Remove it.")
    return spot.value


def flag(spot: ConfigNode) -> bool:
    """Return a claim that is written as true or false."""
    is_known = isinstance(spot.value, str) and spot.value in _FLAGS
    if not is_known:
        spot.must_be("true or false", "Write `true` or `false`, in small letters.")
    return is_known and _FLAGS[spot.value]


def impact(spot: ConfigNode) -> Impact:
    """Return which end of an edge is affected when the other one changes."""
    if isinstance(spot.value, str) and spot.value in IMPACTS:
        return cast("Impact", spot.value)
    spot.must_be("one of from, to, both, none", "Name the end that is affected when the other one changes.")
    return "none"


def label(spot: ConfigNode) -> str:
    """Return a short text, such as a status."""
    if not isinstance(spot.value, str):
        spot.must_be("text", "If it holds `: ` or begins with a bracket, put it in quotes.")
        return ""
    if not _is_label(spot.value):
        hint = f"Use 1 to {limits.MAX_NAME_CHARS} printable characters, with no space around them."
        spot.wrong("bad_text", f"{shown(spot.value)} is not allowed here.", hint)
    return spot.value


def labels(spot: ConfigNode) -> tuple[str, ...]:
    """Return a list of short texts, each once; a lone text is a list of one."""
    if isinstance(spot.value, str):
        return (label(spot),)
    items = spot.items()
    if isinstance(spot.value, list) and not 1 <= len(items) <= limits.MAX_TAGS:
        hint = "Leave the key out if you do not want to say it."
        spot.must_be(f"a list with 1 to {limits.MAX_TAGS} members", hint)
        return ()
    found: dict[str, None] = {}
    for item in items:
        if isinstance(item.value, str) and item.value in found:
            item.wrong("duplicate", f"{shown(item.value)} is in this list twice.", "Keep one of them.")
        elif one := label(item):
            found[one] = None
    return tuple(found)


def required(spot: ConfigNode, attributes: Collection[str]) -> tuple[str, ...]:
    """Return the fields that an entity of the type must have, those that every entity has among them."""
    for item in spot.items():
        name = item.value
        if not isinstance(name, str):
            item.must_be("the name of a field")
        elif name in attributes:
            hint = f"Write `required: true` below the attribute {shown(name)}."
            item.wrong("unknown_field", f"{shown(name)} is an attribute, not a field.", hint)
        elif name not in _REQUIRABLE:
            item.unknown("unknown_field", "field", name, _REQUIRABLE)
    named = [name for name in spot.value if name in _REQUIRABLE] if isinstance(spot.value, list) else []
    return tuple(dict.fromkeys((*ALWAYS_REQUIRED, *named)))


def attribute(spot: ConfigNode) -> Attribute:
    """Return the declaration of an attribute; nothing said means that any value will do."""
    if spot.value is None:
        return Attribute()
    found = spot.known_members(ATTRIBUTE_KEYS, "key of an attribute")
    values = labels(found["values"]) if "values" in found else ()
    keys = labels(found["keys"]) if "keys" in found else ()
    kind = "text" if values else "object" if keys else "any"
    if "type" in found:
        kind = label(found["type"])
        if kind not in ATTRIBUTE_TYPES:
            found["type"].unknown("unknown_type", "type of attribute", kind, ATTRIBUTE_TYPES)
            kind = "any"
        elif values and kind not in {"text", "any"}:
            hint = "Use `type: text`, or leave `values` out."
            found["values"].wrong("wrong_type", f"`values` are texts; an attribute of type {kind} has none.", hint)
    if keys and kind != "object":
        found["keys"].wrong(
            "wrong_type",
            f"`keys` are of objects; an attribute of type {kind} has none.",
            "Use `type: object`, or leave `keys` out.",
        )
    return Attribute(
        cast("AttributeType", kind),
        flag(found["required"]) if "required" in found else False,
        values,
        text(found["description"]) if "description" in found else "",
        keys,
    )


def may_name_attribute(name: str, spot: ConfigNode) -> bool:
    """Tell whether an attribute may have this name."""
    if name in _FIELD_NAMES:
        message = f"{shown(name)} is a field of every entity and cannot be an attribute."
        spot.wrong("reserved_name", message, "Choose another name, or leave it out.")
    elif not _is_label(name):
        hint = f"Use 1 to {limits.MAX_NAME_CHARS} printable characters, with no space around them."
        spot.wrong("bad_name", f"{shown(name)} cannot be the name of an attribute.", hint)
    else:
        return True
    return False


def _is_label(name: str) -> bool:
    is_short = 0 < len(name) <= limits.MAX_NAME_CHARS
    return is_short and name.isprintable() and name == name.strip()
