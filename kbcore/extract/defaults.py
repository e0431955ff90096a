"""Values that the settings give to the entities of some files, for fields of which a file says nothing. Pure.

Each field has the value of the first entry that means the file and the type, and has this field. What a file states,
or states so that it cannot be read, stays; an entity that is stated in part gets nothing from the other file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.model.values import value_problem
from kbcore.text.globs import globs_in, matches
from kbcore.text.validator import ConfigNode

DEFAULTS: Final = "defaults"
"""The key under which extractors get the entries, with their other settings."""
TEXT_FIELDS: Final = ("owner", "status", "priority", "severity")
_KEYS: Final = ("paths", "types", *TEXT_FIELDS, "tags", "attributes")
_HINT: Final = 'For example {"paths": "services/pay/**", "owner": "@pay", "tags": ["pay"]}.'
_MAX_ENTRIES: Final = 200

Entries = Sequence[Mapping[str, Any]]
"""Entries as plain data: ``paths``, ``types`` (none for all) and ``fields``, by their flat names."""
Types = list[tuple[str, ConfigNode]]


def read_defaults(spot: ConfigNode | None) -> tuple[tuple[dict[str, Any], ...], Types]:
    """Return the entries of a setting, and the types that they name, each with its place; faults are kept as problems.

    An entry with a fault is left out.
    """
    found: list[dict[str, Any]] = []
    types: Types = []
    entries = spot.items() if spot else []
    if spot and len(entries) > _MAX_ENTRIES:
        spot.wrong("too_many_defaults", f"There are {len(entries)} entries; the limit is {_MAX_ENTRIES}.", "Join some.")
        return (), types
    for entry in entries:
        before = len(entry.problems)
        members = entry.known_members(_KEYS, "part of a default")
        named = _names(members["types"]) if "types" in members else []
        fields = _fields(members)
        paths = globs_in(members["paths"]) if "paths" in members else ()
        if len(entry.problems) == before and not (paths and fields):
            entry.wrong("bad_default", "A default has `paths`, and at least one value.", _HINT)
        if len(entry.problems) == before:
            types += named
            found.append({"paths": list(paths), "types": [name for name, _ in named], "fields": fields})
    return tuple(found), types


def _names(spot: ConfigNode) -> Types:
    places = spot.items() if isinstance(spot.value, list) else [spot]
    for place in places:
        _check_text(place, limits.MAX_NAME_CHARS)
    return [(place.value, place) for place in places]


def _fields(members: Mapping[str, ConfigNode]) -> dict[str, Any]:
    """Return the values of an entry by the flat names of their fields."""
    fields: dict[str, Any] = {}
    for name in TEXT_FIELDS:
        if name in members:
            _check_text(members[name], limits.MAX_TEXT_BYTES)
            fields[name] = members[name].value
    if "tags" in members:
        spot = members["tags"]
        tags = spot.items() if isinstance(spot.value, list) else []
        if not 1 <= len(tags) <= limits.MAX_TAGS:
            spot.must_be(f"a list of 1 to {limits.MAX_TAGS} tags")
        for tag in tags:
            _check_text(tag, limits.MAX_TEXT_BYTES)
        fields["tags"] = list(dict.fromkeys(tag.value for tag in tags if isinstance(tag.value, str)))
    for name, member in members["attributes"].members().items() if "attributes" in members else ():
        fault = value_problem(member.value)
        if not name.strip() or len(name) > limits.MAX_NAME_CHARS:
            said = f"The name of an attribute has 1 to {limits.MAX_NAME_CHARS} characters."
            member.wrong("bad_name", said, _HINT)
        elif fault or member.value is None:
            member.wrong("bad_value", f"`{name}` {fault.message if fault else 'has no value'}.", "Give it a value.")
        fields[f"attributes.{name}"] = member.value
    return fields


def _check_text(spot: ConfigNode, most_chars: int) -> None:
    if not isinstance(spot.value, str) or not spot.value.strip() or len(spot.value) > most_chars:
        spot.must_be(f"text of 1 to {most_chars} characters")


def with_defaults(facts: Facts, path: str, entries: Entries) -> Facts:
    """Return facts of the file at a path with the values that entries give to its entities."""
    meant = [entry for entry in entries if matches(path, entry["paths"])] if facts.entities else []
    if not meant:
        return facts
    return msgspec.structs.replace(facts, entities=tuple([_filled(one, meant) for one in facts.entities]))


def _filled(entity: StatedEntity, meant: Entries) -> StatedEntity:
    more = {name: entry["fields"][name] for name, entry in _givers(entity, meant).items()}
    return msgspec.structs.replace(entity, fields={**entity.fields, **more}) if more else entity


def _givers(entity: StatedEntity, meant: Entries) -> dict[str, Mapping[str, Any]]:
    """Return the entry that gives each field of an entity of which its file says nothing."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in meant if not entity.is_part else ():
        if not entry["types"] or entity.type in entry["types"]:
            for name in entry["fields"]:
                if name not in entity.fields and name not in entity.lines:
                    found.setdefault(name, entry)
    return found


def origins(entity: StatedEntity, path: str, entries: Entries) -> dict[str, int]:
    """Return the number of the entry that gives each field of an entity, which is as its file states it."""
    numbers = {id(entry): number for number, entry in enumerate(entries)}
    meant = [entry for entry in entries if matches(path, entry["paths"])]
    return {name: numbers[id(entry)] for name, entry in _givers(entity, meant).items()}
