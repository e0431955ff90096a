"""Numbers and lists as sentences have them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kbcore.secrets import masked
from kbcore.text.escaping import in_quotes

_TO_IES: Final = re.compile(r"(?<=[^aeiou])y$")
_HISSING: Final = ("ch", "s", "sh", "x")


def pluralize(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files`` or ``2 more entities``; ``noun`` is one of them, with the words before it."""
    if number == 1:
        return f"1 {noun}"
    plural = _TO_IES.sub("ies", noun)
    return f"{number} {plural}{'' if plural != noun else 'es' if noun.endswith(_HISSING) else 's'}"


def with_full_stop(text: str) -> str:
    """Return a text as a sentence: with a full stop, unless it ends with a mark that ends one."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def no_status_of(status: str, type_name: str) -> str:
    """Return the sentence of a problem of a file with a status that its type does not have."""
    return f"{in_quotes(status)} is no status of a {type_name}."


def is_or_are(number: int) -> str:
    """Return the verb for so many."""
    return "is" if number == 1 else "are"


def it_or_them(number: int) -> str:
    """Return the pronoun for so many, as an object."""
    return "it" if number == 1 else "them"


def one_of(names: Sequence[str]) -> str:
    """Return names as a choice: ``a, b or c``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def some_of(names: Sequence[str], most: int, number: int = 0) -> str:
    """Return the first so many of some names, and how many more there are: ``a, b and 3 more``.

    ``number`` is how many there are where ``names`` has only the first of them.
    """
    left = max(len(names), number) - len(names[:most])
    return ", ".join(names[:most]) + (f" and {left} more" if left else "")


def more_problems(number: int) -> str:
    """Return a sentence on the problems besides the one that is shown, with a space in front; nothing without any."""
    return f" {pluralize(number, 'more problem')} {is_or_are(number)} listed." if number else ""


def more_without_effect(number: int, *, is_more: bool = True) -> str:
    """Return a sentence on the suppressions without effect that are not shown, besides others if ``is_more``."""
    what = "more suppression" if is_more else "suppression"
    return f"{pluralize(number, what)} {'has' if number == 1 else 'have'} no effect."


def shortened(text: str, most_chars: int) -> str:
    """Return the beginning of a text that has more characters than these, with an ellipsis for the rest.

    For sentences; what is to fit columns of a terminal is cut where lines are laid out. A secret is masked before the
    cut, after which nothing recognizes it.
    """
    return text if len(text) <= most_chars else f"{masked(text)[:most_chars]}…"


def in_lines(first: int, second: int) -> str:
    """Return in which lines something is twice, for a sentence; in a flow style both may be in one line."""
    return f"both in line {first}" if first == second else f"in line {first} and in line {second}"
