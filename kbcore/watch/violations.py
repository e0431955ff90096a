"""Which violations stand, and which came and went since they were last looked at. Pure.

A violation is the same one for as long as its rule says the same of the same entity and file: a hint names what is near
by, and changes with other entities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from kbcore.rules import Violation

Key = tuple[str, str, str, str, str, int]


class Turn(msgspec.Struct, frozen=True):
    """What changed from one look to the next, each in the order of the report."""

    new: tuple[Violation, ...]
    mended: tuple[Violation, ...]


class Ledger:
    """The violations that stand, as far as they were looked at, each with the hint that it had last."""

    def __init__(self) -> None:
        self._standing: dict[Key, Violation] = {}

    @property
    def standing(self) -> tuple[Violation, ...]:
        """All violations, those of the last look first found last."""
        return tuple(self._standing.values())

    def update(
        self, found: Iterable[Violation], ids: Collection[str] | None = None, not_run: Collection[str] = ()
    ) -> Turn:
        """Take in what a check found, of everything, or of what concerns ``ids``; returns what is new and mended.

        Nothing is mended as far as rules go that could not be run, named in ``not_run``.
        """
        seen = {_key(one): one for one in found}
        mended = {
            key: one
            for key, one in self._standing.items()
            if key not in seen and one.rule not in not_run and (ids is None or one.id in ids)
        }
        new = tuple(one for key, one in seen.items() if key not in self._standing)
        kept = {key: one for key, one in self._standing.items() if key not in mended}
        self._standing = kept | seen if ids is not None or not_run else seen
        return Turn(new, tuple(mended.values()))

    def clear(self) -> None:
        """Forget everything: another branch is another story."""
        self._standing.clear()


def _key(one: Violation) -> Key:
    return one.rule, one.severity, one.id, one.message, one.source, one.line
