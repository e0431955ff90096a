"""Random histories: records of operations of every kind, as clients and syncs write them and worse."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from kbcore.ids import link_id
from kbcore.model import canonical
from kbcore.model.canonical import KnownChangeset
from kbcore.model.graph import Link, Node, NoteOnFile
from kbcore.model.record import (
    VOCABULARY,
    ConfirmLink,
    DropNode,
    ForgetSource,
    Operation,
    PutNode,
    ReadSource,
    Record,
    StateLink,
    WithdrawLink,
)
from kbcore.model.state import State
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.record_rows import FoldedRecord, fold
from tests.support.effort.scale import tries

FACTOR = int(os.environ.get("KB_TEST_FACTOR", "1"))
"""The factor by which the laws are tried on more examples than usual."""

LINEAGE = "f" * 64
STORE_ID = "e" * 32
IDS = ("A", "B", "é c")
FILES = ("", "docs/a.md", "docs/b's.md")
EDGES = (
    ("depends_on", "", "A", "B"),
    ("depends_on", "", "B", "A"),
    ("relates_to", "why", "A", "é c"),
    ("", "", "B", "nobody"),
)
ABOUT = tuple(("relates_to", "about", link_id(*edge), "é c") for edge in EDGES[:2])
DEEP = (("relates_to", "deep", link_id(*ABOUT[0]), link_id(*EDGES[2])),)
LINKS = EDGES + ABOUT + DEEP

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("a'\"\\\u2028\U0001f600", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "a.b", '"']), inner, max_size=2),
    max_leaves=4,
)
_attribute = _values.filter(lambda value: value is not None)
_times = st.sampled_from(["2020-01-01T00:00:00.000000Z", "2021-06-01T00:00:00.000000Z"])
_texts = st.sampled_from(["", "x", "y", "A"])
_node_fields: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["req", "test"]),
    "title": _texts,
    "name": st.sampled_from(["x", *IDS]),
    "tags": st.lists(_texts, max_size=2),
    "attributes.a": _attribute,
    "attributes.b.c": _attribute,
    "metadata.m": _attribute,
    "created_at": _times,
    "updated_at": _times,
    "source": st.sampled_from(["import", "docs/a.md"]),
}
_link_fields: dict[str, st.SearchStrategy[Any]] = {
    "confidence": st.sampled_from([0, 0.25, 1, 1.0]),
    "attributes.a": _attribute,
    "metadata.m": _attribute,
}
_link_stamps: dict[str, st.SearchStrategy[Any]] = {
    "created_at": _times,
    "created_by": st.sampled_from(["ann", "bob"]),
    "source": st.sampled_from(["import", "other"]),
}


@st.composite
def _subset(draw: Any, fields: dict[str, st.SearchStrategy[Any]]) -> tuple[dict[str, Any], tuple[str, ...]]:
    names = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=4))
    removed = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=1))
    return {name: draw(fields[name]) for name in names if name not in removed}, tuple(removed)


@st.composite
def _operation(draw: Any, *, bare: bool = True) -> Operation:
    kind = draw(
        st.sampled_from(["put", "put", "put", "drop", "link", "link", "link", "unlink", "confirm", "source", "forget"])
    )
    src = draw(st.sampled_from(FILES))
    if kind == "put":
        values, removed = draw(_subset(_node_fields))
        return PutNode(id=draw(st.sampled_from(IDS)), base=0, set=values, unset=removed, src=src)
    if kind == "drop":
        return DropNode(id=draw(st.sampled_from(IDS)), base=0)
    if kind in {"link", "unlink", "confirm"}:
        name, why, from_id, to_id = draw(st.sampled_from(LINKS))
        edge = {"type": name, "kind": why, "from_id": from_id, "to_id": to_id, "base": 0, "src": src}
        if kind == "unlink":
            return WithdrawLink(**edge)
        if kind == "confirm":
            return ConfirmLink(**{name: value for name, value in edge.items() if name != "src"})
        values, removed = draw(_subset(_link_fields if src else {**_link_fields, **_link_stamps}))
        return StateLink(**edge, set=values, unset=removed, said=draw(st.sampled_from(["", from_id] if bare else [""])))
    path = draw(st.sampled_from(FILES[1:]))
    if kind == "forget":
        return ForgetSource(path=path, base=0)
    notes = draw(st.lists(st.builds(NoteOnFile, line=st.integers(0, 9), code=_texts, message=_texts), max_size=1))
    digest = draw(st.sampled_from(["1" * 64, "2" * 64]))
    return ReadSource(
        path=path, hash=digest, extractor="markdown", base=0, is_ok=draw(st.booleans()), problems=tuple(notes)
    )


def _stated(edge: tuple[str, str, str, str], src: str = "") -> StateLink:
    return StateLink(type=edge[0], kind=edge[1], from_id=edge[2], to_id=edge[3], base=0, src=src)


_whole: list[Operation] = [PutNode(id=key, base=0, set={"type": "req", "title": key}) for key in IDS]
_preludes: list[list[list[Operation]]] = [
    [],
    [_whole],
    [_whole, [_stated(EDGES[0]), _stated(EDGES[1], FILES[1])]],
    [_whole, [_stated(edge) for edge in LINKS]],
    [[_stated(edge, FILES[1]) for edge in LINKS]],
]


def laws(examples: int) -> settings:
    """Return settings that try so many examples, times the factor, however long each takes; a slice tries a sixth."""
    return settings(max_examples=tries(-(-examples // 6), examples) * FACTOR, deadline=None)


def records(max_size: int = 8, max_ops: int = 4, *, bare: bool = True) -> st.SearchStrategy[list[list[Operation]]]:
    """Return histories: for each record its operations, their ``base`` still to be filled in.

    Some begin with a graph that is whole, because a random one seldom comes to be. Without ``bare`` no link is one
    whose type follows from its ends.
    """
    some = st.lists(st.lists(_operation(bare=bare), min_size=1, max_size=max_ops), min_size=1, max_size=max_size)
    return st.builds(lambda prelude, rest: [*prelude, *rest], st.sampled_from(_preludes), some)


def drawn(dice: random.Random, size: int, max_ops: int = 4, *, bare: bool = True) -> list[list[Operation]]:
    """Return a history of so many records, in the same words as ``records``: many of them cost little."""
    history = list(dice.choice(_preludes))[:size]
    while len(history) < size:
        history.append([_drawn_operation(dice, bare=bare) for _ in range(dice.randint(1, max_ops))])
    return history


def _drawn_operation(dice: random.Random, *, bare: bool) -> Operation:
    kind = dice.choice(["put", "put", "put", "drop", "link", "link", "link", "unlink", "confirm", "source", "forget"])
    src, path = dice.choice(FILES), dice.choice(FILES[1:])
    if kind == "put":
        values, removed = _drawn_subset(dice, [*_node_fields])
        return PutNode(id=dice.choice(IDS), base=0, set=values, unset=removed, src=src)
    if kind == "drop":
        return DropNode(id=dice.choice(IDS), base=0)
    if kind in {"link", "unlink", "confirm"}:
        name, why, from_id, to_id = dice.choice(LINKS)
        edge = {"type": name, "kind": why, "from_id": from_id, "to_id": to_id, "base": 0, "src": src}
        if kind == "unlink":
            return WithdrawLink(**edge)
        if kind == "confirm":
            return ConfirmLink(**{name: value for name, value in edge.items() if name != "src"})
        values, removed = _drawn_subset(dice, [*_link_fields, *([] if src else _link_stamps)])
        return StateLink(**edge, set=values, unset=removed, said=dice.choice(["", from_id]) if bare else "")
    if kind == "forget":
        return ForgetSource(path=path, base=0)
    notes = (NoteOnFile(line=dice.randrange(9), code="c", message=dice.choice(["x", "y"])),)
    digest, is_ok = dice.choice(["1" * 64, "2" * 64]), dice.random() < 0.5
    return ReadSource(
        path=path, hash=digest, extractor="markdown", base=0, is_ok=is_ok, problems=notes[: dice.randrange(2)]
    )


def _drawn_subset(dice: random.Random, names: list[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    chosen = dice.sample(names, dice.randint(0, min(4, len(names))))
    return {name: _drawn_value(dice, name) for name in chosen[1:]}, tuple(chosen[: dice.randrange(2)])


def _drawn_value(dice: random.Random, name: str) -> Any:
    plain = {
        "type": ["req", "test"],
        "name": ["x", *IDS],
        "title": ["", "x", "A"],
        "tags": [[], ["x"], ["x", "y"]],
        "confidence": [0, 0.25, 1, 1.0],
        "created_at": ["2020-01-01T00:00:00.000000Z", "2021-06-01T00:00:00.000000Z"],
        "created_by": ["ann", "bob"],
        "source": ["import", "docs/a.md"],
    }
    odd: list[Any] = [True, 1, 1.0, -(2**63), "'\"\\\u2028\U0001f600", [], [None, {"a.b": [1]}], {'"': {"k": False}}]
    return dice.choice(plain.get({"updated_at": "created_at"}.get(name, name), odd))


def entries_of(history: Sequence[Sequence[Operation]]) -> list[FoldedRecord]:
    """Return the history as journal entries, each operation with the version that it is made on."""
    state, found = State(), []
    for seq, ops in enumerate(history, start=1):
        record = Record(
            schema=VOCABULARY,
            changeset_id=f"cs-{seq}",
            digest=f"{seq:064x}",
            at=f"2026-11-20T09:{30 + seq // 60}:{seq % 60:02}.000000Z",
            actor=f"actor-{seq % 2}",
            source="cli",
            tool="kb/test",
            ops=tuple(based(state, ops)),
        )
        entry = FoldedRecord(seq, f"{seq:064x}", record, "journal-0000000001.jsonl", seq * 100, 100)
        fold(state, entry)
        found.append(entry)
    return found


def based(state: State, ops: Iterable[Operation]) -> list[Operation]:
    """Return the operations with the versions that elements have in a state."""
    return [msgspec.structs.replace(op, base=_version(state, op)) for op in ops]


def _version(state: State, op: Operation) -> int:
    element: Any
    if isinstance(op, PutNode | DropNode):
        element = state.nodes.get(op.id)
    elif isinstance(op, StateLink | WithdrawLink | ConfirmLink):
        element = state.links.get(link_id(op.type, op.kind, op.from_id, op.to_id))
    else:
        element = state.sources.get(op.path)
    return element.version if element else 0


def basis_at(entries: Sequence[FoldedRecord], seq: int) -> BaseStamp:
    """Return the basis of a view that has taken in the first ``seq`` entries."""
    if seq == 0:
        return BaseStamp(STORE_ID, LINEAGE, 0, LINEAGE, "", "journal-0000000001.jsonl", 0)
    last = entries[seq - 1]
    return BaseStamp(STORE_ID, LINEAGE, seq, last.sum, last.record.at, last.file, last.offset_bytes + last.length_bytes)


def content(state: State, *, with_files: bool = True) -> list[bytes]:
    """Return a state as canonical bytes without what a commit stamps."""

    def plain(element: Any) -> Any:
        is_stamped = isinstance(element, Node) and "updated_at" not in element.owners
        updated = {"updated_at": ""} if is_stamped else {}
        return msgspec.structs.replace(element, version=0, created_seq=0, **updated)

    sources = [msgspec.structs.replace(one, version=0) for one in state.sources.values()]
    nodes, links = map(plain, state.nodes.values()), map(plain, state.links.values())
    return lines_of(State(nodes, links, sources if with_files else ()))


def states_of(entries: Iterable[FoldedRecord]) -> list[State]:
    """Return the state at every seq, from 0, by full replay; states are not to be changed."""
    state, found = State(), [State()]
    for entry in entries:
        fold(state, entry)
        found.append(State(state.nodes.values(), state.links.values(), state.sources.values()))
    return found


def lines_of(state: State, known: Iterable[KnownChangeset] = ()) -> list[bytes]:
    """Return a state as canonical bytes."""
    return list(canonical.lines(state, known))


def resolved_links(state: State) -> dict[str, bool]:
    """Return, for each link, whether it is resolved by the rule alone: both ends exist and the type is known."""
    found: dict[str, bool] = {}

    def is_resolved(link: Link) -> bool:
        if link.id not in found:
            found[link.id] = bool(link.type) and all(exists(end) for end in (link.from_id, link.to_id))
        return found[link.id]

    def exists(end: str) -> bool:
        return end in state.nodes or (end in state.links and is_resolved(state.links[end]))

    for link in state.links.values():
        is_resolved(link)
    return found
