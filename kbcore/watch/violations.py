"""Which violations stand, and which came and went since they were last looked at. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from kbcore.rules import Violation


class Turn(msgspec.Struct, frozen=True):
    """What changed from one look to the next, each in the order of the report."""

    new: tuple[Violation, ...]
    mended: tuple[Violation, ...]


class Ledger:
    """The violations that stand, as far as they were looked at."""

    def __init__(self) -> None:
        self._standing: dict[Violation, None] = {}

    @property
    def standing(self) -> tuple[Violation, ...]:
        """All violations, those of the last look first found last."""
        return tuple(self._standing)

    def update(
        self, found: Iterable[Violation], ids: Collection[str] | None = None, not_run: Collection[str] = ()
    ) -> Turn:
        """Take in what a check found, of everything, or of what concerns ``ids``; returns what is new and mended.

        Nothing is mended as far as rules go that could not be run, named in ``not_run``.
        """
        seen = dict.fromkeys(found)
        mended = tuple(
            one
            for one in self._standing
            if one not in seen and one.rule not in not_run and (ids is None or one.id in ids or one.source in ids)
        )
        new = tuple(one for one in seen if one not in self._standing)
        gone = set(mended)
        kept = {one: None for one in self._standing if one not in gone}
        self._standing = kept | dict.fromkeys(new) if ids is not None or not_run else seen
        return Turn(new, mended)

    def clear(self) -> None:
        """Forget everything: another branch is another story."""
        self._standing.clear()
