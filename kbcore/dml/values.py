"""Values of JSON as terms of Prolog, and the types that outputs of tasks have. Pure.

Texts are strings, objects are dicts, ``true``, ``false`` and ``null`` are atoms. The way back is
``logic/engine/prolog/values.pl``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore.logic.engine.terms import atom, listed
from kbcore.logic.engine.terms import value as plain_term

MAX_VALUE_NESTING: Final = 200
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_DIGITS: Final = 4_000
_MANY_DIGITS: Final = f"it is a number with more than {_MAX_DIGITS:,} digits"
_TOO_LARGE: Final = 10**_MAX_DIGITS
_SIMPLE: Final[dict[str, dict[str, Any]]] = {
    "any": {},
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
}
_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
}
_LIST: Final = "list("


class NotAValue(ValueError):
    """The given value is no value of JSON."""


def term_of(given: Any, nesting: int = MAX_VALUE_NESTING) -> str:
    """Return a value as the text of a term.

    Raises:
        NotAValue: it has a type that JSON does not have, or is nested too deeply.
    """
    if nesting == 0:
        raise NotAValue(f"it is nested more than {MAX_VALUE_NESTING} times")
    if isinstance(given, Mapping):
        pairs = ",".join(f"{atom(str(key))}:{term_of(one, nesting - 1)}" for key, one in given.items())
        return f"_{{{pairs}}}"
    if isinstance(given, (list, tuple)):
        return listed(term_of(one, nesting - 1) for one in given)
    if isinstance(given, float) and not math.isfinite(given):
        raise NotAValue("it is a number that JSON does not have")
    if isinstance(given, int) and abs(given) >= _TOO_LARGE:
        raise NotAValue(_MANY_DIGITS)
    if given is None or isinstance(given, (str, bool, int, float)):
        return plain_term(given)
    raise NotAValue(f"it is of the type {type(given).__name__}")


def fault_of(given: Any) -> str:
    """Return why a value cannot be a term, "" where it can."""
    try:
        term_of(given)
    except NotAValue as error:
        return str(error)
    return ""


def integer_of(text: str) -> int:
    """Return the integer that a text of JSON is. Raises: ``NotAValue`` for one that no term can be."""
    if len(text) > _MAX_DIGITS + 1:  # with a sign; Python itself refuses some more digits
        raise NotAValue(_MANY_DIGITS)
    return int(text)


def builtins_of(given: Any) -> Any:
    """Return a value as dicts, lists, texts, numbers, booleans and None.

    Raises:
        NotAValue: it has a part that cannot be.
    """
    dump = getattr(given, "model_dump", None)  # of a pydantic model
    try:
        return msgspec.to_builtins(dump(mode="json") if dump is not None else given, str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotAValue(str(error)) from error


def read_number(text: str) -> str | int | float:
    """Return the number that a text is, or the text; one that would be written otherwise stays a text (`007`)."""
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return text
    if text.lstrip("-").isdigit():
        return int(text) if text != "-0" else text
    number = float(text)
    return number if math.isfinite(number) else text


def schema_of_type(type_: str) -> dict[str, Any]:
    """Return the JSON Schema of the type of an output: `string`, `list(integer)`, `any`, ..."""
    if type_.startswith(_LIST):
        return {"type": "array", "items": schema_of_type(type_[len(_LIST) : -1])}
    return _SIMPLE[type_]


def is_of_type(given: Any, type_: str) -> bool:
    """Tell whether a value has the type of an output."""
    if type_.startswith(_LIST):
        return isinstance(given, list) and all(is_of_type(one, type_[len(_LIST) : -1]) for one in given)
    if type_ == "any":
        return True
    if isinstance(given, bool):
        return type_ == "boolean"
    return isinstance(given, _PYTHON[type_])


def text_of(given: Any) -> str:
    """Return a value as a text for a model: texts as they are, all else as JSON."""
    return given if isinstance(given, str) else msgspec.json.encode(given).decode("utf-8")
