"""The aspects and percentages that ``kb coverage`` is given, and what is below them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kbcore.errors import InvalidQuery
from kbcore.model.schema import ASPECTS
from kbcore.query.coverage import CoverageGroup
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones

_PERCENT: Final = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_MOST: Final = 100


def read_aspects(words: Iterable[str]) -> tuple[str, ...]:
    """Return the aspects that were named, each once. Raises: ``InvalidQuery`` for another word."""
    return tuple(dict.fromkeys(_aspect("--lacks", word) for word in words))


def read_thresholds(words: Iterable[str]) -> dict[str, float]:
    """Return the least percentage of each aspect, of all where a word names none.

    Raises: ``InvalidQuery`` for what is no percentage or no aspect.
    """
    found: dict[str, float] = {}
    for word in words:
        name, sign, number = word.rpartition("=")
        if not _PERCENT.fullmatch(number) or float(number) > _MOST:
            hint = "For example `--fail-under 80` or `--fail-under verified=95`."
            raise InvalidQuery(f"--fail-under: {in_quotes(number)} is no percentage from 0 to 100.", hint=hint)
        found |= dict.fromkeys([_aspect("--fail-under", name)] if sign else ASPECTS, float(number))
    return found


def _aspect(option: str, word: str) -> str:
    if word not in ASPECTS:
        raise InvalidQuery(
            f"{option}: {in_quotes(word)} is none of {', '.join(ASPECTS)}.", hint=is_it(near_ones(word, ASPECTS))
        )
    return word


def too_low(total: CoverageGroup, thresholds: Mapping[str, float]) -> list[str]:
    """Return a sentence for each aspect that is below its percentage; what no requirement needs is never too low."""
    found = []
    for name, least in thresholds.items():
        tally = total.tallies[name]
        if tally.needed and tally.yes * 100 < least * tally.needed:
            found.append(f"{name}: {tally.percent:g} % is below {least:g} %.")
    return found
