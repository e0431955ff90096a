"""Nodes that have a computed text in common, such as the title in small letters, or an alias: found without a scan.

Where the nodes of a base are that have a text is read when it is asked for the second time: 16 bytes for each node.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kbcore.model.graph import Node
from kbcore.model.state import Changes
from kbcore.view.tables import AskBase, Likeness


class _Places(NamedTuple):
    """The numbers of the texts in a base, sorted, and the row of each."""

    numbers: array[int]
    rows: array[int]

    def of(self, key: str) -> Iterator[int]:
        """Yield the rows that may have a text."""
        digest = hashlib.md5(key.encode(errors="surrogatepass"), usedforsecurity=False).digest()
        number = int.from_bytes(digest[8:], "little")
        at = bisect_left(self.numbers, number)
        while at < len(self.numbers) and self.numbers[at] == number:
            yield self.rows[at]
            at += 1


class EqualTexts:
    """Entities that are alike in one base, and in the tail after it. ``ask_base`` answers SQL over the base alone."""

    def __init__(self, ask_base: AskBase) -> None:
        self._ask_base = ask_base
        self._places: dict[Likeness, _Places | None] = {}
        """None where it was asked for once, which is answered by a scan: a short command asks no more."""
        self._later: dict[Likeness, dict[str, dict[str, None]]] = {}

    def in_base(self, likeness: Likeness, keys: Sequence[str]) -> list[str]:
        """Return the ids of the nodes of the base that may have one of these texts."""
        asked: list[Any] = [key for key in keys if key]
        what = likeness.sql
        if likeness in self._places:
            places = self._places[likeness] or self._read(likeness)
            self._places[likeness] = places
            asked = [row for key in asked for row in places.of(key)]
            what = "rowid"
        else:
            self._places[likeness] = None
        if not asked:
            return []
        marks = ", ".join("?" * len(asked))
        is_list = likeness.is_list and what != "rowid"
        condition = f"list_has_any({what}, [{marks}])" if is_list else f"{what} in ({marks})"
        return [row[0] for row in self._ask_base(f"select id from base.node where {condition}", *asked)]

    def _read(self, likeness: Likeness) -> _Places:
        # The database computes the same numbers as ``_Places.of``.
        texts = f"unnest({likeness.sql})" if likeness.is_list else likeness.sql
        computed = f"select md5_number_lower(text) as n, r from (select {texts} as text, rowid as r from base.node)"
        found = self._ask_base(
            f"select list(n order by n, r), list(r order by n, r) from ({computed} where text <> '')"
        )
        numbers, rows = found[0] if found else ((), ())
        return _Places(array("Q", numbers or ()), array("q", rows or ()))

    def in_tail(self, likeness: Likeness, keys: Sequence[str], nodes: Iterable[Node | None]) -> list[str]:
        """Return the ids of the nodes of the tail that have, or had, one of these texts; ``nodes`` is all of it."""
        known = self._later.get(likeness)
        if known is None:
            known = self._later[likeness] = {}
            _note(known, likeness, nodes)
        return [id_ for key in keys for id_ in known.get(key, ())]

    def note(self, changes: Changes) -> None:
        """Take in what one record changed."""
        for likeness, known in self._later.items():
            _note(known, likeness, (change.after for change in changes.nodes))

    def rebase(self) -> None:
        """Forget everything: there is another base, and no tail."""
        self._places.clear()
        self._later.clear()


def _note(known: dict[str, dict[str, None]], likeness: Likeness, nodes: Iterable[Node | None]) -> None:
    for node in nodes:
        if node is not None:
            for key in likeness.keys(node):
                known.setdefault(key, {})[node.id] = None
