"""The check of claims: ids, fields and values as a client could have written them. Pure.

A change file may be anybody's. What a changeset could not hold would be no value of the database.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.ids import check_id, is_link_id
from kbcore.model.claims.change import (
    CONFIRMED,
    DOCUMENT,
    SELF,
    AddMember,
    Claim,
    Create,
    EdgeRef,
    RedactedField,
    Ref,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
)
from kbcore.model.claims.derived import SETS
from kbcore.model.graph import CORE_FIELDS, OBJECT_FIELDS
from kbcore.model.values import field_problem, text_problem, value_problem
from kbcore.text.escaping import in_quotes

_OF_EDGES: Final = frozenset({"confidence", "created_at", "created_by", "updated_at"})
_OF_ENTITIES: Final = CORE_FIELDS.keys() - SETS - {"source"}
_DEEPEST: Final = 16
"""An edge may be about an edge, and so on; so deep at most."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def claim_fault(claim: Claim, known: Ref | None = None) -> str:
    """Return why no client can have made a claim, as the end of a sentence; "" where one can.

    ``known`` is a reference that was checked before.
    """
    if isinstance(claim, Create):
        return _id_fault(claim.id)
    fault = "" if claim.on == known else _ref_fault(claim.on)
    if fault:
        return fault
    if isinstance(claim, SetField | UnsetField):  # most are
        fault = _field_fault(claim.field, is_edge=isinstance(claim.on, EdgeRef))
        if fault or isinstance(claim, UnsetField) or claim.now is msgspec.UNSET:
            return fault
        return _value_fault(claim.field, claim.now)
    if isinstance(claim, AddMember | RemoveMember):
        return _set_fault(claim)
    if isinstance(claim, RedactedField):
        return "" if _DIGEST.fullmatch(claim.hash) else "a redacted claim has no SHA-256 in hexadecimal digits"
    if isinstance(claim, Rename):
        return _id_fault(claim.now)
    return ""


def _set_fault(claim: AddMember | RemoveMember) -> str:
    if isinstance(claim, AddMember) and isinstance(claim.on, EdgeRef) and claim.field == CONFIRMED:
        is_digest = claim.now is msgspec.UNSET or (isinstance(claim.now, str) and _DIGEST.fullmatch(claim.now))
        return "" if is_digest else "a confirmation is no SHA-256 in hexadecimal digits"
    if claim.field not in SETS or isinstance(claim.on, EdgeRef):
        return f"{in_quotes(claim.field[:60])} is no set"
    return "" if claim.now is msgspec.UNSET else _member_fault(claim.now)


def _id_fault(key: str) -> str:
    fault = check_id(key)
    return f"{in_quotes(key[:60])} is no id: {fault}" if fault else ""


def _ref_fault(ref: Ref, depth: int = 0) -> str:
    if isinstance(ref, EdgeRef):
        if depth >= _DEEPEST:
            return f"an edge is about edges more than {_DEEPEST} deep"
        if not _is_name(ref.type) or (ref.kind and not _is_name(ref.kind)):
            return f"{in_quotes(ref.type[:60])} is no type of an edge"
        return _ref_fault(ref.from_end, depth + 1) or _ref_fault(ref.to_end, depth + 1)
    if depth and is_link_id(ref.id) and {*ref.of} <= {DOCUMENT}:  # an edge that documents alone state
        return ""
    for one in ref.of:
        if one not in {SELF, DOCUMENT}:
            fault = _id_fault(one.partition(":")[2])
            if fault:
                return fault
    return _id_fault(ref.id)


def _field_fault(field: str, *, is_edge: bool) -> str:
    prefix, dot, key = field.partition(".")
    if dot and prefix in OBJECT_FIELDS:
        return "" if _is_name(key) else f"{in_quotes(field[:60])} is no field"
    known = _OF_EDGES if is_edge else _OF_ENTITIES
    return "" if field in known else f"{in_quotes(field[:60])} is no field that a client states"


def _value_fault(field: str, value: Any) -> str:
    fault = value_problem(value) if "." in field else field_problem(field, value)
    return f"{in_quotes(field[:60])} {fault.message}" if fault else ""


def _member_fault(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        return "a member of a set is no text"
    fault = text_problem(value)
    return f"a member of a set {fault.message}" if fault else ""


def _is_name(text: str) -> bool:
    return 0 < len(text) <= limits.MAX_NAME_CHARS and text.isprintable() and bool(text.strip())
