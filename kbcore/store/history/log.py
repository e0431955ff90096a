"""The audit trail: which records there are, and what one record changed, before and after.

Answered from the view's history; only pruned records are out of reach, and every answer without them says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.errors import HistoryPruned, NotFound, Problem
from kbcore.errors.remedies import for_shell, kb
from kbcore.ids import is_link_id
from kbcore.model.graph import Node, former_ids
from kbcore.model.record import EPOCH, MERGE, REDACTION, REPAIR, SALVAGE, SYNC, UNPROVEN, ChangeOperation
from kbcore.model.renames import joined
from kbcore.model.state import ElementChange
from kbcore.query.former_ids import called_again, created_seqs, passed_on, successor
from kbcore.store.branch_store import BranchStore
from kbcore.store.history import moment, shown
from kbcore.store.history.reach import check_record, first_record, not_listed
from kbcore.store.history.touched import changes_of
from kbcore.store.history.when import When
from kbcore.store.history.writers import WriterFilter, came_with, known_writers, records_with
from kbcore.store.planning.plan_builder import edge_words
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.view.gaps import out_of_reach
from kbcore.view.history import (
    LINKS,
    NODES,
    SOURCES,
    ElementTable,
    Later,
    changes_at,
    changes_from,
    count_changed,
    renames_between,
    seqs_of,
)
from kbcore.view.view import View

_COLUMNS = (
    "seq, changeset_id, written_at, clock, actor, source, message, repair, commit, session, "
    "created, updated, deleted, renamed, edges, changes"
)
_MOST_CHANGES: Final = 100
"""Changes that came or went with a record, of which it is shown where they are from."""
_AT_ONCE: Final = 1_000
_MOST_ACTORS: Final = 1_000
_TABLES: Final[tuple[ElementTable[Any], ...]] = (NODES, LINKS, SOURCES)
_SHOWN: Final[Mapping[str, tuple[str, Callable[[ElementChange[Any]], dict[str, Any]]]]] = {
    NODES.name: ("entity", shown.entity_change),
    LINKS.name: ("edge", shown.edge_change),
    SOURCES.name: ("file", shown.file_change),
}
"""The name of an operation, and the view of it, by the table of the element that it changed."""


class RecordFilter(msgspec.Struct, frozen=True):
    """The filter of records; an empty member excludes none.

    An actor and a session select the records with which changes of theirs came, too.
    """

    actor: str = ""
    source: str = ""
    """Their source; ``mcp`` means every ``mcp:…``."""
    session: str = ""
    since: When | None = None
    """After this point; of a time after the last record that was written before its first instant."""
    until: When | None = None
    """Up to this point; of a time up to its last instant."""
    of_clients: bool = False
    """Only records of clients and what they wrote: of a sync or a merge only those that brought changes of the writer,
    and none about the store itself."""

    @property
    def writer(self) -> WriterFilter:
        """Return whose records these are, and whose changes that came with records of others."""
        return WriterFilter(self.actor, self.session)

    def bounds(self, view: View) -> tuple[int, int]:
        """Return the last seq before what is meant, and the last seq of it. Raises: as ``moment.after``."""
        low = moment.after(view, self.since) if self.since else 0
        return low, moment.up_to(view, self.until) if self.until else view.recorded_seq

    def conditions(self, view: View) -> tuple[list[str], list[Any]]:
        """Return the conditions of SQL for the table of records, with their parameters. Raises: as ``bounds``."""
        low, high = self.bounds(view)
        found, params = ["file <> ''", "seq > ?", "seq <= ?"], list[Any]([low, high])
        own, own_params = list[str](), list[Any]()
        for column, wanted in (("actor", self.actor), ("session", self.session)):
            if wanted:
                own.append(f"{column} = ?")
                own_params.append(wanted)
        if self.of_clients:
            own.append("source not in (select unnest(?::varchar[]))")
            own_params.append([SYNC, MERGE, REPAIR, EPOCH, SALVAGE, UNPROVEN, REDACTION])
        brought = sorted(records_with(view, self.writer))
        if brought:
            own = [f"({' and '.join(own)} or seq in (select unnest(?::bigint[])))"]
            own_params.append(brought)
        found += own
        params += own_params
        if self.source:
            found.append("(source = ? or starts_with(source, ?))")
            params += [self.source, f"{self.source}:"]
        return found, params

    def seqs(self, view: View) -> list[int]:
        """Return the seqs of the records, in order. Raises: as ``bounds``."""
        found, params = self.conditions(view)
        sql = f"select seq from record where {' and '.join(found)} order by seq"  # noqa: S608 - constants
        return [row[0] for row in view.rows(sql, params)]

    def check_known(self, view: View, own_session: str = "") -> None:
        """Refuse an actor or a session of whom nothing is in the branch, but for the session of the caller.

        Raises: ``NotFound`` with one like it.
        """
        known = known_writers(view) if self.writer else set()
        for name, wanted, there in (
            ("actor", self.actor, {actor for actor, _ in known}),
            ("session", self.session, {own_session, *(session for _, session in known)}),
        ):
            if wanted and wanted not in there:
                hint = is_it(near_ones(wanted, sorted(there - {""})[:_MOST_ACTORS]))
                hint = f"{hint} {kb('log')} shows who wrote what.".lstrip()
                message = f"Nothing in this branch is by the {name} {in_quotes(wanted)}."
                raise NotFound(message, hint=hint, details=[Problem(f"$.{name}", f"unknown_{name}", message, hint)])

    def near_actors(self, view: View) -> str:
        """Return a question for the actors that are like one of whom there is no record, "" where none is."""
        if not self.actor:
            return ""
        actors = sorted({actor for actor, _ in known_writers(view)})[:_MOST_ACTORS]
        return is_it(near_ones(self.actor, actors)) if self.actor not in actors else ""

    def notes(self, view: View) -> list[str]:
        """Return which instants or records the points mean."""
        since = moment.said_of(view, self.since, is_since=True) if self.since else ""
        until = moment.said_of(view, self.until, is_since=False) if self.until else ""
        return [said for said in (since, until) if said]

    def warnings(self, view: View) -> list[str]:
        """Return what is to be said of the clocks near the points."""
        return moment.clock_notes(view, *filter(None, (self.since, self.until)))


EVERYTHING: Final = RecordFilter()


def log(
    view: View,
    selection: RecordFilter = EVERYTHING,
    *,
    id: str = "",  # noqa: A002 - the word of the contract
    limit: int | None = None,
    before_seq: int | None = None,
) -> list[dict[str, Any]]:
    """Return the records of a branch, newest first, in the shape of the contract.

    Args:
        view: the branch.
        selection: only these records.
        id: only records that changed this entity or an edge of it, or this edge; it may be gone by now.
        limit: at most so many.
        before_seq: only records before this one, to go on from an earlier page.

    Raises: ``NotFound`` for an id that was never in this branch; as ``RecordFilter.bounds``.
    """
    conditions, params = selection.conditions(view)
    if id:
        seqs = seqs_about(view, id)
        conditions.append("seq in (select unnest(?::bigint[]))")
        params.append(seqs)
    if before_seq is not None:
        conditions.append("seq < ?")
        params.append(before_seq)
    sql = f"select {_COLUMNS} from record where {' and '.join(conditions)} order by seq desc"  # noqa: S608 - constants
    if limit is not None:
        sql += " limit ?"
        params.append(limit)
    rows = view.rows(sql, params)
    came = came_with(view, [row[0] for row in rows if row[-1]])
    writers = {seq: sorted({one.actor for one in changes}) for seq, changes in came.items()}
    return [_record(row) | ({"changes_by": writers[row[0]]} if row[0] in writers else {}) for row in rows]


def seqs_about(view: View, key: str) -> list[int]:
    """Return the seqs of the records that changed an entity or an edge, under this id or one that it had before.

    Raises: ``NotFound`` for an id that was never in this branch.
    """
    ids = ids_of(view, key)
    created = created_seqs(view, ids)
    before = passed_on(view, key, created[key], view.recorded_seq) if key in created else 0
    seqs = {seq for seq in seqs_of(view, key) if seq > before}
    # Another entity has a former id since its creation: what is about it from then on is not about this one.
    seqs |= {seq for one in ids[1:] for seq in seqs_of(view, one) if one not in created or seq < created[one]}
    if not seqs:
        raise no_such_entity(view, key)
    return sorted(seqs)


def ids_of(view: View, key: str, changes: Mapping[int, Later[Node]] | None = None) -> list[str]:
    """Return the id of an entity or an edge, and those that the entity had before, also where it was renamed back.

    A former id that another entity has is among them only where records of this branch have this one under it.
    ``changes`` are those of ``touched.changes_of`` from the first record on, where the caller has them.
    """
    nodes = view.nodes([key])
    if changes is None:
        changes = changes_of(view, key, 0) if nodes else {}
    had = [one.before.id for one in changes.values() if one.before] if nodes else []
    former = [one for node in nodes for one in former_ids(node)]
    others = created_seqs(view, former)
    return [*dict.fromkeys((key, *(one for one in former if one not in others), *had))]


def no_such_entity(view: View, key: str) -> NotFound:
    """Return the error for an id that names no entity now: it is gone, an edge, awaited by an edge, or unknown."""
    now = view.renamed([key]).get(key)
    if now:
        return NotFound(f"{in_quotes(key)} is called {in_quotes(now)} now.", hint=f"{kb('show', now)} shows it.")
    gone = view.rows("select max(ended) from any_node_history where id = ?", [key])[0][0]
    if gone is not None and gone > view.recorded_seq:
        hint = f"{kb('log', key)} shows the records about it."
        return NotFound(
            f"{in_quotes(key)} was removed: no file states it any more, which is not recorded yet.", hint=hint
        )
    if gone is not None:
        return _removed(view, key, gone)
    records = f"{kb('log', key)} shows the records about it."
    if is_link_id(key) and view.links([key]):
        return NotFound(f"{in_quotes(key)} is an edge, not an entity.", hint=records)
    unresolved = sorted(edge_words(link) for link in view.touching([key]))
    if unresolved:
        more = f" (and {len(unresolved) - 1} more)" if len(unresolved) > 1 else ""
        return NotFound(
            f"There is no entity {in_quotes(key)}; there is an unresolved edge to it: {unresolved[0]}{more}.",
            hint=records,
        )
    from kbcore.query.data_names import near_ids  # noqa: PLC0415 - only failures pay for it

    hint = "" if is_link_id(key) else is_it(near_ids(view.rows, key))
    said = not_listed(view).sentences()
    if said:
        first = first_record(view)
        message = f"No entity {in_quotes(key)} was in this branch since seq {first}. {' '.join(said)}"
        return NotFound(message, hint=hint)
    return NotFound(f"No entity {in_quotes(key)} was ever in this branch.", hint=hint)


def _removed(view: View, key: str, gone: int) -> NotFound:
    """Return the error for an id that an entity had until the record at a seq removed it or gave it another one."""
    again = called_again(view, key, gone)
    if again:
        message = f"{in_quotes(key)} is called {in_quotes(again)} since seq {gone}, which undid its rename."
        return NotFound(message, hint=f"{kb('show', again)} shows it.")
    later = successor(view, key, gone, view.recorded_seq)
    was = f"{in_quotes(key)} was renamed to {in_quotes(later.id)}" if later else in_quotes(key)
    if later and not later.removed:
        return NotFound(f"{was}, and is no former id of it any more.", hint=f"{kb('show', later.id)} shows it.")
    was, removed = (f"{was}, which", later.removed) if later else (was, gone)
    return NotFound(f"{was} was removed at seq {removed}.", hint=f"{kb('show', removed)} shows what happened.")


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    seq, changeset_id, at, clock, actor, source, message, repair, commit, session, *counts = row
    created, updated, deleted, renamed, edges, _ = counts
    changed = {"created": created, "updated": updated, "deleted": deleted}
    found = {
        "seq": seq,
        "changeset_id": changeset_id,
        "at": at,
        "actor": actor,
        "source": source,
        "message": message,
        "summary": {**changed, **({"renamed": renamed} if renamed else {}), "edges": edges},
    }
    found |= {name: value for name, value in (("commit", commit), ("session", session)) if value}
    # A clock of which an earlier one was ahead is right: the two are then the same.
    found |= {"clock": clock} if clock and clock != at else {}
    return {**found, "repair": for_shell(repair)} if repair else found


def record_json(store: BranchStore, view: View, seq: int) -> dict[str, Any]:
    """Return one record with its operations, each with the element before and after, and the fields that differ.

    Raises: as ``record_facts``.
    """
    check_record(view, seq)
    facts = record_facts(store, view, seq)
    changes = joined(changes_at(view, seq))
    operations = [
        *(_operation(NODES, change) for change in changes.nodes),
        *(_operation(LINKS, change) for change in changes.links),
        *(_operation(SOURCES, change) for change in changes.sources),
    ]
    return {**facts, "operations": operations}


def stated_json(store: BranchStore, view: View, seq: int) -> dict[str, Any] | None:
    """Return one record with what it states, where records before it are missing; None where it is missing itself.

    The elements before and after are not proven: ``after`` has only what the record states, and ``partial`` says so.

    Raises: what reading the journal raises.
    """
    record = store.record_at(view, seq)
    if record is None:
        return None
    reason = out_of_reach(view.rows, view.basis.history_from, seq, is_record=True, is_unproven=True).message
    operations = [shown.stated_operation(op) for op in record.ops]
    return {**record_facts(store, view, seq), "partial": reason, "operations": operations}


def record_facts(store: BranchStore, view: View, seq: int) -> dict[str, Any]:
    """Return one record without its operations; its line has to be there.

    Raises: what reading the journal raises.
    """
    row = view.rows(f"select {_COLUMNS}, tool, sum, epoch from record where seq = ?", [seq])[0]  # noqa: S608 - constants
    tool, digest, epoch = row[-3:]
    found = {**_record(row[:-3]), "tool": tool, "hash": digest, **({"epoch": epoch} if epoch else {})}
    record = store.record_at(view, seq)
    if record and record.warnings:  # early records have marks
        found["warnings"] = [for_shell(one) for one in record.warnings]
    if record and record.holes:
        found["holes"] = msgspec.to_builtins(record.holes)
    if record and record.redacted:
        found["redacted"] = [*record.redacted]
    if record and record.redaction:
        found["redaction"] = msgspec.to_builtins(record.redaction)
    if record and record.unproven:
        found["unproven"] = msgspec.to_builtins(record.unproven)
    moved = [op for op in record.ops if isinstance(op, ChangeOperation)] if record else []
    if moved:
        found["changes"] = [shown.moved_change(op) for op in moved[:_MOST_CHANGES]]
        found["changes_total"] = len(moved)
    return found


def operations_of(store: BranchStore, view: View, seq: int, *, ids: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the operations of a record as ``kb show SEQ`` has them: with what it states where no more is proven.

    With ``ids`` only those on these entities or edges, and on their edges. Raises: what reading the journal raises.
    """
    try:
        check_record(view, seq)
        found = [one for _, one in operations_from(view, seq, 0, at_once=_AT_ONCE)]
    except HistoryPruned:
        found = (stated_json(store, view, seq) or {"operations": []})["operations"]
    return [one for one in found if not ids or any(one.get(name) in ids for name in ("id", "was", "from", "to"))]


def operations_from(view: View, seq: int, place: int, *, at_once: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the operations of a record as ``record_json`` shows them, from a place on, each with the place after it.

    A place is how many come before; ``at_once`` are read at a time. Raises: ``NotFound``, ``HistoryPruned``.
    """
    check_record(view, seq)
    for after, table, change in changes_from(view, _TABLES, seq - 1, seq, place=place, at_once=at_once):
        yield after, _operation(table, change)


def count_operations(view: View, seq: int) -> int:
    """Return how many operations a record has."""
    left_out = len(renames_between(view, seq - 1, seq).left_out)
    return sum(sum(count_changed(view, table, seq - 1, seq)) for table in _TABLES) - left_out


def _operation(table: ElementTable[Any], change: ElementChange[Any]) -> dict[str, Any]:
    name, show = _SHOWN[table.name]
    return {"element": name, **show(change)}
