"""The former ids of entities, which go on to mean them: what `kb rename` leaves in ``attributes.former_ids``.

They are attributes like others, so that files can state them and other clones get them. Which they are is found once
for a view and kept up with each record that it takes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kbcore.model.graph import former_ids
from kbcore.model.state import Changes
from kbcore.view.tables import NODE, AskBase, node_of
from kbcore.view.tail import Tail

_OF_BASE: Final = f"""select {", ".join(NODE)} from base.node where contains(attributes, '"former_ids"')"""


class FormerIds:
    """The former ids of a branch at the seq of one view."""

    def __init__(self, ask_base: AskBase) -> None:
        self._ask_base = ask_base
        self._of: dict[str, tuple[str, ...]] | None = None
        """By the id of the entity."""
        self._holders: dict[str, str] | None = None

    def note(self, changes: Changes) -> None:
        """Take in what one record changed."""
        for change in changes.nodes:
            before, after = former_ids(change.before), former_ids(change.after)
            if (before or after) and self._of is not None:
                self._holders = None
                self._of.pop(change.key, None)
                if after:
                    self._of[change.key] = after

    def of(self, tail: Tail) -> Mapping[str, tuple[str, ...]]:
        """Return the former ids of each entity that has some; ``tail`` is what came after the base of the view."""
        if self._of is None:
            later = tail.elements["node"]
            found = {node.id: node for node in map(node_of, self._ask_base(_OF_BASE))}
            found = {key: node for key, node in found.items() if key not in later}
            found |= {key: node for key, node in later.items() if node is not None}
            self._of = {key: former for key, node in found.items() if (former := former_ids(node))}
        return self._of

    def stating(self, key: str, tail: Tail) -> list[str]:
        """Return the entities that have an id among their former ones, also where it is that of an entity now."""
        return sorted(one for one, former in self.of(tail).items() if key in former)

    def holders(self, tail: Tail) -> Mapping[str, str]:
        """Return the entity that each former id means; of several that claim one, the first in the order of ids."""
        if self._holders is None:
            names = sorted(self.of(tail).items(), reverse=True)
            self._holders = {one: key for key, former in names for one in former}
        return self._holders
