"""What came after the base, as values: found by key without SQL, and before it is loaded into tables. No database here.

An element that the tail knows is never asked of the base; one that was removed is known as None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kbcore.model import Link, Node
from kbcore.state import Changes
from kbcore.view.fold import Entry
from kbcore.view.tables import ELEMENTS, files_of


class Tail:
    """The elements that records after the base changed, and the changesets of those records."""

    def __init__(self) -> None:
        self.elements: dict[str, dict[str, Any]] = {name: {} for name in ELEMENTS}
        self.changesets: dict[str, tuple[int, str]] = {}
        """Seq and digest of each, by its id."""
        self._at_end: dict[str, dict[str, None]] = {}
        self._called: dict[str, dict[str, None]] = {}

    def add(self, entry: Entry, changes: Changes) -> None:
        """Take in what one record changed."""
        for table, changed in (("node", changes.nodes), ("link", changes.links), ("source", changes.sources)):
            self.elements[table].update((change.key, change.after) for change in changed)
        for node_change in changes.nodes:
            if node_change.after is not None and "name" in node_change.after.fields:
                self._called.setdefault(node_change.after.fields["name"], {})[node_change.key] = None
        for change in changes.links:
            link = change.after or change.before
            if link is not None:
                self._at_end.setdefault(link.from_id, {})[link.id] = None
                self._at_end.setdefault(link.to_id, {})[link.id] = None
        self.changesets[entry.record.changeset_id] = (entry.seq, entry.record.digest)

    def split(self, table: str, keys: Iterable[str]) -> tuple[list[Any], list[str]]:
        """Return the elements that stand among these keys, and the keys that only the base can know."""
        known = self.elements[table]
        wanted = list(keys)
        found = [known[key] for key in wanted if known.get(key) is not None]
        return found, [key for key in wanted if key not in known]

    def named(self, names: Iterable[str]) -> list[Node]:
        """Return the nodes that somebody called by one of these names, as far as they stand in the tail."""
        wanted = set(names)
        keys = {key: None for name in wanted for key in self._called.get(name, ())}
        return [node for node in self.split("node", keys)[0] if node.fields.get("name") in wanted]

    def touching(self, ends: Iterable[str]) -> list[Link]:
        """Return the links that have one of these ids as an end, as far as they stand in the tail."""
        keys = {key: None for end in ends for key in self._at_end.get(end, ())}
        return self.split("link", keys)[0]

    def stated_by(self, table: str, paths: Collection[str]) -> set[str]:
        """Return the ids of the nodes or links of which one of these files states something."""
        wanted = set(paths)
        return {key for key, one in self.elements[table].items() if one is not None and wanted & files_of(one)}
