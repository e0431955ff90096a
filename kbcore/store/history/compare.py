"""Differences between two seqs of a branch, and between two branches since their histories diverged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeVar

import msgspec

from kbcore.ids import is_link_id, link_id
from kbcore.model.graph import Link, Node, former_ids
from kbcore.model.renames import joined, moved_links
from kbcore.model.state import Changes, ElementChange
from kbcore.store.history import shown
from kbcore.store.history.log import EVERYTHING, RecordFilter
from kbcore.store.history.reach import merge_base
from kbcore.store.history.when import When
from kbcore.store.history.writers import WriterFilter, brought_changes, written_by
from kbcore.view.history import (
    LINKS,
    NODES,
    ElementTable,
    changes_between,
    changes_from,
    count_changed,
    kept_changes,
    renames_between,
    state_at,
)
from kbcore.view.view import View

E = TypeVar("E", Node, Link)
Flat = Callable[[E | None], dict[str, Any]]

_CHUNK: Final = 5_000
_TABLES: Final[tuple[ElementTable[Any], ...]] = (NODES, LINKS)
_SHOWN: Final[Mapping[str, tuple[Flat[Any], Callable[[ElementChange[Any]], dict[str, Any]]]]] = {
    NODES.name: (shown.node_fields, shown.entity_change),
    LINKS.name: (shown.link_fields, shown.edge_change),
}
"""The content of an element, and the view of its change, by its table."""


def diff(view: View, a: int, b: int, *, changed_by: RecordFilter = EVERYTHING) -> dict[str, Any]:
    """Return what differs between the states at two seqs, going from ``a`` to ``b``; only what changed is read.

    What was changed and changed back is left out, and so is what was created and deleted in between. With a selection
    in ``changed_by``, only what these records changed in between is shown; its own points are not used.

    Raises: ``HistoryPruned``.
    """
    low, high = min(a, b), max(a, b)
    changes = joined(changes_between(view, low, high))
    if changed_by != EVERYTHING:
        between = msgspec.structs.replace(changed_by, since=When("", seq=low), until=When("", seq=high))
        nodes_changed, links_changed = written_by(view, between.seqs(view), between.writer)
        changes = _limited_to(changes, nodes_changed | links_changed.keys())
    nodes = (_difference(NODES, one, is_back=a > b) for one in changes.nodes)
    links = (_difference(LINKS, one, is_back=a > b) for one in changes.links)
    return {"from": a, "to": b, "entities": [one for one in nodes if one], "edges": [one for one in links if one]}


def add_origins(view: View, found: dict[str, Any], writer: WriterFilter) -> None:
    """Add to the entities and edges of a ``diff`` the changes of a writer by which they came from others."""
    came = brought_changes(view, min(found["from"], found["to"]), max(found["from"], found["to"]), writer)
    for one in (*found["entities"], *found["edges"]) if came else ():
        names = (
            {one["id"], one.get("was", one["id"])}
            if "id" in one
            else {link_id(one["type"], one.get("kind", ""), one["from"], one["to"])}
        )
        if changes := {change.change: change for name in sorted(names) for change in came.get(name, ())}:
            one["changes"] = msgspec.to_builtins([*changes.values()])


def _limited_to(changes: Changes, only: AbstractSet[str]) -> Changes:
    """Return the changes of the entities and edges that have one of these ids, or had it in between."""
    ids = {
        one.key: {one.key, *former_ids(one.before), *former_ids(one.after), *([one.before.id] if one.before else [])}
        for one in changes.nodes
    }

    def is_meant(change: ElementChange[Link]) -> bool:
        link = change.after or change.before
        if link is None or change.key in only or (change.before and change.before.id in only):
            return link is not None
        begins, ends = ids.get(link.from_id, {link.from_id}), ids.get(link.to_id, {link.to_id})
        return any(link_id(link.type, link.kind, begin, end) in only for begin in begins for end in ends)

    nodes = tuple(one for one in changes.nodes if ids[one.key] & only)
    return Changes(nodes, tuple(filter(is_meant, changes.links)), changes.sources)


def entities_changed_by(view: View, seqs: Sequence[int], writer: WriterFilter) -> set[str]:
    """Return the ids of the entities that a writer changed by records, and of those at both ends of the edges.

    Raises: ``HistoryPruned``.
    """
    nodes, links = written_by(view, seqs, writer)
    return nodes | {end for ends in links.values() for end in ends}


def differences_from(
    view: View, a: int, b: int, place: int, *, at_once: int
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield what ``diff`` shows from a place on, each with the place after it and with "entities" or "edges".

    A place is how many changes come before, those included that are not shown; ``at_once`` are read at a time.

    Raises: ``HistoryPruned``.
    """
    for after, table, change in changes_from(view, _TABLES, min(a, b), max(a, b), place=place, at_once=at_once):
        found = _difference(table, change, is_back=a > b)
        if found:
            yield after, "entities" if table is NODES else "edges", found


def count_differences(view: View, a: int, b: int) -> int:
    """Return how many entities and edges ``diff`` shows; only those that existed at both seqs are read.

    Raises: ``HistoryPruned``.
    """
    low, high = min(a, b), max(a, b)
    total = -len(renames_between(view, low, high).left_out)
    for table in _TABLES:
        alone, _ = count_changed(view, table, low, high)
        kept = kept_changes(view, table, low, high)
        total += alone + sum(_is_net(change, _SHOWN[table.name][0]) for part in kept for change in part)
    return total


def _difference(table: ElementTable[Any], change: ElementChange[Any], *, is_back: bool) -> dict[str, Any] | None:
    """Return a change as it is shown, shown backwards if asked for; None when nothing that is shown differs."""
    flat, show = _SHOWN[table.name]
    if is_back:
        key = change.before.id if change.before is not None else change.key
        change = ElementChange(key, change.after, change.before)
    return show(change) if _is_net(change, flat) else None


def _is_net(change: ElementChange[E], flat: Flat[E]) -> bool:
    """Tell whether anything that is shown differs."""
    return (change.before is None) != (change.after is None) or bool(
        shown.differing(flat(change.before), flat(change.after))
    )


def _place(change: ElementChange[Link]) -> tuple[str, ...]:
    link = change.before or change.after
    return LINKS.place(link) if link else ()


def diff_branches(view_a: View, view_b: View) -> dict[str, Any]:
    """Return what differs between two branches now, going from the first to the second.

    ``base`` is the seq where their histories diverged (null: they share none that is still there). ``fields`` gives,
    for each field that differs, both sides and the value at the base; ``changed_in`` says which side changed it. An
    entity that has another id on the second branch is one that was renamed.
    """
    base = merge_base(view_a, view_b)
    mine, theirs = (changes_since(view, base) for view in (view_a, view_b))
    ids = ids_on(view_b, view_a, mine)
    nodes = _three_ways(_by_base(mine.nodes, ids, theirs.nodes), _by_base(theirs.nodes))
    links = _three_ways(_by_base(mine.links, ids, theirs.links), _by_base(theirs.links))
    return {
        "from": view_a.seq,
        "to": view_b.seq,
        "base": base,
        "entities": [
            {**shown.entity_change(change), **_sides(change, before, shown.node_fields)}
            for change, before in sorted(nodes, key=lambda one: one[0].key)
            if _is_net(change, shown.node_fields)
        ],
        "edges": [
            {**shown.edge_change(change), **_sides(change, before, shown.link_fields)}
            for change, before in sorted(links, key=lambda one: _place(one[0]))
            if _is_net(change, shown.link_fields)
        ],
    }


def changes_since(view: View, base: int | None) -> Changes:
    """Return the changes since a seq, renames ``joined``; without one all that there is, as created.

    Raises: ``HistoryPruned``.
    """
    if base is not None:
        return joined(changes_between(view, base, view.seq))
    state = state_at(view, view.seq)
    nodes = tuple(ElementChange(key, None, one) for key, one in state.nodes.items())
    return Changes(nodes, tuple(ElementChange(key, None, one) for key, one in state.links.items()))


def ids_on(other: View, view: View, changes: Changes) -> dict[str, str]:
    """Return the ids that entities and edges of a branch have on another one, where these are different ones.

    Those are the ones that changes are about, and their ends. Either branch may have renamed an entity: the one that
    did has the other id among its former ids. An id that is that of another entity of the branch is no id of this one.
    """
    links = {one.key: one.after for one in changes.links if one.after}
    while about := {key for key in _ends_of(links.values()) if is_link_id(key)} - links.keys():
        found = {link.id: link for chunk in chunks(sorted(about)) for link in view.links(chunk)}
        if not found:
            break
        links |= found
    renamed = _renamed_on(other, view, {one.key for one in changes.nodes} | _ends_of(links.values()))
    return renamed | moved_links(links.values(), {there: key for key, there in renamed.items()})


def _renamed_on(other: View, view: View, keys: Iterable[str]) -> dict[str, str]:
    wanted = sorted(keys)
    former = {node.id: former_ids(node) for chunk in chunks(wanted) for node in view.nodes(chunk)}
    holders = view.renamed(one for names in former.values() for one in names)
    names = {key: [one for one in reversed(former.get(key, ())) if holders.get(one) == key] for key in wanted}
    asked = sorted({*wanted, *(one for some in names.values() for one in some)})
    there = {node.id: former_ids(node) for chunk in chunks(asked) for node in other.nodes(chunk)}
    now = other.renamed({*asked} - there.keys())
    found: dict[str, str] = {}
    for key, earlier in names.items():
        if key in there and (not earlier or {*there[key]} & {*earlier}):
            continue
        candidates = [one for one in earlier if one in there]
        if key not in there:
            candidates += [now[one] for one in (key, *earlier) if one in now]
        if candidates:
            found[key] = candidates[0]
    taken = {node.id for chunk in chunks(sorted({*found.values()})) for node in view.nodes(chunk)}
    return {key: one for key, one in found.items() if one not in taken}


def _ends_of(links: Iterable[Link]) -> set[str]:
    return {end for link in links for end in (link.from_id, link.to_id)}


def chunks(keys: list[str]) -> Iterator[list[str]]:
    """Yield ids some at a time, as many as a view is asked for at once."""
    return (keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK))


def _by_base(
    changes: Sequence[ElementChange[E]], ids: Mapping[str, str] | None = None, theirs: Sequence[ElementChange[E]] = ()
) -> dict[str, ElementChange[E]]:
    """Return changes by the id that the element had at the base; of a new one by its id on the second branch.

    ``ids`` has the ids on the second branch, of which ``theirs`` are the changes.
    """
    at_base = {one.key: one.before.id for one in theirs if one.before}
    there = ids or {}

    def name(change: ElementChange[E]) -> str:
        if change.before:
            return change.before.id
        key = there.get(change.key, change.key)
        return at_base.get(key, key)

    return {name(one): one for one in changes}


def _three_ways(
    mine: Mapping[str, ElementChange[E]], theirs: Mapping[str, ElementChange[E]]
) -> list[tuple[ElementChange[E], E | None]]:
    """Return, for each element that either side changed, the way from mine to theirs and the element at the base."""
    found: list[tuple[ElementChange[E], E | None]] = []
    for key in mine.keys() | theirs.keys():
        before = (mine.get(key) or theirs[key]).before
        one = mine[key].after if key in mine else before
        other = theirs[key].after if key in theirs else before
        last = other or one or before
        found.append((ElementChange(last.id if last else key, one, other), before))
    return found


def _sides(change: ElementChange[E], before: E | None, flat: Flat[E]) -> dict[str, Any]:
    """Return, for each field that differs, the value on either side and at the base, and who changed it."""
    one, other, base = flat(change.before), flat(change.after), flat(before)
    names = shown.differing(one, other)
    sides = {"from": shown.differing(base, one), "to": shown.differing(base, other)}
    return {
        "fields": {name: {"base": base.get(name), "from": one.get(name), "to": other.get(name)} for name in names},
        "changed_in": [side for side, changed in sides.items() if changed],
    }
