"""Placeholders of a tree replaced by the values of parameters; what comes back is bound, and holds only values. Pure.

What is put in is data: it is never read as KIP, and a colon in it begins no placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from kbcore import limits
from kbcore.errors import KipRefused
from kbcore.errors.remedies import by_front_end
from kbcore.kip.errors import RESOURCE, SYNTAX, placing, refused
from kbcore.kip.parsing import parse
from kbcore.kip.parsing.patterns import check_hops
from kbcore.kip.syntax import (
    Assignments,
    AttributeChange,
    Command,
    Count,
    Hops,
    JsonValue,
    MapMember,
    Object,
    Text,
    ValuePlaceholder,
)
from kbcore.model.values import ValueFault, value_problem
from kbcore.text.escaping import in_quotes, json_text
from kbcore.text.suggest import did_you_mean, nearest

_Tree = TypeVar("_Tree", bound=msgspec.Struct)
_MENTION: Final = re.compile(r":([A-Za-z_][A-Za-z0-9_]*)")
_LARGEST: Final = 2**63 - 1
_TEXTS: Final = {
    "id": "an id",
    "type": "a type",
    "name": "a name",
    "names": "a predicate",
    "predicate": "a predicate",
    "keys": "a key",
    "cursor": "a cursor",
    "term": "a search term",
    "mode": "a mode",
    "offset": "a duration",
}
"""The kind of a text, by the field of the tree that has it."""
_COUNTS: Final = {"limit": ("LIMIT", 1), "budget": ("BUDGET", 1), "expected_version": ("EXPECT VERSION", 0)}
_SCALARS: Final = frozenset({"when", "left", "right", "text", "pattern", "operand"})
_NUMBERS: Final = frozenset({"threshold", "arguments"})


def bind(tree: Command, parameters: Mapping[str, Any] | None = None) -> Command:
    """Return the tree with the values of parameters, which are JSON values, in the places of its placeholders.

    Parameters that the tree does not use are left alone; one whose name comes after a colon in a quoted text of the
    tree is refused, since it was meant and would not be replaced.

    Raises: ``KipRefused`` with the offset of the place: KIP_1001 for a placeholder without a parameter and for a value
    of a wrong kind, KIP_4002 for one that is too large.
    """
    return _Binding(tree, parameters or {}).bound(tree, "")


def read(text: str, parameters: Mapping[str, Any] | None = None, *, lead: int = 0) -> Command:
    """Return the bound tree of a command; ``lead`` as for ``parse``.

    Raises: ``KipRefused`` as ``parse`` and ``bind`` do, with line and column.
    """
    tree = parse(text, lead=lead)
    with placing(text):
        return bind(tree, parameters)


def placeholders(tree: msgspec.Struct) -> dict[str, int]:
    """Return the names of the placeholders of a tree in the order of the text, each with its first offset."""
    found: list[tuple[int, str]] = []

    def look(node: Any) -> None:
        if isinstance(node, tuple):
            for one in node:
                look(one)
        elif isinstance(node, msgspec.Struct):
            name = getattr(node, "parameter", "")
            if name:
                found.append((getattr(node, "at", 0), name))
            for field in node.__struct_fields__:
                look(getattr(node, field))

    look(tree)
    names: dict[str, int] = {}
    for at, name in sorted(found):
        names.setdefault(name, at)
    return names


class _Binding:
    """One tree and the parameters that are put into it."""

    def __init__(self, tree: msgspec.Struct, parameters: Mapping[str, Any]) -> None:
        self.tree = tree
        self.parameters = parameters

    def bound(self, node: _Tree, field: str) -> _Tree:
        """Return a node with its placeholders replaced: itself where there are none."""
        kind = type(node)
        if kind in _CHANGES:
            replaced: _Tree = _CHANGES[kind](self, node, field)
            return replaced
        changed: dict[str, Any] = {}
        for name in kind.__struct_fields__:
            old = getattr(node, name)
            new: Any = old
            if isinstance(old, msgspec.Struct):
                new = self.bound(old, name)
            elif old.__class__ is tuple and old and isinstance(old[0], msgspec.Struct):
                members = [self.bound(one, name) for one in old]
                is_same = all(one is other for one, other in zip(members, old, strict=True))
                new = old if is_same else tuple(members)
            if new is not old:
                changed[name] = new
        rebuilt = msgspec.structs.replace(node, **changed) if changed else node
        if isinstance(rebuilt, Hops):
            check_hops(rebuilt)
        return rebuilt

    def text(self, node: Text, field: str) -> Text:
        if not node.parameter:
            self.check_mentions(node.value, node.at)
            return node
        value = self.value_of(node.parameter, node.at)
        if not isinstance(value, str):
            raise _wrong_kind(node.parameter, value, f"{_TEXTS.get(field, 'this')} is a text", node.at, is_text=True)
        return Text(value, node.at)

    def count(self, node: Count, field: str) -> Count:
        if not node.parameter:
            return node
        value = self.value_of(node.parameter, node.at)
        what, least = _COUNTS.get(field, ("a number of hops", 0))
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
            raise _wrong_kind(node.parameter, value, f"{what} takes a whole number of at least {least}", node.at)
        return Count(value, node.at)

    def value(self, node: JsonValue, field: str) -> JsonValue:
        self.check_mentions(node.json, node.at)
        if not node.holes:
            return node
        json = _copied(node.json)
        for hole in node.holes:
            value = self.value_of(hole.parameter, hole.at)
            self.check_kind(hole, value, field)
            if not hole.path:
                return JsonValue(value, node.at)
            inner = json
            for step in hole.path[:-1]:
                inner = inner[step]
            inner[hole.path[-1]] = value
        return JsonValue(json, node.at)

    def check_kind(self, hole: ValuePlaceholder, value: Any, field: str) -> None:
        """Refuse a value that is not allowed in its place."""
        is_scalar = not isinstance(value, list | dict)
        if field == "values" and not hole.path:
            if not isinstance(value, list) or any(isinstance(one, list | dict) for one in value):
                expected = "IN takes a list of texts, numbers, true, false or null"
                raise _wrong_kind(hole.parameter, value, expected, hole.at)
        elif field in _NUMBERS and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise _wrong_kind(hole.parameter, value, "this is a number", hole.at)
        elif (field in _SCALARS or field == "values") and not is_scalar:
            expected = "a condition compares texts, numbers, true, false and null"
            raise _wrong_kind(hole.parameter, value, expected, hole.at)

    def object(self, node: Object, field: str) -> Object:
        if node.parameter:
            pairs = self.members_of(node.parameter, node.at)
            return Object(tuple(MapMember(key, JsonValue(value, node.at), node.at) for key, value in pairs), node.at)
        members = []
        for member in node.members:
            self.check_mentions(member.key, member.at)
            members.append(MapMember(member.key, self.value(member.value, field), member.at))
        return Object(tuple(members), node.at)

    def assignments(self, node: Assignments, field: str) -> Assignments:
        if node.parameter:
            pairs = self.members_of(node.parameter, node.at)
            given = tuple(AttributeChange(key, JsonValue(value, node.at), node.at) for key, value in pairs)
            return Assignments(given, node.at)
        found = []
        for one in node.assignments:
            self.check_mentions(one.key, one.at)
            found.append(AttributeChange(one.key, self.bound(one.value, field), one.at))
        return Assignments(tuple(found), node.at)

    def members_of(self, name: str, at: int) -> list[tuple[str, Any]]:
        value = self.value_of(name, at)
        if not isinstance(value, dict):
            raise _wrong_kind(name, value, "this is a map of keys and values", at)
        return list(value.items())

    def value_of(self, name: str, at: int) -> Any:
        """Return what is given for a placeholder."""
        if name not in self.parameters:
            raise self.unknown(name, at)
        value = self.parameters[name]
        fault = _fault_of(value)
        if fault:
            code = RESOURCE if fault.code in {"too_long", "too_deep"} else SYNTAX
            raise refused(code, f"The parameter `{name}` {fault.message}.", at=at, hint=fault.hint)
        return value

    def unknown(self, name: str, at: int) -> KipRefused:
        given = sorted(self.parameters)
        missing = [one for one in placeholders(self.tree) if one not in self.parameters]
        listed = f"given: {', '.join(in_quotes(one) for one in given[:40])}" if given else "no parameters were given"
        hint = f"Give its value {_place(name)}."
        if f":{name}" in self.parameters:
            hint = f"Leave the colon out {_place(name)}."
        elif nearest(name, given):
            hint = did_you_mean(name, given)
        message = f"The parameter `{name}` is not given ({listed})."
        return refused(SYNTAX, message, at=at, hint=hint, data={"missing": missing, "given": given[:40]})

    def check_mentions(self, json: Any, at: int) -> None:
        """Refuse a text of the command that names a parameter which is given: it would stay as it is."""
        if isinstance(json, str):
            for found in _MENTION.finditer(json) if self.parameters and ":" in json else ():
                if found[1] in self.parameters:
                    message = f"The placeholder `:{found[1]}` is inside of a quoted text, where it is not replaced."
                    hint = f"Write :{found[1]} without quotes, as a whole value; build longer texts in the parameter."
                    raise refused(SYNTAX, message, at=at, hint=hint)
        elif isinstance(json, list):
            for one in json:
                self.check_mentions(one, at)
        elif isinstance(json, dict):
            for key, one in json.items():
                self.check_mentions(key, at)
                self.check_mentions(one, at)


_CHANGES: Final[dict[type, Any]] = {
    Text: _Binding.text,
    Count: _Binding.count,
    JsonValue: _Binding.value,
    Object: _Binding.object,
    Assignments: _Binding.assignments,
}


def _fault_of(value: Any, depth: int = 0) -> ValueFault | None:
    """Return why a value is not allowed in a text either; the rules of the store are checked when it is written."""
    if not isinstance(value, list | dict):
        return value_problem(value)
    if depth >= limits.MAX_KIP_DEPTH:
        return ValueFault("too_deep", f"is nested deeper than {limits.MAX_KIP_DEPTH} levels", "Flatten it.")
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return next((fault for one in inner if (fault := _fault_of(one, depth + 1))), None)


def _place(name: str) -> str:
    """Return where a parameter is given: at the command line, and in a request."""
    return by_front_end(
        f"with --param {name}=VALUE, at the prompt by `:{name} = VALUE`", f'in `parameters`: {{"{name}": …}}'
    )


def _wrong_kind(name: str, value: Any, expected: str, at: int, *, is_text: bool = False) -> KipRefused:
    """Return the refusal of a parameter; ``is_text`` where a text is wanted."""
    kinds = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a map"}
    shown = f"the number {value}" if type(value) in {int, float} else kinds.get(type(value), "null")
    hint = "Give a value of that kind."
    if is_text and not isinstance(value, list | dict):
        text = f'"{json_text(value)}"'
        hint = f"Give it as a text, {text}; a shell needs {name}='{text}'."
    return refused(SYNTAX, f"The parameter `{name}` is {shown}; {expected}.", at=at, hint=hint)


def _copied(json: Any) -> Any:
    if isinstance(json, list):
        return [_copied(one) for one in json]
    return {key: _copied(one) for key, one in json.items()} if isinstance(json, dict) else json
