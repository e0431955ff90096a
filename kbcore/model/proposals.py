"""Facts that wait for a person to accept them, kept as metadata of the element that they are about. Pure.

An element that such a write created has ``MARK``. What it changes of any other element is not written into the field:
``proposed.FIELD`` in the metadata holds the value, and the field keeps its own until somebody accepts it. So whoever
reads fields, as rules do, reads what was accepted. These are fields of clients like others: they are in the journal,
are undone, are shared, and are merged as claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kbcore.ids import link_id
from kbcore.model.graph import (
    CLIENT,
    PROPOSED,
    STAMPS,
    Link,
    Node,
    former_ids_of,
    is_contested_note,
    is_proposed,
    is_proposed_mark,
    proposed_mark,
)
from kbcore.model.record import ConfirmLink, DropNode, EdgeOperation, Operation, PutNode, StateLink, WithdrawLink
from kbcore.model.state import Changes, ElementChange

KEY: Final = PROPOSED
MARK: Final = proposed_mark("")
ELEMENT: Final = ""
"""In place of a field: that the element exists."""
DELETED: Final = "deleted"
"""In place of a field: that the element goes."""
E = TypeVar("E", Node, Link)

_OF_EDGES: Final = frozenset({*STAMPS, "created_by"})

ANY: Final = f"contains(metadata, '\"{KEY}')"
"""A condition that every row has of which anything is proposed, and few others."""
_MARKS: Final = f"list_filter(json_keys(metadata), lambda one: one = '{KEY}' or starts_with(one, '{KEY}.'))"
_NULLS: Final = f"to_json(map({_MARKS}, list_transform({_MARKS}, lambda one: null)))"
WITHOUT_MARKS: Final = f"if({ANY}, json_merge_patch(metadata, {_NULLS}), metadata)"
"""The metadata of a row without what says that something is proposed."""


def of_node(alias: str) -> str:
    """Return the condition that an entity is proposed, on a row of ``node`` under a name."""
    true = f"coalesce(json_extract({alias}.metadata, '$.{KEY}') = 'true'::json, false)"
    return f"({alias}.path = '' and {true})"


def of_link(prefix: str) -> str:
    """Return the condition that an edge is proposed, on a row of ``link`` under a name, "" for none."""
    dot = f"{prefix}." if prefix else ""
    true = f"coalesce(json_extract({dot}metadata, '$.{KEY}') = 'true'::json, false)"
    return f"(len({dot}files) = 0 and {true})"


OF_LINK: Final = of_link("")
"""The condition that an edge is proposed, on a row of ``link``."""
OF_NODE: Final = of_node("node")
"""The condition that an entity is proposed, on a row of ``node``."""


def may_be_proposed(metadata: str) -> bool:
    """Tell whether an element is marked that no file states; ``metadata`` is its metadata as JSON."""
    return f'"{KEY}"' in metadata and msgspec.json.decode(metadata).get(KEY) is True


def accepted_changes(changes: Changes) -> Changes:
    """Return changes without what is proposed: such an element is not there on that side."""

    def accepted(found: tuple[ElementChange[E], ...]) -> tuple[ElementChange[E], ...]:
        return tuple([one for each in found if (one := _accepted(each)).before is not None or one.after is not None])

    return msgspec.structs.replace(changes, nodes=accepted(changes.nodes), links=accepted(changes.links))


def _accepted(one: ElementChange[E]) -> ElementChange[E]:
    if not (is_proposed(one.before) or is_proposed(one.after)):
        return one
    sides = (None if is_proposed(side) else side for side in (one.before, one.after))
    return ElementChange(one.key, *sides)


class Proposals(NamedTuple):
    """The operations of a write of which something is only proposed, and how much that is.

    ``confirmations`` are confirmations of edges that were left out: they would say that somebody has looked.
    """

    ops: tuple[Operation, ...]
    elements: int
    fields: int
    confirmations: int


class NotProposable(Exception):
    """The id of an entity that a write renames, accepts or stops accepting, which is no proposal; what it does."""


def as_proposals(ops: Iterable[Operation], changes: Changes, covers: Callable[[str], bool]) -> Proposals:
    """Return a client's operations as proposals of what types of entities and edges ``covers``.

    ``changes`` is what the operations change. What is proposed already is changed and removed as it is written.

    Raises: ``NotProposable``.
    """
    made = _Making({one.key: one for one in changes.nodes}, {one.key: one for one in changes.links}, covers)
    ops = tuple(ops)
    made.dropped |= {op.id for op in ops if type(op) is DropNode}
    found: list[Operation] = []
    elements = fields = confirmations = 0
    for op in ops:
        kept = made.proposal(op)
        if kept is not None:
            found.append(kept)
        if (type(kept) is PutNode or type(kept) is StateLink) and kept is not op:
            elements += MARK in kept.set
            fields += sum(name != MARK for name in kept.set if is_proposed_mark(name))
        confirmations += kept is None and type(op) is ConfirmLink
    return Proposals(tuple(found), elements, fields, confirmations)


class _Making:
    """The proposals of one write, by what it changes."""

    def __init__(
        self,
        nodes: Mapping[str, ElementChange[Node]],
        links: Mapping[str, ElementChange[Link]],
        covers: Callable[[str], bool],
    ) -> None:
        self._nodes = nodes
        self._links = links
        self._covers = covers
        self.dropped: set[str] = set()

    def proposal(self, op: Operation) -> Operation | None:
        """Return what becomes of an operation; None for nothing. Raises: ``NotProposable``."""
        if type(op) is PutNode:
            change = self._nodes.get(op.id)
            is_covered = change is not None and op.src == CLIENT and self._covers(_type_of(change))
            return _put(op, change, self.dropped) if change is not None and is_covered else op
        if type(op) is DropNode:
            node = _before(self._nodes.get(op.id))
            is_free = node is None or node.owners or is_proposed(node) or not self._covers(node.type)
            return op if is_free else PutNode(op.id, op.base, {proposed_mark(DELETED): {"value": True}})
        if not isinstance(op, EdgeOperation) or not self._covers(op.type):
            return op
        link = self._links.get(link_id(op.type, op.kind, op.from_id, op.to_id))
        if type(op) is ConfirmLink:
            return op if is_proposed(_before(link)) else None
        if op.src != CLIENT or link is None:  # it changes nothing
            return op
        return _state(op, link.before) if type(op) is StateLink else self._withdraw(op, link.before)

    def _withdraw(self, op: WithdrawLink, was: Link | None) -> Operation:
        if was is None or is_proposed(was) or any(self._goes(end) for end in (was.from_id, was.to_id)):
            return op
        mark = {proposed_mark(DELETED): {"value": True}}
        return StateLink(op.type, op.from_id, op.to_id, op.base, op.kind, mark)

    def _goes(self, end: str) -> bool:
        """Tell whether an entity is removed that is only proposed: its edges go with it."""
        return end in self.dropped and is_proposed(_before(self._nodes.get(end)))


def _put(op: PutNode, change: ElementChange[Node], dropped: Collection[str]) -> PutNode | None:
    was = change.before
    if was is None:
        if change.after is not None and change.after.path != CLIENT:
            return op  # a file brings it
        if not {*dropped}.isdisjoint(former_ids_of(op.set)):
            raise NotProposable(op.id, "is renamed")
        return msgspec.structs.replace(op, set={**op.set, MARK: True})
    wanted, unset = _as_marks(op, was, {*STAMPS})
    return msgspec.structs.replace(op, set=wanted, unset=unset) if wanted or unset else None


def _state(op: StateLink, was: Link | None) -> StateLink | None:
    if was is None:
        return msgspec.structs.replace(op, set={**op.set, MARK: True})
    wanted, unset = _as_marks(op, was, _OF_EDGES)
    return msgspec.structs.replace(op, set=wanted, unset=unset) if wanted or unset else None


def _as_marks(
    op: PutNode | StateLink, was: Node | Link, left_out: Iterable[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what an operation on an element that exists sets and removes, once its values are proposals.

    Raises: ``NotProposable`` where it would decide whether the element is accepted.
    """
    if MARK in op.unset or (MARK in op.set and not is_proposed(was)):
        raise NotProposable(was.id, "is accepted" if MARK in op.unset else "is no longer accepted")
    if is_proposed(was):
        return op.set, op.unset
    skipped = {*left_out}
    wanted = {proposed_mark(name): {"value": value} for name, value in op.set.items() if not _is_kept(name, skipped)}
    wanted |= {proposed_mark(name): {} for name in op.unset if not _is_kept(name, skipped)}
    restored = {name: value for name, value in op.set.items() if is_proposed_mark(name)}
    unset = tuple(name for name in op.unset if is_proposed_mark(name) and name not in wanted)
    return {name: value for name, value in (restored | wanted).items() if was.fields.get(name) != value}, unset


def _is_kept(name: str, left_out: Iterable[str]) -> bool:
    return is_proposed_mark(name) or is_contested_note(name) or name in left_out


def _before(change: ElementChange[E] | None) -> E | None:
    return change.before if change is not None else None


def _type_of(change: ElementChange[Node]) -> str:
    """Return the type of an entity before a change, of a new one after it."""
    element = change.before or change.after
    return element.type if element else ""
