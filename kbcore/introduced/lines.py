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
    known: dict[str, Facts | None] = {}
    lines: dict[Violation, int] = {}
    for one in violations:
        if not one.source:
            continue
        line = _said(one)
        if not line:
            if one.source not in known and len(known) < _MAX_FILES:
                known[one.source] = facts_of(one.source)
            facts = known.get(one.source)
            line = _stated(one, facts) if facts else 0
        if line:
            lines[one] = line
    return lines


def _said(one: Violation) -> int:
    """Return the line that the message itself begins with."""
    found = (
        re.match(r":(\d{1,9}):", one.message.removeprefix(one.source)) if one.message.startswith(one.source) else None
    )
    return int(found[1]) if found else 0


def _stated(one: Violation, facts: Facts) -> int:
    """Return the line of the link that the message speaks of, else of the field, else of the entity."""
    words = set(re.split(r"[\s,;`]+|[.:]+(?:\s|$)", one.message))
    for link in facts.links:
        if link.line and link.target in words and (link.subject == one.id or link.subject in words):
            return link.line
    entity = next((entity for entity in facts.entities if entity.id == one.id), None)
    if entity is None:
        return 0
    fields = (name for name in entity.lines if f"`{name}`" in one.message)
    return next((entity.lines[name] for name in fields if entity.lines[name]), entity.line)
