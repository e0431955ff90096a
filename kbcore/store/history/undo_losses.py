"""Losses of the graph by an undo: edges left without an end, or between types that they do not fit.

Only what the undo itself brings counts: an edge that was just as broken before the undone records, or is now, is
not reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import msgspec

from kbcore.ids import is_link_id
from kbcore.model.graph import Link, Node
from kbcore.model.schema import LINK, Schema
from kbcore.model.state import State
from kbcore.store.history.renames import RenamesSince
from kbcore.view.history import LINKS, NODES, ElementTable, later_changes
from kbcore.view.view import View

E = TypeVar("E", Node, Link)


class BrokenEdge(msgspec.Struct, frozen=True):
    """An edge that would be unresolved or misfit, and why; ``seq`` last changed it (0: it is not there now)."""

    link: Link
    why: str
    seq: int


Base = tuple[int, RenamesSince | None]
"""The last seq before everything that is undone, and the renames since."""


def broken_by(view: View, now: State, after: State, schema: Schema, base: Base) -> list[BrokenEdge]:
    """Return the edges that an undo would break.

    ``now`` and ``after`` hold what it touches, before and after it.
    """
    now = base[1].without_undone(now) if base[1] else now
    suspects = {
        key: link
        for key, link in after.links.items()
        if (fault := _fault(after, key, schema)) and fault != _fault(now, key, schema)
    }
    if not suspects:
        return []
    then = edges_before(view, suspects.values(), base)
    return [
        BrokenEdge(link, _why(after, link), now.links[key].version if key in now.links else 0)
        for key, link in suspects.items()
        if _fault(after, key, schema) != _fault(then, key, schema)
    ]


def _fault(state: State, key: str, schema: Schema) -> str:
    """Return what is wrong with a link in a state, as a word to compare: "" for nothing, and for no such link."""
    link = state.links.get(key)
    if link is None:
        return ""
    if not link.is_resolved:
        return "unresolved"
    types = types_of(state, link)
    return "" if schema.fits(link.type, *types) else " ".join(("misfit", *types))


def _why(state: State, link: Link) -> str:
    missing = [end for end in (link.from_id, link.to_id) if not state.exists(end)]
    if missing:
        return f"{' and '.join(missing)} would not exist"
    types = types_of(state, link)
    return f"`{link.type}` does not lead from {types[0]} to {types[1]}"


def types_of(state: State, link: Link) -> tuple[str, str]:
    """Return the types of both ends of an edge, "" for an end that does not exist."""

    def type_of(end: str) -> str:
        node = state.nodes.get(end)
        return node.type if node else LINK if is_link_id(end) else ""

    return type_of(link.from_id), type_of(link.to_id)


def edges_before(view: View, links: Collection[Link], base: Base) -> State:
    """Return these edges and their ends in the earlier state, as far as they existed, under their present keys."""
    keys = {link.id for link in links}
    ends = {end for link in links for end in (link.from_id, link.to_id)}
    if base[1] is not None:
        base[1].learn(links)
    return State(_elements_before(view, NODES, ends, base), _elements_before(view, LINKS, keys | ends, base))


def _elements_before(view: View, table: ElementTable[E], keys: Iterable[str], base: Base) -> list[E]:
    """Return the state of these elements at a seq, as far as they existed."""
    seq, names = base
    wanted = sorted(set[str]().union(*map(names.earlier, keys)) if names else set(keys))
    later = later_changes(view, table, wanted, seq)
    existing: list[E] = table.current(view, [key for key in wanted if key not in later])
    existing += [changes[0].before for changes in later.values() if changes[0].before is not None]
    if not names:
        return existing
    return [names.named(one, seq) for one in existing if isinstance(one, Link) or not names.path(one.id, seq)[1].until]
