"""The index of changes, filled: each record of the journal in its turn, with the change that it is or brings.

The state that the changes give is kept from record to record, as far as records touch it (``RunningClaims``): what a
record changed follows from the state before it, which is looked up for many records at once.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import gc_pause, limits
from kbcore.errors import Damaged
from kbcore.ids import is_link_id, link_id
from kbcore.model.claims import derived
from kbcore.model.claims.change import Change, Delete, fields_redacted
from kbcore.model.claims.fold import DocumentFacts, FoldedClaims, fold
from kbcore.model.claims.running import RunningClaims
from kbcore.model.claims.subjects import Subjects, claimed_by, creations_of, ids_in, ids_of_clients, names_in
from kbcore.model.graph import CLIENT, FORMER_IDS, former_ids_of
from kbcore.model.record import DropNode, LeaveChange, Operation, PutNode, StateLink, TakeChange
from kbcore.process import interrupting
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.places import Position
from kbcore.view import replay
from kbcore.view.claim_database import ClaimDatabase
from kbcore.view.claim_index import ClaimIndex, Known, WrittenAt
from kbcore.view.record_rows import FoldedRecord

_NEVER: Final = 2**62
_AT_ONCE: Final = 1024
_AT_ONCE_BYTES: Final = 4 * limits.MIB
"""Records of which is looked up together what they touch, and their bytes."""
_MOST_KNOWN: Final = 200_000
"""Elements of which the state is kept from record to record."""

_EDGES_AT_EDGES: Final = "select 1 from edge where 'link:' in (substr(from_id, 1, 5), substr(to_id, 1, 5)) limit 1"

_encode = msgspec.msgpack.Encoder().encode


def update(index: ClaimIndex, fs: Fs, directory: Path, head: Head) -> None:
    """Take in the records of the journal up to a head; all of them again where it is not of this history.

    Raises: ``ViewDamaged``, ``LockTimeout``; what reading the journal raises.
    """
    if index.database.has(head):
        return
    with gc_pause.paused(), index.database.filling():
        if not index.database.has(head):  # another process may have brought it further meanwhile
            entries = _begin(index.database, fs, directory, head)
            Filling(index).take_in_all(entries)


def in_memory(fs: Fs, directory: Path, head: Head) -> ClaimIndex:
    """Return an index of a journal up to a head, of which no file is kept. Raises: what reading the journal raises."""
    index = ClaimIndex(":memory:")
    update(index, fs, directory, head)
    return index


def _begin(database: ClaimDatabase, fs: Fs, directory: Path, head: Head) -> Iterator[FoldedRecord]:
    """Return the records to take in, after what is there already was thrown away if it is of another history."""
    is_same = database.is_of(head.store_id)
    last = database.rows("select seq, sum, file, ends from seen order by seq desc limit 1") if is_same else []
    if last and last[0][0] < head.seq and any(part.file == last[0][2] for part in head.segments):
        entries = replay.entries(fs, directory, head, after=Position(*last[0]))
        with contextlib.suppress(Damaged):  # of another history, or damaged: then all of it is read
            return itertools.chain([next(entries)], entries)
    database.empty(head.store_id)
    return replay.entries(fs, directory, head)


class Filling:
    """State that is kept from record to record while an index is filled."""

    def __init__(self, index: ClaimIndex) -> None:
        """Begin to fill an index, which has its tables (``ClaimDatabase.empty``)."""
        self._index = index
        self._database = index.database
        self._add, self._by_keys = index.database.add, index.database.by_keys
        self._running = RunningClaims()
        """The state after the last record that was taken in, of elements that records touched since it was begun."""
        self._is_plain: dict[str, bool] = {}
        """By the id of each entity that was looked up: True where it may be in that state."""
        self._new = set[str]()
        """The ids of the changes that were noted since that state was begun."""
        self._has_others = bool(self._database.rows("select 1 from seen limit 1"))
        """There may be changes that were noted before."""
        self._has_edges_at_edges = bool(self._database.rows(_EDGES_AT_EDGES))
        """Some edge has an edge at an end."""
        self._former: dict[str, tuple[str, ...]] = {}
        """The former ids of entities, as far as documents say such."""
        for key, one in self._database.rows("select id, former from former"):
            self._former[key] = (*self._former.get(key, ()), one)

    def take_in_all(self, entries: Iterable[FoldedRecord]) -> None:
        """Take in records, and look up together what some that follow one another touch."""
        for some in _in_groups(entries):
            if len(self._running) > _MOST_KNOWN:
                self._forget()
            touched = {one.seq: derived.touched(one.record.ops) for one in some if _is_derived(one)}
            self._look_up(touched.values(), some[0].seq - 1)
            for entry in some:
                interrupting.check()
                self.take_in(entry, touched.get(entry.seq))
            self._database.write()

    def take_in(self, entry: FoldedRecord, touched: derived.NamedElements | None = None) -> None:
        """Take in one record, the next one of the journal, which touches this. Raises: ``ViewDamaged``."""
        end = entry.offset_bytes + entry.length_bytes
        self._add("seen", [(entry.seq, entry.sum, entry.file, end)])
        record = entry.record
        for is_taken, group in itertools.groupby(record.ops, lambda op: type(op) is TakeChange):
            if is_taken:
                self._take([op for op in group if type(op) is TakeChange], entry.seq)
            else:
                self._follow(group, entry.seq)
        if touched is None and not derived.may_be_change(record):
            return
        change, is_next = record.change, False
        if change is None:
            touched = touched or derived.touched(record.ops)
            before = self._known_before(touched, entry.seq - 1)
            is_next = before is not None
            if before is None:
                before = self._before(touched, entry.seq - 1)
            change = derived.derived(record, entry.sum, before)
        if change is not None:
            is_next = is_next and not self._is_noted(change.id)
            restores = record.restores or any(map(derived.settles, record.ops))
            self._insert([(change, entry.seq, WrittenAt(record.commit, restores))])
            if is_next:
                self._running.add(change)
            else:
                self._forget_elements([change])

    def _follow(self, ops: Iterable[Operation], seq: int) -> None:
        """Take in what operations of a record say that is in no change."""
        left, former = list[tuple[str, str]](), dict[str, tuple[str, ...]]()
        for op in ops:
            if type(op) is StateLink:
                self._note_edge(op)
            elif type(op) is LeaveChange:
                left.append((op.id, op.file))
            elif type(op) is PutNode and op.src != CLIENT and (FORMER_IDS in op.set or FORMER_IDS in op.unset):
                former[op.id] = former_ids_of(op.set)
            elif type(op) is DropNode and op.id in self._former:
                former[op.id] = ()
        if former:
            self._note_former(former)
        if left:
            self._leave(left, seq)
            self._forget_changes([key for key, _ in left])

    def _note_edge(self, op: StateLink) -> None:
        """Note an edge by its id; one of documents only where some edge is about an edge: few branches have such."""
        edge = op.type, op.kind, op.from_id, op.to_id
        if not self._has_edges_at_edges and (is_link_id(op.from_id) or is_link_id(op.to_id)):
            self._has_edges_at_edges = True
            found = self._database.rows("select type, kind, from_id, to_id from document_edge")
            self._add("edge", [(link_id(*one), *one) for one in found])
            self._database.rows("delete from document_edge")
        if op.src == CLIENT or self._has_edges_at_edges:
            self._add("edge", [(link_id(*edge), *edge)])
        else:
            self._add("document_edge", [edge])

    def _note_former(self, former: Mapping[str, Sequence[str]]) -> None:
        """Note the ids that entities had before by what documents say now, in place of what they said before."""
        if before := [(one, key) for key in former for one in self._former.pop(key, ())]:
            self._database.run_for_each("delete from former where former = ? and id = ?", before)
        self._add("former", [(one, key) for key, ids in former.items() for one in ids])
        self._former |= {key: (*ids,) for key, ids in former.items() if ids}
        self._forget()

    def _take(self, ops: Sequence[TakeChange], seq: int) -> None:
        """Take in changes that come with a record, or that a file holds from it on."""
        bodies = {
            op.id: (op.change, 0 if op.file else seq, WrittenAt(op.commit, op.restores))
            for op in ops
            if op.change is not None
        }
        sql = "select id, seq, head, restores from change where id in ({}) and seq"
        own = {key: (number, WrittenAt(*origin)) for key, number, *origin in self._by_keys(sql, bodies)}
        before = self._index.bodies(key for key, (one, *_) in bodies.items() if one.is_redacted or one.message_hash)
        fields = {key: fields_redacted(one, bodies[key][0]) for key, one in before.items()}
        self._add("redacted", [(key, field) for key, names in fields.items() for field in names])
        held = {(op.id, op.file): op.is_committed for op in ops if op.file}
        self._leave([one for one in held if self._has_others or one[0] in self._new], seq)
        self._insert([(change, *own.get(key, new)) for key, (change, *new) in bodies.items()])
        self._new.update(op.id for op in ops)
        self._add("held", [(*pair, seq, _NEVER, is_committed) for pair, is_committed in held.items()])
        self._forget_changes([op.id for op in ops])

    def _leave(self, pairs: Iterable[tuple[str, str]], seq: int) -> None:
        """Note that files hold changes no more from a seq on."""
        sql = "update held set until = ? where change = ? and file = ? and until > ?"
        self._database.run_for_each(sql, [(seq, change, file, seq) for change, file in pairs])

    def _insert(self, changes: Sequence[tuple[Change, int, WrittenAt]]) -> None:
        """Add changes, each with the seq of its record and where it was written, in place of other copies of them."""
        rows = [(one.id, seq, one.at, one.actor, one.session, _encode(one), *origin) for one, seq, origin in changes]
        self._add("change", rows)
        self._new.update(row[0] for row in rows)
        for one, *_ in changes:
            keys, names, _ = claimed_by(one)
            self._add("subject", [(key, is_end, one.id) for key, is_end in keys])
            self._add("name", names)
        gone = [(one.id, claim.on) for one, *_ in changes for claim in one.claims if type(claim) is Delete]
        self._add("deleted", {(key,) for change, on in gone for key in creations_of(change, on)})

    def _before(self, touched: derived.NamedElements, seq: int) -> FoldedClaims:
        """Return the state of the changes at a seq, of all that the operations of the next record touch."""
        edges = tuple({ends for ends in self._index.edges_named(map(frozenset, touched.edges.values())) if ends})
        at_ends = self._index.edges(end for ends in touched.edges.values() for end in ends)
        return self._folded_at(Subjects(touched.entities.union(*edges), touched.around, edges), seq, at_ends)

    def _folded_at(
        self, subjects: Subjects, seq: int, edges: Mapping[str, tuple[str, str, str, str]] | None = None
    ) -> FoldedClaims:
        """Return the state of the changes at a seq, of some entities and edges; ``edges`` are such at ends of others.

        An entity of which no change says that it was created is that of a document: nothing else can be known from the
        records of clients alone.
        """
        changes = [*self._index.changes_on(subjects, seq).values()]
        stated = {key: dict[str, Any]() for key in subjects.entities - ids_of_clients(changes)}
        documents = DocumentFacts(stated, self._index.former_ids(stated), edges or {})
        if documents.former_ids:  # then more changes may be on them
            return self._index.folded(subjects, seq, documents=documents)
        return fold(changes, documents)

    def _known_before(self, touched: derived.NamedElements, seq: int) -> FoldedClaims | None:
        """Return the same as ``_before``, from the state that is kept; None where that cannot be."""
        found = self._running.before(touched)
        if found is None and touched.is_simple:
            self._look_up([touched], seq)
            found = self._running.before(touched)
        return found

    def _look_up(self, all_touched: Iterable[derived.NamedElements], seq: int) -> None:
        """Bring what operations touch into the state that is kept, as it is at a seq, as far as it is not there."""
        running, simple = self._running, [one for one in all_touched if one.is_simple]
        ids = {key for one in simple for key in one.entities if not running.knows(key)}
        self._look_up_names(ids - self._is_plain.keys())
        plain = {key for key in ids if self._is_plain[key]}
        edges = {
            key: ends
            for one in simple
            for key, ends in one.edges.items()
            if not running.knows_edge(key, ends) and all(end in plain or running.knows(end) for end in ends)
        }
        entities = {key for key in plain if not running.knows(key)}
        if entities or edges:
            ends = frozenset(map(frozenset, edges.values()))
            subjects = Subjects(frozenset(entities).union(*ends), frozenset(), tuple(ends))
            running.note(self._folded_at(subjects, seq), entities, edges)

    def _look_up_names(self, ids: Collection[str]) -> None:
        """Look up which entities are plain, and note those that no change names."""
        pairs = self._by_keys("select id, creation from name where id in ({})", ids)
        by_id: dict[str, list[str]] = {}
        for key, creation in pairs:
            by_id.setdefault(key, []).append(creation)
        again = self._by_keys("select creation, id from name where creation in ({})", {one for _, one in pairs})
        shared = {creation for creation, key in again if [creation] != by_id.get(key)}
        former = {*self._index.former_ids(ids).values()}
        former |= {row[0] for row in self._by_keys("select former from former where former in ({})", ids)}
        claimed = self._index.known(ids)
        for key in ids:
            creations = by_id.get(key, [])
            self._is_plain[key] = key not in former and len(creations) <= 1 and shared.isdisjoint(creations)
            if self._is_plain[key] and key not in claimed:
                self._running.note_new(key)

    def _forget(self) -> None:
        """Forget the state that is kept from record to record."""
        self._running, self._is_plain = RunningClaims(), {}

    def _forget_changes(self, ids: Collection[str]) -> None:
        """Forget what is kept of the state of all that some changes have claims on."""
        if self._is_plain:
            self._forget_elements(self._index.bodies(ids).values())

    def _forget_elements(self, changes: Iterable[Change]) -> None:
        """Do the same, where the changes are in the index."""
        if self._is_plain:
            names = Known(set(), set())
            for change in changes:
                names.ids.update(ids_in(change))
                names.creations.update(creation for _, creation in names_in(change))
            ids = self._index.names_of(names)
            self._running.forget(ids)
            for key in ids:
                self._is_plain.pop(key, None)

    def _is_noted(self, change: str) -> bool:
        """Tell whether a change was noted before, of a record or a file."""
        if change in self._new or not self._has_others:
            return change in self._new
        sql = "select 1 from change where id = :id union all select 1 from held where change = :id"
        return self._database.one(sql, id=change) is not None


def _in_groups(entries: Iterable[FoldedRecord]) -> Iterator[list[FoldedRecord]]:
    """Yield records that follow one another, as many as are looked up together."""
    some, length_bytes = list[FoldedRecord](), 0
    for entry in entries:
        some.append(entry)
        length_bytes += entry.length_bytes
        if len(some) == _AT_ONCE or length_bytes > _AT_ONCE_BYTES:
            yield some
            some, length_bytes = [], 0
    if some:
        yield some


def _is_derived(entry: FoldedRecord) -> bool:
    """Tell whether the change that a record may be is to be derived."""
    return entry.record.change is None and derived.may_be_change(entry.record)
