"""Writers of what came with a record by change files or by a merge: the actors of the changes, not who brought them.

A record without shared changes has one writer, its actor, and nothing is looked up of it. A branch that has no such
record is asked one question about that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from kbcore.ids import is_link_id, link_id
from kbcore.model import inverse
from kbcore.model.claims.change import (
    DOCUMENT,
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    Delete,
    EdgeRef,
    Ref,
    RemoveEdge,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
    order_of,
)
from kbcore.model.claims.fold import DocumentFacts, Field
from kbcore.model.claims.subjects import Subjects
from kbcore.model.graph import CLIENT, FORMER_IDS, Link, Node, contested_note, former_ids, is_contested_note
from kbcore.model.record import MERGE
from kbcore.model.state import Changes
from kbcore.model.state import ElementChange as Changed
from kbcore.store.planning.plan_builder import STATED, RecordedBy
from kbcore.text.escaping import in_quotes
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.history import changed_in, changes_of
from kbcore.view.view import View

_OF_FIELDS: Final = (SetField, UnsetField, AddMember, RemoveMember)
_CONTESTED: Final = contested_note("")

Way = Literal["merge", "sync"]


class Bringer(msgspec.Struct, frozen=True):
    """The author of a record that brought changes, and how they came."""

    actor: str
    through: Way


class WriterFilter(msgspec.Struct, frozen=True):
    """Whose changes are meant: those of an actor, of a session, or of both; "" is any."""

    actor: str = ""
    session: str = ""

    def __bool__(self) -> bool:
        """Tell whether it names anybody."""
        return bool(self.actor or self.session)

    def words(self) -> str:
        """Return who it is, as the end of a sentence on what was changed."""
        session = f"in session {in_quotes(self.session)}" if self.session else ""
        return " ".join(filter(None, [f"by {in_quotes(self.actor)}" if self.actor else "", session]))

    def as_json(self) -> dict[str, str]:
        """Return what is given, by name."""
        given = {"actor": self.actor, "session": self.session}
        return {name: value for name, value in given.items() if value}

    def wrote(self, actor: str, session: str) -> bool:
        """Tell whether this is the writer of what an actor wrote in a session."""
        return self.actor in {"", actor} and self.session in {"", session}


def has_shared(view: View) -> bool:
    """Tell whether changes came or went with any record of a branch."""
    return view.claims is not None and view.rows("select exists (from record where changes > 0)") == [(True,)]


def bringers(view: View, seqs: Iterable[int]) -> dict[int, Bringer]:
    """Return the author of each of these records that brought changes of others, or took some away."""
    if view.claims is None:
        return {}
    sql = "select seq, actor, source from record where changes > 0 and seq in (select unnest(?::bigint[]))"
    rows = view.rows(sql, [sorted(set(seqs))])
    return {seq: Bringer(actor or "", "merge" if source == MERGE else "sync") for seq, actor, source in rows}


def came_with(view: View, seqs: Collection[int]) -> dict[int, list[Change]]:
    """Return the changes that came with each of these records, of those with which any came."""
    return view.claims().came_with(seqs) if view.claims is not None and seqs else {}


class BroughtChange(msgspec.Struct, frozen=True):
    """A change that came with a record: who wrote it and when, and with which record, commit and file it came.

    ``commit`` is the one that was checked out, "" where none is known; ``file`` one that holds it now, "" for none.
    """

    change: str
    actor: str
    at: str
    seq: int
    commit: str
    file: str


def brought_changes(view: View, low: int, high: int, writer: WriterFilter) -> dict[str, list[BroughtChange]]:
    """Return the changes of a writer that came with records of others after a seq, up to another one.

    They are listed by the ids of the entities and edges that they have claims on, as they know these.
    """
    if view.claims is None or not has_shared(view):
        return {}
    sql = "select seq, commit from record where changes > 0 and seq > ? and seq <= ? order by seq"
    commits = dict(view.rows(sql, [low, high]))
    came = came_with(view, commits)
    files = view.claims().files_of([one.id for changes in came.values() for one in changes], view.recorded_seq)
    found: dict[str, list[BroughtChange]] = {}
    for seq, changes in sorted(came.items()):
        for one in sorted(changes, key=order_of):
            if not writer.wrote(one.actor, one.session):
                continue
            file = min(files.get(one.id, ()), default="")
            brought = BroughtChange(one.id, one.actor, one.at, seq, commits[seq] or "", file)
            for key in {key for claim in one.claims for key in _ids_of(claim)}:
                found.setdefault(key, []).append(brought)
    return found


def records_with(view: View, writer: WriterFilter) -> set[int]:
    """Return the records with which changes of a writer came."""
    if not writer or view.claims is None or not has_shared(view):
        return set()
    return view.claims().records_with(actor=writer.actor, session=writer.session)


def known_writers(view: View) -> set[tuple[str, str]]:
    """Return the actor and the session of each record, and of each change that came with one."""
    found = {(actor or "", session or "") for actor, session in view.rows("select distinct actor, session from record")}
    return found | view.claims().writers() if view.claims is not None and has_shared(view) else found


def said_of(change: Change, seq: int, by: Bringer) -> RecordedBy:
    """Return the writer of a change that came with a record."""
    return RecordedBy(seq, change.actor, change.session, by.actor, by.through)


def changes_stating(view: View, seq: int, elements: Mapping[str, Collection[str]], was: Iterable[Node | Link]) -> Any:
    """Return, by element and field, the change that says what a field is as of a record that brought changes.

    ``elements`` has the wanted fields by id, with ``STATED`` for the statement that the element exists; ``was`` are
    the elements as of the record, as far as they exist there. A field that no change says is left out.
    """
    if view.claims is None:
        return {}
    index, there = view.claims(), {one.id: one for one in was}
    came = index.came_with([seq]).get(seq, [])
    state = _folded(index, seq, there.values())
    found: dict[str, dict[str, Change]] = {}
    for key, names in elements.items():
        element = there.get(key)
        folded = state.edges.get(key) if is_link_id(key) else state.entities.get(key)
        ids = {key, *(former_ids(element) if isinstance(element, Node) else ())}
        for name in names:
            candidates = set[str]()
            if element is not None and folded is not None and element.owners.get(name, CLIENT) == CLIENT:
                candidates = _stating(folded, name)
            one = _chosen(index, candidates, came) or _last([one for one in came if _claims(one, ids, name)])
            if one is not None and (element is None or element.owners.get(name, CLIENT) == CLIENT):
                found.setdefault(key, {})[name] = one
    return found


def maker_of(view: View, seq: int, key: str) -> RecordedBy:
    """Return who created or removed an element by a record: the writer of the change where it came with the record."""
    rows = view.past.records([seq], ("actor", "changes"))
    if not rows:
        return RecordedBy(seq)
    actor, changes = rows[0]
    if changes and view.claims is not None:
        by = bringers(view, [seq])[seq]
        made = [one for one in came_with(view, [seq]).get(seq, ()) if _makes(one, key)]
        if made:
            return msgspec.structs.replace(said_of(min(made, key=order_of), seq, by), session="")
    return RecordedBy(seq, actor or "")


def written_by(view: View, seqs: Sequence[int], writer: WriterFilter) -> tuple[set[str], dict[str, tuple[str, str]]]:
    """Return what a writer changed by these records, in the shape of ``changed_in``.

    Of a record that brought changes it is what those of the writer have claims on. Where the writer brought them, it is
    that and what no change of others has claims on, as what documents state.

    Raises: ``HistoryPruned``.
    """
    brought = bringers(view, seqs) if writer else {}
    nodes, links = changed_in(view, [seq for seq in seqs if seq not in brought])
    came = came_with(view, brought)
    for seq in brought:
        these = came.get(seq, [])
        mine = _concerned(view, [one for one in these if writer.wrote(one.actor, one.session)])
        others = _concerned(view, [one for one in these if not writer.wrote(one.actor, one.session)])
        is_own = _is_author(view, seq, writer)
        there, edges = changed_in(view, [seq])
        nodes |= {key for key in there if key in mine.entities or (is_own and key not in others.entities)}
        links |= {
            key: ends
            for key, ends in edges.items()
            if _is_edge_of(mine, ends) or (is_own and not _is_edge_of(others, ends))
        }
    return nodes, links


def narrowed(view: View, changes: Mapping[int, Changes], writer: WriterFilter) -> dict[int, Changes]:
    """Return what records changed, of those that brought changes only what the writer's changes say."""
    brought = bringers(view, changes) if writer else {}
    came = came_with(view, brought)
    found = dict(changes)
    for seq in brought:
        mine = [one for one in came.get(seq, ()) if writer.wrote(one.actor, one.session)]
        nodes = filter(None, (_own_part(one, mine) for one in changes[seq].nodes))
        links = filter(None, (_own_part(one, mine) for one in changes[seq].links))
        found[seq] = Changes(tuple(nodes), tuple(links))
    return found


def changes_by(view: View, seqs: Sequence[int], writer: WriterFilter) -> dict[int, Changes]:
    """Return what these records changed, in their order, as far as a writer wrote it. Raises: ``HistoryPruned``."""
    return narrowed(view, changes_of(view, seqs), writer)


def _members_before(was: Any, now: Any, claims: Iterable[Claim], name: str) -> list[str]:
    """Return the members of a set without what claims add to it, and with what they remove."""
    before, after = (list(unit[0]) if unit else [] for unit in (was, now))
    added = {one.now for one in claims if isinstance(one, AddMember) and one.field == name}
    removed = {one.now for one in claims if isinstance(one, RemoveMember) and one.field == name}
    kept = [one for one in after if one not in added or one in before]
    return [*kept, *(one for one in before if one in removed and one not in kept)]


def _is_author(view: View, seq: int, writer: WriterFilter) -> bool:
    rows = view.past.records([seq], ("actor", "session"))
    return bool(rows) and writer.wrote(rows[0][0] or "", rows[0][1] or "")


def _concerned(view: View, changes: Sequence[Change]) -> Subjects:
    return view.claims().concerned(changes) if view.claims is not None and changes else Subjects()


def _is_edge_of(subjects: Subjects, ends: tuple[str, str]) -> bool:
    return frozenset(ends) in subjects.edges or not subjects.around.isdisjoint(ends)


def _folded(index: ClaimIndex, seq: int, elements: Iterable[Node | Link]) -> Any:
    """Return the state of the changes that are present at a seq, of some elements as of it."""
    nodes, ends = set[str](), list[frozenset[str]]()
    fields, former = dict[str, dict[str, Any]](), dict[str, str]()
    for one in elements:
        if isinstance(one, Link):
            ends.append(frozenset({one.from_id, one.to_id}))
            continue
        nodes.add(one.id)
        if one.owners:
            fields[one.id] = {name: one.fields.get(name) for name in one.owners}
            former |= dict.fromkeys(former_ids(one), one.id) if FORMER_IDS in one.owners else {}
    edges = tuple({one for one in index.edges_named(ends) if one})
    return index.folded(Subjects(frozenset(nodes), frozenset(), edges), seq, documents=DocumentFacts(fields, former))


def _stating(folded: Any, name: str) -> set[str]:
    """Return the changes that say what a field of an entity or an edge is."""
    if name == STATED:
        named = folded.of if hasattr(folded, "of") else folded.additions
        return {one.partition(":")[0].partition(".")[0] for one in named if one != DOCUMENT}
    if name == FORMER_IDS:
        return {one for value in folded.names.values for one in value.changes}
    field: Field | None = folded.fields.get(name.removeprefix(_CONTESTED))
    if field is not None and field.values:
        values = field.values if is_contested_note(name) else field.values[:1]
        return {one for value in values for one in value.changes}
    members = getattr(folded, "sets", {}).get(name, {})
    return {one.partition(".")[0] for additions in members.values() for one in additions}


def _chosen(index: ClaimIndex, candidates: set[str], came: Sequence[Change]) -> Change | None:
    """Return one of several changes that say the same: one that came now, else the last one."""
    if not candidates:
        return None
    now = [one for one in came if one.id in candidates]
    return _last(now or [*index.bodies(candidates).values()])


def _last(changes: Sequence[Change]) -> Change | None:
    return max(changes, key=order_of) if changes else None


def _id_of(ref: Ref) -> str:
    """Return the id that an entity or an edge had for the writer of a change."""
    if isinstance(ref, EdgeRef):
        return link_id(ref.type, ref.kind, _id_of(ref.from_end), _id_of(ref.to_end))
    return ref.id


def _ids_of(claim: Claim) -> set[str]:
    if isinstance(claim, Create):
        return {claim.id}
    return {_id_of(claim.on), *([claim.now] if isinstance(claim, Rename) else [])}


def _claims_on(changes: Iterable[Change], ids: Collection[str]) -> Iterator[Claim]:
    """Yield the claims of changes on an entity or an edge that has one of these ids."""
    for change in changes:
        for claim in change.claims:
            if not _ids_of(claim).isdisjoint(ids):
                yield claim


def _claims(change: Change, ids: Collection[str], name: str) -> bool:
    """Tell whether a change says something of a field, or with ``STATED`` of whether the element exists."""
    if name == STATED:
        return any(_makes(change, key) for key in ids)
    return any(isinstance(claim, _OF_FIELDS) and claim.field == name for claim in _claims_on([change], ids))


def _makes(change: Change, key: str) -> bool:
    return any(isinstance(one, Create | Delete | AddEdge | RemoveEdge | Rename) for one in _claims_on([change], {key}))


def _own_part(changed: Changed[Any], mine: Sequence[Change]) -> Changed[Any] | None:
    """Return the part of a change of an element that some shared changes say; None where they say nothing of it."""
    before, after = changed.before, changed.after
    sides = [one for one in (before, after) if one is not None]
    ids = {changed.key, *(one.id for one in sides)}
    ids |= {key for one in sides if isinstance(one, Node) for key in former_ids(one)}
    claims = [*_claims_on(mine, ids)]
    if before is None or after is None:
        whole = (Create, AddEdge) if before is None else (Delete, RemoveEdge)
        if any(isinstance(one, (*whole, Rename)) for one in claims):
            return changed
    moved = isinstance(sides[0], Link) and (before is None or after is None)
    ends = {sides[0].from_id, sides[0].to_id} if moved else set()
    if ends and any(isinstance(one, Rename) for one in _claims_on(mine, ends)):
        return changed  # an edge that a rename leads to another id
    if after is None:
        return None
    names = {one.field for one in claims if isinstance(one, SetField | UnsetField)}
    units_of: Any = inverse.link_units if isinstance(after, Link) else inverse.node_units
    was, now = units_of(before), units_of(after)
    kept = {name: unit for name, unit in now.items() if name not in names}
    kept |= {name: unit for name, unit in was.items() if name in names}
    for name in {one.field for one in claims if isinstance(one, AddMember | RemoveMember)}:
        if members := _members_before(was.get(name), now.get(name), claims, name):
            kept[name] = members, CLIENT
        else:
            kept.pop(name, None)
    if not any(inverse.differs(kept.get(name), now.get(name)) for name in kept.keys() | now.keys()):
        return None
    from_units: Any = inverse.link_from if isinstance(after, Link) else inverse.node_from
    return Changed(changed.key, from_units(after, kept), after)
