"""State that must be loaded before operations can be folded into it. Pure.

Invariant: folding into what was loaded so gives the same as folding into the whole state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.ids import is_link_id, link_id
from kbcore.model.record import (
    ConfirmLink,
    DropNode,
    ForgetSource,
    Operation,
    PutNode,
    ReadSource,
    StateLink,
    WithdrawLink,
)


class ReadSet(msgspec.Struct, frozen=True):
    """The rows to load before operations can be folded.

    ``nodes``, ``links`` and ``sources`` are keys; ``touching`` are the ids whose links, and links about these,
    may stand or fall. ``typed`` are nodes of which that is so only if they are not of the type given. The ends of every
    link that is loaded must be loaded too.
    """

    nodes: frozenset[str]
    links: frozenset[str]
    touching: frozenset[str]
    sources: frozenset[str]
    typed: Mapping[str, str] = {}
    enough_for: Sequence[Operation] = ()
    """Of what was loaded: the operations, as this very object, that are known to need no more than this."""

    def __or__(self, other: ReadSet) -> ReadSet:
        """Return what both need."""
        return ReadSet(
            self.nodes | other.nodes,
            self.links | other.links,
            self.touching | other.touching,
            self.sources | other.sources,
            {**self.typed, **other.typed},
        )

    def __sub__(self, other: ReadSet) -> ReadSet:
        """Return what this one needs and the other has not, for needs that no type decides."""
        return ReadSet(
            self.nodes - other.nodes,
            self.links - other.links,
            self.touching - other.touching,
            self.sources - other.sources,
        )

    def __bool__(self) -> bool:
        """Tell whether anything is needed at all."""
        return bool(self.nodes or self.links or self.touching or self.sources or self.typed)


NOTHING: Final = ReadSet(frozenset(), frozenset(), frozenset(), frozenset())


def needs(ops: Iterable[Operation]) -> ReadSet:
    """Return what the fold of these operations reads, also to prove that what they create is absent."""
    return _needs(ops, with_created=True)


def needs_of_fold(ops: Iterable[Operation]) -> ReadSet:
    """Return what the fold of operations of the journal reads: one that was made on nothing says so by itself."""
    return _needs(ops, with_created=False)


def _needs(ops: Iterable[Operation], *, with_created: bool) -> ReadSet:
    nodes: set[str] = set()
    links: set[str] = set()
    touching: set[str] = set()
    sources: set[str] = set()
    for op in ops:
        if type(op) is PutNode:
            if op.base == 0:
                touching.add(op.id)
            if with_created or op.base:
                nodes.add(op.id)
        elif type(op) is DropNode:
            nodes.add(op.id)
            touching.add(op.id)
        elif type(op) is StateLink or type(op) is WithdrawLink:
            key = link_id(op.type, op.kind, op.from_id, op.to_id)
            if with_created or op.base:
                links.add(key)
            touching.add(key)
            nodes.update((op.from_id, op.to_id))
            links.update(filter(is_link_id, (op.from_id, op.to_id)))
        elif type(op) is ConfirmLink:
            links.add(link_id(op.type, op.kind, op.from_id, op.to_id))
        elif type(op) is ReadSource or type(op) is ForgetSource:
            sources.add(op.path)
    return ReadSet(frozenset(nodes), frozenset(links), frozenset(touching), frozenset(sources))
