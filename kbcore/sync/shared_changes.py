"""The operations that follow from change files: which changes come and go, and what entities and edges get by that.

The state of the changes is computed before and after, for the entities concerned, and the difference is written
as operations of clients. So the state is the same as that of all changes at once, whatever order they came in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kbcore.errors.remedies import kb
from kbcore.ids import is_link_id
from kbcore.model.bare_links import resolve
from kbcore.model.claims.change import AddMember, Change, EdgeRef, Ref, SetField, fields_redacted, union
from kbcore.model.claims.fold import ClaimedEdge, DocumentFacts, Entity, FoldedClaims, fold, later_id
from kbcore.model.claims.operations import STATUS, ClaimOperations, contested_names, shown_of_clients
from kbcore.model.claims.subjects import Subjects, ids_in, refs_of
from kbcore.model.content import confirmed_content
from kbcore.model.folding import apply
from kbcore.model.graph import CLIENT, FORMER_IDS, Link, Node, SyncedFile, contested_note, former_ids
from kbcore.model.read_set import NOTHING, ReadSet
from kbcore.model.record import (
    ChangeOperation,
    ConfirmLink,
    DropNode,
    LeaveChange,
    Operation,
    PutNode,
    ReadSource,
    TakeChange,
    WithdrawLink,
)
from kbcore.model.redaction.changes import without
from kbcore.model.redaction.target import commands
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Draft, Stamp, State
from kbcore.sync.difference import unfit_elsewhere
from kbcore.text.wording import it_or_them, pluralize, some_of
from kbcore.view.claim_index import ClaimIndex, WrittenAt
from kbcore.view.view import View
from kbcore.view.working_set import plan_until_stable

_SHOWN: Final = 10
_LOOSE: Final = "not is_resolved and starts_with(from_id, 'link:') <> starts_with(to_id, 'link:')"


class ChangesInFiles(msgspec.Struct, frozen=True):
    """The change files that are read, with their changes, and those that are gone. ``committed`` are those of HEAD.

    ``taken_over`` are changes of another branch's store, and ``origins`` says where they were written.
    """

    files: Mapping[str, tuple[Change, ...]]
    gone: Collection[str]
    committed: Collection[str] = ()
    taken_over: Collection[Change] = ()
    origins: Mapping[str, WrittenAt] = {}

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.files or self.gone)


class WholeCopy(NamedTuple):
    """A change that a file has whole, and of which these fields are redacted in this clone."""

    path: str
    change: str
    actor: str
    fields: tuple[str, ...]


def whole_copy_words(copies: Sequence[WholeCopy]) -> str:
    """Return which files hold one change, and what to do, as a sentence with commands (``kbcore.errors.remedies``)."""
    one = copies[0]
    given = [kb("redact", *words) for words in commands(one.change, one.fields)]
    show = "shows" if len(given) == 1 else "show"
    paths = some_of([copy.path for copy in copies], _SHOWN)
    has, files = ("has", "the file") if len(copies) == 1 else ("have", "the files")
    return (
        f"{paths} {has} a change of {one.actor} whole that is redacted in this clone, and its values were not taken"
        f" in: {' and '.join(given)} {show} what takes them out of {files}; then commit {it_or_them(len(copies))}."
    )


class _Difference(NamedTuple):
    """The changes that are present although the index does not have them so, and those that are not although it has."""

    more: dict[str, Change]
    without: set[str]

    def applied_to(self, found: Mapping[str, Change]) -> list[Change]:
        """Return the changes that are present, of some that the index has as present, and of all that it has not."""
        kept = [one for key, one in found.items() if key not in self.more and key not in self.without]
        return [*kept, *self.more.values()]


class SharedChanges:
    """The result of change files on the state of a branch at a seq."""

    def __init__(
        self,
        index: ClaimIndex,
        seq: int,
        found: ChangesInFiles,
        unrecorded: Sequence[ChangeOperation] = (),
        view: View | None = None,
        *,
        schema: Schema | None = None,
        is_first: bool = False,
    ) -> None:
        """``unrecorded`` are operations that came after the records up to ``seq``.

        ``view`` has what a state that ``operations`` gets has not; without one such a state is whole. ``schema`` is the
        one of the branch; without it nothing follows for links without a type, and for a status that is a default. With
        ``is_first`` no record knows of a change file: what documents covered was not computed from changes before.
        """
        self.schema = schema
        self._view = view
        self._index = index
        self._seq = seq
        self._found = found
        copies = union(change for group in (*found.files.values(), found.taken_over) for change in group)
        here = {key: without(one, index.taken_out.get(key)) for key, one in copies.items()}
        bodies = {op.id: op.change for op in unrecorded if isinstance(op, TakeChange) and op.change}
        paths = {*found.files, *found.gone, *(op.file for op in unrecorded)}
        self._held = index.held_by(paths, self._seq)
        ids = {*here, *(one for held in self._held.values() for one in held), *(op.id for op in unrecorded)}
        self._recorded = index.bodies(ids) | bodies
        self._bodies = union([*self._recorded.values(), *here.values()])
        """Each change, joined from all copies of it: what one of them redacted is redacted."""
        self._own = index.is_own(ids, self._seq)
        self._present = index.present(ids, self._seq)
        self._files = index.files_of(ids, self._seq)
        self._once_committed = index.once_committed(ids, self._seq)
        for op in unrecorded:
            self._note(op)
        self._folds: tuple[Subjects, tuple[DocumentFacts, DocumentFacts], tuple[FoldedClaims, FoldedClaims]] | None = (
            None
        )
        """The last states before and after, with what they were made of: a plan is made again on the same."""
        self._was = self._difference(self._bodies | self._recorded)
        self._noted = self._compare()
        for op in self._noted:
            self._note(op)
        for path, changes in found.files.items():
            for change in changes:
                self._files.setdefault(change.id, set()).add(path)
        self._now = self._difference(self._bodies)
        redacted = {op.id for op in self._noted if isinstance(op, TakeChange) and self._bodies[op.id].is_redacted}
        moved = {*self._was.more, *self._was.without, *self._now.more, *self._now.without, *redacted}
        self._loose = edges_about_none(view) if view else {}
        self._is_again = bool(redacted or self._loose) or is_first
        """The state may show something else than the changes give: then it is written again.

        That is what is left of texts in the place of redacted values, what documents covered before, and the ends of
        edges about an edge that is not there (``_loose``): no rename says what these are.
        """
        self._elsewhere = self._named_elsewhere()
        own = [one.change for one in index.unshared(seq)] if is_first else []
        self._concerned = [*own, *(self._bodies[one] for one in moved | self._elsewhere), *self._on_loose()]
        """The changes of whose elements all is known that is present."""
        self.subjects = index.concerned(self._concerned)
        """The elements that are concerned, by all ids that changes know them by."""

    def _on_loose(self) -> list[Change]:
        """Return the changes that may state the edges about an edge that is not there, by the entities at them."""
        if not self._loose or self._view is None:
            return []
        edges = {frozenset(end for end in _ends(one) if not is_link_id(end)) for one in self._loose.values()}
        holders = self._view.nodes(sorted({key for keys in self._view.holders().values() for key in keys}))
        documents = DocumentFacts(former_ids=_former_in_documents(holders))
        more = [*self._now.more.values()]
        found = self._index.changes_on(Subjects(edges=(*edges,)), self._seq, more=more, documents=documents)
        return [one for one in found.values() if any(map(_is_about_edge, refs_of(one)))]

    def _named_elsewhere(self) -> set[str]:
        """Return the changes that a conflict shows with another file than the first one of those that have them."""
        first = {op.id: min(files) for op in self._noted if op.file and (files := self._files.get(op.id))}
        if not first or self._view is None:
            return set()
        return {change for change, file in _named_in_conflicts(self._view) if first.get(change, file) != file}

    def _is_written(
        self, was: Entity | ClaimedEdge | None, now: Entity | ClaimedEdge | None, *, is_whole: bool = True
    ) -> bool:
        """Tell whether an element may be shown otherwise than in the state before.

        One of which not all changes are known (``is_whole``) is the same in both, and nothing is written of it.
        """
        if was != now or not is_whole:
            return was != now
        return self._is_again or (bool(self._elsewhere) and now is not None and _is_contested(now))

    def _whole_edges(self, *states: FoldedClaims) -> set[str]:
        """Return the edges of the changes that are concerned, in some states."""
        concerned = {one.id for one in self._concerned}
        return {key for state in states for (change, _), key in state.edges_named.items() if change in concerned}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return sentences on some changes that came redacted and records have whole, or the other way round.

        A sentence says how many more there are that records have whole.
        """
        noted = [op.change for op in self._noted if isinstance(op, TakeChange) and op.change]
        taken = {one.id: one for one in noted if one.id in self._recorded}  # several files may hold a change
        found = [(one, fields_redacted(self._recorded[key], one)) for key, one in taken.items()]
        whole = [(one, fields) for one, fields in found if fields]
        said = [
            f"A change of {one.actor} is redacted in its file, and earlier records of this clone have what was taken"
            f" out: {' and '.join(given)} {'shows' if len(given) == 1 else 'show'} where."
            for one, fields in whole[:_SHOWN]
            if (given := [kb("redact", *words) for words in commands(one.id, fields)])
        ]
        if left := len(whole) - len(said):
            said.append(f"So have they of {pluralize(left, 'more change')}: {kb('doctor')} lists all of them.")
        return (*said, *map(whole_copy_words, [*self._whole_copies().values()][:_SHOWN]))

    def _whole_copies(self) -> dict[str, list[WholeCopy]]:
        """Return the copies in the files of changes that are redacted in what is known here, by change."""
        found = defaultdict[str, list[WholeCopy]](list)
        for path, changes in sorted(self._found.files.items()):
            for change in changes:
                if fields := fields_redacted(change, self._bodies[change.id]):
                    found[change.id].append(WholeCopy(path, change.id, change.actor, fields))
        return found

    @property
    def reads(self) -> ReadSet:
        """Return the keys of a state that the operations depend on."""
        touching = self.subjects.around
        nodes = self.subjects.entities.union(touching, *self.subjects.edges)
        holders = self._view.holders() if self._view else {}
        having = {key: holders[key] for key in nodes & holders.keys()}
        return msgspec.structs.replace(
            NOTHING,
            nodes=nodes.union(*having.values()),
            touching=touching.union(*(having[key] for key in touching & having.keys())),
        )

    def without_claimed(self, nodes: Mapping[str, Node]) -> dict[str, Node]:
        """Return entities that are gone without what changes of committed files gave them: it is given again, or not.

        What holds of these changes when such an entity comes back is what ``operations`` says.
        """
        return {key: _without(node, self._claimed_of(key) - node.owners.keys()) for key, node in nodes.items()}

    def without_status(self, nodes: Collection[Node]) -> frozenset[str]:
        """Return those of these entities whose status no change gave them: it is the default of a document."""
        if not nodes:
            return frozenset()
        keys = {node.id for node in nodes}
        documents = _documents(State(nodes), keys)
        subjects = Subjects(frozenset(self._index.known(keys | documents.former_ids.keys())))
        more = [*self._was.more.values()]
        found = self._index.changes_on(subjects, self._seq, more=more, documents=documents)
        was = fold(self._was.applied_to(found), documents).entities
        return frozenset(key for key in keys if key not in was or STATUS not in shown_of_clients(was[key].fields))

    def _claimed_of(self, key: str) -> set[str]:
        changes = self._index.once_committed_on([key], self._seq)
        claims = (claim for change in changes for claim in change.claims)
        return {claim.field for claim in claims if isinstance(claim, SetField | AddMember)}

    def _note(self, op: ChangeOperation) -> None:
        """Note an operation that is in no record."""
        if isinstance(op, TakeChange) and not op.file:
            self._own.add(op.id)
            return
        held = self._held.setdefault(op.file, {})
        if isinstance(op, TakeChange):
            held[op.id] = op.is_committed
            self._files.setdefault(op.id, set()).add(op.file)
            if op.is_committed:
                self._once_committed.add(op.id)
        else:
            held.pop(op.id, None)
            self._files.get(op.id, set()).discard(op.file)

    def _difference(self, bodies: Mapping[str, Change]) -> _Difference:
        """Return how the changes that are present differ from those that the index has as present."""
        more, without = dict[str, Change](), set[str]()
        for one, change in bodies.items():
            known = self._present.get(one)
            if self._files.get(one) or (one in self._own and one not in self._once_committed):
                if known != change:
                    more[one] = change
            elif known is not None:
                without.add(one)
        return _Difference(more, without)

    def _compare(self) -> list[ChangeOperation]:
        """Return which changes come and which go.

        A change of this journal that no committed file ever held goes with its record: nothing is noted of it. A whole
        change is noted once: as long as another file has the same, only the file is.
        """
        noted: list[ChangeOperation] = [
            TakeChange(change.id, "", False, self._bodies[change.id], *self._found.origins.get(change.id, ()))
            for change in self._found.taken_over
            if change.id not in self._own
        ]
        for path, changes in sorted(self._found.files.items()):
            is_committed, before = path in self._found.committed, self._held.get(path, {})
            for change in (self._bodies[one.id] for one in changes):
                is_own = change.id in self._own
                is_known = change.id in before and (before[change.id] or not is_committed)
                goes_with_record = is_own and not is_committed and change.id not in self._once_committed
                if goes_with_record or (is_known and self._present.get(change.id) == change):
                    continue
                has_it = self._recorded.get(change.id) == change
                noted.append(TakeChange(change.id, path, is_committed, None if has_it else change))
        for path in sorted({*self._found.files, *self._found.gone} & self._held.keys()):
            stays = {change.id for change in self._found.files.get(path, ())}
            noted += [LeaveChange(one, path) for one in sorted(self._held[path].keys() - stays)]
        return noted

    def operations(self, before: State, after: State) -> list[Operation]:
        """Return the operations of these changes, where the rest of a sync leads from one state to the other."""
        subjects = self._with_documents(before, after)
        if not (subjects.entities or subjects.edges):
            return [*self._noted]
        was, now = self._folded(before, after, subjects)
        written = ClaimOperations(after, self._origins(now), self.schema)
        ops: list[Operation] = [*self._noted]
        for key in sorted(was.entities.keys() | now.entities.keys()):
            if key in subjects.entities and self._is_written(was.entities.get(key), now.entities.get(key)):
                ops += written.entity(key, was.entities.get(key), now.entities.get(key))
        going = self._loose.keys() - was.edges.keys()
        stated = {key for key, one in now.edges.items() if one.additions}
        former = [_former_in_documents(state.nodes.values()) for state in (before, after)]
        later = {one: key for one, key in former[1].items() if former[0].get(one) != key}
        whole = self._whole_edges(was, now) if self._is_again or self._elsewhere else set[str]()
        for key in sorted(was.edges.keys() | now.edges.keys()):
            if self._is_written(was.edges.get(key), now.edges.get(key), is_whole=key in whole):
                if key in stated:
                    ops += written.edge(key, was.edges.get(key), now.edges[key])
                elif key in was.edges and was.edges[key].additions:
                    # One end may have another id by the rest of the sync, and the other one by the changes.
                    going |= {key, later_id(key, before.links, later)}
        gone: list[Operation] = [*self._withdrawals(going - stated, before, after)]
        gone += self._confirmations(was, now, before, after, ops)
        # An entity that gets another id goes after it is there by that id.
        last = [op for op in ops if isinstance(op, DropNode)]
        return [*(op for op in ops if not isinstance(op, DropNode)), *gone, *last]

    def _withdrawals(self, keys: Collection[str], before: State, after: State) -> Iterable[Operation]:
        """Yield the operations by which clients do not state edges any more; no other operation has to name them."""
        if not keys:
            return
        links = dict(after.links)
        if others := sorted(keys - before.links.keys() - links.keys()):
            links |= {one.id: one for one in (self._view.links(others) if self._view else ())}
        for key in sorted(keys & links.keys()):
            one = links[key]
            if any(statement.src == CLIENT for statement in one.statements):
                yield WithdrawLink(one.type, one.from_id, one.to_id, one.version, one.kind)

    def _confirmations(
        self, was: FoldedClaims, now: FoldedClaims, before: State, after: State, ops: Sequence[Operation]
    ) -> Iterable[Operation]:
        """Yield the confirmations that came, of edges whose target is after the operations what was confirmed."""
        for key, seen in now.confirmed.items():
            link = after.links.get(key)
            if link is None and self._view and key not in before.links:
                link = next(iter(self._view.links([key])), None)
            new = seen - was.confirmed.get(key, frozenset())
            target = self._target(link, after) if link and new else None
            if link and target and confirmed_content(target, ops, self._source(target.path, after)) in new:
                yield ConfirmLink(link.type, link.from_id, link.to_id, link.version, link.kind)

    def _target(self, link: Link, state: State) -> Node | None:
        target = state.nodes.get(link.to_id)
        if target is None and self._view:
            target = next(iter(self._view.nodes([link.to_id])), None)
        return target

    def _source(self, path: str, state: State) -> SyncedFile | None:
        return state.sources.get(path) or next(iter(self._view.sources([path]) if self._view else ()), None)

    def _with_documents(self, before: State, after: State) -> Subjects:
        """Return the elements that are concerned, with those that documents state otherwise than before.

        What changes know by a former id of a document is the entity that has it, before and after.
        """
        subjects = self.subjects
        restated = {
            key
            for key in before.nodes.keys() | after.nodes.keys()
            if _stated(before.nodes.get(key)) != _stated(after.nodes.get(key))
        }
        was, now = _former_in_documents(before.nodes.values()), _former_in_documents(after.nodes.values())
        turned = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
        earlier = {one for former in (was, now) for one, key in former.items() if key in restated}
        known = self._index.known(restated | turned | earlier)
        moved = {key for key in known if key in turned or (key in before.nodes) != (key in after.nodes)}

        def with_later(ids: frozenset[str]) -> frozenset[str]:
            return ids | {former[key] for former in (was, now) for key in ids & former.keys()}

        edges = {frozenset([former.get(key, key) for key in ends]) for ends in subjects.edges for former in (was, now)}
        around = with_later(subjects.around | moved)
        return Subjects(with_later(subjects.entities | known) | around, around, (*{*subjects.edges, *edges},))

    def _folded(self, before: State, after: State, subjects: Subjects) -> tuple[FoldedClaims, FoldedClaims]:
        """Return the states of the changes before and after, of some elements; of others both lack the same."""
        ids = subjects.entities.union(*subjects.edges)
        documents = _documents(before, ids), _documents(after, ids)
        if self._folds is None or self._folds[:2] != (subjects, documents):
            more = [*self._was.more.values(), *self._now.more.values()]
            found = dict[str, Change]()
            for one in documents if documents[0].former_ids != documents[1].former_ids else documents[:1]:
                found |= self._index.changes_on(subjects, self._seq, more=more, documents=one)
            others = self._former_elsewhere([*found.values(), *more], before.nodes.keys() | after.nodes.keys())
            facts = [
                msgspec.structs.replace(one, former_ids={**others, **one.former_ids}) if others else one
                for one in documents
            ]
            was, now = fold(self._was.applied_to(found), facts[0]), fold(self._now.applied_to(found), facts[1])
            self._folds = subjects, documents, (was, now)
        return self._folds[2]

    def _former_elsewhere(self, changes: Iterable[Change], loaded: Collection[str]) -> dict[str, str]:
        """Return which entities had the ids that changes name, of entities of documents that are not loaded."""
        holders = self._view.holders() if self._view else {}
        if not holders or self._view is None:
            return {}
        ids = {key for change in changes for one in ids_in(change) & holders.keys() for key in holders[one]}
        return _former_in_documents(self._view.nodes(sorted(ids.difference(loaded))))

    def _origins(self, state: FoldedClaims) -> dict[str, dict[str, Any]]:
        """Return the origins of the changes whose values are shown: by id, the actor, the time, and the file."""
        fields = [field for one in state.entities.values() for field in (*one.fields.values(), one.names)]
        fields += [field for one in state.edges.values() for field in one.fields.values()]
        ids = {one for field in fields for value in field.values for one in value.changes}
        for entity in state.entities.values():
            ids |= {*entity.deletions, *entity.claimed_by}
        ids |= {one.partition(".")[0] for edge in state.edges.values() for one in edge.additions}
        changes = self._index.bodies(ids) | self._bodies
        files = self._index.files_of(ids, self._seq) | self._files
        return {
            one: {
                "change": one,
                "actor": changes[one].actor,
                "at": changes[one].at,
                **({"file": min(files[one])} if files.get(one) else {}),
            }
            for one in ids
            if one in changes
        }


class _Planned(msgspec.Struct, frozen=True):
    """The operations of changes alone, and what they change."""

    ops: tuple[Operation, ...]
    changes: Changes


def _without(node: Node, names: Collection[str]) -> Node:
    kept = {name: value for name, value in node.fields.items() if name not in names}
    return msgspec.structs.replace(node, fields=kept)


def plan_changes(view: View, stamp: Stamp, shared: SharedChanges) -> Draft:
    """Return the draft of changes that come into the state of a view.

    Where they have the schema, links without a type get the edge that they mean then, and a file with an edge that
    does not fit its ends any more counts as not read: the next sync says so of it, and leaves the edge out.
    """
    schema, retyped, unfit = shared.schema, set[str](), set[str]()

    def plan(state: State) -> _Planned:
        ops = shared.operations(state, state.copied())
        if schema:
            types: dict[str, str | None] = {one.id: None for one in ops if isinstance(one, DropNode)}
            types |= {one.id: one.set["type"] for one in ops if isinstance(one, PutNode) and "type" in one.set}
            retyped.update(types)
            if bare := resolve(state, types, schema):
                after = state.copied()
                apply(after, stamp, bare)
                ops = [*bare, *shared.operations(state, after)]
            after = state.copied()
            changes = apply(after, stamp, ops)
            unfit.update(unfit_elsewhere(changes, after, schema, ()))
            again = [_not_read(one) for path in sorted(unfit) if (one := state.sources.get(path))]
            if not again:
                return _Planned(tuple(ops), changes)
            ops += again
        return _Planned(tuple(ops), apply(state, stamp, ops))

    wanted = shared.reads
    planned, state = plan_until_stable(view, wanted, plan)
    while retyped - state.loaded.touching or unfit - state.loaded.sources:
        wanted |= msgspec.structs.replace(NOTHING, touching=frozenset(retyped), sources=frozenset(unfit))
        planned, state = plan_until_stable(view, wanted, plan)
    return Draft(planned.ops, planned.changes, state.loaded)


def _not_read(source: SyncedFile) -> ReadSource:
    """Return the operation by which no content of a file is known, so that the next sync reads it."""
    return ReadSource(source.path, "", source.extractor, source.version, source.is_ok, source.problems)


def newly_contested(changes: Changes) -> list[tuple[Node | Link, str]]:
    """Return the fields, with their elements, that are contested after changes and were not before."""
    pairs: list[tuple[Node | Link | None, Node | Link | None]] = [(one.before, one.after) for one in changes.nodes]
    pairs += [(one.before, one.after) for one in changes.links]
    return [
        (after, name.removeprefix(contested_note("")))
        for before, after in pairs
        if after is not None
        for name in contested_names(after)
        if before is None or name not in before.fields
    ]


def edges_about_none(view: View) -> dict[str, Link]:
    """Return the edges of clients between an entity and an edge that is not there, or one about such an edge, by id."""
    found = dict[str, Link]()

    def is_loose(link: Link) -> bool:
        return not link.is_resolved and sum(map(is_link_id, _ends(link))) == 1

    links = view.links([row[0] for row in view.cells("link", ("id",), (_LOOSE, ()), is_loose)])
    there = {one.id for one in view.links([end for one in links for end in _ends(one)])}
    links = [one for one in links if there.isdisjoint(_ends(one))]
    while new := {one.id: one for one in links if one.id not in found and any(s.src == CLIENT for s in one.statements)}:
        found |= new
        links = [one for one in view.touching(sorted(new)) if sum(map(is_link_id, _ends(one))) == 1]
    return found


def _ends(link: Link) -> tuple[str, str]:
    return link.from_id, link.to_id


def _is_about_edge(ref: Ref) -> bool:
    ends = (ref.from_end, ref.to_end) if isinstance(ref, EdgeRef) else ()
    return any(isinstance(end, EdgeRef) or is_link_id(end.id) for end in ends)


def _is_contested(element: Entity | ClaimedEdge) -> bool:
    """Tell whether a conflict is shown at an element."""
    if isinstance(element, Entity) and (element.names.is_contested or element.deletions):
        return True
    return any(field.is_contested for field in element.fields.values())


def _named_in_conflicts(view: View) -> set[tuple[str, str]]:
    """Return the changes that the conflicts of a state show, each with the file that it is shown with, "" for none."""
    condition, elements = ("contested <> '{}'", ()), list[Node | Link]()
    elements += view.nodes([row[0] for row in view.cells("node", ("id",), condition, contested_names)])
    elements += view.links([row[0] for row in view.cells("link", ("id",), condition, contested_names)])
    shown = (value for one in elements for name in contested_names(one) for value in one.fields[name])
    origins = (origin for value in shown for origin in value.get("changes", [value]))
    return {(origin["change"], origin.get("file", "")) for origin in origins}


def _stated(node: Node | None) -> dict[str, Any] | None:
    """Return what documents state of an entity, None where they state nothing."""
    if node is None or not node.owners:
        return None
    return {name: node.fields.get(name) for name in node.owners}


def _documents(state: State, ids: Collection[str]) -> DocumentFacts:
    """Return what documents state of some entities, and the former ids of all."""
    fields = {key: one for key in ids if (one := _stated(state.nodes.get(key))) is not None}
    return DocumentFacts(fields, _former_in_documents(state.nodes.values()))


def _former_in_documents(nodes: Iterable[Node]) -> dict[str, str]:
    """Return the entity that had each former id which documents state; of several the first, in the order of ids."""
    found: dict[str, str] = {}
    for node in nodes:
        if FORMER_IDS in node.owners:
            for key in former_ids(node):
                found[key] = min(node.id, found.get(key, node.id))
    return found
