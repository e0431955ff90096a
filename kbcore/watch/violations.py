"""Present violations, and those that are new or fixed since they were last looked at. Pure.

A violation is the same one for as long as rule, code, entity, field and values are the same, under the present ids of
what was renamed; the words of its message, its file and its line may change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from kbcore.rules import Violation
from kbcore.rules.accepted import BaselineEntry, key_of, with_present_id

Key = tuple[str, BaselineEntry]
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class ViolationChanges(msgspec.Struct, frozen=True):
    """The changes from one look to the next, each in the order of the report."""

    new: tuple[Violation, ...]
    fixed: tuple[Violation, ...]


class Ledger:
    """The present violations, as far as they were looked at, each with its last hint."""

    def __init__(self) -> None:
        self._open: tuple[Violation, ...] = ()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All violations, those of the last look first found last."""
        return self._open

    def names_not_found(self, found: Iterable[Violation], ids: Collection[str] | None = None) -> set[str]:
        """Return the ids and values of violations that a check of everything, or of ``ids``, did not find again.

        Those among them that are earlier ids have to be given to ``update`` with the present ones.
        """
        seen = {_key(one) for one in found}
        gone = (one for one in self._open if (ids is None or one.id in ids) and _key(one) not in seen)
        return {name for one in gone for name in (one.id, *one.values)}

    def update(
        self,
        found: Iterable[Violation],
        ids: Collection[str] | None = None,
        not_run: Collection[str] = (),
        present: Mapping[str, str] = _NONE,
    ) -> ViolationChanges:
        """Note the result of a check, of everything or of ``ids``; returns what is new and fixed.

        No violation is fixed of rules that could not be run, named in ``not_run``. ``present`` has the present
        ids of what was renamed.
        """
        seen = tuple(dict.fromkeys(found))
        again = _matched(self._open, seen, present)
        fixed, kept = [], []
        for place, one in enumerate(self._open):
            if place in again:
                kept.append(seen[again[place]])
            elif one.rule not in not_run and (ids is None or one.id in ids):
                fixed.append(one)
            else:
                kept.append(one)
        matched = {*again.values()}
        new = tuple(one for place, one in enumerate(seen) if place not in matched)
        self._open = (*kept, *new) if ids is not None or not_run else seen
        return ViolationChanges(new, tuple(fixed))

    def clear(self) -> None:
        """Forget everything, as for another branch."""
        self._open = ()


def _matched(old: Sequence[Violation], new: Sequence[Violation], present: Mapping[str, str]) -> dict[int, int]:
    """Return the places of old violations with those of the new ones that are the same, each at most once.

    Of several with one key, those at the same place are matched first.
    """
    found: dict[int, int] = {}
    left: dict[Key, list[int]] = {}
    for place, one in enumerate(new):
        left.setdefault(_key(one), []).append(place)
    keys = [_key(one, present) for one in old]
    for is_exact in (True, False):
        for place, one in enumerate(old):
            places = left.get(keys[place], []) if place not in found else []
            same = (at for at, other in enumerate(places) if not is_exact or _place(new[other]) == _place(one))
            at = next(same, None)
            if at is not None:
                found[place] = places.pop(at)
    return found


def _key(one: Violation, present: Mapping[str, str] = _NONE) -> Key:
    return one.severity, with_present_id(key_of(one), present)


def _place(one: Violation) -> tuple[str, int]:
    return one.source, one.line
