"""The elements as an undo wants them, the operations that lead there, and what the graph would lose by it.

An edge that stands, or stood when it was undone to, is never left without an end in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from kbcore import inverse, limits
from kbcore.bare import resolve
from kbcore.errors import Problem, RevertConflict
from kbcore.history.shown import edge_name
from kbcore.history.undone import Conflict, files_of
from kbcore.ids import is_link_id, link_id
from kbcore.inverse import SAYS
from kbcore.model import Link, Node, SourceFile
from kbcore.needs import Needs, needs
from kbcore.record import Operation, StateLink, WithdrawLink
from kbcore.schema import LINK, Schema
from kbcore.state import Changes, Stamp, State, apply
from kbcore.view.view import View

_SHOWN_CHARS = 60
_SHOWN_FILES = 10


class Wanted(msgspec.Struct):
    """For each element, by key, what stands now and what is to stand; and which later changes are against it."""

    nodes: dict[str, tuple[Node | None, Node | None]]
    links: dict[str, tuple[Link | None, Link | None]]
    sources: dict[str, tuple[SourceFile | None, SourceFile | None]]
    conflicts: list[Conflict] = []
    restamped: set[str] = set()
    """Entities of which nothing but the time of the update was changed, and is to be put back."""

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations that lead from what stands to what is wanted."""
        ops: list[Operation] = []
        for key, (node, node_wanted) in self.nodes.items():
            ops += inverse.node_ops(node, node_wanted, restamp=key in self.restamped)
        for link, link_wanted in self.links.values():
            ops += inverse.link_ops(link, link_wanted)
        for source, source_wanted in self.sources.values():
            ops += inverse.source_ops(source, source_wanted)
        return tuple(ops)

    def files(self) -> list[str]:
        """Return the files whose facts are changed, in order."""
        found: set[str] = set()
        for node, node_wanted in self.nodes.values():
            found |= files_of(inverse.node_units(node), inverse.node_units(node_wanted))
        for link, link_wanted in self.links.values():
            found |= files_of(inverse.link_units(link), inverse.link_units(link_wanted))
        return sorted(found)

    def words(self, key: str) -> str:
        """Return an element as a person reads it."""
        now, wanted = self.links.get(key, (None, None))
        link = now or wanted
        return edge_words(link) if link else key


class Broken(msgspec.Struct, frozen=True):
    """An edge that would no longer stand, and why."""

    link: Link
    why: str


def edge_words(link: Link) -> str:
    """Return an edge as a person reads it."""
    return f"{link.from_id} {link.type or 'links to'} {link.to_id}"


def operations(
    view: View, found: Wanted, stamp: Stamp, schema: Schema, since: int
) -> tuple[tuple[Operation, ...], State, list[Broken]]:
    """Return the operations, the state to fold them into, and the edges that would no longer stand.

    Bare links whose ends come, go or turn are given the edge that they then mean, as in every other changeset.
    ``since`` is the first record that is undone: what did not fit before it may come back.
    """
    ops = found.operations()
    keys = frozenset(found.nodes), frozenset(found.links)
    state = view.gather(needs(ops) | Needs(keys[0], keys[1], keys[0] | keys[1], frozenset()))
    after = State(state.nodes.values(), state.links.values(), state.sources.values())
    changes = apply(after, stamp, ops)
    turned = _turned(changes)
    bare = [_on(state, op) for op in resolve(after, turned, schema)]
    apply(after, stamp, bare)
    broken = [*_unresolved(found, state, after), *_misfits(state, after, schema, turned.keys(), since)]
    return (*ops, *bare), state, broken


def _turned(changes: Changes) -> dict[str, str | None]:
    """Return the type after it of each entity that comes, goes (None) or gets another type."""
    return {
        change.key: change.after.type if change.after else None
        for change in changes.nodes
        if not (change.before and change.after and change.before.type == change.after.type)
    }


def _on(state: State, op: Operation) -> Operation:
    """Return an operation with the version that its edge has before the record."""
    if not isinstance(op, StateLink | WithdrawLink):
        return op
    old = state.links.get(link_id(op.type, op.kind, op.from_id, op.to_id))
    return msgspec.structs.replace(op, base=old.version if old else 0)


def _unresolved(found: Wanted, before: State, after: State) -> Iterator[Broken]:
    """Yield the edges that stand, or stood when they were undone to, and would lack an end."""
    for link in after.links.values():
        _, wanted = found.links.get(link.id, (None, None))
        meant = wanted or before.links.get(link.id)
        if meant and meant.stands and not link.stands:
            missing = [end for end in (link.from_id, link.to_id) if not after.exists(end)]
            yield Broken(meant, f"{' and '.join(missing)} would not exist")


def _misfits(before: State, after: State, schema: Schema, turned: AbstractSet[str], since: int) -> Iterator[Broken]:
    """Yield the edges, newer than what is undone, that would not fit the types that come back."""
    for link in after.links.values():
        ends = (link.from_id, link.to_id)
        if not link.stands or turned.isdisjoint(ends):
            continue
        others = [before.nodes[end].version for end in ends if end in before.nodes and end not in turned]
        is_newer = max(link.version, *others, 0) > since
        types = _types(after, link)
        if is_newer and not schema.fits(link.type, *types) and schema.fits(link.type, *_types(before, link)):
            yield Broken(link, f"`{link.type}` does not lead from {types[0]} to {types[1]}")


def _types(state: State, link: Link) -> tuple[str, str]:
    def type_of(end: str) -> str:
        node = state.nodes.get(end)
        return node.type if node else LINK if is_link_id(end) else ""

    return type_of(link.from_id), type_of(link.to_id)


def refuse(seqs: Sequence[int], found: Wanted, broken: Sequence[Broken]) -> None:
    """Refuse the undo if anything stands against it. Raises: ``RevertConflict`` with all of it."""
    problems = [_problem(found, conflict) for conflict in found.conflicts]
    problems += [
        Problem(
            edge_words(one.link),
            "broken_edge",
            f"The edge {edge_words(one.link)}, last changed by record {one.link.version}, would be broken: {one.why}.",
            "Remove the edge first, or use --force to leave it as it is.",
            one.link.statements[0].src,
        )
        for one in broken
    ]
    if not problems:
        return
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    records = ", ".join(map(str, seqs))
    raise RevertConflict(
        f"What {records} did cannot be undone: {problems[0].message}{more} Nothing was written.",
        details=problems[: limits.MAX_PROBLEMS],
        data={"conflicts": [_conflict_json(found, one) for one in found.conflicts[: limits.MAX_PROBLEMS]]},
    )


def _problem(found: Wanted, conflict: Conflict) -> Problem:
    words, seq = found.words(conflict.key), conflict.seq
    field = f"who states {words}" if conflict.field.startswith(SAYS) else f"`{conflict.field}` of {words}"
    message = {
        "created": f"Record {seq} made {words} anew.",
        "deleted": f"Record {seq} removed {words}.",
        "updated": f"Record {seq} changed {field} from {_short(conflict.before)} to {_short(conflict.after)}.",
    }[conflict.change]
    hint = f"Revert record {seq} first, or use --force to take the old values all the same."
    return Problem(f"{words}.{conflict.field}".rstrip("."), "later_change", message, hint, conflict.source)


def _conflict_json(found: Wanted, conflict: Conflict) -> dict[str, Any]:
    now, wanted = found.links.get(conflict.key, (None, None))
    name = edge_name(now or wanted)
    shown: dict[str, Any] = {"seq": conflict.seq, **({"edge": name} if name else {"id": conflict.key})}
    shown["change"] = conflict.change
    if conflict.field:
        field = "sources" if conflict.field.startswith(SAYS) else conflict.field
        shown |= {"field": field, "before": conflict.before, "after": conflict.after}
    return shown


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def sentences(found: Wanted) -> tuple[str, ...]:
    """Return the warnings that an undo comes with: files state what it changes, and will do so again."""
    files = found.files()
    if not files:
        return ()
    more = f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else ""
    named = ", ".join(files[:_SHOWN_FILES]) + more
    remedy = "The next `kb sync` takes them as the files state them; change the files to make it last."
    return (f"This changes facts of files: {named}. {remedy}",)
