"""The revert of records: each of their changes undone, the newest first, from the view's history.

A file whose facts are changed by it is noted as not synced, so that the next sync reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from kbcore import progress
from kbcore.model import inverse
from kbcore.model.graph import FORMER_IDS, Link, Node, SyncedFile
from kbcore.model.read_set import NOTHING
from kbcore.model.renames import joined_link, paired, renamed_back, renamed_links
from kbcore.model.state import Changes, ElementChange, State
from kbcore.store.history.moved_files import followed, renamed
from kbcore.store.history.renames import LastKey, RenamesSince, back
from kbcore.store.history.shown import is_confirmed
from kbcore.store.history.undo_plan import Restoration
from kbcore.store.history.undo_units import RENAMED, LaterChange, UndoneElement, undone_link, undone_node
from kbcore.store.history.writers import WriterFilter, changes_by
from kbcore.view.history import LINKS, NODES, ElementTable, Later, later_changes
from kbcore.view.view import View

_WORDS: Final = {NODES.name: "entities", LINKS.name: "edges"}

E = TypeVar("E", Node, Link)
Undo = Callable[[ElementChange[E], E | None, Sequence[Later[E]]], UndoneElement[E]]


class _Against(NamedTuple):
    """Conflicts of an undo, and elements that need none because they are removed, with the records that did it."""

    conflicts: dict[tuple[int, str, str], LaterChange]
    gone: dict[str, int]

    def add(self, conflicts: Iterable[LaterChange]) -> None:
        """Add conflicts; a second one of the same record about the same field takes the place of the first."""
        self.conflicts.update({(one.seq, one.key, one.field): one for one in conflicts})


def reverted(view: View, seqs: Sequence[int], *, force: bool, writer: WriterFilter = WriterFilter()) -> Restoration:  # noqa: B008 - frozen
    """Return what undoing these records, newest first, comes to; ``force`` takes old values over newer ones.

    What was renamed since is undone under its present id. To undo a rename gives the earlier id back, and keeps what
    was written since. Where it was renamed again that is a conflict, also with ``force``. Of records that brought
    changes, only those of ``writer`` are undone where one is named.
    """
    changes = {seq: paired(one) for seq, one in changes_by(view, seqs, writer).items()}
    names = RenamesSince(view, min(seqs) - 1)
    against = _Against({}, {})
    for seq, one in changes.items():
        for node in one.nodes:
            if node.before and node.after and node.before.id != node.after.id:
                against.add(names.undo(seq, node.before.id, node.after.id))

    def undo_node(change: ElementChange[Node], now: Node | None, later: Sequence[Later[Node]]) -> UndoneElement[Node]:
        return undone_node(change, now, later, force=force)

    def undo_link(change: ElementChange[Link], now: Link | None, later: Sequence[Later[Link]]) -> UndoneElement[Link]:
        return undone_link(change, now, later, force=force)

    nodes = _Undoing(view, NODES, {seq: one.nodes for seq, one in changes.items()}, names)
    links = _Undoing(view, LINKS, {seq: one.links for seq, one in changes.items()}, names)
    found = Restoration(
        nodes=_with_earlier_ids(nodes.undone(undo_node, against), names),
        links=_with_earlier_ends(view, links.undone(undo_link, against), names),
        sources={},
        conflicts=[one for one in against.conflicts.values() if not force or one.change == RENAMED],
        restamped=nodes.restamped,
        has_confirmed=any(map(is_confirmed, chain.from_iterable(one.links for one in changes.values()))),
        gone=against.gone,
        changed_links=links.left,
        names=names,
    )
    elements = chain.from_iterable((*found.nodes.values(), *found.links.values()))
    found.changed_at = {**nodes.changed_at(), **links.changed_at()}
    found.changed_at |= {one.id: max(one.version, found.changed_at.get(one.id, 0)) for one in elements if one}
    found.sources = _sources(view, changes, found.files())
    return found


class _Undoing(Generic[E]):
    """The changes of one table that are undone, the newest first, each with what became of its element since."""

    def __init__(
        self, view: View, table: ElementTable[E], changes: Mapping[int, Sequence[ElementChange[E]]], names: RenamesSince
    ) -> None:
        self._table: ElementTable[E] = table
        self._changes: Mapping[int, Sequence[ElementChange[E]]] = changes
        self._names = names
        sides = [
            (element, at)
            for seq, part in changes.items()
            for one in part
            for element, at in ((one.before, seq - 1), (one.after, seq))
            if element is not None
        ]
        names.learn(element for element, _ in sides if isinstance(element, Link))
        keys = sorted(
            set[str]().union(*(names.keys(element.id, at) if names else {element.id} for element, at in sides))
        )
        self._later: dict[str, list[Later[E]]] = later_changes(view, table, keys, min(changes))
        self._now: dict[str, E] = {element.id: element for element in table.current(view, keys)}
        self.restamped = set[str]()
        """Entities of which the records changed nothing but the time of the update."""
        self.left: dict[str, E] = {}
        """Elements as the records left them."""

    def changed_at(self) -> dict[str, int]:
        """Return the last record that changed each of these elements, by key."""
        return {key: later[-1].seq for key, later in self._later.items()}

    def undone(self, undo: Undo[E], against: _Against) -> dict[str, tuple[E | None, E | None]]:
        """Return, by key, what there is now and what is wanted; what prevents it is added to ``against``."""
        wanted: dict[LastKey, E | None] = {}
        each = [(seq, change) for seq, part in self._changes.items() for change in part]
        for seq, change in progress.track(each, len(each), f"changes of {_WORDS[self._table.name]} undone"):
            begin = self._line(change.before.id, seq - 1) if change.before else None
            end = self._line(change.after.id, seq) if change.after else None
            line = end or begin
            if line is None:
                continue
            adapted, since = self._renamed_change(line, change, seq)
            if since and since[-1].after is None and change.before is None:
                against.gone[line.key] = since[-1].seq
            undone = undo(adapted, wanted.get(line, self._present(line)), since)
            against.add(undone.conflicts)
            wanted[line] = undone.wanted
            if begin and end and begin != end:  # the record renamed it, which is undone
                wanted[line] = None
                wanted[begin] = self._back(undone.wanted, adapted, wanted.get(begin, self._present(begin)), against)
                self._names.renamed.setdefault(seq, {})[line.key] = begin.key
        for line, element in wanted.items():
            if element is not None:
                against.add(self._names.taken(line))
        return {line.key: (self._now.get(line.key), element) for line, element in wanted.items() if not line.until}

    def _renamed_change(
        self, line: LastKey, change: ElementChange[E], seq: int
    ) -> tuple[ElementChange[E], list[Later[E]]]:
        """Return a change and those since by other records, under the names that all of it has now."""
        key, at = (change.after.id, seq) if change.after else (change.before.id, seq - 1) if change.before else ("", 0)
        later = [one for one in self._since(key, at) if one.seq > seq and one.seq not in self._changes]
        paths, since = followed(later)
        adapted = ElementChange(
            line.key,
            renamed(self._named(change.before, seq - 1), paths),
            renamed(self._named(change.after, seq), paths),
        )
        if adapted.after is not None:
            self.left.setdefault(line.key, adapted.after)
        before, after = adapted.before, adapted.after
        if isinstance(before, Node) and isinstance(after, Node) and _is_restamped(before, after):
            self.restamped.add(line.key)
        return adapted, since

    def _since(self, key: str, seq: int) -> list[Later[E]]:
        """Return each change of an element after a seq, under the key that it has now; a rename of it is one change."""
        if not self._names:
            return self._later.get(key, [])
        found: list[Later[E]] = []
        steps, line = self._names.path(key, seq, self._existed_before)
        for step in steps:
            removed = self._change(step.before, step.seq)
            added = self._change(step.after, step.seq)
            found += [one for one in self._later.get(step.before, ()) if seq < one.seq < step.seq]
            if removed or added:
                found.append(Later(step.seq, key, removed.before if removed else None, added.after if added else None))
            seq = step.seq
        rest = self._later.get(line.key, ())
        found += [one for one in rest if one.seq > seq and not 0 < line.until <= one.seq]
        named = self._named
        return [Later(one.seq, line.key, named(one.before, one.seq - 1), named(one.after, one.seq)) for one in found]

    def _named(self, element: E | None, seq: int) -> E | None:
        return None if element is None else self._names.named(element, seq)

    def _change(self, key: str, seq: int) -> Later[E] | None:
        return next((one for one in self._later.get(key, ()) if one.seq == seq), None)

    def _line(self, key: str, seq: int) -> LastKey:
        return self._names.path(key, seq, self._existed_before)[1] if self._names else LastKey(key)

    def _existed_before(self, key: str, seq: int) -> bool:
        """Tell whether an edge was there just before a record. An entity that another one is renamed to never was."""
        if self._table.name == NODES.name:
            return False
        later = next((one for one in self._later.get(key, ()) if one.seq >= seq), None)
        return later.before is not None if later else key in self._now

    def _present(self, line: LastKey) -> E | None:
        return None if line.until else self._now.get(line.key)

    def _back(self, element: E | None, adapted: ElementChange[E], there: E | None, against: _Against) -> E | None:
        """Return an element with the id that it had before a change; ``there`` is what has that id since."""
        if element is None or adapted.before is None:
            return there
        if isinstance(element, Link) and isinstance(adapted.before, Link):
            moved: Node | Link = back(element, adapted.before)
            if isinstance(moved, Link) and isinstance(there, Link):
                moved = joined_link(there, moved)
            return cast("E", moved)
        if there is not None:
            against.add([LaterChange(there.created_seq, there.id, "created")])
        return msgspec.structs.replace(element, id=adapted.before.id)


def _is_restamped(before: Node, after: Node) -> bool:
    return inverse.node_units(before) == inverse.node_units(after)


def _with_earlier_ids(
    nodes: dict[str, tuple[Node | None, Node | None]], names: RenamesSince
) -> dict[str, tuple[Node | None, Node | None]]:
    """Return what is wanted of entities with the earlier id for what was renamed, back and again since."""
    for rename in names.undone:
        now, node = nodes.get(rename.new, (None, None))
        if not rename.is_repeated or node is None:
            continue
        fields, former = dict(node.fields), renamed_back(node, rename.old, rename.former)
        fields.pop(FORMER_IDS, None)
        fields |= {FORMER_IDS: list(former)} if former else {}
        owners = {name: owner for name, owner in node.owners.items() if name in fields}
        there = nodes.get(rename.old, (None, None))[0]
        nodes[rename.old] = there, msgspec.structs.replace(node, id=rename.old, fields=fields, owners=owners)
        nodes[rename.new] = now, None
    return nodes


def _with_earlier_ends(
    view: View,
    links: dict[str, tuple[Link | None, Link | None]],
    names: RenamesSince,
) -> dict[str, tuple[Link | None, Link | None]]:
    """Return what is wanted of edges with those that were made since a rename that is undone, under the earlier id."""
    if not names.undone:
        return links
    ends = frozenset(key for one in names.undone for key in (one.old, one.new))
    now = dict(view.gather(msgspec.structs.replace(NOTHING, touching=ends)).links)
    now |= {key: link for key, (link, _) in links.items() if link}
    wanted = {key: link for key, link in now.items() if key not in links}
    wanted |= {key: link for key, (_, link) in links.items() if link}
    changed = set(links)
    for rename in names.undone:
        made = State(links=[link for link in wanted.values() if link.created_seq > rename.seq])
        for before, after in renamed_links(made, {rename.new: rename.old, **names.renamed.get(rename.seq, {})}):
            there = wanted.get(after.id)
            wanted[after.id] = joined_link(there, after) if there else after
            del wanted[before.id]
            changed |= {before.id, after.id}
    return {key: (now.get(key), wanted.get(key)) for key in sorted(changed)}


def _sources(
    view: View, changes: Mapping[int, Changes], touched: Sequence[str]
) -> dict[str, tuple[SyncedFile | None, SyncedFile | None]]:
    """Return what is to be noted of each file: what was before, or that its content is not the present one."""
    paths = sorted({*touched, *(change.key for one in changes.values() for change in one.sources)})
    now = {source.path: source for source in view.sources(paths)}
    wanted: dict[str, SyncedFile | None] = {path: now.get(path) for path in paths}
    for one in changes.values():
        for change in one.sources:
            if wanted[change.key] == change.after:
                wanted[change.key] = change.before
    for path in touched:
        noted = wanted[path]
        if noted is None and path not in now:
            wanted[path] = SyncedFile(path, "", _extractor(view, path), is_ok=True, problems=(), version=0)
        elif noted is not None and noted is now.get(path):
            wanted[path] = msgspec.structs.replace(noted, hash="")
    return {path: (now.get(path), wanted[path]) for path in paths}


def _extractor(view: View, path: str) -> str:
    rows: list[tuple[Any, ...]] = view.rows(
        "select extractor from source_history where path = ? order by ended desc limit 1", [path]
    )
    return str(rows[0][0]) if rows else ""
