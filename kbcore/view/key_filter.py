"""The keys that a base may have, known without a query: a Bloom filter for each column looked up by key.

Invariant: a key that the base has is never reported absent. One that it lacks is reported absent nearly always.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kbcore.view.tables import AskBase
from kbcore.view.tail import Tail

NODE_IDS: Final = "node ids"
LINK_IDS: Final = "link ids"
LINK_ENDS: Final = "link ends"
CHANGESETS: Final = "changesets"

_COLUMNS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    NODE_IDS: (("node", "id"),),
    LINK_IDS: (("link", "id"),),
    LINK_ENDS: (("link", "from_id"), ("link", "to_id")),
    CHANGESETS: (("record", "changeset_id"),),
}
"""The columns of a base that each filter covers."""

_BITS_PER_KEY: Final = 16
"""With two bits set for each key, about one absent key in seventy is not recognised."""
_LEAST_BITS: Final = 1 << 13
_MOST_BITS: Final = 1 << 26
"""8 MiB for each filter. A larger base has filters that recognise fewer absent keys."""
_PATIENCE: Final = 32
"""Look-ups of a base before its filters are worth making, so that a short command never makes them."""
_ROWS_PER_QUESTION: Final = 500
"""Keys read in the time of one look-up: filters are made once look-ups have taken as long as that."""


class KeyFilter:
    """The filters of one base. ``ask_base`` answers SQL over the base alone."""

    def __init__(self, ask_base: AskBase) -> None:
        self._ask_base = ask_base
        self._filters: dict[str, _Bloom] = {}
        self._asked = 0
        self._rows: int | None = None

    @property
    def may_be_due(self) -> bool:
        """Tell whether so much was looked up that the filters may be worth making: for a large base that takes more."""
        return not self._filters and self._asked >= _PATIENCE

    def make_when_due(self) -> None:
        """Read the keys of the base, if so much was looked up in it that this is worth its time."""
        if not self.may_be_due:
            return
        if self._rows is None:
            counts = (f"(select count(*) from base.{table})" for columns in _COLUMNS.values() for table, _ in columns)
            [(self._rows,)] = self._ask_base(f"select {' + '.join(counts)}")
        if self._asked >= self._rows // _ROWS_PER_QUESTION:
            self.make()

    def make(self) -> None:
        """Read the keys of the base: about a second for a million of them."""
        self._filters = {name: _read(self._ask_base, columns) for name, columns in _COLUMNS.items()}

    def possible(self, name: str, keys: Collection[str]) -> list[str]:
        """Return those of the keys that the base may have in the columns of this filter."""
        self._asked += bool(keys)
        found = self._filters.get(name)
        return list(keys) if found is None else [key for key in keys if found.may_have(key)]

    def rebase(self, tail: Tail) -> None:
        """Go on with a base that holds the tail as well."""
        nodes, links = tail.elements["node"].keys(), tail.elements["link"].keys()
        self.grow({NODE_IDS: nodes, LINK_IDS: links, LINK_ENDS: tail.ends, CHANGESETS: tail.changesets.keys()})

    def grow(self, added: Mapping[str, Collection[str]]) -> None:
        """Note keys of a new base next to those of the old one; filters that get too full are made again when due."""
        for name, keys in added.items():
            found = self._filters.get(name)
            if found is not None and not found.add(keys):
                self._filters.clear()
                self._asked, self._rows = 0, None
                return


class _Bloom:
    """Bits, of which each key sets two, by 64 bits of its MD5."""

    def __init__(self, bits: bytearray, room: int) -> None:
        self._bits = bits
        self._mask = 8 * len(bits) - 1
        self._room = room
        """The number of keys that can still be added."""

    def may_have(self, key: str) -> bool:
        """Tell whether the key may be one of those that were added."""
        return all(self._bits[place >> 3] & 128 >> (place & 7) for place in self._places(key))

    def add(self, keys: Collection[str]) -> bool:
        """Add keys; return whether there was room for them."""
        self._room -= len(keys)
        for place in (place for key in keys for place in self._places(key)):
            self._bits[place >> 3] |= 128 >> (place & 7)
        return self._room >= 0

    def _places(self, key: str) -> Iterable[int]:
        digest = hashlib.md5(key.encode(errors="surrogatepass"), usedforsecurity=False).digest()
        number = int.from_bytes(digest[8:], "little")
        return number & self._mask, number >> 32 & self._mask


def _read(ask_base: AskBase, columns: Iterable[tuple[str, str]]) -> _Bloom:
    """Return the filter of some columns; the database computes the same places as ``_Bloom``."""
    counted = " + ".join(f"(select count(*) from base.{table})" for table, _ in columns)
    [(count,)] = ask_base(f"select {counted}")
    size = _LEAST_BITS
    while size < min(2 * _BITS_PER_KEY * count, _MOST_BITS):  # room for as many keys again
        size *= 2
    numbers = " union all ".join(
        f"select md5_number_lower({column}) as n from base.{table}" for table, column in columns
    )
    places = f"select unnest([n % {size}, (n >> 32) % {size}])::bigint as place from ({numbers})"
    [(bits,)] = ask_base(f"select bitstring_agg(place, 0, {size - 1})::blob from ({places})")
    return _Bloom(bytearray(bits or size // 8), max(size // _BITS_PER_KEY, 2 * count) - count)
