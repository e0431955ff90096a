"""What was read of a base by key, as long as the base is the same: a base never changes, so it stays true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from kbcore.model.graph import Link, Node

E = TypeVar("E", Node, Link)
_MOST: Final = 2000
"""Elements that are remembered; one takes a kibibyte or two."""


class RowCache(Generic[E]):
    """The elements of one table that were read last, and keys under which there is none."""

    def __init__(self) -> None:
        self._known: dict[str, E | None] = {}

    def get(self, keys: Sequence[str], read: Callable[[Sequence[str]], Iterable[E]]) -> list[E]:
        """Return the elements with these keys, as far as they exist; ``read`` is asked for those not known yet."""
        missing = [key for key in keys if key not in self._known]
        if len(keys) > _MOST:
            return list(read(keys))
        if missing:
            if len(self._known) + len(missing) > _MOST:
                self._known = {key: self._known[key] for key in keys if key in self._known}
            self._known |= dict.fromkeys(missing)
            self._known |= {element.id: element for element in read(missing)}
        return [element for key in keys if (element := self._known[key]) is not None]

    def clear(self) -> None:
        """Forget everything: there is another base."""
        self._known.clear()
