"""The changes of a branch, as its journal has them: by whom, on what, and which of them are present at a seq.

It asks a database (``claim_database``), which is filled from the records of the journal in their order, as far as it is
asked for, and by nothing else (``claim_filling``). A branch that nobody shares or merges has none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kbcore.ids import is_link_id
from kbcore.model.claims.change import (
    DOCUMENT,
    Change,
    Create,
    EntityRef,
    Ref,
    Rename,
    creation_of,
    creation_words,
)
from kbcore.model.claims.fold import NO_DOCUMENTS, OF_EXISTENCE, DocumentFacts, FoldedClaims, fold
from kbcore.model.claims.subjects import (
    Subjects,
    claimed_by,
    creations_of,
    entities_in,
)
from kbcore.model.redaction.changes import TakenOut
from kbcore.view.claim_database import ClaimDatabase

_EDGES: Final = "select id, type, kind, from_id, to_id from edge where id in ({})"
_EDGES_AT: Final = (
    "select value, (select count(*) from (select 1 from subject where is_end and key = value limit 1000)) "
    "from json_each(:keys)"
)
"""The number of claims on edges at each of some creations, as far as it matters which end has fewer."""
_ALSO_AT: Final = (
    "select value ->> 0, value ->> 1 from json_each(:pairs) where exists "
    "(select 1 from subject where key = value ->> 0 and is_end and change = value ->> 1)"
)
"""The condition on pairs of a creation and a change that are of a claim on an edge at the creation."""

_IS_ONCE_COMMITTED: Final = "exists (select 1 from held h where h.change = c.id and h.is_committed and h.since <= :seq)"
_HOLDING: Final = "select 1 from held h where h.change = c.id and h.since <= :seq and h.until > :seq"
_IS_HELD: Final = f"exists ({_HOLDING})"
_IS_LEFT: Final = f"exists ({_HOLDING} and h.file not in (select value from json_each(:gone)))"
_IS_OWN: Final = "c.seq between 1 and :seq"
_IS_PRESENT: Final = f"({_IS_HELD} or ({_IS_OWN} and not {_IS_ONCE_COMMITTED}))"
_CAME: Final = f"""
select c.id, p.seq from (select id as change, seq from change where seq > 0 union select change, since from held) p
join change c on c.id = p.change where {{}} and {_IS_PRESENT.replace(":seq", "p.seq")}
and not {_IS_PRESENT.replace(":seq", "(p.seq - 1)")}
"""
"""The changes, each with the seqs from which on it was present and had not been just before."""

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


class Known(NamedTuple):
    """Entities as changes know them: by ids, and by creations."""

    ids: set[str]
    creations: set[str]


class ClaimIndex:
    """The index of one branch, for one thread at a time."""

    def __init__(self, path: str) -> None:
        """Open or create it. Raises: ``ViewDamaged`` when the file cannot be used."""
        self.database = ClaimDatabase(path)
        self._rows, self._by_keys = self.database.rows, self.database.by_keys
        self.taken_out: Mapping[str, TakenOut] = {}
        """The parts of changes that redactions in this clone took out, in whatever branch."""

    def all_changes(self) -> Iterator[Change]:
        """Yield every change, present or not."""
        return (_decode(body) for (body,) in self._rows("select body from change"))

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
        return {row[0] for row in self._rows(sql, file=file, seq=seq)}

    def committed_files(self, seq: int) -> set[str]:
        """Return the files that hold changes at a seq and are known as committed."""
        sql = "select distinct file from held where since <= :seq and until > :seq and is_committed"
        return {row[0] for row in self._rows(sql, seq=seq)}

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
        for change, field in self._rows("select change, field from redacted order by change, field"):
            found.setdefault(change, []).append(field)
        bodies = self.bodies(found)
        return [(bodies[key], tuple(fields)) for key, fields in found.items()]

    def own_since(self, seq: int) -> dict[int, Change]:
        """Return the changes that the records from a seq on are, or took over, by their seqs."""
        rows = self._rows("select seq, body from change where seq >= :seq", seq=seq)
        return {own: _decode(body) for own, body in rows}

    def came_with(self, seqs: Iterable[int]) -> dict[int, list[Change]]:
        """Return the changes that were present from each of these records on, and not just before it."""
        sql = _CAME.format("p.seq in (select value from json_each(:seqs))")
        rows = self._rows(sql, seqs=json.dumps(sorted(set(seqs))))
        bodies = self.bodies({row[0] for row in rows})
        found: dict[int, list[Change]] = {}
        for change, seq in sorted(rows):
            found.setdefault(seq, []).append(bodies[change])
        return found

    def records_with(self, *, actor: str = "", session: str = "") -> set[int]:
        """Return the seqs of the records with which changes of an actor, or of a session, came."""
        given = {name: value for name, value in (("actor", actor), ("session", session)) if value}
        sql = _CAME.format(" and ".join([f"c.{name} = :{name}" for name in given] or ["true"]))
        return {row[1] for row in self._rows(sql, **given)}

    def writers(self) -> set[tuple[str, str]]:
        """Return the actor and the session of each change."""
        return {(actor, session) for actor, session in self._rows("select distinct actor, session from change")}

    def unshared(self, seq: int, since: int = 0) -> list[HeldChange]:
        """Return the changes of records up to a seq that no committed file held, in the order of the records.

        Those up to ``since`` are left out.
        """
        columns = "c.body, c.seq, c.head, c.restores"
        where = f"{_IS_OWN} and c.seq > :since and not {_IS_ONCE_COMMITTED}"
        sql = f"select {columns} from change c where {where} order by c.seq"
        found = [(_decode(body), *more) for body, *more in self._rows(sql, seq=seq, since=since)]
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

    def withdrawn(self, seq: int, gone: Collection[str] = ()) -> list[HeldChange]:
        """Return the changes of records up to a seq that a committed file held and none holds, ``gone`` aside."""
        where = f"{_IS_OWN} and {_IS_ONCE_COMMITTED} and not {_IS_LEFT}"
        sql = f"select c.body, c.seq from change c where {where} order by c.seq"
        rows = self._rows(sql, seq=seq, gone=json.dumps([*gone]))
        return [HeldChange(_decode(body), number, ()) for body, number in rows]

    def folded(self, subjects: Subjects, seq: int, *, documents: DocumentFacts = NO_DOCUMENTS) -> FoldedClaims:
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
        self, subjects: Subjects, seq: int, *, more: Sequence[Change] = (), documents: DocumentFacts = NO_DOCUMENTS
    ) -> dict[str, Change]:
        """Return the present changes that the state of some entities and edges depends on, by id.

        ``more`` are changes of which some may count besides.
        """
        claimed = [*map(claimed_by, more)]
        names = [pair for one in claimed for pair in one.names]
        ids = subjects.entities.union(subjects.around, *subjects.edges)
        creations = self._creations_of(ids, names, documents)
        around = {key for one in subjects.around for key in creations[one]}
        entities = {key for one in subjects.entities for key in creations[one]}
        found = self._on(entities, seq)
        found |= self._on(around, seq, is_end=True)
        of_edges = [edge for ends in subjects.edges if all(edge := [creations[end] for end in ends])]
        found |= self.present(self._at_all(of_edges), seq)
        claimed += map(claimed_by, found.values())
        ends = {end for one in claimed for edge in one.edges for end in edge}
        if not ends <= creations.keys():
            creations |= self._creations_of(ends - creations.keys(), names, documents)
        return found | self._on({key for end in ends for key in creations[end]} - entities, seq)

    def _creations_of(
        self, ids: Collection[str], names_of_more: Iterable[tuple[str, str]], documents: DocumentFacts
    ) -> dict[str, frozenset[str]]:
        """Return what each id may mean: the creations that changes know by it, or by another id of one of these.

        They are those on which a change in the index has claims. ``names_of_more`` are names of other changes.
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
            found[key] = means.union(*(by_id.get(name, ()) for name in names))
        keys = set[str]().union(*found.values())
        there = {row[0] for row in self._by_keys("select distinct key from subject where key in ({})", keys)}
        return {key: frozenset(means & there) for key, means in found.items()}

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
            there = {(key, change) for key, change in self._rows(_ALSO_AT, pairs=json.dumps([*pairs]))}
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
            inner = [frozenset(row[3:]) for row in self._by_keys(_EDGES, links)]
            found = [*self.edges_named(inner)]
            yield from found
            yield frozenset({end for end in pair if not is_link_id(end)}.union(*found))

    def edges(self, ids: Iterable[str]) -> dict[str, tuple[str, str, str, str]]:
        """Return those of these ids that are edges which anybody stated, and those that these are about.

        Each is its type, its kind, and the ids of its two ends.
        """
        found, left = dict[str, tuple[str, str, str, str]](), {one for one in ids if is_link_id(one)}
        while left:
            found |= (new := {key: (type_, kind, *ends) for key, type_, kind, *ends in self._by_keys(_EDGES, left)})
            left = {end for edge in new.values() for end in edge[2:] if is_link_id(end)} - found.keys()
        return found

    def concerned(self, changes: Iterable[Change]) -> Subjects:
        """Return what changes, also such as are not in the index, have claims on, by all ids that it is known by."""
        entities, around = Known(set(), set()), Known(set(), set())
        edges = set[frozenset[str]]()
        for change in changes:
            last: Ref | None = None
            for claim in change.claims:
                if type(claim) is Create:
                    around.ids.add(claim.id)
                    continue
                on, is_whole = claim.on, type(claim) in OF_EXISTENCE
                if (on is last or on == last) and not is_whole:
                    continue
                last = on
                if isinstance(on, EntityRef):
                    known = around if is_whole else entities
                    known.ids.add(on.id)
                    known.creations.update(creations_of(change.id, on))
                    if type(claim) is Rename:
                        around.ids.add(claim.now)
                else:
                    edges.add(frozenset([one.id for one in entities_in(on)]))
        # One more claim brings back an entity whose deletion has not seen it: the edges at it move.
        deleted = self._by_keys("select key from deleted where key in ({})", entities.creations)
        around.creations.update(row[0] for row in deleted)
        of_around = self.names_of(around)
        return Subjects(frozenset(self.names_of(entities) | of_around), frozenset(of_around), tuple(edges))

    def names_of(self, known: Known) -> set[str]:
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

    def known_names(self, names: Collection[str]) -> tuple[set[str], set[str]]:
        """Return those of these ids and creations that changes know, and the names of entities with several ids.

        The changes are present or not. The names are those of entities that they know by one of these.
        """
        found = self._by_keys("select distinct key from subject where key in ({})", names)
        known = self.known(names).union(row[0] for row in found)
        creations = {row[0] for row in self._by_keys("select creation from name where id in ({})", known)}
        ids: dict[str, set[str]] = {}
        for key, one in self._by_keys("select id, creation from name where creation in ({})", creations | known):
            ids.setdefault(one, set()).add(key)
        return known, {name for one, keys in ids.items() if len(keys) > 1 for name in (one, *keys)}

    def _on(self, keys: Collection[str], seq: int, *, is_end: bool = False) -> dict[str, Change]:
        """Return the present changes with claims on creations, or on edges at these."""
        sql = "select distinct change from subject where key in ({}) and is_end = :is_end"
        return self.present([row[0] for row in self._by_keys(sql, keys, is_end=is_end)], seq)

    def _loaded(self, ids: Iterable[str], seq: int) -> Iterator[Change]:
        for row in self._by_keys(f"select c.body from change c where c.id in ({{}}) and {_IS_PRESENT}", ids, seq=seq):
            yield _decode(row[0])

    def copied(self) -> ClaimIndex:
        """Return a copy in memory. Raises: ``ViewDamaged``."""
        copy = ClaimIndex(":memory:")
        self.database.copy_to(copy.database)
        return copy
