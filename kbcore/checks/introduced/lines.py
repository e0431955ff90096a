"""The line in which a violation is stated in its file, as far as what the file states now shows it. Pure.

A file that is not what was judged shows nothing: its lines would be those of something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kbcore.extract.facts import Facts
from kbcore.rules import Violation
from kbcore.secrets import masked

_MAX_FILES: Final = 1000
"""The most files read for line numbers."""


def with_lines(violations: Iterable[Violation], facts_of: Callable[[str], Facts | None]) -> list[Violation]:
    """Return violations with their lines, counted from 1, where these are known.

    A line that the rule knows stays. ``facts_of`` returns what a file states, or None where that is not known.
    """
    known: dict[str, _Stated | None] = {}
    found = []
    for one in violations:
        line = one.line
        if one.source and not line:
            if one.source not in known and len(known) < _MAX_FILES:
                facts = facts_of(one.source)
                known[one.source] = _Stated(facts) if facts else None
            stated = known.get(one.source)
            line = _stated(one, stated) if stated else 0
        found.append(msgspec.structs.replace(one, line=line) if line != one.line else one)
    return found


class _Stated:
    """The facts of a file, found by their ids: one file may state thousands of entities, with as many violations."""

    def __init__(self, facts: Facts) -> None:
        self.entities = {one.id: one for one in reversed(facts.entities)}
        self.links: dict[str, dict[str, tuple[int, int]]] = {}
        """By subject and target, as values of violations have them: the place of the first such link in the file, and
        its line."""
        for place, link in enumerate(facts.links):
            if link.line:
                targets = self.links.setdefault(masked(link.subject), {})
                targets.setdefault(masked(link.target), (place, link.line))


def _stated(one: Violation, known: _Stated) -> int:
    """Return the line of a link between the ids of a violation, else of its field, else of its entity."""
    ids = {one.subject, *one.values}
    ends = (known.links[subject] for subject in ids if subject in known.links)
    links = [targets[id_] for targets in ends for id_ in ids if id_ in targets]
    if links:
        return min(links)[1]
    entity = known.entities.get(one.id)
    if entity is None:
        return 0
    inside = (name for name in entity.lines if one.field == name or one.field.startswith((f"{name}.", f"{name}[")))
    return entity.lines.get(max(inside, key=len, default="")) or entity.line
