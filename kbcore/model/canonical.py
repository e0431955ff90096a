"""The state as canonical lines and back: what a snapshot holds, and what proofs compare. Pure.

Equal states give equal bytes, in whatever order their elements came; every line is one fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kbcore.errors import FormatTooNew
from kbcore.model.graph import Link, Node, SyncedFile
from kbcore.model.state import State


class KnownChangeset(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A changeset that took effect, and the digest of its content: what makes sending it again harmless."""

    changeset_id: str
    seq: int
    digest: str


class Replayed(msgspec.Struct, frozen=True):
    """All that a history comes to: the present elements, and the changesets that took effect."""

    state: State
    known: list[KnownChangeset]


class _Fact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line; exactly one member is set."""

    source: SyncedFile | None = None
    node: Node | None = None
    link: Link | None = None
    changeset: KnownChangeset | None = None


_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(_Fact).decode


def lines(state: State, known: Iterable[KnownChangeset] = ()) -> Iterator[bytes]:
    """Yield the facts in canonical order (files, entities, links, changesets), each one line without newline."""
    for path in sorted(state.sources):
        yield _encode(_Fact(source=state.sources[path]))
    for key in sorted(state.nodes):
        yield _encode(_Fact(node=state.nodes[key]))
    for key in sorted(state.links):
        yield _encode(_Fact(link=state.links[key]))
    for one in sorted(known, key=lambda changeset: changeset.seq):
        yield _encode(_Fact(changeset=one))


def read(facts: Iterable[bytes]) -> Replayed:
    """Return what the lines of a snapshot say.

    Raises:
        FormatTooNew: a line is no fact that this program knows, although its checksum holds.
    """
    nodes: list[Node] = []
    links: list[Link] = []
    sources: list[SyncedFile] = []
    known: list[KnownChangeset] = []
    for number, line in enumerate(facts, start=1):
        try:
            fact = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FormatTooNew(f"Fact {number} of a snapshot is none that this KB knows: {error}.") from error
        if fact.node:
            nodes.append(fact.node)
        elif fact.link:
            links.append(fact.link)
        elif fact.source:
            sources.append(fact.source)
        elif fact.changeset:
            known.append(fact.changeset)
        else:
            raise FormatTooNew(f"Fact {number} of a snapshot is none that this KB knows.")
    return Replayed(State(nodes, links, sources), known)
