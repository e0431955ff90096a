"""The values in a KIP text: texts, whole numbers, JSON and maps; placeholders may replace them. Pure data."""

from __future__ import annotations

from typing import Any

import msgspec


class Text(msgspec.Struct, frozen=True, tag_field="node"):
    """A text: a type, a name, an id, a predicate, a key, a search term, a cursor."""

    value: str
    at: int = 0
    parameter: str = ""
    """The placeholder that gives the value."""


class Count(msgspec.Struct, frozen=True, tag_field="node"):
    """A whole number that is not negative: of LIMIT (1 at least), of hops, of EXPECT VERSION."""

    value: int
    at: int = 0
    parameter: str = ""


class ValuePlaceholder(msgspec.Struct, frozen=True, tag_field="node"):
    """A placeholder in a JSON value: the keys and positions that lead to it (none: it is the whole), and its name."""

    path: tuple[str | int, ...]
    parameter: str
    at: int = 0


class JsonValue(msgspec.Struct, frozen=True, tag_field="node"):
    """A JSON value, as Python has it; lists and objects belong to the tree and are not to be changed."""

    json: Any
    at: int = 0
    holes: tuple[ValuePlaceholder, ...] = ()
    """The placeholders in it; null is in their places."""


class MapMember(msgspec.Struct, frozen=True, tag_field="node"):
    """A key of a map and its value."""

    key: str
    value: JsonValue
    at: int = 0


class Object(msgspec.Struct, frozen=True, tag_field="node"):
    """A map after SET ATTRIBUTES or WITH METADATA; each key is there once."""

    members: tuple[MapMember, ...]
    at: int = 0
    parameter: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the map as a JSON object."""
        return {member.key: member.value.json for member in self.members}
