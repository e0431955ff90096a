"""Values of ``--where``: a number whatever its spelling, a time as the span that it names. Pure.

Text is compared exactly, but for text that spells a number or a time; ``3.0`` finds the number 3, also where a
document spells it ``3``, and ``2026-01-31`` every instant of that day, in UTC where no zone is given with it. Who knows
the present time and the zone of the person who asks reads words such as ``yesterday``, and local times, with
``history.when``.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Final

import msgspec

from kbcore.clock import text_of
from kbcore.model.values import normal_time

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
_CLOCK: Final = re.compile(r"\d\d:\d\d(?P<seconds>:\d\d(?:\.(?P<fraction>\d+))?)?")
_RELATIVE: Final = re.compile(
    r"now|today|yesterday|tomorrow|last (?:week|month|year)|\w{1,6} (?:second|minute|hour|day|week|month|year)s? ago"
)
_MOST_DIGITS: Final = 20
"""Digits of the largest whole number that a value may be."""


class Number(msgspec.Struct, frozen=True):
    """A number: as a float, and as the digits of a whole number where it is one that a value may be."""

    real: float
    whole: str = ""


def number_of(text: str) -> Number | None:
    """Return the number that a text spells, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    exact = Decimal(text)
    is_whole = exact.adjusted() < _MOST_DIGITS and exact == exact.to_integral_value()
    return Number(float(text), str(int(exact)) if is_whole else "")


def is_relative_time(text: str) -> bool:
    """Return whether a text names a time that depends on the present one, such as ``today`` and ``2 days ago``."""
    return bool(_RELATIVE.fullmatch(text.lower()))


def span_of(text: str) -> tuple[str, str] | None:
    """Return the first instant that a time names and the first one after it, or None when the text is no time.

    A date is its day, a time without seconds its minute, and so on; both are in the form that is kept.
    """
    begin = normal_time(text)
    if begin is None:
        return None
    clock = _CLOCK.search(text)
    if clock is None:
        length = dt.timedelta(days=1)
    elif clock["seconds"] is None:
        length = dt.timedelta(minutes=1)
    else:
        length = dt.timedelta(microseconds=10 ** (6 - min(len(clock["fraction"] or ""), 6)))
    try:
        end = dt.datetime.fromisoformat(begin) + length
    except OverflowError:
        return begin, "99999"
    return begin, text_of(end)
