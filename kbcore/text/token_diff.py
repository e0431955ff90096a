"""Common stretches of two sequences of tokens. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple


class Stretch(NamedTuple):
    """A part of one text, and whether the other text has it at that place too."""

    text: str
    is_shared: bool


def stretches(
    old: Sequence[str], new: Sequence[str], *, autojunk: bool = False, least_alike: float = 0.0
) -> tuple[list[Stretch], list[Stretch]] | None:
    """Return the stretches of both sides; None where they are less alike than ``least_alike``.

    ``autojunk`` is that of ``SequenceMatcher``: faster for long texts, which then share less.
    """
    from difflib import SequenceMatcher  # noqa: PLC0415 - most commands compare nothing

    matcher = SequenceMatcher(None, old, new, autojunk=autojunk)
    if least_alike and matcher.ratio() < least_alike:
        return None
    steps = matcher.get_opcodes()
    return (
        [Stretch("".join(old[begin:end]), tag == "equal") for tag, begin, end, _, _ in steps],
        [Stretch("".join(new[begin:end]), tag == "equal") for tag, _, _, begin, end in steps],
    )


def shared_length(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many items two sequences begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
