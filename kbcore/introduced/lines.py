"""The line in which a violation stands in its file, as far as what the file states now tells. Pure.

A file that is not what was judged tells nothing: its lines would be those of something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from kbcore.extract.facts import Facts
from kbcore.rules import Violation

_MAX_FILES: Final = 1000
"""So many files are looked into; nobody reads a report of more line by line."""


def lines_of(violations: Iterable[Violation], facts_of: Callable[[str], Facts | None]) -> dict[Violation, int]:
    """Return the lines, counted from 1; ``facts_of`` returns what a file states, or None where that is not known."""
    known: dict[str, _Stated | None] = {}
    lines: dict[Violation, int] = {}
    for one in violations:
        if not one.source:
            continue
        line = _said(one)
        if not line:
            if one.source not in known and len(known) < _MAX_FILES:
                facts = facts_of(one.source)
                known[one.source] = _Stated(facts) if facts else None
            stated = known.get(one.source)
            line = _stated(one, stated) if stated else 0
        if line:
            lines[one] = line
    return lines


class _Stated:
    """What a file states, found by its ids: one file may state thousands of entities, with as many violations."""

    def __init__(self, facts: Facts) -> None:
        self.entities = {one.id: one for one in reversed(facts.entities)}
        self.links: dict[str, dict[str, tuple[int, int]]] = {}
        """By subject and target: the place of the first such link in the file, and its line."""
        for place, link in enumerate(facts.links):
            if link.line:
                self.links.setdefault(link.subject, {}).setdefault(link.target, (place, link.line))


def _said(one: Violation) -> int:
    """Return the line that the message itself begins with."""
    found = (
        re.match(r":(\d{1,9}):", one.message.removeprefix(one.source)) if one.message.startswith(one.source) else None
    )
    return int(found[1]) if found else 0


def _stated(one: Violation, known: _Stated) -> int:
    """Return the line of the link that the message speaks of, else of the field, else of the entity."""
    words = set(re.split(r"[\s,;`]+|[.:]+(?:\s|$)", one.message))
    ends = (known.links[subject] for subject in {one.id, *words} if subject in known.links)
    links = [targets[word] for targets in ends for word in words if word in targets]
    if links:
        return min(links)[1]
    entity = known.entities.get(one.id)
    if entity is None:
        return 0
    fields = (name for name in entity.lines if f"`{name}`" in one.message)
    return next((entity.lines[name] for name in fields if entity.lines[name]), entity.line)
