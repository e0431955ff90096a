"""The difference of files and a state, together with that of the files whose meaning they change.

A file that states an edge which no longer fits, or which named an entity that moved, is read again with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from kbcore import interrupting
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.model.graph import CLIENT, FORMER_IDS, former_ids, former_ids_of
from kbcore.model.read_set import NOTHING, ReadSet
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Stamp, State, StateReads
from kbcore.sync.begun_renames import BegunRename
from kbcore.sync.difference import Difference, contested_elsewhere, difference, reads, unfit_elsewhere
from kbcore.sync.entities import Past
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.scan import FoundFile
from kbcore.view.sync_facts import removed_with_files, statuses_by_sync
from kbcore.view.view import View
from kbcore.view.working_set import plan_until_stable


class FileSources(msgspec.Struct, frozen=True):
    """The access to files: ``gone`` are those that do not exist any more."""

    schema: Schema
    gone: Collection[str]
    whole: Callable[[FoundFile], FoundFile]
    """Returns a file with what it states."""
    as_taken_in: Callable[[View, Collection[str]], list[FoundFile]]
    """Returns those of these files that may be read although they did not change."""
    begun: tuple[BegunRename, ...] = ()
    """A rename whose record may be missing; it counts where a file is as the rename writes it."""


class Compared(msgspec.Struct, frozen=True):
    """The result of comparing: the files that were read, the difference, and what was read of the state."""

    readings: tuple[FileReading, ...]
    last: Difference
    loaded: ReadSet
    reads: StateReads


NONE: Final = Compared((), Difference((), Changes(), (), ()), NOTHING, StateReads(NOTHING))
"""The result for no file at all."""


def compare(view: View, stamp: Stamp, files: Sequence[FoundFile], ways: FileSources) -> Compared:
    """Return the difference that these files make; with them, such as state an edge that is another one for it."""
    gone = tuple(ways.gone)
    while True:
        readings = []
        for found in files:
            interrupting.check()
            readings.append(_reading(ways.whole(found)))
        read = {reading.path for reading in readings}
        last, state = _planned(view, stamp, readings, gone, ways)
        others = unfit_elsewhere(last, state, ways.schema, read) | contested_elsewhere(last, read)
        turned = [*_moved(last), *_turned_paths(last)]
        more = ways.as_taken_in(view, others | _linked_elsewhere(view, turned, {*read, *gone}))
        if not more:
            touching = msgspec.structs.replace(NOTHING, touching=frozenset(turned))
            paths = read.union(gone, others, _named_by_path(readings))
            return Compared(tuple(readings), last, state.loaded, StateReads(state.loaded | touching, frozenset(paths)))
        files = (*files, *more)


def _planned(
    view: View, stamp: Stamp, readings: Sequence[FileReading], gone: Sequence[str], ways: FileSources
) -> tuple[Difference, State]:
    stated = {entity.id: entity for reading in readings for entity in reading.facts.entities}
    ids = _ids_of_paths(view, readings, gone)
    found = [(one.path, one.hash) for one in readings]
    begun = tuple(one for one in ways.begun if one.is_seen(found))
    former = _former(view, readings, gone)
    for one in begun:
        former = {key: now for key, now in former.items() if key != one.new} | dict.fromkeys(one.former, one.new)
    # Links may wait for an id that an entity had before it came here: they lead to the entity then.
    earlier = {one for entity in stated.values() for one in former_ids_of(entity.fields)}

    def plan(state: State) -> Difference:
        past = msgspec.structs.replace(_past(view, state, stated), renamed=former, begun=begun)
        return difference(readings, gone, state, ways.schema, stamp, ids_of_path=ids, past=past)

    paths = [*(reading.path for reading in readings), *gone]
    wanted = reads(readings, gone, view.stated_by(list(dict.fromkeys(paths))))
    more = frozenset(earlier.union(former.values(), (key for one in begun for key in (one.old, one.new))))
    wanted |= msgspec.structs.replace(NOTHING, nodes=more, touching=more)
    return plan_until_stable(view, wanted, plan)


def _reading(whole: FoundFile) -> FileReading:
    return FileReading(whole.path, whole.hash, whole.wanted.mark, whole.facts or Facts())


def _past(view: View, state: State, stated: Mapping[str, StatedEntity]) -> Past:
    """Return what history knows of the entities that files state, or stated, under the ids that they have now."""
    new = [one for key, one in stated.items() if key not in state.nodes]
    ids = {one.id for one in new}.union(*(former_ids_of(one.fields) for one in new)) - state.nodes.keys()
    gone = removed_with_files(view, ids)
    doubtful = {node.id for node in (*state.nodes.values(), *gone.values()) if "status" not in node.owners}
    unsaid = statuses_by_sync(view, doubtful)
    holders = view.renamed(gone.keys() - stated.keys()) if gone else {}
    former = {key: node for key, node in gone.items() if key in stated}
    for entity in new:
        # The file with the former id may have been recorded as deleted before the one that names this id came.
        for key in reversed(former_ids_of(entity.fields)):
            if key in gone and key not in stated and entity.id not in former and holders.get(key, key) == key:
                former[entity.id] = msgspec.structs.replace(gone[key], id=entity.id)
                unsaid |= {entity.id} if key in unsaid else set()
    return Past(former, unsaid)


def _moved(found: Difference) -> list[str]:
    """Return the entities that go, or that another file states from now on."""
    moved = [
        change.key
        for change in found.changes.nodes
        if change.before and (change.after is None or change.after.path != change.before.path)
    ]
    for change in found.changes.nodes:
        # What links to a former id means the entity as long as it has that id.
        turned = {*former_ids(change.before)} ^ {*former_ids(change.after)}
        moved += [*turned, change.key] if turned else []
    return moved


def _turned_paths(found: Difference) -> list[str]:
    """Return the documents that define another entity from now on, or one at all: links may wait for such a path."""
    turned = set[str]()
    for change in found.changes.nodes:
        was, now = (change.before.path if change.before else ""), (change.after.path if change.after else "")
        turned |= {was, now} - {""} if was != now else set()
    return sorted(turned)


def _linked_elsewhere(view: View, turned: Sequence[str], read: Collection[str]) -> set[str]:
    """Return the files, not read now, that link to entities which move, or wait for the path of a document.

    They may have named one by the path of its document, and mean another one then.
    """
    sources = {statement.src for link in view.touching(turned) for statement in link.statements}
    return sources - {CLIENT, *read}


def _former(view: View, readings: Sequence[FileReading], gone: Collection[str]) -> dict[str, str]:
    """Return the present id of each renamed entity that these files name by a former one, as the files say now.

    Of several that claim one, it is the entity that has it in the records as long as it states it, else the first; none
    where an entity that is stated has that id itself.
    """
    ordered = sorted(readings, key=lambda one: one.path)
    stated = {one.id: one for reading in ordered for one in reading.facts.entities}
    targets = {link.target for reading in readings for link in reading.facts.links if not link.is_path}
    claims = [(former, key) for key, entity in stated.items() for former in former_ids_of(entity.fields)]
    found = view.renamed(stated.keys() | targets | {former for former, _ in claims})
    read = {reading.path for reading in readings}.union(gone)
    nodes = {node.id: node for node in view.nodes(sorted(set(found.values())))} if found else {}

    def has_still(holder: str, former: str) -> bool:
        node, entity = nodes[holder], stated.get(holder)
        if node.path not in read or (entity and FORMER_IDS not in node.owners):
            return True
        return entity is not None and former in former_ids_of(entity.fields)

    now = {former: holder for former, holder in found.items() if has_still(holder, former)}
    for former, key in claims:
        if former not in stated:
            now.setdefault(former, key)
    return now


def _named_by_path(readings: Sequence[FileReading]) -> set[str]:
    return {link.target for one in readings for link in one.facts.links if link.is_path}


def _ids_of_paths(view: View, readings: Sequence[FileReading], gone: Collection[str]) -> dict[str, list[str]]:
    """Return the entities of documents that links name by path, and that are there and not read now."""
    targets = sorted(_named_by_path(readings) - {*(reading.path for reading in readings), *gone})
    ids: dict[str, list[str]] = {}
    if targets:
        sql = "select path, id from node where path in (select unnest(?::varchar[])) order by id"
        for path, key in view.rows(sql, [targets]):
            ids.setdefault(path, []).append(key)
    return ids
