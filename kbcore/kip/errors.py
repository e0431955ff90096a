"""The error codes of KIP, and how a refusal is reported in KIP's own shape. Pure.

There is one tree of errors: what KIP refuses is a ``KipRefused``, whose data holds the KIP code and, once the text is
known, the place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.errors import KipRefused
from kbcore.errors.remedies import for_shell
from kbcore.kip.places import excerpt, place_of


class Code(msgspec.Struct, frozen=True):
    """One error code: its number and name, when it is raised, and the remedy where none more exact is known."""

    code: str
    name: str
    meaning: str
    hint: str


SYNTAX: Final = Code(
    "KIP_1001",
    "InvalidSyntax",
    "The text is no KIP command, or a placeholder or an identity is used in a way that KIP does not know.",
    "Correct the command at the place that is named; DESCRIBE SYNTAX shows every form with an example.",
)
IDENTIFIER: Final = Code(
    "KIP_1002",
    "InvalidIdentifier",
    "Kept for identifiers; KB answers KIP_1001 for them, as other engines do.",
    "Write names with letters, digits and _ of ASCII, not beginning with a digit.",
)
TYPE_MISMATCH: Final = Code(
    "KIP_2001",
    "TypeMismatch",
    "A concept type or a predicate is not defined.",
    "Look the name up with DESCRIBE CONCEPT TYPES or DESCRIBE PROPOSITION TYPES, or define it first.",
)
CONSTRAINT: Final = Code(
    "KIP_2002",
    "ConstraintViolation",
    "The write would break what the schema demands.",
    "Look the type up with DESCRIBE CONCEPT TYPE and send what it demands.",
)
VALUE_TYPE: Final = Code(
    "KIP_2003",
    "InvalidValueType",
    "An attribute has a value of another kind than the schema demands.",
    "Send the value in the kind that the message names.",
)
REFERENCE: Final = Code(
    "KIP_3001",
    "ReferenceError",
    "A variable is used that nothing binds, or a handle before its block.",
    "Bind the variable in WHERE, or put the block that defines the handle in front of its use.",
)
NOT_FOUND: Final = Code(
    "KIP_3002",
    "NotFound",
    "What the command names does not exist.",
    "Look for it with SEARCH or FIND, or write it first.",
)
DUPLICATE: Final = Code(
    "KIP_3003",
    "DuplicateExists",
    "Something that must be one of its kind would be there twice, or several are found where one is meant.",
    "Name one element by its type and name, or by its id.",
)
IMMUTABLE: Final = Code(
    "KIP_3004",
    "ImmutableTarget",
    "The element is protected.",
    "Leave it as it is; nothing of the command was done.",
)
VERSION: Final = Code(
    "KIP_3005",
    "VersionConflict",
    "The element was changed since the version that EXPECT VERSION names.",
    "Read the element again and send the command with its version.",
)
TIMEOUT: Final = Code(
    "KIP_4001",
    "ExecutionTimeout",
    "The command took longer than the limit, or was interrupted.",
    "Ask for less: a more exact type or name, a smaller LIMIT, fewer hops.",
)
RESOURCE: Final = Code(
    "KIP_4002",
    "ResourceExhausted",
    "The command, a part of it, or its result is larger than KB takes.",
    "Split the command into smaller ones, or ask for less with LIMIT.",
)
INTERNAL: Final = Code(
    "KIP_4003",
    "InternalError",
    "An internal error of KB.",
    "What was acknowledged is safe; report the failure.",
)
CODES: Final = (
    *(SYNTAX, IDENTIFIER, TYPE_MISMATCH, CONSTRAINT, VALUE_TYPE, REFERENCE, NOT_FOUND, DUPLICATE, IMMUTABLE, VERSION),
    *(TIMEOUT, RESOURCE, INTERNAL),
)


def refused(
    code: Code,
    message: str,
    *,
    at: int | None = None,
    expected: Sequence[str] = (),
    hint: str = "",
    data: Mapping[str, Any] | None = None,
) -> KipRefused:
    """Return the error for a command that is refused.

    ``at`` is the offset of the place in the text, ``expected`` the forms that were allowed there, ``hint`` one
    sentence with the remedy (the code's own where it is empty), ``data`` what else a program may want to know.
    """
    members: dict[str, Any] = {"kip_code": code.code, "kip_name": code.name}
    members |= {"offset": at} if at is not None else {}
    members |= {"expected": list(expected)} if expected else {}
    return KipRefused(message, hint=hint or code.hint, data={**members, **(data or {})})


def placed(error: KipRefused, text: str) -> KipRefused:
    """Return the error with the line and column of its offset; one that has none, or has them, stays as it is."""
    at = error.data.get("offset")
    if at is None or "line" in error.data:
        return error
    place = place_of(text, at)
    data = {**error.data, "line": place.line, "column": place.column, "excerpt": excerpt(text, at)}
    message = f"{error.message.rstrip('.')} ({place})."
    return KipRefused(message, hint=error.remedy, details=error.details, data=data, says_first=error.says_first)


@contextlib.contextmanager
def placing(text: str) -> Iterator[None]:
    """Give what is refused inside its place in the text. Raises: ``KipRefused``."""
    try:
        yield
    except KipRefused as error:
        if (better := placed(error, text)) is error:
            raise
        raise better from None


def envelope(error: KipRefused, say: Callable[[str], str] = for_shell) -> dict[str, Any]:
    """Return the answer that KIP gives to a command that is refused; ``say`` words its remedies for the client."""
    data = dict(error.data)
    code, name = data.pop("kip_code"), data.pop("kip_name")
    members = {"code": code, "message": error.message, "hint": say(error.remedy), "name": name}
    if "problems" in data:
        data["problems"] = [one | {"hint": say(one["hint"])} if "hint" in one else one for one in data["problems"]]
    return {"error": {**members, "data": data} if data else members}
