"""Which file keeps each id, when several state it or one begins to; and which files state something no more. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kbcore.extract.facts import Facts
from kbcore.model import CLIENT
from kbcore.state import State


class Reading(msgspec.Struct, frozen=True):
    """One file as it was read just now: SHA-256 of its content, the extractor, and what it states."""

    path: str
    hash: str
    extractor: str
    facts: Facts


def claims_of(readings: Sequence[Reading], gone: frozenset[str], state: State) -> dict[str, str]:
    """Return the file that keeps each stated id: the one that has it as long as it states it, else the first."""
    stated = {reading.path: {entity.id for entity in reading.facts.entities} for reading in readings}
    partial = {reading.path for reading in readings if not reading.facts.is_complete}
    claims: dict[str, str] = {}
    for reading in readings:
        for entity in reading.facts.entities:
            node = state.nodes.get(entity.id)
            holder = node.path if node else CLIENT
            is_held = holder and holder not in gone
            if is_held and holder in stated and holder not in partial:
                is_held = entity.id in stated[holder]
            claims.setdefault(entity.id, holder if is_held else reading.path)
    return claims


def lost_owners(
    readings: Sequence[Reading], gone: frozenset[str], state: State, claims: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """Return, for each node, the files that stated something of it and do so no more."""
    whole = {
        reading.path: {one.id for one in reading.facts.entities} for reading in readings if reading.facts.is_complete
    }
    return {
        key: frozenset(
            owner
            for owner in set(node.owners.values())
            if owner in gone or (owner in whole and (key not in whole[owner] or claims.get(key) != owner))
        )
        for key, node in state.nodes.items()
        if node.owners
    }
