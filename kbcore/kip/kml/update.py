"""UPDATE: attributes and metadata of the elements that WHERE finds, set to values or to what is calculated from them.

All that one element becomes is calculated from what it was. A key whose calculation lacks a value is left as it is, and
so is one that has this value already: an UPDATE that changes nothing of a link does not confirm it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from kbcore.errors import KipRefused
from kbcore.kip import scoping
from kbcore.kip import syntax as s
from kbcore.kip.elements import element_json
from kbcore.kip.errors import VALUE_TYPE, refused
from kbcore.kip.kml.command_drafts import CommandDrafts, Draft, besides_kind, misused
from kbcore.kip.kml.drafts import RESOLVE, NodeDraft
from kbcore.kip.kml.intent import Intent
from kbcore.kip.kml.selection import selected
from kbcore.kip.sql.projection import ValueSlice
from kbcore.model.request_reader import kind_of
from kbcore.model.state import Changes
from kbcore.model.values import is_same

_LARGEST: Final = 2**63 - 1
_TOO_LARGE: Final = "Limit its operands with CLAMP; a CLAMP around it is applied after it."
_LACKING: Final = object()
"""The result of a calculation that lacks a value."""
_TWO: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"ADD": lambda a, b: a + b, "MUL": lambda a, b: a * b}


def apply_update(work: CommandDrafts, command: s.Update) -> Intent:
    """Set what UPDATE says. Raises: ``KipRefused``."""
    found = _found(work, command)
    of_metadata = command.metadata.assignments if command.metadata else ()
    for one in of_metadata:
        check_metadata_key(one.key, one.at)
    skipped = 0
    for draft in found:
        if draft.old is None:
            continue
        was = element_json(draft.old, work.names)
        attributes, lacking = _values(command.attributes, was)
        metadata, also_lacking = _values(command.metadata, was)
        skipped += lacking + also_lacking
        for one in of_metadata:
            check_confidence(one.key, metadata.get(one.key), one.at)
        attributes = besides_kind(draft, attributes, command.at)
        draft.edits.set_members(_changed(attributes, was["attributes"]), _changed(metadata, was["metadata"]))
        draft.edits.place("attributes", command.attributes.assignments if command.attributes else ())
        draft.edits.place("metadata", of_metadata)
    keys = {draft.id for draft in found}

    def answer(changes: Changes) -> dict[str, Any]:
        changed = {change.key for change in changes.nodes} | {change.key for change in changes.links}
        counts: dict[str, Any] = {"updated": len(keys & changed), "matched": len(keys)}
        return counts | ({"skipped": skipped} if skipped else {})

    return Intent(answer)


def _changed(values: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in was or not is_same(value, was[key])}


def _found(work: CommandDrafts, command: s.Update) -> list[Draft]:
    """Return what UPDATE changes: of the links that every store knows without a record, only what is named by id."""
    page = ValueSlice(most=work.most(command.limit, len(work.vocabulary.links)))
    found = selected(work, command.variable, command.where, page)
    named = {one.id.value for one in scoping.parts_of(command.where) if isinstance(one, s.LinkId)}
    kept = [one for one in found if one.is_stored or isinstance(one, NodeDraft) or one.id in named]
    return kept[: command.limit.value] if command.limit else kept


def check_metadata_key(key: str, at: int) -> None:
    """Refuse to write metadata that KB keeps itself. Raises: ``KipRefused`` (KIP_2002)."""
    if key.startswith("_"):
        hint = "Leave it out; keys that begin with `_` only come back in answers."
        if key == RESOLVE:
            hint = "Write it WITH METADATA of a block of UPSERT that names the element."
        raise misused(f"The metadata `{key}` is kept by KB and cannot be written.", at, hint)


def check_confidence(key: str, value: Any, at: int) -> None:
    """Refuse a confidence that is no number from 0 to 1; null is none. Raises: ``KipRefused`` (KIP_2003)."""
    if key != "confidence" or value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "Write a number from 0 to 1, such as 0.9, without quotes."
        raise refused(VALUE_TYPE, f"A confidence is a number, not {kind_of(value)}.", at=at, hint=hint)
    if not 0 <= value <= 1:
        hint = "Write a number from 0 to 1, such as 0.9; UPDATE has CLAMP(…, 0, 1)."
        raise refused(VALUE_TYPE, f"A confidence is between 0 and 1; this one is {value}.", at=at, hint=hint)


def _values(assignments: s.Assignments | None, was: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return what keys become, and of how many keys the calculation lacks a value."""
    found = {one.key: _value(one.value, was) for one in assignments.assignments} if assignments else {}
    known = {key: value for key, value in found.items() if value is not _LACKING}
    return known, len(found) - len(known)


def _value(part: s.JsonValue | s.Path | s.Calculation, was: Mapping[str, Any]) -> Any:
    match part:
        case s.JsonValue(json):
            return json
        case s.Path():
            return _at(part, was)
        case s.Calculation():
            return _calculated(part, was)


def _at(path: s.Path, was: Mapping[str, Any]) -> Any:
    """Return what a path leads to, None where there is nothing."""
    value: Any = was
    for part in path.parts:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _calculated(part: s.Calculation, was: Mapping[str, Any]) -> Any:
    values = [_value(one, was) for one in part.arguments]
    if part.function == "COALESCE":
        return next((value for value in values if value is not None and value is not _LACKING), None)
    if any(value is None or value is _LACKING for value in values):
        return _LACKING
    for one, value in zip(part.arguments, values, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _no_number(part, one, value, was)
    if part.function == "CLAMP":
        value, least, most = values
        if least > most:
            message = f"The lower bound of CLAMP, {least}, is above the upper one, {most}."
            raise refused(VALUE_TYPE, message, at=part.at, hint="Write CLAMP(value, lower, upper).")
        return min(max(value, least), most)
    try:
        result = _TWO[part.function](*values)
    except OverflowError:
        result = math.inf
    is_too_large = abs(result) > _LARGEST if isinstance(result, int) else not math.isfinite(result)
    if is_too_large:
        message = f"{part.function}({values[0]}, {values[1]}) is larger than a number may be."
        raise refused(VALUE_TYPE, message, at=part.at, hint=_TOO_LARGE)
    return result


def _no_number(
    part: s.Calculation, one: s.JsonValue | s.Path | s.Calculation, value: Any, was: Mapping[str, Any]
) -> KipRefused:
    what = f"?{one.variable}.{'.'.join(one.parts)}" if isinstance(one, s.Path) else "a part of it"
    message = f"{part.function} takes numbers; {what} of {was.get('name') or was['id']} is {kind_of(value)}."
    return refused(VALUE_TYPE, message, at=one.at, hint="Narrow WHERE down.")
