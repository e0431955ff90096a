"""The grammar of the values of fields, the same for clients and for files."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.model.graph import CORE_FIELDS
from kbcore.text.wording import shortened

_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)?)?")
_URL: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://|mailto:)\S+", re.IGNORECASE)
_SCRIPTS: Final = frozenset({"javascript", "vbscript", "data"})
"""Schemes whose URLs run or hold what whoever opens them did not ask for."""
_ROOTED: Final = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
_TEXT_ONLY: Final = frozenset({str})
_LARGEST_EXACT: Final = 2**63 - 1
_SHORT_CHARS: Final = limits.MAX_TEXT_BYTES // 8
"""As many characters are within the limit whatever they are, escaped or not; a printable one is no NUL and no half of
a surrogate pair."""
YEARS: Final = "in a year from 0001 to 9999"
"""The format of a time, in words."""
"""Earlier years are not written with four digits everywhere."""


class ValueFault(msgspec.Struct, frozen=True):
    """The fault of a value: a stable code, the end of a sentence that begins with the field, a remedy."""

    code: str
    message: str
    hint: str = ""


def text_problem(text: str) -> ValueFault | None:
    """Return what is wrong with a text value, or None."""
    if is_short(text):
        return None
    if "\0" in text:
        return ValueFault("bad_text", "holds a NUL character", "Remove the NUL.")
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        return ValueFault("bad_text", "holds half of a surrogate pair", "Send whole Unicode characters.")
    if length > limits.MAX_TEXT_BYTES:
        hint = "Keep long text in a document and point at it with `text_ref`."
        return ValueFault("too_long", f"is {length} bytes long; the limit is {limits.MAX_TEXT_BYTES}", hint)
    return None


def is_short(text: str) -> bool:
    """Tell whether a text is so short and plain that ``text_problem`` finds nothing wrong with it, alone or in JSON."""
    return len(text) <= _SHORT_CHARS and text.isprintable()


def value_problem(value: Any, depth: int = 0) -> ValueFault | None:
    """Return what is wrong with a JSON value, however deep, or None."""
    if depth > limits.MAX_DEPTH:
        return ValueFault("too_deep", f"is nested deeper than {limits.MAX_DEPTH} levels", "Flatten it.")
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ValueFault("bad_number", "holds a number that JSON does not know (NaN or infinity)", "Leave it out.")
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return ValueFault("bad_number", "holds a whole number beyond 64 bits", "Send it as text.")
    if isinstance(value, dict | list):
        return _container_problem(value, depth)
    if value is None or isinstance(value, bool | int | float):
        return None
    return ValueFault("wrong_type", f"holds {type(value).__name__}, which JSON does not know")


def _container_problem(value: dict[Any, Any] | list[Any], depth: int) -> ValueFault | None:
    members: list[Any] = list(value) if isinstance(value, list) else [*value.keys(), *value.values()]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or not key or len(key) > limits.MAX_NAME_CHARS:
                hint = f"Use text of 1 to {limits.MAX_NAME_CHARS} characters."
                return ValueFault(
                    "bad_name", f"has a member whose name cannot be used: {shortened(str(key), 40)!r}", hint
                )
    for member in members:
        fault = value_problem(member, depth + 1)
        if fault:
            return fault
    if depth == 0 and len(msgspec.json.encode(value)) > limits.MAX_VALUE_BYTES:
        return ValueFault("too_long", f"is larger than {limits.MAX_VALUE_BYTES} bytes as JSON", "Split it.")
    return None


def field_problem(name: str, value: Any) -> ValueFault | None:
    """Return what is wrong with the value of a core field of an entity or an edge, or None."""
    if name == "confidence":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            return ValueFault("wrong_type", "must be a number from 0 to 1")
        return None
    kind = CORE_FIELDS.get(name, "text")
    if kind == "list":
        return _list_problem(value)
    if not isinstance(value, str):
        return ValueFault("wrong_type", "must be text", "Put it in quotes.")
    if kind == "time" and normal_time(value) is None:
        return ValueFault(
            "bad_time", f"is no time: {shortened(value, 40)!r}", "Use RFC 3339, e.g. 2026-01-31T12:00:00Z."
        )
    if name in {"type", "title", "status", "name"} and not value.strip():
        return ValueFault("missing_field", "is empty", "Give it a value.")
    return text_problem(value)


def _list_problem(value: Any) -> ValueFault | None:
    if not isinstance(value, list) or not _TEXT_ONLY.issuperset(map(type, value)):
        return ValueFault("wrong_type", "must be a list of text", 'For example ["auth", "needs review"].')
    if len(value) > limits.MAX_TAGS:
        return ValueFault("too_long", f"has {len(value)} entries; the limit is {limits.MAX_TAGS}")
    return None if is_short("".join(value)) else value_problem(value)


def meaning_problem(name: str, value: Any) -> ValueFault | None:
    """Return why a core field of an entity cannot mean what it says, its value being well formed, or None.

    A client is refused; of a file, what can be kept is kept.
    """
    if name == "tags":
        if not all(tag.strip() for tag in value):
            return ValueFault("empty", "holds an empty tag", "Leave it out.")
        twice = (
            next((tag for at, tag in enumerate(value) if tag in value[:at]), "") if len({*value}) < len(value) else ""
        )
        return ValueFault("duplicate", f"holds {shortened(twice, 40)!r} twice", "Keep one.") if twice else None
    if name == "links":
        wrong = next((url for url in value if not is_url(url)), None)
        hint = "For example https://example.org/a. An entity is linked by an edge, a document by `text_ref`."
        return None if wrong is None else ValueFault("bad_url", f"holds what is no URL: {shortened(wrong, 80)!r}", hint)
    if name == "text_ref" and (_ROOTED.match(value) or ".." in re.split(r"[/\\]", value.partition("#")[0])):
        hint = "Name a file from the top of the repository, such as docs/login.md#errors."
        return ValueFault("bad_path", f"leads out of the repository: {shortened(value, 80)!r}", hint)
    return None


def is_url(text: str) -> bool:
    """Tell whether a text is a URL that may be followed: one with ``//``, or of mail; never a script."""
    found = _URL.fullmatch(text)
    return found is not None and (found[1] or "").lower() not in _SCRIPTS


def is_same(old: Any, new: Any) -> bool:
    """Tell whether two JSON values are one, as they are written: 1 is neither true nor 1.0."""
    return msgspec.json.encode(old, order="sorted") == msgspec.json.encode(new, order="sorted")


def normal_time(text: str) -> str | None:
    """Return a time as RFC 3339 in UTC with microseconds, or None when the text is no time.

    A date alone is its first instant; a time without an offset is taken as UTC.
    """
    import datetime as dt  # noqa: PLC0415 - most commands never see a time typed by a person

    found = _TIME.fullmatch(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, offset = found.groups()
    try:
        day_start = dt.datetime(int(year), int(month), int(day), tzinfo=dt.UTC)
        microseconds = int(((fraction or ".0")[1:] + "000000")[:6])
        moment = day_start.replace(
            hour=int(hour or 0), minute=int(minute or 0), second=int(second or 0), microsecond=microseconds
        )
        if offset and offset not in "Zz":
            sign = -1 if offset[0] == "+" else 1
            digits = offset[1:].replace(":", "")
            moment += sign * dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    except (ValueError, OverflowError):
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
