"""The difference between what files say now and what the state says they said, as one list of operations. Pure.

Facts belong to the file that states them. A file that could be read only in part adds what was read, and takes
nothing away from the entities that could not be read; from none where it is not known which these are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.extract.facts import ends_of
from kbcore.model.folding import apply
from kbcore.model.graph import CLIENT, FORMER_IDS, NoteOnFile, SyncedFile, former_ids, former_ids_of
from kbcore.model.read_set import ReadSet
from kbcore.model.record import ChangeOperation, DropNode, ForgetSource, Operation, PutNode, ReadSource
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, EncodedChanges, Stamp, State
from kbcore.sync.entities import CLAIMED, DUPLICATE, UNRECORDED, EntityPlan, plan_entities
from kbcore.sync.entity_renames import Past, plan_renames
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.links import CONTESTED, MISFIT, UNRESOLVED_PATH, LinkContext, plan_links
from kbcore.text.problems import FileProblem

OfChanges = Callable[[State, State], list[Operation]]

RECONSIDERED: Final = frozenset({CLAIMED, DUPLICATE, UNRECORDED, UNRESOLVED_PATH, MISFIT, CONTESTED})
"""Codes of problems that a change in another file may fix; such a file is read again although it did not change."""


class Difference(msgspec.Struct, frozen=True):
    """The result of a sync. ``problems`` pairs a file's path with what its author should know.

    With ``encoded``, that has the operations and the changes.
    """

    ops: tuple[Operation, ...]
    changes: Changes
    problems: tuple[tuple[str, FileProblem], ...]
    warnings: tuple[str, ...]
    encoded: EncodedChanges | None = None

    @property
    def has_changes(self) -> bool:
        """Tell whether changes of clients came or went."""
        return any(isinstance(op, ChangeOperation) for op in self.ops)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to record."""
        return self.encoded is None and not (self.ops and (self.changes or self.has_changes))


def reads(readings: Sequence[FileReading], gone: Sequence[str], owned: tuple[Sequence[str], Sequence[str]]) -> ReadSet:
    """Return the keys that the difference reads; ``owned`` are the nodes and links that these files state now."""
    typed: dict[str, str] = {}
    unsure = set[str]()
    for reading in readings:
        for entity in reading.facts.entities:
            if entity.is_part or typed.setdefault(entity.id, entity.type) != entity.type:
                # Which of several files keeps an id, and so of which type it is, is not known yet.
                unsure.add(entity.id)
    for key in unsure:
        typed.pop(key, None)
    targets = {end for reading in readings for link in reading.facts.links for end in ends_of(link)}
    nodes, links = owned
    return ReadSet(
        nodes=frozenset(targets.union(typed, unsure, nodes)),
        links=frozenset(links),
        touching=frozenset(unsure.union(nodes) - typed.keys()),
        sources=frozenset({*(reading.path for reading in readings), *gone}),
        typed=typed,
    )


def difference(  # noqa: PLR0913 - each is another part of what files and history say
    readings: Sequence[FileReading],
    gone: Sequence[str],
    state: State,
    schema: Schema,
    stamp: Stamp,
    *,
    ids_of_path: Mapping[str, Collection[str]],
    past: Past,
    changed: Collection[str] = (),
    of_changes: OfChanges | None = None,
) -> Difference:
    """Return the operations that bring the state to what the files say; the state is changed accordingly.

    ``ids_of_path`` maps the path of a document that is not read now to the ids that it defines; ``past`` is what
    history knows of entities that these files state, or stated. ``changed`` are files, not read now, that are not as
    they are recorded. ``of_changes`` returns the operations of change files, for a state before and after the rest.
    """
    ordered = sorted(readings, key=lambda one: one.path)
    absent = frozenset(gone)
    renamed, before = plan_renames(ordered, absent, state, past), state
    if renamed.ops:
        # The rest is worked out on what the renames make; an element that they make has no version yet.
        before = state.copied()
        apply(before, msgspec.structs.replace(stamp, seq=0), renamed.ops)
    entities = plan_entities(
        ordered, absent, before, schema, past, absorbed=renamed.absorbed, changed=frozenset(changed)
    )
    for key, type_ in renamed.types.items():
        entities.types.setdefault(key, type_)
    known: dict[str, Collection[str]] = {**ids_of_path, **_named_by_paths(ordered, entities.accepted)}
    found = [(reading.path, problem) for reading in ordered for problem in reading.facts.problems]

    def planned(around: LinkContext) -> tuple[list[Operation], list[tuple[str, FileProblem]]]:
        links = plan_links(ordered, absent, around)
        problems = [*found, *entities.problems, *links.problems]
        problems.sort(key=lambda one: (one[0], one[1].line, one[1].code))
        sources = _sources(ordered, absent, state, entities, problems)
        return [*renamed.ops, *entities.ops, *links.ops, *sources], problems

    around = LinkContext(before, schema, entities, known, past.renamed)
    ops, problems = planned(around)
    if of_changes is not None:
        after = _applied(state, stamp, ops)
        claimed = of_changes(state, after)
        if not past.claimed and (ids := _claimed_ids(ordered, claimed)):
            past = msgspec.structs.replace(past, claimed=ids)
            return difference(
                readings,
                gone,
                state,
                schema,
                stamp,
                ids_of_path=ids_of_path,
                past=past,
                changed=changed,
                of_changes=of_changes,
            )
        if later := _with_claims(around, ordered, past, after, stamp=stamp, claimed=claimed):
            ops, problems = planned(later)
            claimed = of_changes(state, _applied(state, stamp, ops))
        ops += claimed
    changes = apply(state, stamp, ops)
    return Difference(tuple(ops), changes, tuple(problems), tuple(entities.warnings))


def ends_named(readings: Sequence[FileReading]) -> set[str]:
    """Return the ids that links of these files name."""
    return {end for one in readings for link in one.facts.links if not link.is_path for end in ends_of(link)}


def _claimed_ids(readings: Sequence[FileReading], claimed: Sequence[Operation]) -> dict[str, bool]:
    """Return the ids that files name as former ones and that changes of clients give (True) or take away."""
    former = {key for one in readings for entity in one.facts.entities for key in former_ids_of(entity.fields)}
    there = {op.id: type(op) is PutNode for op in claimed if isinstance(op, PutNode | DropNode)} if former else {}
    return {key: there[key] for key in sorted(former & there.keys())}


def _applied(state: State, stamp: Stamp, ops: Sequence[Operation]) -> State:
    """Return another state, with operations applied to it."""
    after = state.copied()
    apply(after, stamp, ops)
    return after


def _with_claims(
    around: LinkContext,
    readings: Sequence[FileReading],
    past: Past,
    after: State,
    *,
    stamp: Stamp,
    claimed: Sequence[Operation],
) -> LinkContext | None:
    """Return the context in which links mean what they do after changes of clients; None where that is the same.

    An id means the entity that has it; else the first one, in the order of ids, that had it before. ``after`` is the
    state with all that files say, ``claimed`` are the operations of the changes.
    """
    ends = ends_named(readings)

    def is_named(op: PutNode | DropNode) -> bool:
        names = {op.id, *former_ids(after.nodes.get(op.id)), *former_ids_of(op.set if isinstance(op, PutNode) else {})}
        return not ends.isdisjoint(names) or any(one.said for link in after.links_of(op.id) for one in link.statements)

    moved = [op for op in claimed if isinstance(op, PutNode | DropNode) and is_named(op)]
    if not moved:
        return None
    nodes = _applied(after, stamp, moved).nodes
    types = {op.id: nodes[op.id].type if op.id in nodes else None for op in moved}
    holders = {end: {*keys} for end, keys in past.holders.items() if not types.keys().isdisjoint([end, *keys])}
    for key in types:
        for end in ends.intersection(former_ids(nodes.get(key))):
            holders.setdefault(end, {*past.holders.get(end, ())}).add(key)
    former = dict(around.former)
    for end, keys in holders.items():
        known = {former.pop(end)} if end in former else set[str]()
        if having := [key for key in keys | known if end in former_ids(nodes.get(key))]:
            former[end] = min(having)
    if former == around.former and all(around.type_of(key) == type_ for key, type_ in types.items()):
        return None
    return msgspec.structs.replace(around, former=former, claimed=types)


def _named_by_paths(
    readings: Sequence[FileReading], accepted: Mapping[str, Collection[str]]
) -> dict[str, Collection[str]]:
    """Return what the path of each file means: the entity whose text it is, where it states others too, else all."""
    known = dict(accepted)
    for reading in readings:
        ids = accepted.get(reading.path, ())
        whole = [
            one.id for one in reading.facts.entities if one.id in ids and one.fields.get("text_ref") == reading.path
        ]
        if len(ids) > 1 and len(whole) == 1:
            known[reading.path] = whole
    return known


def unfit_elsewhere(changes: Changes, state: State, schema: Schema, read: Collection[str]) -> set[str]:
    """Return the files, not read now, that state an edge which no longer fits the types of its ends.

    An end came as another type than they wait for, or changed its type. Read again, they say so, whichever came
    first. A client's edge stays, and is for the check to report. ``state`` is that after the changes.
    """
    turned = {
        change.key
        for change in changes.nodes
        if change.after and not (change.before and change.before.type == change.after.type)
    }
    return {
        statement.src
        for link in state.links.values()
        for statement in link.statements
        if statement.src != CLIENT and statement.src not in read and link.is_resolved
        if link.from_id in turned or link.to_id in turned
        if not schema.fits(link.type, state.type_of(link.from_id), state.type_of(link.to_id))
    }


def contested_elsewhere(found: Difference, read: Collection[str]) -> set[str]:
    """Return the files, not read now, that state an edge which has lost a field: theirs may take its place."""
    return {
        statement.src
        for change in found.changes.links
        if change.before and change.after and change.before.fields.keys() - change.after.fields.keys()
        for statement in change.after.statements
        if statement.src != CLIENT and statement.src not in read
    }


def holding_elsewhere(found: Difference, state: State, read: Collection[str]) -> set[str]:
    """Return the files, not read now, of which the records have an id, or a former id, that a file states now."""
    ids = {problem.id for _, problem in found.problems if problem.code in {DUPLICATE, UNRECORDED}}
    former = {key for _, problem in found.problems if problem.code == CLAIMED for key in problem.values}
    paths = {state.nodes[key].path for key in ids if key in state.nodes}
    having = [node for node in state.nodes.values() if former and not former.isdisjoint(former_ids(node))]
    return (paths | {node.owners.get(FORMER_IDS, CLIENT) for node in having}) - {CLIENT, *read}


def _sources(
    readings: Sequence[FileReading],
    gone: frozenset[str],
    state: State,
    entities: EntityPlan,
    problems: Sequence[tuple[str, FileProblem]],
) -> list[Operation]:
    """Return the operations that note which content of each file was read, and whether all of it was."""
    noted: dict[str, list[NoteOnFile]] = {}
    for path, problem in problems:
        if problem.severity != "note":
            said = (problem.message, problem.hint, problem.severity)
            note = NoteOnFile(problem.line, problem.code, *said, problem.id, problem.values)
            noted.setdefault(path, []).append(note)
    ops: list[Operation] = []
    for reading in readings:
        old = state.sources.get(reading.path)
        notes = tuple(noted.get(reading.path, ()))
        is_ok = not entities.held.is_partial(reading.path) and all(note.severity != "error" for note in notes)
        new = SyncedFile(reading.path, reading.hash, reading.extractor, is_ok, notes, old.version if old else 0)
        if new != old:
            ops.append(
                ReadSource(
                    path=new.path,
                    hash=new.hash,
                    extractor=new.extractor,
                    base=new.version,
                    is_ok=is_ok,
                    problems=notes,
                )
            )
    for path in sorted(gone):
        source = state.sources.get(path)
        if source:
            ops.append(ForgetSource(path=path, base=source.version))
    return ops
