"""Reads a JSON request member by member, and collects every fault of shape with its JSON path."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kbcore.errors import Problem
from kbcore.ids import check_id, is_link_id
from kbcore.model.graph import OBJECT_FIELDS
from kbcore.model.schema import CORE
from kbcore.model.values import ValueFault, value_problem
from kbcore.text.suggest import nearest

Word = TypeVar("Word", bound=str)
FieldCheck = Callable[[str, Any], ValueFault | None]


def _hint_for(key: str, allowed: Sequence[str]) -> str:
    """Return what to write in place of a member that there is not; an attribute of KB's own types has its place."""
    has_attributes = "attributes" in allowed
    if has_attributes and any(key in one.attributes for one in CORE.entities.values()):
        return f"It is an attribute: put `{key}` under `attributes`."
    near = nearest(key, allowed)
    meant = f"Did you mean {near!r}? " if near else ""
    what = "Put it under `attributes`, or use" if has_attributes else "Use"
    return f"{meant}{what} one of: {', '.join(allowed)}."


class RequestReader:
    """Collects problems while a request is read. Each method returns a value of its kind, whatever it met."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def wrong(self, path: str, code: str, message: str, hint: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(path, code, message, hint))

    def keys(self, path: str, item: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        """Note every member that is not among the allowed ones."""
        for key in item:
            if key not in allowed:
                self.wrong(
                    f"{path}.{key}", "unknown_field", f"There is no field {key!r} here.", _hint_for(str(key), allowed)
                )

    def text(self, path: str, item: Mapping[str, Any], key: str, *, is_required: bool = False) -> str:
        """Return a text member, "" when it is absent or null."""
        value = item.get(key)
        if value is None or value == "":
            if is_required:
                self.wrong(f"{path}.{key}", "missing_field", f"`{key}` is missing.", f"Add {key!r} as text.")
            return ""
        if not isinstance(value, str):
            self.wrong(f"{path}.{key}", "wrong_type", f"`{key}` must be text, not {kind_of(value)}.")
            return ""
        self._is_faulty(path, key, value_problem(value))
        return value

    def id(self, path: str, item: Mapping[str, Any], key: str, *, may_be_link: bool = False) -> str:
        """Return a required id of an entity, or of an edge where that is allowed."""
        value = self.text(path, item, key, is_required=True)
        fault = None if may_be_link and is_link_id(value) else check_id(value)
        if value and fault:
            self.wrong(f"{path}.{key}", "bad_id", f"{value!r} cannot be an id: {fault}.")
        return value

    def number(self, path: str, item: Mapping[str, Any], key: str) -> int | None:
        """Return a whole number from 0, None when it is absent."""
        value = item.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.wrong(f"{path}.{key}", "wrong_type", f"`{key}` must be a whole number from 0, as an answer gave it.")
            return None
        return value

    def flag(self, path: str, item: Mapping[str, Any], key: str) -> bool:
        """Return a truth value, false when it is absent."""
        value = item.get(key, False)
        if not isinstance(value, bool):
            self.wrong(f"{path}.{key}", "wrong_type", f"`{key}` must be true or false, not {kind_of(value)}.")
            return False
        return value

    def choice(self, path: str, item: Mapping[str, Any], key: str, allowed: Sequence[Word]) -> Word | None:
        """Return a member that is one of the allowed words, None when it is absent."""
        value = item.get(key)
        found = next((word for word in allowed if word == value), None)
        if value is not None and found is None:
            words = ", ".join(allowed)
            self.wrong(f"{path}.{key}", "bad_value", f"`{key}` must be one of: {words}.", f"Use one of: {words}.")
        return found

    def items(self, request: Mapping[str, Any], key: str, example: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the objects of a list member, each with its path; ``example`` is the JSON of one."""
        value = request.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            message = f"`{key}` must be a list, not {kind_of(value)}."
            self.wrong(f"$.{key}", "wrong_type", message, f"For example [{example}].")
            return []
        found = []
        for position, item in enumerate(value):
            path = f"$.{key}[{position}]"
            if isinstance(item, dict):
                found.append((path, item))
            else:
                self.wrong(path, "wrong_type", f"Must be an object, not {kind_of(item)}.", f"For example {example}.")
        return found

    def fields(
        self, path: str, item: Mapping[str, Any], names: tuple[str, ...], check: FieldCheck
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]], tuple[str, ...]]:
        """Return the fields to set, the objects to replace, and the fields to remove (null)."""
        removed = tuple(name for name in (*names, *OBJECT_FIELDS) if name in item and item[name] is None)
        values = {name: item[name] for name in names if item.get(name) is not None}
        objects: dict[str, dict[str, Any]] = {}
        for name in [*values]:
            if self._is_faulty(path, name, check(name, values[name])):
                del values[name]
        for name in OBJECT_FIELDS:
            members = item.get(name)
            if isinstance(members, dict):
                if not self._is_faulty(path, name, value_problem(members)):
                    objects[name] = members
            elif members is not None:
                self.wrong(f"{path}.{name}", "wrong_type", f"`{name}` must be an object, not {kind_of(members)}.")
        return values, objects, removed

    def _is_faulty(self, path: str, name: str, fault: ValueFault | None) -> bool:
        if fault:
            self.wrong(f"{path}.{name}", fault.code, f"`{name}` {fault.message}.", fault.hint)
        return fault is not None


def kind_of(value: Any) -> str:
    """Return the JSON name of a value's kind; of a number that is no whole one, what it is instead."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN or infinity"
        return "a number with a point or an exponent" if value.is_integer() else "a fraction"
    names = {
        bool: "true or false",
        int: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "null")
