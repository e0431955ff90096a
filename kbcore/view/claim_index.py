"""The changes of a branch, as its journal has them: by whom, on what, and which of them are present at a seq.

A database of SQLite in the cache, which may be deleted at any time. It is filled from the records of the journal in
their order, as far as it is asked for, and by nothing else. A branch that nobody shares or merges has none.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kbcore import gc_pause, interrupting, limits
from kbcore.errors import Damaged, LockTimeout, ViewDamaged
from kbcore.ids import is_link_id, link_id
from kbcore.model.claims import derived
from kbcore.model.claims.change import (
    DOCUMENT,
    Change,
    Create,
    Delete,
    EntityRef,
    Keep,
    Rename,
    creation_of,
    creation_words,
    fields_redacted,
    named_by,
)
from kbcore.model.claims.fold import NO_DOCUMENTS, Documents, FoldedClaims, fold
from kbcore.model.claims.running import RunningClaims
from kbcore.model.claims.subjects import (
    Subjects,
    claimed_by,
    creations_in,
    edges_of,
    ids_in,
    ids_of_clients,
    names_in,
    refs_of,
)
from kbcore.model.graph import CLIENT, FORMER_IDS, former_ids_of
from kbcore.model.record import LeaveChange, Operation, PutNode, StateLink, TakeChange
from kbcore.model.redaction.changes import TakenOut
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.places import Position
from kbcore.view import replay
from kbcore.view.fold import FoldedRecord

T = TypeVar("T")

CLAIM_FORMAT: Final = 7
_WAIT_S: Final = 60
"""As long as another process may fill the index that this one waits for."""
_PRIMARY: Final = 0xFF
"""The bits of an error code of SQLite that do not tell it from others of its kind."""
_OF_DISK: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_NEVER: Final = 2**62
_AT_ONCE: Final = 1024
_AT_ONCE_BYTES: Final = 4 * limits.MIB
"""Records of which is looked up together what they touch, and their bytes."""
_MOST_KNOWN: Final = 200_000
"""Elements of which the state is kept from record to record."""
_INSERT: Final = {"seen": "insert", "change": "insert or replace"}
"""How rows are added to tables, where not ``insert or ignore``."""
_OF_ALL: Final = (Delete, Keep, Rename)
"""Claims on a whole entity: with them the edges at it may come, go and get other ids."""
_KEYS: Final = "select value from json_each(:keys)"
_ENDS: Final = "select from_id, to_id from edge where id in ({})"
_EDGES_AT: Final = (
    "select value, (select count(*) from (select 1 from subject where is_end and key = value limit 1000)) "
    "from json_each(:keys)"
)
"""The number of claims on edges at each of some creations, as far as it matters which end has fewer."""
_ALSO_AT: Final = (
    "select value ->> 0, value ->> 1 from json_each(:pairs) where exists "
    "(select 1 from subject where key = value ->> 0 and is_end and change = value ->> 1)"
)
"""Which pairs of a creation and a change are of a claim on an edge at the creation."""

_SCHEMA: Final = """
create table change (
    id text primary key, seq integer, at text, actor text, session text, body blob, head text, restores integer
);
create index change_by_seq on change (seq);
create table held (change text, file text, since integer, until integer, is_committed integer);
create index held_by_change on held (change);
create index held_by_file on held (file);
create table redacted (change text, field text, primary key (change, field)) without rowid;
create table subject (key text, is_end integer, change text, primary key (key, is_end, change)) without rowid;
create table deleted (key text primary key) without rowid;
create table name (id text, creation text, primary key (id, creation)) without rowid;
create index name_by_creation on name (creation);
create table edge (id text primary key, from_id text, to_id text) without rowid;
create table former (former text, id text, primary key (former, id)) without rowid;
create table seen (seq integer primary key, sum text, file text, ends integer);
create table stamp (format integer, store text);
"""
"""``change.seq`` is that of the record that is the change, or took it over from another branch; 0 where only a file
has it. ``head`` and ``restores`` are as in ``WrittenAt``. ``redacted`` has the fields of changes that a record has
whole and a later record redacted (``fields_redacted``). ``subject`` has the creations that a change has claims on,
and, with ``is_end``, those that are ends of its edges; ``deleted`` has those that some change deletes, ``name`` each
id that changes give to a creation or know it by, ``edge`` the ends of each edge that a client stated, and ``former``
the ids that entities had before by what documents say."""

_OF_DOCUMENT: Final = creation_of(DOCUMENT, "")
_IS_ONCE_COMMITTED: Final = "exists (select 1 from held h where h.change = c.id and h.is_committed and h.since <= :seq)"
_IS_HELD: Final = "exists (select 1 from held h where h.change = c.id and h.since <= :seq and h.until > :seq)"
_IS_OWN: Final = "c.seq between 1 and :seq"
_IS_PRESENT: Final = f"({_IS_HELD} or ({_IS_OWN} and not {_IS_ONCE_COMMITTED}))"
_CAME: Final = f"""
select c.id, p.seq from (select id as change, seq from change where seq > 0 union select change, since from held) p
join change c on c.id = p.change where {{}} and {_IS_PRESENT.replace(":seq", "p.seq")}
and not {_IS_PRESENT.replace(":seq", "(p.seq - 1)")}
"""
"""The changes, each with the seqs from which on it was present and had not been just before."""


def _text(keys: Iterable[str]) -> str:
    return json.dumps(sorted(keys))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Change).decode


class WrittenAt(NamedTuple):
    """The commit of git that a change was written at, "" where that is not known; and whether it puts values back.

    Such are a revert, a rollback, and the settlement of a conflict: its values may be those of others.
    """

    commit: str = ""
    restores: bool = False


class HeldChange(msgspec.Struct, frozen=True):
    """A change as it is listed: the seq of its record, 0 where only a file has it, and the files that hold it."""

    change: Change
    seq: int
    files: tuple[str, ...]
    written_at: WrittenAt = WrittenAt()


class IndexNotWritten(ViewDamaged):
    """The file of an index cannot be written or read, because the disk is full or fails. What it has may be whole."""


class _Known(NamedTuple):
    """Entities as changes know them: by ids, and by creations."""

    ids: set[str]
    creations: set[str]


class ClaimIndex:
    """The index of one branch, for one thread at a time."""

    def __init__(self, path: str) -> None:
        """Open or create it. Raises: ``ViewDamaged`` when the file cannot be used."""
        self.is_damaged = False
        self.taken_out: Mapping[str, TakenOut] = {}
        """What redactions in this clone took out of changes, in whatever branch."""
        self._is_filling = False
        self._running = RunningClaims()
        """The state after the last record that was taken in, of elements that records touched since it was begun."""
        self._is_plain: dict[str, bool] = {}
        """Whether entities may be in that state, as far as that was looked up."""
        self._new = set[str]()
        """The ids of the changes that were noted since that state was begun."""
        self._has_others = True
        """There may be changes that were noted before."""
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        """Rows by their table that are not written yet: they are before anything is asked."""
        is_uri = path.startswith("file:")
        try:
            self._opened = sqlite3.connect(
                path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False, uri=is_uri
            )
            self.close = weakref.finalize(self, self._opened.close)
            self._opened.execute("pragma trusted_schema = off")
            self._opened.execute("pragma synchronous = normal")
        except sqlite3.Error as error:
            raise ViewDamaged(str(error)) from error

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a statement. Raises: ``ViewDamaged``, ``LockTimeout``."""
        if self._waiting:
            self._write()
        if self._is_filling:  # it is interrupted between two records: none has long statements
            return self._run(lambda: self._opened.execute(sql, params).fetchall())
        with interrupting.step(self._opened.interrupt) as step:
            try:
                return self._run(lambda: self._opened.execute(sql, params).fetchall())
            except (ViewDamaged, LockTimeout) as error:
                if step.is_interrupted:
                    self.is_damaged = False
                    raise step.reason() from error
                raise

    def _run(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                message = f"Another process held the index of changes for longer than {_WAIT_S} s."
                raise LockTimeout(message) from error
            self.is_damaged = True
            kind = IndexNotWritten if error.sqlite_errorcode & _PRIMARY in _OF_DISK else ViewDamaged
            raise kind(str(error)) from error

    def _add(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table, but those that it has: before the next statement."""
        self._waiting.setdefault(table, []).extend(rows)

    def _write(self) -> None:
        """Write the rows that wait. Raises: ``ViewDamaged``, ``LockTimeout``."""
        waiting, self._waiting = self._waiting, {}
        for table, rows in waiting.items():
            if rows:
                how = _INSERT.get(table, "insert or ignore")
                self._run_many(f"{how} into {table} values ({', '.join('?' * len(rows[0]))})", rows)

    def _run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._run(lambda: self._opened.executemany(sql, rows))

    def update(self, fs: Fs, directory: Path, head: Head) -> None:
        """Take in the records of the journal up to a head; all of them again where it is not of this history.

        Raises: ``ViewDamaged``, ``LockTimeout``; what reading the journal raises.
        """
        if self.has(head):
            return
        with gc_pause.paused():
            self._fill(fs, directory, head)

    def _fill(self, fs: Fs, directory: Path, head: Head) -> None:
        self.rows("begin immediate")
        self._is_filling = True
        self._begin_state(has_others=True)
        try:
            if not self.has(head):  # another process may have brought it further meanwhile
                self._take_in_all(self._begin(fs, directory, head))
        except BaseException:
            self._waiting = {}
            if self._opened.in_transaction:  # SQLite rolls back by itself where the disk is full or fails
                self.rows("rollback")
            raise
        finally:
            self._is_filling = False
            self._begin_state(has_others=True)
        self.rows("commit")

    def _take_in_all(self, entries: Iterable[FoldedRecord]) -> None:
        """Take in records, and look up together what some that follow one another touch."""
        for some in _in_groups(entries):
            if len(self._running) > _MOST_KNOWN:
                self._forget()
            touched = {one.seq: derived.touched(one.record.ops) for one in some if _is_derived(one)}
            self._look_up(touched.values(), some[0].seq - 1)
            for entry in some:
                interrupting.check()
                self.take_in(entry, touched.get(entry.seq))
            self._write()

    def _begin_state(self, *, has_others: bool) -> None:
        """Forget all that is kept from record to record. ``has_others``: changes may have been noted before."""
        self._forget()
        self._new, self._has_others = set(), has_others

    def _forget(self) -> None:
        """Forget the state that is kept from record to record."""
        self._running, self._is_plain = RunningClaims(), {}

    def all_changes(self) -> Iterator[Change]:
        """Yield every change, present or not."""
        return (_decode(body) for (body,) in self.rows("select body from change"))

    def present(self, ids: Iterable[str], seq: int) -> dict[str, Change]:
        """Return those of these changes that are present at a seq."""
        return {one.id: one for one in self._loaded(ids, seq)}

    def is_own(self, ids: Iterable[str], seq: int) -> set[str]:
        """Return those of these changes that are records of the journal up to a seq."""
        found = self._by_keys(f"select c.id from change c where c.id in ({{}}) and {_IS_OWN}", ids, seq=seq)
        return {row[0] for row in found}

    def held_by(self, files: Iterable[str], seq: int) -> dict[str, dict[str, bool]]:
        """Return the changes that files hold at a seq, by file; for each, whether the file is known as committed."""
        found: dict[str, dict[str, bool]] = {}
        sql = "select file, change, is_committed from held where file in ({}) and since <= :seq and until > :seq"
        for file, change, is_committed in self._by_keys(sql, files, seq=seq):
            found.setdefault(file, {})[change] = bool(is_committed)
        return found

    def files_of(self, changes: Iterable[str], seq: int) -> dict[str, set[str]]:
        """Return the files that hold changes at a seq, by change."""
        found: dict[str, set[str]] = {}
        sql = "select change, file from held where change in ({}) and since <= :seq and until > :seq"
        for change, file in self._by_keys(sql, changes, seq=seq):
            found.setdefault(change, set()).add(file)
        return found

    def files_ever_of(self, changes: Iterable[str]) -> dict[str, set[str]]:
        """Return the files that hold changes or held them at any seq, by change."""
        found: dict[str, set[str]] = {}
        for change, file in self._by_keys("select change, file from held where change in ({})", changes):
            found.setdefault(change, set()).add(file)
        return found

    def files_instead_of(self, file: str, seq: int) -> set[str]:
        """Return the files that hold at a seq what a file held once, without that file: a pack, as a rule."""
        sql = (
            "select distinct now.file from held before join held now on now.change = before.change "
            "where before.file = :file and now.file <> :file and now.since <= :seq and now.until > :seq"
        )
        return {row[0] for row in self.rows(sql, file=file, seq=seq)}

    def committed_files(self, seq: int) -> set[str]:
        """Return the files that hold changes at a seq and are known as committed."""
        sql = "select distinct file from held where since <= :seq and until > :seq and is_committed"
        return {row[0] for row in self.rows(sql, seq=seq)}

    def once_committed(self, changes: Iterable[str], seq: int) -> set[str]:
        """Return those of these changes that a committed file held at a seq or before."""
        sql = "select distinct change from held where change in ({}) and is_committed and since <= :seq"
        return {row[0] for row in self._by_keys(sql, changes, seq=seq)}

    def seqs_of_known(self, changes: Iterable[str], seq: int) -> dict[str, int]:
        """Return those of these changes that are records up to a seq, or were in a committed file, with their seqs.

        The seq is 0 where only files have the change.
        """
        sql = f"select c.id, c.seq from change c where c.id in ({{}}) and ({_IS_OWN} or {_IS_ONCE_COMMITTED})"
        return dict(self._by_keys(sql, changes, seq=seq))

    def bodies(self, ids: Iterable[str]) -> dict[str, Change]:
        """Return changes by id, present or not."""
        return {row[0]: _decode(row[1]) for row in self._by_keys("select id, body from change where id in ({})", ids)}

    def redacted_since(self) -> list[tuple[Change, tuple[str, ...]]]:
        """Return the changes that a record has whole and a later one redacted, with the fields that are redacted."""
        found: dict[str, list[str]] = {}
        for change, field in self.rows("select change, field from redacted order by change, field"):
            found.setdefault(change, []).append(field)
        bodies = self.bodies(found)
        return [(bodies[key], tuple(fields)) for key, fields in found.items()]

    def own_since(self, seq: int) -> dict[int, Change]:
        """Return the changes that the records from a seq on are, or took over, by their seqs."""
        rows = self.rows("select seq, body from change where seq >= :seq", seq=seq)
        return {own: _decode(body) for own, body in rows}

    def came_with(self, seqs: Iterable[int]) -> dict[int, list[Change]]:
        """Return the changes that were present from each of these records on, and not just before it."""
        sql = _CAME.format("p.seq in (select value from json_each(:seqs))")
        rows = self.rows(sql, seqs=json.dumps(sorted(set(seqs))))
        bodies = self.bodies({row[0] for row in rows})
        found: dict[int, list[Change]] = {}
        for change, seq in sorted(rows):
            found.setdefault(seq, []).append(bodies[change])
        return found

    def records_with(self, *, actor: str = "", session: str = "") -> set[int]:
        """Return the seqs of the records with which changes of an actor, or of a session, came."""
        given = {name: value for name, value in (("actor", actor), ("session", session)) if value}
        sql = _CAME.format(" and ".join([f"c.{name} = :{name}" for name in given] or ["true"]))
        return {row[1] for row in self.rows(sql, **given)}

    def writers(self) -> set[tuple[str, str]]:
        """Return the actor and the session of each change."""
        return {(actor, session) for actor, session in self.rows("select distinct actor, session from change")}

    def unshared(self, seq: int) -> list[HeldChange]:
        """Return the changes of records up to a seq that no committed file held, in the order of the records."""
        columns = "c.body, c.seq, c.head, c.restores"
        sql = f"select {columns} from change c where {_IS_OWN} and not {_IS_ONCE_COMMITTED} order by c.seq"
        found = [(_decode(body), *more) for body, *more in self.rows(sql, seq=seq)]
        files = self.files_of([change.id for change, *_ in found], seq)
        return [
            HeldChange(change, number, tuple(sorted(files.get(change.id, ()))), WrittenAt(head, bool(restores)))
            for change, number, head, restores in found
        ]

    def written_at(self, ids: Iterable[str]) -> dict[str, WrittenAt]:
        """Return where changes of this journal were written."""
        found = self._by_keys("select id, head, restores from change where id in ({}) and seq", ids)
        return {key: WrittenAt(head, bool(restores)) for key, head, restores in found}

    def once_committed_on(self, ids: Collection[str], seq: int) -> list[Change]:
        """Return the changes that a committed file held at a seq or before, with claims on entities of these ids.

        Entities count that have or had one of these, and edges at them.
        """
        keys = {key for keys in self._creations_of(ids, (), NO_DOCUMENTS).values() for key in keys}
        changes = {row[0] for row in self._by_keys("select distinct change from subject where key in ({})", keys)}
        return [*self.bodies(self.once_committed(changes, seq)).values()]

    def withdrawn(self, seq: int) -> list[HeldChange]:
        """Return the changes of records up to a seq that a committed file held and no file holds any more."""
        where = f"{_IS_OWN} and {_IS_ONCE_COMMITTED} and not {_IS_HELD}"
        rows = self.rows(f"select c.body, c.seq from change c where {where} order by c.seq", seq=seq)
        return [HeldChange(_decode(body), number, ()) for body, number in rows]

    def folded(self, subjects: Subjects, seq: int, *, documents: Documents = NO_DOCUMENTS) -> FoldedClaims:
        """Return the state that the present changes give, of some entities and edges.

        What it has of others may not be whole.
        """
        return fold(self.changes_on(subjects, seq, documents=documents).values(), documents)

    def creations(self, ids: Collection[str], seq: int) -> dict[str, list[tuple[str, str]]]:
        """Return the creations of those of these ids that several changes gave to entities, at a seq.

        Each is as ``creation_words`` names it, with the actor of the change.
        """
        entities = self.folded(Subjects(frozenset(ids)), seq).entities
        of = {key: [one for one in entities[key].of if one != DOCUMENT] for key in ids if key in entities}
        several = {key: [one.partition(":")[0] for one in ones] for key, ones in of.items() if len(ones) > 1}
        made = self.bodies({one for ones in several.values() for one in ones})
        return {key: [(creation_words(one, key), made[one].actor) for one in ones] for key, ones in several.items()}

    def changes_on(
        self, subjects: Subjects, seq: int, *, more: Sequence[Change] = (), documents: Documents = NO_DOCUMENTS
    ) -> dict[str, Change]:
        """Return the present changes that the state of some entities and edges depends on, by id.

        ``more`` are changes of which some may count besides.
        """
        names = [pair for change in more for pair in names_in(change)]
        ids = subjects.entities.union(subjects.around, *subjects.edges)
        creations = self._creations_of(ids, names, documents)
        around = {key for one in subjects.around for key in creations[one]}
        entities = {key for one in subjects.entities for key in creations[one]}
        found = self._on(entities, seq)
        found |= self._on(around, seq, is_end=True)
        found |= self.present(self._at_all([[creations[end] for end in ends] for ends in subjects.edges]), seq)
        ends = {end for change in (*found.values(), *more) for ref in edges_of(change) for end in ref}
        creations |= self._creations_of(ends - creations.keys(), names, documents)
        return found | self._on({key for end in ends for key in creations[end]} - entities, seq)

    def _creations_of(
        self, ids: Collection[str], names_of_more: Iterable[tuple[str, str]], documents: Documents
    ) -> dict[str, frozenset[str]]:
        """Return what each id may mean: the creations that changes know by it, or by another id of one of these.

        ``names_of_more`` are names of changes that are not in the index.
        """
        by_id: dict[str, set[str]] = {}
        by_creation: dict[str, set[str]] = {}

        def note(pairs: Iterable[Sequence[str]]) -> set[str]:
            for key, creation in pairs:
                by_id.setdefault(key, set()).add(creation)
                by_creation.setdefault(creation, set()).add(key)
            return set(by_id)

        note([*names_of_more, *self._by_keys("select id, creation from name where id in ({})", ids)])
        known = note(self._by_keys("select id, creation from name where creation in ({})", by_creation))
        note(self._by_keys("select id, creation from name where id in ({})", known.difference(ids)))
        former: dict[str, set[str]] = {}
        for one, key in documents.former_ids.items():
            former.setdefault(key, set()).add(one)
        found = {}
        for key in ids:
            names = {key}.union(*(by_creation[one] for one in by_id.get(key, ())))
            names |= {one for name in names for one in former.get(name, ())}
            means = {creation_of(DOCUMENT, name) for name in names}
            found[key] = frozenset(means.union(*(by_id.get(name, ()) for name in names)))
        return found

    def _at_all(self, edges: Sequence[Sequence[Collection[str]]]) -> set[str]:
        """Return the changes with claims on edges that have one of the creations of each end of some of these edges."""
        numbers = dict(self._by_keys(_EDGES_AT, (key for ends in edges for keys in ends for key in keys)))
        ordered = [sorted(ends, key=lambda keys: sum(numbers[key] for key in keys)) for ends in edges]
        at: dict[str, set[str]] = {}
        sql = "select key, change from subject where is_end and key in ({})"
        for key, change in self._by_keys(sql, (key for first, *_ in ordered for key in first)):
            at.setdefault(key, set()).add(change)
        left = [set[str]().union(*(at.get(key, ()) for key in ends[0])) for ends in ordered]
        for place in range(1, max(map(len, ordered), default=0)):
            pairs = {
                (key, change)
                for ends, found in zip(ordered, left, strict=True)
                if place < len(ends)
                for key in ends[place]
                for change in found
            }
            there = {(key, change) for key, change in self.rows(_ALSO_AT, pairs=json.dumps([*pairs]))}
            for ends, found in zip(ordered, left, strict=True):
                if place < len(ends):
                    found &= {change for change in found if any((key, change) in there for key in ends[place])}
        return set[str]().union(*left)

    def former_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the ids that entities had before by what documents say: by former id the one of these that had it."""
        return dict(self._by_keys("select former, id from former where id in ({})", ids))

    def edges_named(self, ends: Iterable[frozenset[str]]) -> Iterator[frozenset[str]]:
        """Yield the entities that edges with these ends depend on, and those of each edge among the ends."""
        for pair in ends:
            links = [end for end in pair if is_link_id(end)]
            inner = [frozenset(row) for row in self._by_keys(_ENDS, links)]
            found = [*self.edges_named(inner)]
            yield from found
            yield frozenset({end for end in pair if not is_link_id(end)}.union(*found))

    def concerned(self, changes: Iterable[Change]) -> Subjects:
        """Return what changes, also such as are not in the index, have claims on, by all ids that it is known by."""
        entities, around = _Known(set(), set()), _Known(set(), set())
        edges = set[frozenset[str]]()
        for change in changes:
            edges |= edges_of(change)
            for claim in change.claims:
                if isinstance(claim, Create):
                    around.ids.add(claim.id)
                elif isinstance(claim, Rename):
                    around.ids.add(claim.now)
            whole = {claim.on for claim in change.claims if isinstance(claim, _OF_ALL)}
            for ref in refs_of(change):
                if isinstance(ref, EntityRef):
                    known = around if ref in whole else entities
                    known.ids.add(ref.id)
                    known.creations.update(creations_in(named_by(change.id, ref)))
        # One more claim brings back an entity whose deletion has not seen it: the edges at it move.
        deleted = self._by_keys("select key from deleted where key in ({})", entities.creations)
        around.creations.update(row[0] for row in deleted)
        of_around = self._names_of(around)
        return Subjects(frozenset(self._names_of(entities) | of_around), frozenset(of_around), tuple(edges))

    def _names_of(self, known: _Known) -> set[str]:
        """Return ids, and those that the entities which changes know by one of them have or had besides."""
        creations = {row[0] for row in self._by_keys("select creation from name where id in ({})", known.ids)}
        creations |= known.creations
        return known.ids | {row[0] for row in self._by_keys("select id from name where creation in ({})", creations)}

    def known(self, ids: Iterable[str]) -> set[str]:
        """Return those of these ids that a change has claims on, or has edges at, present or not."""
        by_key = {creation_of(DOCUMENT, key): key for key in ids}
        found = {by_key[row[0]] for row in self._by_keys("select distinct key from subject where key in ({})", by_key)}
        named = self._by_keys("select distinct id from name where id in ({})", by_key.values())
        return found | {row[0] for row in named}

    def _on(self, keys: Collection[str], seq: int, *, is_end: bool = False) -> dict[str, Change]:
        """Return the present changes with claims on creations, or on edges at these."""
        sql = "select distinct change from subject where key in ({}) and is_end = :is_end"
        return self.present([row[0] for row in self._by_keys(sql, keys, is_end=is_end)], seq)

    def _loaded(self, ids: Iterable[str], seq: int) -> Iterator[Change]:
        for row in self._by_keys(f"select c.body from change c where c.id in ({{}}) and {_IS_PRESENT}", ids, seq=seq):
            yield _decode(row[0])

    def _by_keys(self, sql: str, keys: Iterable[str], **params: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement with ``{}`` in the place of keys."""
        listed = _text(set(keys))
        return self.rows(sql.format(_KEYS), keys=listed, **params) if listed != "[]" else []

    def copied(self) -> ClaimIndex:
        """Return a copy in memory. Raises: ``ViewDamaged``."""
        copy = ClaimIndex(":memory:")
        try:
            self._opened.backup(copy._opened)
        except sqlite3.Error as error:
            raise ViewDamaged(str(error)) from error
        return copy

    def has(self, head: Head) -> bool:
        """Tell whether the record of a head is in it, and so all before that."""
        if not self._is_of(head):
            return False
        return not head.seq or bool(
            self.rows("select 1 from seen where seq = :seq and sum = :sum", seq=head.seq, sum=head.hash)
        )

    def reach_in(self, store_id: str) -> int:
        """Return the last record that it has of a store, which need not be there any more; 0 where it has none."""
        if not self.rows("select 1 from sqlite_master where name = 'stamp'"):
            return 0
        if self.rows("select * from stamp") != [(CLAIM_FORMAT, store_id)]:
            return 0
        return int(self.rows("select coalesce(max(seq), 0) from seen")[0][0])

    def _is_of(self, head: Head) -> bool:
        """Tell whether it was filled from the store of a head."""
        if not self.rows("select 1 from sqlite_master where name = 'stamp'"):
            return False
        return self.rows("select * from stamp") == [(CLAIM_FORMAT, head.store_id)]

    def _begin(self, fs: Fs, directory: Path, head: Head) -> Iterator[FoldedRecord]:
        """Return the records to take in, after what is there already was thrown away if it is of another history."""
        last = self.rows("select seq, sum, file, ends from seen order by seq desc limit 1") if self._is_of(head) else []
        if last and last[0][0] < head.seq and any(part.file == last[0][2] for part in head.segments):
            entries = replay.entries(fs, directory, head, after=Position(*last[0]))
            with contextlib.suppress(Damaged):  # of another history, or damaged: then all of it is read
                return itertools.chain([next(entries)], entries)
        self.empty()
        self.rows("insert into stamp values (:format, :store)", format=CLAIM_FORMAT, store=head.store_id)
        return replay.entries(fs, directory, head)

    def empty(self) -> None:
        """Make the tables, without any record. Raises: ``ViewDamaged``."""
        for kind, name in self.rows("select type, name from sqlite_master where name not like 'sqlite_%'"):
            self.rows(f'drop {kind} if exists "{name}"')
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self.rows(statement)
        self._begin_state(has_others=False)

    def take_in(self, entry: FoldedRecord, touched: derived.Touched | None = None) -> None:
        """Take in one record, the next one of the journal, which touches this. Raises: ``ViewDamaged``."""
        end = entry.offset_bytes + entry.length_bytes
        self._add("seen", [(entry.seq, entry.sum, entry.file, end)])
        record = entry.record
        for is_taken, group in itertools.groupby(record.ops, lambda op: isinstance(op, TakeChange)):
            if is_taken:
                self._take([op for op in group if isinstance(op, TakeChange)], entry.seq)
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
        left = list[tuple[str, str]]()
        for op in ops:
            if isinstance(op, LeaveChange):
                left.append((op.id, op.file))
            elif isinstance(op, StateLink) and op.src == CLIENT:
                key = link_id(op.type, op.kind, op.from_id, op.to_id)
                self._add("edge", [(key, op.from_id, op.to_id)])
            elif isinstance(op, PutNode) and op.src != CLIENT and FORMER_IDS in op.set:
                self._add("former", [(former, op.id) for former in former_ids_of(op.set)])
                self._forget()
        if left:
            self._leave(left, seq)
            self._forget_changes([key for key, _ in left])

    def _take(self, ops: Sequence[TakeChange], seq: int) -> None:
        """Take in changes that come with a record, or that a file holds from it on."""
        bodies = {
            op.id: (op.change, 0 if op.file else seq, WrittenAt(op.commit, op.restores))
            for op in ops
            if op.change is not None
        }
        sql = "select id, seq, head, restores from change where id in ({}) and seq"
        own = {key: (number, WrittenAt(*origin)) for key, number, *origin in self._by_keys(sql, bodies)}
        before = self.bodies(key for key, (change, *_) in bodies.items() if change.is_redacted or change.message_hash)
        fields = {key: fields_redacted(one, bodies[key][0]) for key, one in before.items()}
        self._add("redacted", [(key, field) for key, names in fields.items() for field in names])
        self._insert([(change, *own.get(key, new)) for key, (change, *new) in bodies.items()])
        self._new.update(op.id for op in ops)
        held = {(op.id, op.file): op.is_committed for op in ops if op.file}
        self._leave(held, seq)
        self._add("held", [(*pair, seq, _NEVER, is_committed) for pair, is_committed in held.items()])
        self._forget_changes([op.id for op in ops])

    def _leave(self, pairs: Iterable[tuple[str, str]], seq: int) -> None:
        """Note that files hold changes no more from a seq on."""
        self._write()
        sql = "update held set until = ? where change = ? and file = ? and until > ?"
        self._run_many(sql, [(seq, change, file, seq) for change, file in pairs])

    def _insert(self, changes: Sequence[tuple[Change, int, WrittenAt]]) -> None:
        """Add changes, each with the seq of its record and where it was written, in place of other copies of them."""
        rows = [(one.id, seq, one.at, one.actor, one.session, _encode(one), *origin) for one, seq, origin in changes]
        self._add("change", rows)
        self._new.update(row[0] for row in rows)
        for one, *_ in changes:
            keys, names = claimed_by(one)
            self._add("subject", [(key, is_end, one.id) for key, is_end in keys])
            self._add("name", names)
        gone = [(one.id, claim.on) for one, *_ in changes for claim in one.claims if isinstance(claim, Delete)]
        self._add("deleted", {(key,) for change, on in gone for key in creations_in(named_by(change, on))})

    def _before(self, touched: derived.Touched, seq: int) -> FoldedClaims:
        """Return the state of the changes at a seq, of all that the operations of the next record touch."""
        edges = tuple({ends for ends in self.edges_named(map(frozenset, touched.edges.values())) if ends})
        return self._folded_at(Subjects(touched.entities.union(*edges), touched.around, edges), seq)

    def _folded_at(self, subjects: Subjects, seq: int) -> FoldedClaims:
        """Return the state of the changes at a seq, of some entities and edges.

        An entity of which no change says that it was created is that of a document: nothing else can be told from the
        records of clients alone.
        """
        changes = [*self.changes_on(subjects, seq).values()]
        stated = {key: dict[str, Any]() for key in subjects.entities - ids_of_clients(changes)}
        documents = Documents(stated, self.former_ids(stated))
        if documents.former_ids:  # then more changes may be on them
            return self.folded(subjects, seq, documents=documents)
        return fold(changes, documents)

    def _known_before(self, touched: derived.Touched, seq: int) -> FoldedClaims | None:
        """Return the same as ``_before``, from the state that is kept; None where that cannot be."""
        found = self._running.before(touched)
        if found is None and touched.is_simple:
            self._look_up([touched], seq)
            found = self._running.before(touched)
        return found

    def _look_up(self, all_touched: Iterable[derived.Touched], seq: int) -> None:
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
        former = {*self.former_ids(ids).values()}
        former |= {row[0] for row in self._by_keys("select former from former where former in ({})", ids)}
        claimed = self.known(ids)
        for key in ids:
            creations = by_id.get(key, [])
            self._is_plain[key] = key not in former and len(creations) <= 1 and shared.isdisjoint(creations)
            if self._is_plain[key] and key not in claimed:
                self._running.note_new(key)

    def _forget_changes(self, ids: Collection[str]) -> None:
        """Forget what is kept of the state of all that some changes have claims on."""
        if self._is_plain:
            self._forget_elements(self.bodies(ids).values())

    def _forget_elements(self, changes: Iterable[Change]) -> None:
        """Do the same, where the changes are in the index."""
        if self._is_plain:
            names = _Known(set(), set())
            for change in changes:
                names.ids.update(ids_in(change))
                names.creations.update(creation for _, creation in names_in(change))
            ids = self._names_of(names)
            self._running.forget(ids)
            for key in ids:
                self._is_plain.pop(key, None)

    def _is_noted(self, change: str) -> bool:
        """Tell whether a change was noted before, of a record or a file."""
        if change in self._new or not self._has_others:
            return change in self._new
        sql = "select 1 from change where id = :id union all select 1 from held where change = :id"
        return self._run(lambda: self._opened.execute(sql, {"id": change}).fetchone()) is not None


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


def inspect(path: Path) -> int:
    """Return how many changes an index has, for a diagnosis; nothing is written. Raises: ``ViewDamaged``."""
    index = ClaimIndex(f"{path.as_uri()}?mode=ro")
    found = index.rows("pragma quick_check")
    if found != [("ok",)]:
        raise ViewDamaged(str(found[0][0]))
    return int(index.rows("select count(*) from change")[0][0])
