"""What the revert of records wants: each of their changes undone, the newest first, from the view's history.

A file whose facts are changed by it is noted as not taken in, so that the next sync reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kbcore import inverse, progress
from kbcore.history.moves import followed, renamed
from kbcore.history.planned import Wanted
from kbcore.history.shown import is_confirmed
from kbcore.history.undone import RENAMED, Conflict, Undone, undone_link, undone_node
from kbcore.model import Link, Node, SourceFile
from kbcore.planning.findings import edge_words
from kbcore.renames import moved_links, renamed_in
from kbcore.state import Change, Changes
from kbcore.view.past import LINKS, NODES, Later, Table, changes_of, later_changes
from kbcore.view.view import View

_WORDS: Final = {NODES.name: "entities", LINKS.name: "edges"}

E = TypeVar("E", Node, Link)
Undo = Callable[[Change[E], E | None, Sequence[Later[E]]], Undone[E]]


class _Renames:
    """The renames since: what became of the elements that undone records changed and that are gone."""

    def __init__(self, view: View, undone: Mapping[int, Changes]) -> None:
        rows = view.rows("select seq from record where seq > ? and renamed > 0", [min(undone) - 1])
        self._view, self._undone = view, undone
        self._seqs = {row[0] for row in rows}
        self._by_seq: dict[int, Mapping[str, Node | Link]] = {}
        self._own = {(old, new.id) for seq in self._seqs & undone.keys() for old, new in self._at(seq).items()}
        self._said = set[int]()

    def conflicts(self, table: Table[E], key: str, seq: int) -> list[Conflict]:
        """Return the renames, from the one at this seq on, that an element has its present id from.

        None where its last removal is no rename, where it was removed under another id, and where the undone records
        renamed it themselves. Of an edge none either where an entity has the same rename against it.
        """
        if table.name == LINKS.name and seq in self._said:
            return []
        found: list[Conflict] = []
        name, words, is_there = key, key, False
        while not is_there:
            new = self._at(seq).get(name) if seq in self._seqs else None
            if new is None:
                return []
            found.append(Conflict(seq, key, RENAMED, before=words, after=new))
            name, words = new.id, edge_words(new) if isinstance(new, Link) else new.id
            if not (is_there := bool(table.current(self._view, [name]))):
                seq = later_changes(self._view, table, [name], seq)[name][-1].seq
                is_there = seq in self._undone  # that removal is undone as well
        if {(key, name), (name, key)} & self._own:
            return []
        if table.name == NODES.name:
            self._said |= {one.seq for one in found}
        return found

    def _at(self, seq: int) -> Mapping[str, Node | Link]:
        """Return each entity and edge to which a record gave another id, by the one before."""
        if seq not in self._by_seq:
            changes = self._undone.get(seq) or changes_of(self._view, [seq])[seq]
            pairs = renamed_in(changes.nodes)
            moved = moved_links((one.before for one in changes.links if one.before), pairs)
            after: dict[str, Node | Link] = {one.key: one.after for one in changes.nodes if one.after}
            after |= {one.key: one.after for one in changes.links if one.after}
            ids = {old: new for new, old in pairs.items()} | moved
            self._by_seq[seq] = {old: after[new] for old, new in ids.items() if new in after}
        return self._by_seq[seq]


class _Against(NamedTuple):
    """What prevents undoing, and what needs none: elements that are gone, with the records that removed them."""

    conflicts: dict[tuple[int, str, str], Conflict]
    gone: dict[str, int]
    renames: _Renames

    def add(self, conflicts: Iterable[Conflict]) -> None:
        """Add conflicts; a second one of the same record about the same field takes the place of the first."""
        self.conflicts.update({(one.seq, one.key, one.field): one for one in conflicts})


def reverted(view: View, seqs: Sequence[int], *, force: bool) -> Wanted:
    """Return what undoing these records, newest first, comes to; ``force`` takes old values over newer ones.

    What was renamed since is a conflict also with it: there is no old value to take, and the old id means another one.
    """
    changes = changes_of(view, seqs)
    conflicts: dict[tuple[int, str, str], Conflict] = {}
    against = _Against(conflicts, {}, _Renames(view, changes))

    def undo_node(change: Change[Node], now: Node | None, later: Sequence[Later[Node]]) -> Undone[Node]:
        return undone_node(change, now, later, force=force)

    def undo_link(change: Change[Link], now: Link | None, later: Sequence[Later[Link]]) -> Undone[Link]:
        return undone_link(change, now, later, force=force)

    node_changes = {seq: one.nodes for seq, one in changes.items()}
    link_changes = {seq: one.links for seq, one in changes.items()}
    found = Wanted(
        nodes=_undone(view, NODES, node_changes, undo_node, against),
        links=_undone(view, LINKS, link_changes, undo_link, against),
        sources={},
        conflicts=[],
        restamped=_restamped(changes.values()),
        has_confirmed=any(map(is_confirmed, chain.from_iterable(one.links for one in changes.values()))),
    )
    found.conflicts = [one for one in conflicts.values() if not force or one.change == RENAMED]
    found.gone = against.gone
    found.changed_links = {one.key: link for part in changes.values() for one in part.links if (link := one.after)}
    found.sources = _sources(view, changes, found.files())
    return found


def _undone(
    view: View,
    table: Table[E],
    changes: Mapping[int, Sequence[Change[E]]],
    undo: Undo[E],
    against: _Against,
) -> dict[str, tuple[E | None, E | None]]:
    """Return, by key, what there is now and what is wanted; what prevents it is added to ``against``."""
    keys = sorted({change.key for part in changes.values() for change in part})
    later = later_changes(view, table, keys, min(changes))
    now = {element.id: element for element in table.current(view, keys)}
    wanted: dict[str, E | None] = {key: now.get(key) for key in keys}
    each = [(seq, change) for seq, part in changes.items() for change in part]
    for seq, change in progress.counted(each, len(each), f"changes of {_WORDS[table.name]} undone"):
        names, since = followed([one for one in later.get(change.key, ()) if one.seq > seq and one.seq not in changes])
        told = Change(change.key, renamed(change.before, names), renamed(change.after, names))
        if since and since[-1].after is None:
            renames = against.renames.conflicts(table, change.key, since[-1].seq)
            if renames:
                against.add(renames)
                continue
            if change.before is None:
                against.gone[change.key] = since[-1].seq
        undone = undo(told, wanted[change.key], since)
        wanted[change.key] = undone.wanted
        against.add(undone.conflicts)
    return {key: (now.get(key), wanted[key]) for key in keys}


def _restamped(changes: Iterable[Changes]) -> set[str]:
    """Return the entities of which the records changed nothing but the time of the update."""
    return {
        change.key
        for one in changes
        for change in one.nodes
        if change.before and change.after and inverse.node_units(change.before) == inverse.node_units(change.after)
    }


def _sources(
    view: View, changes: Mapping[int, Changes], touched: Sequence[str]
) -> dict[str, tuple[SourceFile | None, SourceFile | None]]:
    """Return what is to be noted of each file: what was before, or that its content is not what stands."""
    paths = sorted({*touched, *(change.key for one in changes.values() for change in one.sources)})
    now = {source.path: source for source in view.sources(paths)}
    wanted: dict[str, SourceFile | None] = {path: now.get(path) for path in paths}
    for one in changes.values():
        for change in one.sources:
            if wanted[change.key] == change.after:
                wanted[change.key] = change.before
    for path in touched:
        noted = wanted[path]
        if noted is None and path not in now:
            wanted[path] = SourceFile(path, "", _extractor(view, path), is_ok=True, problems=(), version=0)
        elif noted is not None and noted is now.get(path):
            wanted[path] = msgspec.structs.replace(noted, hash="")
    return {path: (now.get(path), wanted[path]) for path in paths}


def _extractor(view: View, path: str) -> str:
    rows: list[tuple[Any, ...]] = view.rows(
        "select extractor from source_history where path = ? order by ended desc limit 1", [path]
    )
    return str(rows[0][0]) if rows else ""
