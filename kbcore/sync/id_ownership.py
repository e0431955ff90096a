"""The file that owns each id, when several state it or one begins to; and files that no longer state it. Pure.

Of an entity that a file could not be read for, nothing is taken away on behalf of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from kbcore.extract.facts import Facts, StatedEntity
from kbcore.ids import check_id
from kbcore.model.graph import CLIENT, Node
from kbcore.model.state import State
from kbcore.text.problems import REPEATED_ID


class FileReading(msgspec.Struct, frozen=True):
    """One file as it was read just now: SHA-256 of its content, the extractor, and what it states."""

    path: str
    hash: str
    extractor: str
    facts: Facts


class HeldBack:
    """The entities that files were not read whole for: what is known of them from these files is kept."""

    def __init__(self, readings: Sequence[FileReading]) -> None:
        self._files = {one.path for one in readings if not one.facts.is_complete}
        self._ids = {one.path: set(one.facts.held_back) for one in readings if one.facts.held_back}
        self._titles = {one.path: set(one.facts.unidentified) for one in readings if one.facts.unidentified}
        self._stated: dict[str, set[str]] = {}
        self._repeating: set[str] = set()
        self._unreadable: set[str] = set()
        for reading in readings:
            codes = {one.code for one in reading.facts.problems if one.severity == "error"}
            if REPEATED_ID in codes:
                self._repeating.add(reading.path)
            if reading.facts.unidentified and codes != {REPEATED_ID}:
                self._unreadable.add(reading.path)
            stated = self._stated.setdefault(reading.path, set())
            for entity in reading.facts.entities:
                is_repeated = entity.id in stated
                if is_repeated:
                    self._ids.setdefault(reading.path, set()).add(entity.id)
                if is_repeated or check_id(entity.id):
                    (self._repeating if is_repeated else self._unreadable).add(reading.path)
                    # Its own id may be that of an entity which is known by this title.
                    title = entity.fields.get("title")
                    self._titles.setdefault(reading.path, set()).add(title if isinstance(title, str) else "")
                stated.add(entity.id)

    @property
    def unidentified(self) -> Collection[str]:
        """The files with entries of which the id could not be read."""
        return self._titles

    def how_to_identify(self, path: str) -> str:
        """Return what makes the entries of a file known by their ids, as a sentence without its stop."""
        what = ["whose ids cannot be read"] if path in self._unreadable else []
        what += ["that repeat an id"] if path in self._repeating else []
        return f"Correct the entries {' or '.join(what)}"

    def add(self, path: str, entity_id: str) -> None:
        """Hold an entity back, because of what was found later."""
        self._ids.setdefault(path, set()).add(entity_id)

    def is_partial(self, path: str) -> bool:
        """Return whether a file could not be read whole."""
        return path in self._files or path in self._ids or path in self._titles

    def has(self, path: str, entity_id: str, node: Node | None) -> bool:
        """Return whether nothing may be taken away from an entity on behalf of a file; ``node`` is what is known."""
        if path in self._files or entity_id in self._ids.get(path, ()):
            return True
        return node is not None and self.may_be_unidentified(path, node)

    def may_be_unidentified(self, path: str, node: Node) -> bool:
        """Return whether an entry of a file, whose id could not be read, may be this entity, not stated by it."""
        titles = self._titles.get(path, ())
        if not titles or node.id in self._stated[path] or path not in node.owners.values():
            return False
        return "" in titles or node.fields.get("title") in titles


def claims_of(
    readings: Sequence[FileReading],
    gone: frozenset[str],
    state: State,
    held: HeldBack,
    is_enough: Callable[[StatedEntity], bool],
) -> dict[str, str]:
    """Return the file that keeps each stated id: of several the first, in the order of paths, that states enough.

    The file that has it keeps it where that is not read now, or not whole.
    """
    stating: dict[str, dict[str, StatedEntity]] = {}
    for reading in readings:
        for entity in reading.facts.entities:
            if not entity.is_part:
                stating.setdefault(entity.id, {}).setdefault(reading.path, entity)
    read = {reading.path for reading in readings}
    claims: dict[str, str] = {}
    for key, files in stating.items():
        node = state.nodes.get(key)
        holder = node.path if node else CLIENT
        if holder and holder not in gone and (holder not in read or held.has(holder, key, node)):
            claims[key] = holder
        else:
            first = holder if holder in files else min(files)
            enough = (path for path in sorted(files) if len(files) == 1 or is_enough(files[path]))
            claims[key] = next(enough, first)
    return claims


def lost_owners(
    readings: Sequence[FileReading], gone: frozenset[str], state: State, claims: Mapping[str, str], held: HeldBack
) -> dict[str, frozenset[str]]:
    """Return, for each node, the files that stated something of it and do so no more."""
    stated = {reading.path: {one.id for one in reading.facts.entities} for reading in readings}
    parts = {(reading.path, one.id) for reading in readings for one in reading.facts.entities if one.is_part}

    def is_lost(owner: str, node: Node) -> bool:
        if owner not in stated or held.has(owner, node.id, node):
            return owner in gone
        return (owner, node.id) not in parts and (node.id not in stated[owner] or claims.get(node.id) != owner)

    return {
        key: frozenset(owner for owner in set(node.owners.values()) if is_lost(owner, node))
        for key, node in state.nodes.items()
        if node.owners
    }
