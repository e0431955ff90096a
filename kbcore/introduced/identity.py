"""What makes two violations the same one: rule, id and what they say, apart from numbers that shift. Pure.

A line or a count may change while nothing new is wrong. A number within a word, as in REQ-7, is part of a name. At
which record something came to be wrong shifts too, and a state that is on no record has none to name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Final

from kbcore.rules import Violation

_NUMBER: Final = re.compile(r"(?<![\w./#-])\d+(?![\w#-]|[./]\w)")
"""A number that stands by itself. What follows a colon does, as a line after the name of its file."""

_AT_SEQ: Final = re.compile(r" at seq \d+\b")

_CHARS: Final = 32

Identity = tuple[str, str, str]


def identity(violation: Violation, names: Collection[str] = ()) -> Identity:
    """Return what a violation shares with itself at another time; numbers among ``names`` are names, not numbers."""
    said = _NUMBER.sub(lambda found: found[0] if found[0] in names else "#", _AT_SEQ.sub("", violation.message))
    return violation.rule, violation.id, said


def fingerprint(violation: Violation) -> str:
    """Return the identity of a violation as hex digits, the same in every run that knows nothing but the violation."""
    return hashlib.sha256("\0".join(identity(violation)).encode("utf-8", "surrogatepass")).hexdigest()[:_CHARS]


def numbers_in(violations: Iterable[Violation]) -> set[str]:
    """Return the numbers in messages that may be names after all: an entity may be called 42."""
    return {number for one in violations for number in _NUMBER.findall(one.message)}
