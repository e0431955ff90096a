"""What makes two violations the same one: the key of the baseline, and the words where there are no values. Pure.

Where a rule gives values, these say what is wrong, and the message counts for nothing. Where it gives none, as a rule
of the project's own and a file that cannot be read, the message does. A line or a count in it may change while nothing
new is wrong. A number within a word, as in REQ-7, is part of a name. At which record something came to be wrong shifts
too, and a state that is on no record has none to name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kbcore.rules import Violation
from kbcore.rules.accepted import BaselineEntry, key_of, with_present_id

_NUMBER: Final = re.compile(r"(?<![\w./#-])\d+(?![\w#-]|[./]\w)")
"""A number that stands by itself. What follows a colon does, as a line after the name of its file."""

_AT_SEQ: Final = re.compile(r" at seq \d+\b")

_CHARS: Final = 32


class Identity(NamedTuple):
    """What a violation shares with itself at another time. ``words`` is empty where its values say what is wrong."""

    key: BaselineEntry
    words: str = ""
    line: int = 0


def identity(violation: Violation, names: Collection[str] = ()) -> Identity:
    """Return what a violation shares with itself at another time; numbers among ``names`` are names, not numbers."""
    if violation.values:
        return Identity(key_of(violation))
    said = _NUMBER.sub(lambda found: found[0] if found[0] in names else "#", _AT_SEQ.sub("", violation.message))
    return Identity(key_of(violation), said)


def exact(violation: Violation) -> Identity:
    """Return what tells apart violations of one identity: the line, and the numbers in the words, if these count."""
    return Identity(key_of(violation), "" if violation.values else violation.message, violation.line)


def renamed(violation: Violation, present: Mapping[str, str]) -> Identity:
    """Return what a violation shares with itself under other ids; messages hold the ids, so none is used."""
    return Identity(with_present_id(key_of(violation), present))


def fingerprint(violation: Violation) -> str:
    """Return the identity of a violation as hex digits, the same in every run that knows nothing but the violation."""
    key, words, _ = identity(violation)
    parts = (key.rule, key.id, key.code, key.field, *key.values, words)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_CHARS]


def numbers_in(violations: Iterable[Violation]) -> set[str]:
    """Return the numbers in words that count and that may be names after all: an entity may be called 42."""
    return {number for one in violations if not one.values for number in _NUMBER.findall(one.message)}
