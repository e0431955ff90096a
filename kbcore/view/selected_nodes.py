"""Facts of the nodes that a view looks up often: those that define something, and those with former ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kbcore.model.graph import Node
from kbcore.model.state import Changes
from kbcore.view.tables import NODE, AskBase, node_of
from kbcore.view.tail import Tail

T = TypeVar("T")
D = TypeVar("D")


class SelectedNodes(Generic[T]):
    """Facts of some nodes at the seq of one view, by id: found by one statement, and updated with each record."""

    def __init__(
        self, ask_base: AskBase, condition: str, params: Sequence[Any], pick: Callable[[Node], T | None]
    ) -> None:
        """``pick`` returns what a node has, None for nothing; ``condition`` holds for each node of a base with that."""
        self._ask_base = ask_base
        self._asked = f"select {', '.join(NODE)} from base.node where {condition}", *params
        self._pick = pick
        self._found: dict[str, T] | None = None
        self._derived: tuple[object, Any] | None = None

    def note(self, changes: Changes) -> None:
        """Take in what one record changed."""
        if self._found is None:
            return
        for change in changes.nodes:
            before = None if change.before is None else self._pick(change.before)
            after = None if change.after is None else self._pick(change.after)
            if before is not None or after is not None:
                self._derived = None
                self._found.pop(change.key, None)
            if after is not None:
                self._found[change.key] = after

    def of(self, tail: Tail) -> Mapping[str, T]:
        """Return what each node has that has it; ``tail`` is what came after the base of the view."""
        if self._found is None:
            later = tail.elements["node"]
            nodes = {node.id: node for node in map(node_of, self._ask_base(*self._asked)) if node.id not in later}
            nodes |= {key: node for key, node in later.items() if node is not None}
            self._found = {key: has for key, node in nodes.items() if (has := self._pick(node)) is not None}
        return self._found

    def derived(self, tail: Tail, mark: object, make: Callable[[Mapping[str, T]], D]) -> D:
        """Return what is made of all that the nodes have, made again when that has changed, or for another mark."""
        found = self.of(tail)
        if self._derived is None or self._derived[0] is not mark:
            self._derived = mark, make(found)
        derived: D = self._derived[1]
        return derived
