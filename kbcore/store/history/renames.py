"""The ids that entities and edges had before renames: which element each means now, and what it said under its new id.

A rename that is undone is left out, as if it had not been: its entity has the earlier id again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec

from kbcore.ids import is_link_id, link_id
from kbcore.model.graph import FORMER_IDS, Link, Node, former_ids
from kbcore.model.renames import renamed_in, renamed_links
from kbcore.model.state import ElementChange, State
from kbcore.store.history.undo_units import RENAMED, LaterChange
from kbcore.view.history import nodes_changed
from kbcore.view.view import View

E = TypeVar("E", Node, Link)

_PARTS: Final = """select type, kind, from_id, to_id from link where id = $1
union all select type, kind, from_id, to_id from link_history where id = $1 order by 1 limit 1"""


class LastKey(NamedTuple):
    """The later name of an element: the key now; or the last one, and the rename that gave it to another one since."""

    key: str
    until: int = 0


class RenameStep(NamedTuple):
    """One rename of an element: the record, and the keys before and after it."""

    seq: int
    before: str
    after: str


class UndoneRename(NamedTuple):
    """A rename that is undone: the record, the ids before and after it, and the former ids before it.

    ``is_repeated``: it was undone and made again since. Then it is not left out, ``seq`` is 0, and what has the later
    id now gets the earlier one.
    """

    seq: int
    old: str
    new: str
    former: tuple[str, ...]
    is_repeated: bool


def net_renames(view: View, since: int) -> dict[str, str]:
    """Return the id at a seq of each entity that was renamed since, by its last id; the last renamed comes first.

    An entity that is not there any more has the last id that it had. What came later, and what has an id that another
    entity has now, is left out. Raises: ``HistoryPruned``.
    """
    begun: dict[tuple[str, int], str] = {}
    """The id at the seq by the last id and the record that gave it, in the order of the records."""
    for seq, nodes in _renaming(view, since).items():
        before = {one.key: one.before for one in nodes if one.before is not None}
        for new, old in renamed_in(nodes).items():
            created_seq = before[old].created_seq
            first = begun.pop((old, created_seq), old if created_seq <= since else "")
            if first:
                begun[new, seq] = first
    keys = {key for key, _ in begun} | {*begun.values()}
    now = {node.id: node.created_seq for node in view.nodes(sorted(keys))}
    found: dict[str, str] = {}
    for (new, seq), first in reversed(begun.items()):
        if now.get(new, seq) == seq and first not in {new, *now}:
            found.setdefault(new, first)
    return found


def _renaming(view: View, since: int) -> dict[int, tuple[ElementChange[Node], ...]]:
    """Return the entities that each record after a seq changed which renamed some. Raises: ``HistoryPruned``."""
    rows = view.rows("select seq from record where seq > ? and renamed > 0 order by seq", [since])
    return nodes_changed(view, [row[0] for row in rows]) if rows else {}


class RenamesSince:
    """The renames after a seq, without those that are undone."""

    def __init__(self, view: View, since: int) -> None:
        """Raises: ``HistoryPruned``."""
        self._view = view
        self._renames: dict[tuple[int, str], ElementChange[Node]] = {}
        """Each rename, by its record and the later id."""
        self._events: dict[str, list[tuple[int, str]]] = {}
        """By id, in order: the records that took it from an entity or gave it to one, with the id of the entity."""
        self._parts: dict[str, tuple[str, str, str, str] | None] = {}
        self.undone: list[UndoneRename] = []
        """The newest first."""
        self.renamed: dict[int, dict[str, str]] = {}
        """By the record of an undone rename, the ids before it of the edges that it renamed, by those after it."""
        for seq, nodes in _renaming(view, since).items():
            by_key = {one.key: one for one in nodes}
            for new, old in renamed_in(nodes).items():
                self._renames[seq, new] = ElementChange(new, by_key[old].before, by_key[new].after)
                for key in (old, new):
                    self._events.setdefault(key, []).append((seq, new))

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._events)

    def without_undone(self, state: State) -> State:
        """Return a state in which the renames that are undone were never made."""
        if not self.undone:
            return state
        ids: dict[str, str] = {}
        for one in self.undone:
            earlier = {one.new: one.old, **self.renamed.get(one.seq, {})}
            ids = earlier | {new: earlier.get(old, old) for new, old in ids.items()}
        pairs = renamed_links(state, ids)
        moved = {before.id for before, _ in pairs}
        nodes = [msgspec.structs.replace(node, id=ids.get(node.id, node.id)) for node in state.nodes.values()]
        links = [link for link in state.links.values() if link.id not in moved]
        return State(nodes, [*links, *(after for _, after in pairs)])

    def undo(self, seq: int, old: str, new: str) -> list[LaterChange]:
        """Leave out a rename; return the later ones that prevent it. One that was undone already is no conflict."""
        steps, line = self.path(new, seq)
        if line == LastKey(new):
            for key in (old, new) if not steps else ():
                self._events[key] = [one for one in self._events[key] if one != (seq, new)]
            former = former_ids(self._renames[seq, new].before)
            self.undone.append(UndoneRename(0 if steps else seq, old, new, former, is_repeated=bool(steps)))
            return []
        found = [LaterChange(one.seq, one.before, RENAMED, before=one.before, after=one.after) for one in steps]
        return [] if line == LastKey(old) else [*found, *self.taken(line)]

    def taken(self, line: LastKey) -> list[LaterChange]:
        """Return the renames that gave the last key of an element, or the end of an edge, to another entity."""
        if not line.until:
            return []
        if is_link_id(line.key) and (parts := self._parts_of(line.key)):
            return [one for end in parts[2:] for one in self.taken(LastKey(end, line.until))]
        change = self._renames.get((line.until, line.key))
        before = change.before.id if change and change.before else ""
        return [LaterChange(line.until, before, RENAMED, before=before, after=line.key)] if before else []

    def path(
        self, key: str, after: int, existed: Callable[[str, int], bool] = lambda _key, _seq: False
    ) -> tuple[list[RenameStep], LastKey]:
        """Return each rename of an element after a seq, and what it became.

        ``existed`` tells whether an edge was there just before a record that gave one of its ends to an entity.
        """
        steps: list[RenameStep] = []
        while (found := self._next(key, after)) is not None:
            after, new = found
            if new != key:
                steps.append(RenameStep(after, key, new))
            elif not existed(key, after):
                return steps, LastKey(key, after)
            key = new
        return steps, LastKey(key)

    def named(self, element: E, seq: int) -> E:
        """Return an element as it was after a record as if it had always had the key that it has now."""
        if not self:
            return element
        if isinstance(element, Link):
            ends = {"from_id": self._name(element.from_id, seq), "to_id": self._name(element.to_id, seq)}
            key = link_id(element.type, element.kind, *ends.values())
            said = [msgspec.structs.replace(one, said=self._name(one.said, seq)) for one in element.statements]
            return msgspec.structs.replace(element, id=key, statements=tuple(sorted(said)), **ends)
        node: Node = element
        for step in self.path(element.id, seq)[0]:
            node = msgspec.structs.replace(_with_former(node, self._renames[step.seq, step.after]), id=step.after)
        return node

    def earlier(self, key: str) -> set[str]:
        """Return the key that an element has now, and each one that it may have had."""
        found, new = set[str](), {key}
        while new:
            found |= new
            new = {before for one in new for before in self._before(one)} - found
        return found

    def _before(self, key: str) -> list[str]:
        """Return the keys that an element may have had just before it got this one."""
        parts = self._parts_of(key) if is_link_id(key) else None
        if parts is None:
            renames = [self._renames[seq, new].before for seq, new in self._events.get(key, ()) if new == key]
            return [node.id for node in renames if node]
        name, kind, begin, end = parts
        ends = [*((one, end) for one in self._before(begin)), *((begin, one) for one in self._before(end))]
        found = {link_id(name, kind, *pair): (name, kind, *pair) for pair in ends}
        self._parts |= found
        return [*found]

    def keys(self, key: str, after: int) -> set[str]:
        """Return each key that an element had after a seq."""
        steps, line = self.path(key, after, lambda _key, _seq: True)
        return {key, line.key, *(one.after for one in steps)}

    def learn(self, links: Iterable[Link]) -> None:
        """Take in the ends of edges, so that they need not be read."""
        self._parts |= {one.id: (one.type, one.kind, one.from_id, one.to_id) for one in links}

    def _name(self, key: str, seq: int) -> str:
        return self.path(key, seq, lambda _key, _seq: True)[1].key

    def _next(self, key: str, after: int) -> tuple[int, str] | None:
        """Return the next rename after a seq that concerns a key, and the key afterwards."""
        parts = self._parts_of(key) if is_link_id(key) else None
        if parts is None:
            return next((one for one in self._events.get(key, ()) if one[0] > after), None)
        name, kind, *ends = parts
        found = [self._next(end, after) for end in ends]
        seq = min((one[0] for one in found if one), default=None)
        if seq is None:
            return None
        begin, end = (one[1] if one and one[0] == seq else end for one, end in zip(found, ends, strict=True))
        new = link_id(name, kind, begin, end)
        self._parts[new] = (name, kind, begin, end)
        return seq, new

    def _parts_of(self, key: str) -> tuple[str, str, str, str] | None:
        """Return type, kind and ends of an edge; None for one that never was."""
        if key not in self._parts:
            rows = self._view.rows(_PARTS, [key])
            self._parts[key] = (rows[0][0], rows[0][1], rows[0][2], rows[0][3]) if rows else None
        return self._parts[key]


def _with_former(node: Node, rename: ElementChange[Node]) -> Node:
    """Return an entity as it was before a rename with the former ids that the rename gave it."""
    was, then, mine = former_ids(rename.before), former_ids(rename.after), former_ids(node)
    ids = [*(one for one in mine if one in then or one not in was), *(one for one in then if one not in {*was, *mine})]
    if ids == list(mine):
        return node
    fields, owners = dict(node.fields), dict(node.owners)
    fields.pop(FORMER_IDS, None)
    owner = owners.pop(FORMER_IDS, "") if mine else (rename.after.owners.get(FORMER_IDS, "") if rename.after else "")
    if ids:
        fields[FORMER_IDS] = ids
        owners |= {FORMER_IDS: owner} if owner else {}
    return msgspec.structs.replace(node, fields=fields, owners=owners)


def back(link: Link, wanted: Link) -> Link:
    """Return an edge with the id and the ends of another one, which it had before a rename."""
    ids: Mapping[str, str] = {link.from_id: wanted.from_id, link.to_id: wanted.to_id}
    said = (msgspec.structs.replace(one, said=ids.get(one.said, one.said)) for one in link.statements)
    return msgspec.structs.replace(
        link,
        id=wanted.id,
        from_id=wanted.from_id,
        to_id=wanted.to_id,
        statements=tuple(sorted(said)),
        created_seq=wanted.created_seq,
    )
