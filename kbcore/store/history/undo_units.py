"""The result of undoing one change, unit by unit, and the later changes in conflict with it. Pure.

Only what the record changed is put back, the value and who states it each by itself; what others changed since is
theirs, and is a conflict where it is the same value. A change of nothing but who states it is none, and neither are
later changes that led back to what the record had set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from kbcore.model import inverse
from kbcore.model.graph import CLIENT, Link, Node
from kbcore.model.inverse import SAYS, Units, differs
from kbcore.model.state import ElementChange
from kbcore.store.history.shown import word
from kbcore.view.history import Later

E = TypeVar("E", Node, Link)

_MADE: Final = frozenset({"created_at", "created_by"})
"""Units of an edge that say when it came to be; they come and go with it and are nobody's own change."""


RENAMED: Final = "renamed"
"""The change by which an entity got another id."""


class LaterChange(msgspec.Struct, frozen=True):
    """A later change of what is to be undone. ``field`` "" is the whole element; ``source`` the file that said it.

    Of a rename, ``before`` and ``after`` are the ids.
    """

    seq: int
    key: str
    change: str
    field: str = ""
    before: Any = None
    after: Any = None
    source: str = ""


class UndoneElement(msgspec.Struct, Generic[E], frozen=True):
    """The element after the undo, and its conflicts."""

    wanted: E | None
    conflicts: tuple[LaterChange, ...] = ()


def undone_node(
    change: ElementChange[Node], now: Node | None, later: Sequence[Later[Node]], *, force: bool = False
) -> UndoneElement[Node]:
    """Return what undoing a change makes of an entity that is now ``now``.

    ``later`` are the changes since by records that are not undone with it. With ``force`` the old values are taken
    all the same; an entity that was removed since comes back as it was before the change.
    """
    if change.before is None and not later:
        return UndoneElement(None)
    if change.after is None and now is None:
        return UndoneElement(change.before)
    before, after, units = map(inverse.node_units, (change.before, change.after, now))
    if change.before is None:
        return UndoneElement(None, _against(later, inverse.node_units, lambda: _otherwise(units, after)) if now else ())
    names = _differing(before, after)
    if now is None:
        removals = _against(later, inverse.node_units) if names else ()
        return UndoneElement(change.before if force and names else None, removals)
    if not names and change.after is not None:
        return UndoneElement(_restamped(change, now))
    wanted = _put_back(units, before, after, names)
    conflicts = _against(later, inverse.node_units, lambda: _otherwise(units, wanted) & _otherwise(units, after))
    return UndoneElement(inverse.node_from(now, wanted), conflicts)


def _restamped(change: ElementChange[Node], now: Node) -> Node:
    """Undo a change of nothing but the time of the update, as long as it is the last one."""
    if change.before is None or change.after is None or now.updated_at != change.after.updated_at:
        return now
    return msgspec.structs.replace(now, updated_at=change.before.updated_at)


def undone_link(
    change: ElementChange[Link], now: Link | None, later: Sequence[Later[Link]], *, force: bool = False
) -> UndoneElement[Link]:
    """Return what undoing a change makes of an edge that is now ``now``; the rest is as for an entity.

    Statements are undone by source: an edge that somebody else states as well stays. ``is_resolved`` of the result says
    whether it is meant to.
    """
    if change.before is None and now == change.after and not later:
        return UndoneElement(None)
    if change.after is None and now is None:
        return UndoneElement(change.before)
    before, after = inverse.link_units(change.before), inverse.link_units(change.after)
    units = inverse.link_units(now)
    names = _differing(before, after)
    if change.before is None or change.after is None:
        names -= _MADE
    if now is None:
        is_gone = change.after is not None and change.before is not None and bool(names)
        removals = _against(later, inverse.link_units) if is_gone else ()
        return UndoneElement(change.before if is_gone and force else None, removals)
    put_back = _put_back(units, before, after, names)

    def lost() -> set[str]:
        todo = _otherwise(units, put_back)
        withdrawn = {name.removeprefix(SAYS) for name in todo if name.startswith(SAYS) and name not in before}
        gone = {name for name, unit in units.items() if not name.startswith(SAYS) and unit[1] in withdrawn} - _MADE
        return (todo | gone) & _otherwise(units, after)

    conflicts = _against(later, inverse.link_units, lost)
    wanted = inverse.link_from(now, put_back)
    if change.before and change.after and change.before.is_resolved != change.after.is_resolved:
        # The record gave it an end, or took one away.
        wanted = msgspec.structs.replace(wanted, is_resolved=change.before.is_resolved)
    return UndoneElement(wanted if wanted.statements else None, conflicts)


def _differing(one: Units, other: Units) -> set[str]:
    return {name for name in one.keys() | other.keys() if differs(one.get(name), other.get(name))}


def _otherwise(one: Units, other: Units) -> set[str]:
    """Return the units that differ in more than who states a field."""

    def said(unit: Any) -> Any:
        return unit[:1] if isinstance(unit, tuple) else unit

    return {name for name in one.keys() | other.keys() if differs(said(one.get(name)), said(other.get(name)))}


def _put_back(units: Units, before: Units, after: Units, names: Iterable[str]) -> Units:
    """Return the units as they stand with what the record changed of these as it was before."""
    merged = dict(units)
    for name in names:
        unit = _unit_back(units.get(name), before.get(name), after.get(name))
        merged.pop(name, None)
        if unit is not None:
            merged[name] = unit
    return merged


def _unit_back(now: Any, before: Any, after: Any) -> Any:
    if not (isinstance(before, tuple) and isinstance(after, tuple)):
        return before
    if differs(before[0], after[0]):
        return before if now is None else (before[0], now[1] if before[1] == after[1] else before[1])
    return None if now is None else (now[0], before[1])


def _against(
    later: Sequence[Later[E]], units_of: Callable[[E | None], Units], named: Callable[[], set[str]] | None = None
) -> tuple[LaterChange, ...]:
    """Return the later changes of the units that ``named`` returns, without it of any unit.

    It is only called where there are later changes: most elements of a large record have none.
    """
    if not later:
        return ()
    found: list[LaterChange] = []
    names = named() if named else None
    for one in later:
        before, after = units_of(one.before), units_of(one.after)
        touched = _otherwise(before, after)
        if names is not None:
            touched &= names
        change = word(one.before, one.after)
        if touched and change != "updated":
            found.append(LaterChange(one.seq, one.key, change, source=_source(after or before)))
            continue
        for name in sorted(touched):
            values = (_value(before.get(name)), _value(after.get(name)))
            found.append(LaterChange(one.seq, one.key, change, name, *values, _owner(after.get(name))))
    return tuple(found)


def _value(unit: Any) -> Any:
    return unit[0] if isinstance(unit, tuple) else None if unit is None else unit.source


def _owner(unit: Any) -> str:
    return str(unit[1]) if isinstance(unit, tuple) else CLIENT if unit is None else str(unit.src)


def _source(units: Units) -> str:
    """Return a file that states a part of an element, if one does."""
    return min((owner for owner in map(_owner, units.values()) if owner), default="")


def files_of(now: Units, wanted: Units) -> set[str]:
    """Return the files whose facts differ between the present state and the wanted one."""
    return {
        owner
        for name in _differing(now, wanted)
        for owner in (_owner(now.get(name)), _owner(wanted.get(name)))
        if owner != CLIENT
    }
