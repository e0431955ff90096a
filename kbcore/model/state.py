"""The elements at one seq as a working set, what a record changed of them, and what is planned on them. Plain data.

For a full replay a ``State`` starts empty and holds everything; for one changeset it is loaded with the elements that
``read_set`` names. ``folding.apply`` alone changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar

import msgspec

from kbcore.model.graph import Link, Node, SyncedFile
from kbcore.model.read_set import NOTHING, ReadSet
from kbcore.model.record import ChangeOperation, Operation
from kbcore.model.schema import LINK

E = TypeVar("E")
S = TypeVar("S", Node, Link, SyncedFile)
_TIMES: Final = ("created_at", "updated_at")
_SEQS: Final = ("created_seq", "version")


class Stamp(msgspec.Struct, frozen=True):
    """The stamp of a record on all that it changes, and the session that writes it."""

    seq: int
    at: str
    actor: str
    source: str
    session: str = ""


class ElementChange(msgspec.Struct, Generic[E], frozen=True, gc=False):
    """One element before and after a record; None where it does not exist."""

    key: str
    before: E | None
    after: E | None


class Changes(msgspec.Struct, frozen=True):
    """Everything that one record changed, each element once, in the order of the first change."""

    nodes: tuple[ElementChange[Node], ...] = ()
    links: tuple[ElementChange[Link], ...] = ()
    sources: tuple[ElementChange[SyncedFile], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything changed at all."""
        return bool(self.nodes or self.links or self.sources)


def without_hidden(changes: Changes) -> Changes:
    """Return changes without those of hidden entities."""
    shown = [one for one in changes.nodes if not any(node and node.is_hidden for node in (one.before, one.after))]
    return msgspec.structs.replace(changes, nodes=tuple(shown))


class StateReads(msgspec.Struct, frozen=True):
    """All that a plan took from the state: the same plan comes of every state that has the same of this.

    ``needs`` are the elements, by key, with all links at the ids that it names as ``touching``; ``paths`` are the files
    whose facts were asked for (None: those of any file). Of ``types`` every entity was asked for. What the branch
    defines of types is always part of it.
    """

    needs: ReadSet
    paths: frozenset[str] | None = None
    types: frozenset[str] = frozenset()


class EncodedChanges(msgspec.Struct, frozen=True):
    """The result of a changeset on an empty state, where it is too much to be held as values.

    ``operations`` reads the operations in their order, as JSON, some in each piece. ``row_files`` has by table the
    files with the rows of the view, a line of JSON each, which stay for as long as the draft is used; of the table of
    links, those in ``replaced`` have another row, in one of ``replacing_files``.
    """

    operations: Callable[[], Iterable[bytes]]
    vocabulary: int
    created: tuple[str, ...]
    """The ids of the entities, in order."""
    edges: int
    row_files: Mapping[str, tuple[str, ...]]
    row_bytes: int
    """The length of the longest row."""
    replaced: tuple[str, ...] = ()
    replacing_files: tuple[str, ...] = ()


class Draft(msgspec.Struct, frozen=True):
    """The result of a planner: the operations, what they change, and what was ``loaded`` of the state to find that.

    ``reads`` is everything that was asked of the state, also beside what was loaded; None: nobody can tell. With
    ``encoded``, that has the operations and the changes, and the plan is for the beginning of a branch alone.
    """

    ops: tuple[Operation, ...]
    changes: Changes
    loaded: ReadSet
    unchanged: tuple[str, ...] = ()
    edges_unchanged: int = 0
    warnings: tuple[str, ...] = ()
    reads: StateReads | None = None
    encoded: EncodedChanges | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to record: nothing changes, and no change of a client came or went."""
        return self.encoded is None and not self.changes and not any(isinstance(op, ChangeOperation) for op in self.ops)


def restamped(changes: Changes, old: Stamp, new: Stamp) -> Changes:
    """Return changes as folding makes them with another stamp, on a state that has the same of all that was read."""

    def again(changed: tuple[ElementChange[S], ...]) -> tuple[ElementChange[S], ...]:
        return tuple(
            [ElementChange(one.key, one.before, one.after and _restamped(one.after, old, new)) for one in changed]
        )

    return Changes(again(changes.nodes), again(changes.links), again(changes.sources))


def _restamped(element: S, old: Stamp, new: Stamp) -> S:
    # The object itself came from the stamp; a client may have stated an equal time, which stays.
    times = {name: new.at for name in _TIMES if getattr(element, name, None) is old.at}
    seqs = {name: new.seq for name in _SEQS if getattr(element, name, None) == old.seq}
    return msgspec.structs.replace(element, **times, **seqs)


class State:
    """The elements at one seq, by key, and which links have an id as an end. Changed only by ``apply``."""

    def __init__(
        self, nodes: Iterable[Node] = (), links: Iterable[Link] = (), sources: Iterable[SyncedFile] = ()
    ) -> None:
        self.nodes: dict[str, Node] = {node.id: node for node in nodes}
        self.links: dict[str, Link] = {}
        self.sources: dict[str, SyncedFile] = {source.path: source for source in sources}
        self.loaded: ReadSet = NOTHING
        """The keys that a working set was loaded for; a whole state has all."""
        self._at_end: dict[str, dict[str, None]] | None = None
        """The links at each end. Made when it is first asked for: a replay that only adds needs none."""
        self._unresolved: dict[str, dict[str, None]] = {}
        """Those of them that are not resolved."""
        for link in links:
            self.put_link(link)

    def copied(self) -> State:
        """Return another state with the same elements."""
        return State(self.nodes.values(), self.links.values(), self.sources.values())

    def exists(self, end: str) -> bool:
        """Tell whether an id names a node, or a resolved link."""
        if end in self.nodes:
            return True
        link = self.links.get(end)
        return link is not None and link.is_resolved

    def type_of(self, end: str) -> str:
        """Return the type of what an id names: an entity's own, ``link`` for a resolved edge, "" for nothing."""
        node = self.nodes.get(end)
        if node:
            return node.type
        return LINK if self.exists(end) else ""

    def links_of(self, end: str) -> list[Link]:
        """Return the links that have this id as an end, in a stable order."""
        if self._at_end is None:
            self._at_end = {}
            for link in self.links.values():
                _note_ends(self._at_end, link)
        return [self.links[key] for key in self._at_end.get(end, ())]

    def unresolved_at(self, end: str) -> Iterable[str]:
        """Return the keys of the links that have this id as an end and are not resolved."""
        return self._unresolved.get(end, ())

    def put_link(self, link: Link) -> None:
        """Set a link. For ``apply`` alone."""
        old = self.links.get(link.id)
        self.links[link.id] = link
        if old is None and self._at_end is not None:
            _note_ends(self._at_end, link)
        if not link.is_resolved:
            _note_ends(self._unresolved, link)
        elif old is not None and not old.is_resolved:
            _forget_ends(self._unresolved, link)

    def drop_link(self, link: Link) -> None:
        """Remove a link. For ``apply`` alone."""
        del self.links[link.id]
        if self._at_end is not None:
            _forget_ends(self._at_end, link)
        if not link.is_resolved:
            _forget_ends(self._unresolved, link)


def _note_ends(at_end: dict[str, dict[str, None]], link: Link) -> None:
    for end in (link.from_id, link.to_id):
        known = at_end.get(end)
        if known is None:
            at_end[end] = {link.id: None}
        else:
            known[link.id] = None


def _forget_ends(at_end: dict[str, dict[str, None]], link: Link) -> None:
    for end in (link.from_id, link.to_id):
        known = at_end.get(end)
        if known is not None:
            known.pop(link.id, None)
            if not known:
                del at_end[end]
