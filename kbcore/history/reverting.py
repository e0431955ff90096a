"""What the revert of records wants: each of their changes undone, the newest first, from the view's history.

A file whose facts are changed by it is noted as not taken in, so that the next sync reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

import msgspec

from kbcore import inverse, progress
from kbcore.history.moves import followed, renamed
from kbcore.history.planned import Wanted
from kbcore.history.shown import is_confirmed
from kbcore.history.undone import Conflict, Undone, undone_link, undone_node
from kbcore.model import Link, Node, SourceFile
from kbcore.state import Change, Changes
from kbcore.view.past import LINKS, NODES, Later, Table, changes_of, later_changes
from kbcore.view.view import View

_WORDS: Final = {NODES.name: "entities", LINKS.name: "edges"}

E = TypeVar("E", Node, Link)
Undo = Callable[[Change[E], E | None, Sequence[Later[E]]], Undone[E]]


def reverted(view: View, seqs: Sequence[int], *, force: bool) -> Wanted:
    """Return what undoing these records, newest first, comes to; ``force`` takes old values over newer ones."""
    changes = changes_of(view, seqs)
    conflicts: dict[tuple[int, str, str], Conflict] = {}

    def undo_node(change: Change[Node], now: Node | None, later: Sequence[Later[Node]]) -> Undone[Node]:
        return undone_node(change, now, later, force=force)

    def undo_link(change: Change[Link], now: Link | None, later: Sequence[Later[Link]]) -> Undone[Link]:
        return undone_link(change, now, later, force=force)

    node_changes = {seq: one.nodes for seq, one in changes.items()}
    link_changes = {seq: one.links for seq, one in changes.items()}
    found = Wanted(
        nodes=_undone(view, NODES, node_changes, undo_node, conflicts),
        links=_undone(view, LINKS, link_changes, undo_link, conflicts),
        sources={},
        conflicts=[],
        restamped=_restamped(changes.values()),
        has_confirmed=any(map(is_confirmed, chain.from_iterable(one.links for one in changes.values()))),
    )
    found.conflicts = list(conflicts.values())
    found.sources = _sources(view, changes, found.files())
    return found


def _undone(
    view: View,
    table: Table[E],
    changes: Mapping[int, Sequence[Change[E]]],
    undo: Undo[E],
    conflicts: dict[tuple[int, str, str], Conflict],
) -> dict[str, tuple[E | None, E | None]]:
    """Return, by key, what stands now and what is wanted; what stands against it is added to ``conflicts``."""
    keys = sorted({change.key for part in changes.values() for change in part})
    later = later_changes(view, table, keys, min(changes))
    now = {element.id: element for element in table.current(view, keys)}
    wanted: dict[str, E | None] = {key: now.get(key) for key in keys}
    each = [(seq, change) for seq, part in changes.items() for change in part]
    for seq, change in progress.counted(each, len(each), f"changes of {_WORDS[table.name]} undone"):
        names, since = followed([one for one in later.get(change.key, ()) if one.seq > seq and one.seq not in changes])
        told = Change(change.key, renamed(change.before, names), renamed(change.after, names))
        undone = undo(told, wanted[change.key], since)
        wanted[change.key] = undone.wanted
        conflicts |= {(one.seq, one.key, one.field): one for one in undone.conflicts}
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
