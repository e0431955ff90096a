"""The amount of measurements: in a complete run, in one that only shows that it works, and by the guard."""

from __future__ import annotations

import msgspec

_LARGE = 20_000
"""From here on one run takes long enough for its noise to be small in comparison."""


class Sizes(msgspec.Struct, frozen=True):
    """The sizes of every kind of thing, each from the smallest to the largest, and the numbers of rounds.

    ``rounds`` are of processes that end soon, ``long_rounds`` of others; ``calls`` are calls over MCP.
    """

    documents: tuple[int, ...] = (1_000, 5_000, 100_000)
    symbols: tuple[int, ...] = (1_000, 20_000, 189_000)
    """Symbols in manifests of 4,000 each."""
    code: tuple[int, ...] = (1_000, 20_000, 100_000)
    """Symbols in source files of a hundred each."""
    records: tuple[int, ...] = (1_000, 5_000, 100_000)
    shown: tuple[int, ...] = (1_000, 10_000, 100_000)
    """Records of the branch that the explorer shows."""
    watched: tuple[int, ...] = (1_000, 10_000, 100_000)
    concepts: tuple[int, ...] = (1_000, 10_000, 100_000)
    """Concepts of KIP, with three links each."""
    changes: tuple[int, ...] = (100, 1_000, 10_000)
    """Changes of one entity, for its history."""
    shared: tuple[int, ...] = (1_000, 10_000)
    """Changes of clients that are merged, or compared with another branch."""
    packed: tuple[int, ...] = (1_000, 10_000, 100_000)
    """Changes of clients in packs; 3 % as many are in files of their own."""
    unshared: tuple[int, ...] = (1, 100)
    """Changes of clients that a commit takes along."""
    entities: tuple[int, ...] = (1_000, 10_000)
    """Entities against a peer that is a server."""
    asserts: tuple[int, ...] = (1, 1_000, 10_000)
    """Clauses of Prolog that are added at once."""
    facts: tuple[int, ...] = (10_000, 100_000)
    """Facts in a file of Prolog."""
    graph: int = 20_000
    """Records of the store whose graph is facts of Prolog, five of each record."""
    requirements: int = 1_000
    """Documents against the peers that are programs."""
    settle_s: float = 2.5
    """The age at which a file counts as unchanged by its times only, for KB as for git."""
    tail: int = 200
    calls: int = 300
    saves: int = 20
    rounds: int = 15
    long_rounds: int = 5

    def rounds_of(self, count: int) -> int:
        """Return the rounds of a process that ends soon, with so many things before it."""
        return self.rounds if count < _LARGE else max(1, self.rounds // 2)

    def long_rounds_of(self, count: int) -> int:
        """Return the rounds of a process that takes the longer the more there is."""
        return self.long_rounds if count < _LARGE else max(1, self.long_rounds // 2)


FULL = Sizes()

QUICK = Sizes(
    documents=(40,),
    symbols=(40,),
    code=(40,),
    records=(100, 300),
    shown=(100,),
    watched=(40,),
    concepts=(200,),
    changes=(40,),
    shared=(20,),
    packed=(100,),
    unshared=(1,),
    entities=(20,),
    asserts=(1, 10),
    facts=(50,),
    graph=100,
    requirements=20,
    settle_s=0.0,
    tail=10,
    calls=5,
    saves=2,
    rounds=1,
    long_rounds=1,
)
"""Only shows that everything runs; the figures mean nothing."""

GUARD = Sizes(
    documents=(5_000,),
    symbols=(20_000,),
    code=(20_000,),
    records=(5_000,),
    shown=(10_000,),
    changes=(1_000,),
    concepts=(10_000,),
    shared=(1_000,),
    packed=(1_000,),
    calls=150,
    rounds=9,
    long_rounds=5,
)
"""Of each thing one size that a whole run has too, so that there is a ratio to compare with."""
