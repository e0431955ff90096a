"""The elements as an undo wants them, the operations that lead there, and the refusal with all that is against it.

An edge is never broken in silence, and nothing that was broken before prevents an undo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from kbcore import limits, progress
from kbcore.errors import InvalidChangeset, Problem, RevertConflict, StaleBase
from kbcore.errors.remedies import by_front_end, kb
from kbcore.ids import link_id
from kbcore.model import inverse
from kbcore.model.bare_links import resolve
from kbcore.model.concepts import VOCABULARY, concept_id
from kbcore.model.folding import apply
from kbcore.model.graph import CLIENT, Link, Node, Statement, SyncedFile
from kbcore.model.inverse import SAYS
from kbcore.model.read_set import ReadSet, needs
from kbcore.model.record import Operation, StateLink, WithdrawLink
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Stamp, State
from kbcore.store.history.renames import RenamesSince
from kbcore.store.history.shown import edge_name
from kbcore.store.history.undo_losses import Base, BrokenEdge, broken_by, edges_before, types_of
from kbcore.store.history.undo_units import RENAMED, LaterChange, files_of
from kbcore.store.planning.plan_builder import STALE_REMEDY, edge_words, future_seq_problem
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import more_problems, shortened, some_of
from kbcore.view.view import View
from kbcore.view.working_set import plan_until_stable

_SHOWN_CHARS = 60
_SHOWN_FILES = 10
_SHOWN_SEQS = 10
_SHOWN_GONE = 10
_OLD_VALUES = ", or write the old values with {kb_upsert}"
_FORCED = by_front_end(", or use --force to restore the old values", _OLD_VALUES)
_BROKEN = f"Remove the edge first{by_front_end(', or use --force to leave it as it is', '')}."
_VOCABULARY = frozenset(concept_id(*one) for one in VOCABULARY)
_USED = f"Remove what uses it first{by_front_end(', or use --force to leave it as it is', '')}."


class Restoration(msgspec.Struct):
    """For each element, by key, its present and its wanted state; and the later changes in conflict."""

    nodes: dict[str, tuple[Node | None, Node | None]]
    links: dict[str, tuple[Link | None, Link | None]]
    sources: dict[str, tuple[SyncedFile | None, SyncedFile | None]]
    conflicts: list[LaterChange] = []
    restamped: set[str] = set()
    """Entities of which nothing but the time of the update was changed, and is to be put back."""
    has_confirmed: bool = False
    """True if a record confirmed an edge, which cannot be undone."""
    gone: dict[str, int] = {}
    """Elements that the records made and others removed since, by key: the records that did."""
    changed_links: dict[str, Link] = {}
    """Edges as the records left them, by key."""
    names: RenamesSince | None = None
    """The renames since the first record that is undone."""
    changed_at: dict[str, int] = {}
    """The last record that changed each element, by key."""

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations from the present state to the wanted one."""
        ops: list[Operation] = []
        for key, (node, node_wanted) in progress.track(self.nodes.items(), len(self.nodes), "entities planned"):
            ops += inverse.node_ops(node, node_wanted, restamp=key in self.restamped)
        for link, link_wanted in progress.track(self.links.values(), len(self.links), "edges planned"):
            ops += inverse.link_ops(link, link_wanted)
        for source, source_wanted in self.sources.values():
            ops += inverse.source_ops(source, source_wanted)
        return tuple(ops)

    def files(self) -> list[str]:
        """Return the files whose facts are changed, in order."""
        found: set[str] = set()
        for node, node_wanted in self.nodes.values():
            if _is_of_files(node) or _is_of_files(node_wanted):
                found |= files_of(inverse.node_units(node), inverse.node_units(node_wanted))
        for link, link_wanted in self.links.values():
            if _is_of_files(link) or _is_of_files(link_wanted):
                found |= files_of(inverse.link_units(link), inverse.link_units(link_wanted))
        return sorted(found)

    def words(self, key: str) -> str:
        """Return an element as a person reads it."""
        link = self.edge(key)
        return edge_words(link) if link else key

    def edge(self, key: str) -> Link | None:
        """Return the edge with a key, as it is, as it is wanted or as the records left it; None for an entity."""
        now, wanted = self.links.get(key, (None, None))
        return now or wanted or self.changed_links.get(key)


def _is_of_files(element: Node | Link | None) -> bool:
    """Tell whether a file states anything of an element."""
    if element is None:
        return False
    return bool(element.owners) or (
        isinstance(element, Link) and any(statement.src != CLIENT for statement in element.statements)
    )


class Way(msgspec.Struct, frozen=True):
    """The operations of an undo, what they change, and what was loaded of the state to find that."""

    ops: tuple[Operation, ...]
    changes: Changes
    loaded: ReadSet
    broken: list[BrokenEdge]
    """The edges that they would break."""


def operations(view: View, found: Restoration, stamp: Stamp, schema: Schema, since: int) -> Way:
    """Return the operations that lead to what is wanted.

    Bare links whose ends come, go or get another type are given the edge that they then mean, as in every other
    changeset; but one that gets back the edge and the types of its ends that it had before the undone records keeps it.
    ``since`` is the first record that is undone: what was broken before it may come back.
    """
    ops = found.operations()
    nodes, links = frozenset(found.nodes), frozenset(found.links)

    def plan(state: State) -> _Planned:
        after = state.copied()
        changes = apply(after, stamp, ops)
        retyped = _changed_types(changes)
        bare = resolve(after, retyped, schema)
        if bare:
            bare = resolve(after, retyped, schema, keeps=_as_before(view, after, bare, (since - 1, found.names)))
        if not bare:
            return _Planned(ops, changes, after)
        after, all_ops = state.copied(), (*ops, *(_on(state, op) for op in bare))
        return _Planned(all_ops, apply(after, stamp, all_ops), after)

    planned, state = plan_until_stable(view, needs(ops) | ReadSet(nodes, links, nodes | links, frozenset()), plan)
    broken = broken_by(view, state, planned.after, schema, (since - 1, found.names))
    return Way(planned.ops, planned.changes, state.loaded, broken)


def _as_before(view: View, after: State, bare: Sequence[Operation], base: Base) -> Callable[[Link, Statement], bool]:
    """Return what tells whether a bare link, one of those that would get another edge, is as it was before.

    Its edge and the types of its ends count. Its file does not: it may have moved.
    """
    keys = {link_id(op.type, op.kind, op.from_id, op.to_id) for op in bare if isinstance(op, WithdrawLink)}
    then = edges_before(view, [after.links[key] for key in keys], base)

    def is_as_before(link: Link, statement: Statement) -> bool:
        old = then.links.get(link.id)
        is_stated = old is not None and any(one.said == statement.said for one in old.statements)
        return is_stated and types_of(then, link) == types_of(after, link)

    return is_as_before


class _Planned(msgspec.Struct, frozen=True):
    """The operations of an undo, what they change, and the state that they lead to."""

    ops: tuple[Operation, ...]
    changes: Changes
    after: State


def _changed_types(changes: Changes) -> dict[str, str | None]:
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


def keep_vocabulary(found: Restoration, broken: Sequence[BrokenEdge]) -> bool:
    """Leave the concepts that every store knows where an edge of others needs them; tell whether there are any.

    Such a concept is recorded by whoever uses it first, so that others may use it before that is undone.
    """
    ends = {end for one in broken for end in (one.link.from_id, one.link.to_id)}
    kept = [key for key in ends & _VOCABULARY if key in found.nodes and found.nodes[key][1] is None]
    for key in kept:
        del found.nodes[key]
    return bool(kept)


def refuse(
    seqs: Sequence[int], found: Restoration, broken: Sequence[BrokenEdge], used: Sequence[tuple[str, str]]
) -> None:
    """Refuse the undo if it has conflicts; ``used`` are definitions in use that would go, and by what.

    Raises: ``RevertConflict`` with all of it.
    """
    left = [*map(_broken_problem, broken), *(Problem(key, "in_use", message, _USED) for key, message in used)]
    problems = [*(_problem(found, one) for one in found.conflicts), *left]
    if not problems:
        return
    more = more_problems(len(problems) - 1)
    what = f"Record {seqs[0]}" if len(seqs) == 1 else f"Records {', '.join(map(str, sorted(seqs)))}"
    raise RevertConflict(
        f"{what} cannot be undone: {problems[0].message}{more}",
        hint=_remedy(seqs, found.conflicts, left),
        details=problems[: limits.MAX_PROBLEMS],
        says_first=True,
        data={
            "conflicts": [_conflict_json(found, one) for one in found.conflicts[: limits.MAX_PROBLEMS]],
            "changed_at": max(_changed_at(found, broken).values(), default=0),
        },
    )


def check_expected(found: Restoration, broken: Sequence[BrokenEdge], expected_seq: int, *, head: int) -> None:
    """Refuse the undo where a record after the expected one changed what it would change, or an edge that it breaks.

    Raises: ``InvalidChangeset`` for a seq that no record has; ``StaleBase`` with all that changed.
    """
    if not 0 <= expected_seq <= head:
        problem = future_seq_problem(expected_seq, head)
        raise InvalidChangeset(problem.message, hint=problem.remedy, details=[problem], says_first=True)
    problems = [
        Problem(words, "stale", f"{in_quotes(words)} changed at seq {seq}, after {expected_seq}.", STALE_REMEDY)
        for words, seq in _changed_at(found, broken).items()
        if seq > expected_seq
    ]
    if problems:
        message = f"{problems[0].message}{more_problems(len(problems) - 1)}"
        raise StaleBase(message, hint=STALE_REMEDY, details=problems[: limits.MAX_PROBLEMS], says_first=True)


def _changed_at(found: Restoration, broken: Sequence[BrokenEdge]) -> dict[str, int]:
    """Return the last record that changed what an undo changes or breaks, by what to call that."""
    return {found.words(key): seq for key, seq in found.changed_at.items()} | {
        edge_words(one.link): one.seq for one in broken
    }


def _remedy(seqs: Sequence[int], conflicts: Sequence[LaterChange], left: Sequence[Problem]) -> str:
    """Return what to do about all of it at once, so that no advice fails on the next problem.

    ``left`` are the problems with what would be left.
    """
    if not conflicts:
        return left[0].remedy
    later = {one.seq for one in conflicts}
    if any(one.change == RENAMED for one in conflicts):
        # A rename of what documents name is undone by itself, with the documents.
        steps = some_of([f"{kb('revert', seq)}" for seq in sorted({*seqs, *later}, reverse=True)], _SHOWN_SEQS)
        option = by_front_end("--files", "`files` true")
        return f"Undo one after the other, the newest first: {steps}; with {option} where documents name the entity."
    forced = by_front_end("; --force restores the old values", _OLD_VALUES)
    together = sorted({*seqs, *later}, reverse=True)
    named = f"{kb('revert', *together)}" if len(together) <= _SHOWN_SEQS else "Reverting them all"
    way = by_front_end(", or --force leaves it", "")
    more = f" What would remain is to be removed first{way}." if left else ""
    return f"{named} undoes the later changes as well{forced}.{more}"


def _problem(found: Restoration, conflict: LaterChange) -> Problem:
    words, seq = found.words(conflict.key), conflict.seq
    if conflict.change == RENAMED:
        message = f"{conflict.before} was renamed to {conflict.after} by record {seq}."
        return Problem(words, "later_change", message, f"Revert record {seq} first or as well.")
    field = f"who states {words}" if conflict.field.startswith(SAYS) else f"`{conflict.field}` of {words}"
    message = {
        "created": f"Record {seq} created {words} again.",
        "deleted": f"Record {seq} removed {words}.",
        "updated": f"Record {seq} changed {field} from {_short(conflict.before)} to {_short(conflict.after)}.",
    }[conflict.change]
    hint = f"Revert record {seq} as well{_FORCED}."
    return Problem(f"{words}.{conflict.field}".rstrip("."), "later_change", message, hint, conflict.source)


def _broken_problem(one: BrokenEdge) -> Problem:
    words = edge_words(one.link)
    changed = f", last changed by record {one.seq}," if one.seq else ""
    message = f"The edge {words}{changed} would be broken: {one.why}."
    return Problem(words, "broken_edge", message, _BROKEN, one.link.statements[0].src)


def _conflict_json(found: Restoration, conflict: LaterChange) -> dict[str, Any]:
    name = edge_name(found.edge(conflict.key))
    shown: dict[str, Any] = {"seq": conflict.seq, **({"edge": name} if name else {"id": conflict.key})}
    shown["change"] = conflict.change
    if conflict.change == RENAMED:
        shown["to"] = conflict.after
    if conflict.field:
        field = "sources" if conflict.field.startswith(SAYS) else conflict.field
        shown |= {"field": field, "before": conflict.before, "after": conflict.after}
    return shown


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    return shortened(msgspec.json.encode(value).decode(), _SHOWN_CHARS)


def undone_already(seqs: Sequence[int], found: Restoration, ops: Sequence[Operation]) -> tuple[str, ...]:
    """Return what to say of what records made and others removed since, and where nothing is left to be undone."""
    said = []
    if not ops and not found.has_confirmed:
        named = f"Record {seqs[0]} is" if len(seqs) == 1 else f"Records {', '.join(map(str, sorted(seqs)))} are"
        said.append(f"{named} undone already: nothing of what was changed is left to undo.")
    entities = {found.gone[key] for key in found.gone if key in found.nodes}
    gone = [
        f"{found.words(key)} (removed by record {seq})"
        for key, seq in found.gone.items()
        if key in found.nodes or seq not in entities
    ]
    if gone:
        said.append(f"Not there any more, so not undone: {some_of(gone, _SHOWN_GONE)}.")
    return tuple(said)


def sentences(found: Restoration, restored: Collection[str] = ()) -> tuple[str, ...]:
    """Return the warnings that an undo comes with: what files state they will state again, and what is not undone.

    ``restored`` are files that become again as they were.
    """
    kept = ("Confirmations of edges are not undone: they change no value.",)
    confirmed = kept if found.has_confirmed else ()
    files = [path for path in found.files() if path not in restored]
    if not files:
        return confirmed
    named = some_of(files, _SHOWN_FILES)
    remedy = f"The next {kb('sync')} takes them as the files state them; change the files to make it last."
    return (f"This changes facts of files: {named}. {remedy}", *confirmed)
