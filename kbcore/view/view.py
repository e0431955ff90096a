"""One process's view of a branch: the published base, attached read-only, and the tail that came after it.

A view never decides what is durable. It answers for exactly one seq, and moves only forward.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from kbcore.errors import ViewDamaged
from kbcore.model.concepts import DEFINING, extended
from kbcore.model.graph import Link, Node, SyncedFile, former_ids
from kbcore.model.read_set import ReadSet, needs_of_fold
from kbcore.model.record import VOCABULARY, ChangeOperation, Operation, Record
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Stamp, State
from kbcore.view import base_rows, database
from kbcore.view.base_lookups import BaseLookups
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.branch_definitions import definitions, is_definition
from kbcore.view.database import quoted
from kbcore.view.equal_texts import EqualTexts
from kbcore.view.past_rows import PastRows
from kbcore.view.record_rows import CHUNK_RECORDS, ROW_OF, FoldedRecord, fold
from kbcore.view.relations import RELATIONS
from kbcore.view.selected_nodes import SelectedNodes
from kbcore.view.tables import (
    ALIASES,
    ELEMENTS,
    Columns,
    Likeness,
)
from kbcore.view.tail import Tail, UnfoldedRecords

if TYPE_CHECKING:
    from kbcore.view.claim_index import ClaimIndex

E = TypeVar("E", Node, Link)
T = TypeVar("T")
M = TypeVar("M")

_FEW_RECORDS: Final = 64
"""Records that are loaded while the branch is locked."""
_MOST_PENDING: Final = 512
"""Records that are folded together, before a write takes the lock: what a write may find unfolded under it is
bounded by this and by what came while it waited. Of several processes that write, one has published a base by then as a
rule, and the others fold nothing of what is in it."""


class View:
    """The graph of a branch at one seq, ready for SQL. For one thread at a time, which ``ViewPool`` sees to.

    ``opened`` is the database, with the base attached, or makes it when it is first asked. ``is_own`` says that no
    other view uses the base, and that it may be written to; ``is_queryable``, that the database has what queries read.
    """

    def __init__(
        self,
        opened: database.Connection | Callable[[], database.Connection],
        basis: BaseStamp,
        *,
        is_own: bool = False,
        is_queryable: bool = False,
    ) -> None:
        if isinstance(opened, database.Connection):
            self._connection = opened
        else:
            self._opened = opened
        self._lock = threading.RLock()
        self._tail = Tail(is_base_empty=not basis.seq, is_own=is_own, is_queryable=is_queryable)
        self._pending = UnfoldedRecords()
        self._is_whole = True
        self._base = BaseLookups(self._ask_base)
        self.past = PastRows(self._tail, self._fold_pending, self.rows, self._ask_base)
        self._alikes = EqualTexts(self._ask_base)
        self._defining = SelectedNodes(
            self._ask_base, "type in (?, ?)", DEFINING, lambda node: node if is_definition(node) else None
        )
        former = """contains(attributes, '"former_ids"')"""
        self._former = SelectedNodes(self._ask_base, former, (), lambda node: former_ids(node) or None)
        self._of_state = (self._alikes, self._defining, self._former)
        """Parts that are updated with each record."""
        self.basis = basis
        self._recorded: BaseStamp | None = None
        """The state of this view before ``mark_unrecorded``."""
        self.overlay_mark = ""
        self.unrecorded_ops: tuple[ChangeOperation, ...] = ()
        """The changes that came and went in no record."""
        self.claims: Callable[[], ClaimIndex] | None = None
        """Returns the index of the shared changes of the branch; None for a view that is of no store's present head."""
        self.base_seq = basis.seq
        """The records that the base holds; ``basis`` is where the records end that this view has taken in."""

    @cached_property
    def _connection(self) -> database.Connection:
        return self._opened()

    @property
    def seq(self) -> int:
        """Return the seq that this view answers for."""
        return self.basis.seq

    @property
    def recorded(self) -> BaseStamp:
        """Return where the records end that this view has taken in: before ``basis`` where it holds more."""
        return self._recorded or self.basis

    @property
    def recorded_seq(self) -> int:
        """Return the seq of the last record in this view."""
        return self.recorded.seq

    @property
    def is_overlaid(self) -> bool:
        """Tell whether this view holds changes that are in no record; ``overlay_mark`` is that of them, "" for none."""
        return self._recorded is not None

    def as_recorded(self, elements: Iterable[E]) -> list[E]:
        """Return elements as answers show them: what is in no record has the version of the last one."""
        last = self.recorded_seq
        return [
            one
            if one.version <= last
            else msgspec.structs.replace(one, version=last, created_seq=min(one.created_seq, last))
            for one in elements
        ]

    @property
    def tail_rows(self) -> int:
        """Return how many rows of elements and records came after the base that is published."""
        return self._tail.rows + self._pending.rows

    def base_rows(self) -> int:
        """Return how many rows of elements, current and superseded, the base holds."""
        counts = [f"(select count(*) from base.{name}{past})" for name in ELEMENTS for past in ("", "_history")]
        return sum(row[0] for row in self._ask_base(f"select {' + '.join(counts)}"))

    def close(self) -> None:
        """Close the database; the view must not be used again."""
        if "_connection" in self.__dict__:  # it is made when it is first used
            self._connection.close()

    def __enter__(self) -> Self:
        """Return the view itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the view."""
        self.close()

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a statement over the tables of ``tables.py`` and those of ``hold``.

        ``time_s`` is its time, where that is not the one of every statement. One that takes too much time or memory is
        ended; the view goes on.

        Raises: ``StatementTimeout``, ``ResourceLimit``, ``StatementRefused``; ``ViewDamaged`` when the database cannot
        be read; the store then builds a new view.
        """
        with self._lock, database.explained():
            self._show()
            return self._connection.rows(sql, params, time_s=time_s)

    def hold(self, name: str, columns: Columns, mark: object, rows: Iterable[database.Row]) -> None:
        """Keep a table of constants next to the others, as ``Connection.hold``."""
        with self._lock, database.explained():
            self._connection.hold(name, columns, mark, rows)

    def once(self, name: str, mark: M, make: Callable[[M], T]) -> T:
        """Return what is made of a mark, as ``Connection.once``."""
        return self._connection.once(name, mark, make)

    def cursor(self) -> database.Connection:
        """Return another connection to the same tables, for tables of its own next to them; the caller closes it."""
        with self._lock, database.explained():
            self._show()
            return self._connection.cursor()

    def copy_relation(self, relation: str, path: str) -> None:
        """Copy what rules read as this relation (``relations.py``) into a new database file, under its name."""
        with self._lock, database.explained():
            self._show()
            base_rows.one_relation(self._connection, RELATIONS[relation], path)

    def nodes(self, ids: Sequence[str]) -> list[Node]:
        """Return the nodes with these ids, as far as they exist."""
        if self._pending.changes_nodes(ids):
            self._fold_pending()
        found, rest = self._tail.split("node", ids)
        return [*found, *self._base.nodes(rest)]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links with these ids, as far as they exist."""
        return self._links(ids, ())

    def named(self, names: Sequence[str]) -> list[Node]:
        """Return the nodes that are called by one of these names."""
        self._fold_pending()
        later = self._tail.elements["node"]
        return [*self._tail.named(names), *(node for node in self._base.named(names) if node.id not in later)]

    def with_aliases(self, names: Sequence[str]) -> list[tuple[str, Node]]:
        """Return the nodes that have one of these names among their aliases, each with that alias."""
        return [(name, node) for node in self.alike(ALIASES, names) for name in names if name in ALIASES.keys(node)]

    def sources(self, paths: Sequence[str]) -> list[SyncedFile]:
        """Return the source files with these paths, as far as they were read."""
        if self._pending.changes_sources(paths):
            self._fold_pending()
        found, rest = self._tail.split("source", paths)
        return [*found, *self._base.sources(rest)]

    def unread(self, paths: Iterable[str]) -> dict[str, SyncedFile]:
        """Return those of these files that could not be read whole, by path; the base is asked once for all of them."""
        self._fold_pending()
        found, rest = self._tail.split("source", paths)
        in_base = self._base.unread()
        return {one.path: one for one in found if not one.is_ok} | {
            path: in_base[path] for path in rest if path in in_base
        }

    def sources_since(self, seq: int) -> set[str] | None:
        """Return the files of which records after a seq may say something else; None when that is not available."""
        if seq < self.base_seq:
            return None
        later = self._tail.elements["source"].items()
        return {path for path, one in later if one is None or one.version > seq} | {*self._pending.sources}

    def touching(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that have one of these ids as an end, resolved or not."""
        return self._links((), ids)

    def alike(self, likeness: Likeness, keys: Sequence[str]) -> list[Node]:
        """Return the nodes that have one of these texts in common."""
        self._fold_pending()
        later = self._tail.elements["node"]
        ids = dict.fromkeys(self._alikes.in_tail(likeness, keys, later.values()))
        ids |= dict.fromkeys(id_ for id_ in self._alikes.in_base(likeness, keys) if id_ not in later)
        return [node for node in self.nodes(list(ids)) if not {*keys}.isdisjoint(likeness.keys(node))]

    def cells(
        self, table: str, columns: Sequence[str], condition: tuple[str, Sequence[Any]], is_so: Callable[[Any], object]
    ) -> list[tuple[Any, ...]]:
        """Return some columns, the key first, of the elements of a table for which a condition holds, in no order.

        By its key a later element replaces that of the base. The condition is given as SQL with its parameters, which
        the base is asked, and as a function, for the elements that came after it: nothing need be loaded for this.
        """
        if columns[0] != ELEMENTS[table][0]:
            raise ValueError(f"{columns[0]} is not the key of {table}")
        self._fold_pending()
        later, (where, params) = self._tail.elements[table], condition
        rows = self._ask_base(f"select {', '.join(columns)} from base.{table} where {where}", *params)
        after = [ROW_OF[table](element) for element in later.values() if element is not None and is_so(element)]
        return [*(row for row in rows if row[0] not in later), *(tuple(row[name] for name in columns) for row in after)]

    def definitions(self) -> Mapping[str, Node]:
        """Return the nodes by which the branch defines types and predicates, by id."""
        self._fold_definitions()
        return self._defining.of(self._tail)

    def schema(self, project: Schema) -> Schema:
        """Return the schema of the branch: the project's, KIP's, and what the branch defines by records of its own."""
        self._fold_definitions()
        return self._defining.derived(self._tail, project, lambda nodes: extended(project, definitions(nodes.values())))

    def renamed(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the present id of each of these ids that an entity had before and none has now."""
        wanted = {key for key in keys if key}
        # Most ids are found at once. The former ids take a scan of all entities, once for each view.
        wanted -= {node.id for node in self.nodes(sorted(wanted))}
        if not wanted:
            return {}
        holders = self.holders()
        return {key: holders[key][0] for key in wanted if key in holders}

    def holders(self) -> Mapping[str, Sequence[str]]:
        """Return the entities that have each former id, also where it is that of an entity now, in the order of ids.

        A former id that is no entity's id means the first of them.
        """
        self._fold_former_ids()
        return self._former.derived(self._tail, None, _holders)

    def _fold_former_ids(self) -> None:
        if self._pending.changes_former_ids(self._former.of(self._tail)):
            self._fold_pending()

    def _fold_definitions(self) -> None:
        if self._pending.changes_definitions(self._defining.of(self._tail)):
            self._fold_pending()

    def changeset(self, changeset_id: str) -> tuple[int, str] | None:
        """Return the seq and the digest of a changeset that took effect; None for one that is not known."""
        known = self._tail.changesets.get(changeset_id) or self._pending.changesets.get(changeset_id)
        return known or self._base.changeset(changeset_id)

    def changes_since(self, seq: int) -> list[Changes] | None:
        """Return what each record after a seq changed, in their order; None when that is not available."""
        self._fold_pending()
        later = sorted((one for one in self._tail.recent if one[0] > seq), key=itemgetter(0))
        return [changes for _, _, changes in later] if len(later) == self.seq - seq else None

    def has_record(self, seq: int, digest: str) -> bool:
        """Tell whether the record at a seq, 0 for the beginning, is the one with this sum."""
        if seq in {0, self.recorded_seq}:
            return not seq or digest == self.recorded.sum
        self._fold_pending()
        found = [(sum_,) for at, sum_, _ in self._tail.recent if at == seq]
        return (found or self.past.records([seq], ["sum"])) == [(digest,)]

    def stated_by(self, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the ids of the nodes and of the links of which these files state something."""
        self._fold_pending()
        found = []
        for table in ("node", "link"):
            ids = self._base.stated_by(table, paths) - self._tail.elements[table].keys()
            found.append(sorted(ids | self._tail.stated_by(table, paths)))
        return found[0], found[1]

    def _links(self, ids: Sequence[str], ends: Sequence[str]) -> list[Link]:
        """Return the links with one of these ids, or with one of these ends."""
        if not self._pending.changes_links_at(ids, ends):
            found = self._folded_links(ids, ends)
            if not (self._pending.entries and self._pending.changes_resolved(found)):
                return found
        self._fold_pending()
        return self._folded_links(ids, ends)

    def _folded_links(self, ids: Sequence[str], ends: Sequence[str]) -> list[Link]:
        """Return the same without regard to records that are not folded."""
        found, rest = self._tail.split("link", ids)
        links = {link.id: link for link in (*found, *self._tail.touching(ends))}
        return [*links.values(), *self._base.links(rest, ends, self._tail.elements["link"])]

    def _ask_base(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a statement over the base alone: what waits need not be loaded for it."""
        if self._tail.is_base_empty:
            return []
        with self._lock, database.explained_with(self._connection, params):
            return self._connection.rows(sql, params)

    def gather(self, wanted: ReadSet) -> State:
        """Return the working set that folding or planning needs: what is named, and what hangs on it."""
        sources = self.sources(sorted(wanted.sources))
        asked_for = wanted.nodes | wanted.typed.keys()
        nodes = self.nodes(sorted(asked_for))
        types = {node.id: node.type for node in nodes}
        turned = {key for key, name in wanted.typed.items() if types.get(key) != name}
        links: dict[str, Link] = {}
        named, frontier, asked = wanted.links, wanted.touching | turned, set[str]()
        while named or frontier:
            found = self._links(sorted(named), sorted(frontier))
            asked |= frontier
            links |= {link.id: link for link in found}
            reached = {link.id for link in found if link.from_id in frontier or link.to_id in frontier}
            named, frontier = frozenset(), frozenset(reached - asked)
        ends = {end for link in links.values() for end in (link.from_id, link.to_id)}
        nodes += self.nodes(sorted(ends - asked_for))
        about = {end for end in ends if end.startswith("link:") and end not in links}
        state = State(nodes, [*links.values(), *self.links(sorted(about))], sources)
        state.loaded = ReadSet(asked_for | ends, wanted.links | links.keys() | about, frozenset(asked), wanted.sources)
        return state

    def extend(self, entries: Iterable[FoldedRecord], basis: BaseStamp) -> None:
        """Take in the records that came after this view; ``basis`` is where they end.

        They are folded when what they may change is asked for.
        """
        for entry in entries:
            self._pending.add(entry)
            if len(self._pending.entries) >= CHUNK_RECORDS:
                self._fold_pending()
        self.basis = basis.from_where(self.basis)

    def prepare(self) -> None:
        """Do now what would otherwise hold up a write while the branch is locked."""
        with self._lock:
            if len(self._pending.entries) >= _MOST_PENDING:
                self._fold_pending()
            if not self._tail.is_base_empty:
                self._base.filter.make_when_due()

    def is_ready(self, seq: int) -> bool:
        """Tell whether ``prepare`` has little to do once this view has taken in the records up to a seq."""
        is_looked_up = self._tail.is_base_empty or not self._base.filter.may_be_due
        new = seq - self.seq
        return is_looked_up and new < _FEW_RECORDS and new + len(self._pending.entries) < _MOST_PENDING

    def _fold_pending(self) -> None:
        """Fold the records that were only read so far.

        Raises: ``ViewDamaged`` when the last time was interrupted between two of them.
        """
        if not self._is_whole:
            raise ViewDamaged("an interrupt came while records were taken in")
        if not self._pending.entries:
            return
        with self._lock:
            pending, self._pending = self._pending, UnfoldedRecords()
            try:
                state = self.gather(needs_of_fold(op for entry in pending.entries for op in entry.record.ops))
                folded = [(entry, fold(state, entry)) for entry in pending.entries]
            except BaseException:
                self._pending = pending  # nothing was taken in
                raise
            self._is_whole = False
            for entry, changes in folded:
                self._take(entry, changes)
            self._is_whole = True

    def adopt(self, entry: FoldedRecord, changes: Changes, basis: BaseStamp) -> None:
        """Take in a record whose changes are known already, because this process has just committed it.

        It may have been planned on another view: where records that are pending in this one have to do with it, it is
        folded after them.
        """
        with self._lock:
            if self._pending.meets(entry.record.ops, changes):
                self._pending.add(entry)
            else:
                self._take(entry, changes)
        self.basis = basis.from_where(self.basis)

    def overlay(self, stamp: Stamp, changes: Changes, mark: str = "", ops: Iterable[Operation] = ()) -> None:
        """Apply changes that were planned on this view and are in no record, as if they were the next record.

        ``mark`` is another one for other changes; ``ops`` are the operations, for whoever plans on this view. From then
        on it takes in no record, and is never published.
        """
        self._fold_pending()
        record = Record(
            schema=VOCABULARY,
            changeset_id="",
            digest="",
            at=stamp.at,
            actor=stamp.actor,
            source=stamp.source,
            tool="",
            ops=(),
        )
        self._take(FoldedRecord(stamp.seq, "", record, "", 0, 0), changes)
        self.mark_unrecorded(mark)
        self.unrecorded_ops = (*self.unrecorded_ops, *(op for op in ops if isinstance(op, ChangeOperation)))
        self.basis = msgspec.structs.replace(self.basis, seq=stamp.seq, sum="", at=stamp.at)

    def mark_unrecorded(self, mark: str) -> None:
        """Note, before this view takes in changes that are in no record, where the records end.

        ``mark`` is another one for other changes. A view with such changes is never published.
        """
        self._recorded, self.overlay_mark = self._recorded or self.basis, mark

    def _take(self, entry: FoldedRecord, changes: Changes) -> None:
        with self._lock:
            self._tail.add(entry, changes)
            for lookup in self._of_state:
                lookup.note(changes)

    def _show(self) -> None:
        """Make everything that this view holds visible to SQL."""
        self._fold_pending()
        self._tail.load(self._connection)

    def write_base(self, path: str) -> None:
        """Write everything that this view holds as a new base into a file that does not exist yet.

        Raises: ``ViewDamaged`` when the file cannot be written.
        """
        with self._lock, database.explained():
            self._fold_pending()
            if self._tail.all_unloaded is None:
                self._show()
            base_rows.new_base(self._connection, path, self.basis, self._tail.all_unloaded)

    def write_past(self, path: str, seq: int) -> None:
        """Write everything that this view knows of a seq as a base into a file that does not exist yet.

        Raises: ``ViewDamaged`` when the file cannot be written.
        """
        with self._lock, database.explained():
            self._show()
            base_rows.past_base(self._connection, path, msgspec.structs.replace(self.basis, seq=seq))

    def rebase(self, path: str) -> None:
        """Attach a base that this view has just written, and empty the tail.

        Raises: ``ViewDamaged`` when the base cannot be read; this view must not be used again.
        """
        with self._lock, database.explained():
            self._connection.execute("detach base")
            self._connection.execute(f"attach '{quoted(path)}' as base (read_only)")
            self._base.rebase(self._tail)
            self._alikes.rebase()
            self._tail.empty(self._connection)
            self.base_seq = self.basis.seq


def _holders(former: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, ids in sorted(former.items()):
        for one in ids:
            found.setdefault(one, []).append(key)
    return found
