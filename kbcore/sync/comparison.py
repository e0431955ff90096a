"""The difference of files and a state, together with that of the files whose meaning they change.

A file that states an edge which no longer fits, or which named an entity that moved, is read again with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.extract.changes import OF_CHANGES, is_change_file
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.git.file_dates import DocumentDates
from kbcore.model.graph import CLIENT, FORMER_IDS, INDEX_SUFFIX, Node, former_ids, former_ids_of
from kbcore.model.read_set import NOTHING, ReadSet
from kbcore.model.schema import Schema, is_hidden
from kbcore.model.state import Changes, Stamp, State, StateReads
from kbcore.process import interrupting
from kbcore.query.former_ids import successors
from kbcore.sync.begun_renames import BegunRename
from kbcore.sync.difference import (
    Difference,
    contested_elsewhere,
    difference,
    ends_named,
    holding_elsewhere,
    reads,
    unfit_elsewhere,
)
from kbcore.sync.entities import is_dated
from kbcore.sync.entity_renames import Past
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.moved_symbols import is_code, moved_symbols
from kbcore.sync.scan import FoundFile
from kbcore.view.database import among
from kbcore.view.sync_facts import removed_with_files, statuses_by_sync
from kbcore.view.tables import may_lack_an_end
from kbcore.view.view import View
from kbcore.view.working_set import plan_until_stable

if TYPE_CHECKING:
    from kbcore.sync.shared_changes import SharedChanges
    from kbcore.view.claim_index import ClaimIndex


Dates = Callable[[Collection[str]], Mapping[str, DocumentDates]]


def no_dates(_: Collection[str]) -> Mapping[str, DocumentDates]:
    """Return that git knows no date of any file."""
    return {}


class FileSources(msgspec.Struct, frozen=True):
    """The access to files: ``gone`` are those that do not exist any more."""

    schema: Schema
    gone: Collection[str]
    whole: Callable[[FoundFile], FoundFile]
    """Returns a file with what it states."""
    as_taken_in: Callable[[View, Collection[str]], list[FoundFile]]
    """Returns those of these files that may be read although they did not change."""
    claims: Callable[[View], ClaimIndex] | None = None
    """Returns the index of the changes of the branch that a view is of; None: there are none."""
    committed: Callable[[Collection[str]], Collection[str]] = lambda _: ()
    """Returns those of these files that HEAD has, as they are."""
    dates: Dates = no_dates
    """Returns what git knows of when these files came and changed."""
    begun: tuple[BegunRename, ...] = ()
    """A rename whose record may be missing; it counts where a file is as the rename writes it."""


class UnresolvedCounts(msgspec.Struct, frozen=True):
    """Numbers of unresolved edges: those with which nothing is wrong (``tables.MAY_LACK_AN_END``), and others."""

    mentions: int
    others: int


class Compared(msgspec.Struct, frozen=True):
    """The result of comparing: the files that were read, the difference, and what was read of the state.

    ``reads`` is None where nobody can tell, as in a first sync; what files state is not in ``readings`` there.
    """

    readings: tuple[FileReading, ...]
    last: Difference
    loaded: ReadSet
    reads: StateReads | None
    unresolved: UnresolvedCounts | None = None
    """The edges that it creates and that are unresolved, where that cannot be seen in the changes."""

    def unresolved_created(self) -> UnresolvedCounts:
        """Return how many edges it creates that are unresolved."""
        if self.unresolved is not None:
            return self.unresolved
        links = self.last.changes.links
        waiting = [one.after for one in links if one.before is None and one.after and not one.after.is_resolved]
        pages = sum(map(may_lack_an_end, waiting))
        return UnresolvedCounts(pages, len(waiting) - pages)

    def noted(self) -> tuple[str, ...]:
        """Return the files whose content, or what was wrong with them, is noted."""
        if self.last.encoded is not None:
            return tuple(one.path for one in self.readings)
        return tuple(change.key for change in self.last.changes.sources)


NONE: Final = Compared((), Difference((), Changes(), (), ()), NOTHING, StateReads(NOTHING))
"""The result for no file at all."""


def compare(view: View, stamp: Stamp, files: Sequence[FoundFile], ways: FileSources) -> Compared:
    """Return the difference that these files make; with them, such as state an edge that is another one for it."""
    gone = tuple(ways.gone)
    changed = set[str]()
    while True:
        readings = []
        for found in files:
            interrupting.check()
            readings.append(_reading(ways.whole(found)))
        read = {reading.path for reading in readings}
        last, state = _planned(view, stamp, readings, ways, changed)
        others = unfit_elsewhere(last.changes, state, ways.schema, read) | contested_elsewhere(last, read)
        turned = [*_moved(last, view), *_turned_paths(last)]
        others |= {one.facts.joined for one in readings} | _stating_former(last, view)
        others -= {"", *read}
        holding = holding_elsewhere(last, state, read)
        more = ways.as_taken_in(view, others | holding | _linked_elsewhere(view, turned, {*read, *gone}))
        if more:
            files = (*files, *more)
            continue
        if holding == changed:
            touching = msgspec.structs.replace(NOTHING, touching=frozenset(turned))
            paths = read.union(gone, others, holding, _named_by_path(readings))
            return Compared(tuple(readings), last, state.loaded, StateReads(state.loaded | touching, frozenset(paths)))
        changed = holding


def _planned(
    view: View, stamp: Stamp, readings: Sequence[FileReading], ways: FileSources, changed: Collection[str]
) -> tuple[Difference, State]:
    gone = tuple(ways.gone)
    stated = {entity.id: entity for reading in readings for entity in reading.facts.entities}
    ids = _ids_of_paths(view, readings, gone)
    found = [(one.path, one.hash) for one in readings]
    paths = [*(reading.path for reading in readings), *gone]
    owned = view.stated_by(list(dict.fromkeys(paths)))
    moving: list[str] = []
    begun = tuple(one for one in ways.begun if one.is_seen(found)) + _moved_symbols(
        view, readings, gone, owned[0], moving
    )
    former, released = _released(readings, _former(view, readings, gone))
    for one in begun:
        former = {key: now for key, now in former.items() if key != one.new} | dict.fromkeys(one.former, one.new)
    # Links may wait for an id that an entity had before it came here: they lead to the entity then.
    earlier = {one for entity in stated.values() for one in former_ids_of(entity.fields)}

    shared = _shared_changes(view, readings, ways)
    known = view.holders() if shared else {}
    holders = {end: known[end] for end in ends_named(readings) if end in known}

    def dates(state: State) -> Mapping[str, DocumentDates]:
        files = {one.path for one in readings}

        def is_new(entity: StatedEntity, path: str) -> bool:
            return is_dated(state.nodes.get(entity.id), path, files)

        new = {one.path for one in readings if any(is_new(entity, one.path) for entity in one.facts.entities)}
        return ways.dates(new) if new else {}

    def plan(state: State) -> Difference:
        found = of_state(state)
        more = (*moving, *(shared.warnings if shared else ()))
        return msgspec.structs.replace(found, warnings=(*found.warnings, *more)) if more else found

    def of_state(state: State) -> Difference:
        past = _past(view, state, stated, former, paths, shared=shared)
        past = msgspec.structs.replace(
            past, begun=begun, dates=dates(state), released=released, holders=holders, has_changes=shared is not None
        )
        return difference(
            readings,
            gone,
            state,
            ways.schema,
            stamp,
            ids_of_path=ids,
            past=past,
            changed=changed,
            of_changes=shared.operations if shared else None,
        )

    wanted = reads(readings, gone, owned)
    renaming = (key for one in begun for key in (one.old, one.new))
    lost = _without_former(known, stated, owned[0])
    more = frozenset(earlier.union(former.values(), released.values(), renaming, lost, *holders.values()))
    wanted |= msgspec.structs.replace(NOTHING, nodes=more, touching=more)
    if shared:
        wanted |= shared.reads
    return plan_until_stable(view, wanted, plan)


def _moved_symbols(
    view: View,
    readings: Sequence[FileReading],
    gone: Collection[str],
    known: Collection[str],
    warnings: list[str],
) -> tuple[BegunRename, ...]:
    """Return the symbols of source code that these files move or rename; ``known`` are the entities that they state.

    ``warnings`` are as of ``moved_symbols``.
    """
    stated = {one.id for reading in readings for one in reading.facts.entities if is_code(one, reading.path)}
    if not stated or stated.issuperset(known):
        return ()
    there = view.nodes(sorted(stated.union(known)))
    return moved_symbols(readings, gone, there, {node.id for node in there}, warnings)


def _released(readings: Sequence[FileReading], former: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the former ids that go on to mean an entity, and those that symbols of source code take from one.

    An id that another file states as its own means what that file says, and nothing is taken from anybody.
    """
    entities = [(one, reading.path) for reading in readings for one in reading.facts.entities if not one.is_part]
    of_code = {one.id: is_code(one, path) for one, path in entities}
    taken = {key: holder for key, holder in former.items() if key in of_code and holder != key}
    left = {key: holder for key, holder in former.items() if key not in taken}
    return left, {key: holder for key, holder in taken.items() if of_code[key]}


def _without_former(
    holders: Mapping[str, Sequence[str]], stated: Mapping[str, StatedEntity], owned: Collection[str]
) -> set[str]:
    """Return the entities that files state with a former id less than before (``owned``), and these ids."""
    found, owned = set[str](), {*owned}
    for former, keys in holders.items():
        for key in owned.intersection(keys):
            if key not in stated or former not in former_ids_of(stated[key].fields):
                found |= {former, key}
    return found


def _shared_changes(view: View, readings: Sequence[FileReading], ways: FileSources) -> SharedChanges | None:
    """Return what change files make of the state; None where there are none, and the records know of none."""
    if ways.claims is None:
        return None
    files = {one.path: one.facts.changes for one in readings if is_change_file(one.path) and one.facts.is_complete}
    gone = [path for path in ways.gone if is_change_file(path)]
    is_first = not follows_from_changes(view)
    if is_first and not (files or gone):
        return None
    from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges  # noqa: PLC0415 - most branches have none

    found = ChangesInFiles(files, gone, frozenset(ways.committed([*files])))
    index, unrecorded = ways.claims(view), view.unrecorded_ops
    return SharedChanges(index, view.recorded_seq, found, unrecorded, view, schema=ways.schema, is_first=is_first)


def follows_from_changes(view: View) -> bool:
    """Tell whether a branch has changes of a file or of another branch, so that all of its state follows from changes.

    Until then, what documents covered is given again by the history of an entity.
    """
    is_of_changes = view.cells("source", ("path",), OF_CHANGES, lambda one: is_change_file(one.path))
    return bool(is_of_changes) or view.past.has_shared_changes()


def default_statuses(view: View, nodes: Collection[Node], claims: Callable[[View], ClaimIndex]) -> frozenset[str]:
    """Return those of these entities whose status is the default of a document: nothing else gave it to them."""
    if not follows_from_changes(view):
        return statuses_by_sync(view, {node.id for node in nodes})
    from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges  # noqa: PLC0415 - as above

    shared = SharedChanges(claims(view), view.recorded_seq, ChangesInFiles({}, ()), view.unrecorded_ops, view)
    return shared.without_status(nodes)


def has_loose_edges(view: View) -> bool:
    """Tell whether a sync without a changed file may move an edge: one of a client about an edge that is not there."""
    if not follows_from_changes(view):
        return False
    from kbcore.sync.shared_changes import edges_about_none  # noqa: PLC0415 - as above

    return bool(edges_about_none(view))


def _reading(whole: FoundFile) -> FileReading:
    return FileReading(whole.path, whole.hash, whole.wanted.mark, whole.facts or Facts())


def _past(
    view: View,
    state: State,
    stated: Mapping[str, StatedEntity],
    renamed: Mapping[str, str],
    paths: Collection[str],
    *,
    shared: SharedChanges | None,
) -> Past:
    """Return what history knows of the entities that files with these paths state, or stated, under their present ids.

    One that has another id since is not removed, unless that one goes now.
    """
    ids = {key for key in stated if key not in state.nodes}
    for key, one in stated.items():
        ids.update(set(former_ids_of(one.fields)) - {*former_ids(state.nodes.get(key))})
    removed = removed_with_files(view, ids - state.nodes.keys())
    for key, later in successors(view, removed, view.recorded_seq).items():
        node = state.nodes.get(later.id)
        if not later.removed and (later.id in stated or node is None or node.path not in paths):
            del removed[key]
    doubtful = [node for node in (*state.nodes.values(), *removed.values()) if "status" not in node.owners]
    if shared:
        of_documents = [node for node in doubtful if node.owners or node.id in stated]
        return Past(shared.without_claimed(removed), shared.without_status(of_documents), renamed)
    return Past(removed, statuses_by_sync(view, {node.id for node in doubtful}), renamed)


def _moved(found: Difference, view: View) -> list[str]:
    """Return the entities that go, that another file states from now on, or whose former ids come, go or are used."""
    moved = [
        change.key
        for change in found.changes.nodes
        if change.before and (change.after is None or change.after.path != change.before.path)
    ]
    turned = {change.key for change in found.changes.nodes if change.before is None}
    for change in found.changes.nodes:
        # What links to a former id means the entity as long as it has that id.
        former = {*former_ids(change.before)} ^ {*former_ids(change.after)}
        moved += [*former, change.key] if former else []
        turned |= former
    if turned:
        holders = view.holders()
        moved += [holder for key in sorted(turned) for holder in holders.get(key, ())]
    return moved


def _stating_former(found: Difference, view: View) -> set[str]:
    """Return the files that state a former id which an entity gets: it is left out then."""
    new = {one.key for one in found.changes.nodes if one.before is None and one.after}
    holders = view.holders() if new else {}
    keys = sorted({holder for key in new & holders.keys() for holder in holders[key]})
    return {node.owners[FORMER_IDS] for node in view.nodes(keys) if FORMER_IDS in node.owners} if keys else set()


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
    return {path for path in sources - {CLIENT, *read} if not path.endswith(INDEX_SUFFIX)}


def _former(view: View, readings: Sequence[FileReading], gone: Collection[str]) -> dict[str, str]:
    """Return the present id of each renamed entity that these files name by a former one, as the files say now.

    Of several that claim one, it is the first, in the order of paths, after one of a file that is not read now; none
    where an entity that is stated has that id itself.
    """
    ordered = sorted(readings, key=lambda one: one.path)
    stated = dict[str, StatedEntity]()
    for entity in sorted((one for reading in ordered for one in reading.facts.entities), key=lambda one: one.is_part):
        stated.setdefault(entity.id, entity)
    targets = ends_named(readings)
    claims = [(former, key) for key, entity in stated.items() for former in former_ids_of(entity.fields)]
    found = view.renamed(stated.keys() | targets | {former for former, _ in claims})
    read = {reading.path for reading in readings}.union(gone)
    nodes = {node.id: node for node in view.nodes(sorted(set(found.values())))} if found else {}

    def has_still(holder: str, former: str) -> bool:
        node, entity = nodes[holder], stated.get(holder)
        if node.path not in read or (entity and FORMER_IDS not in node.owners):
            return True
        return entity is not None and former in former_ids_of(entity.fields)

    now = {former: holder for former, holder in found.items() if nodes[holder].path not in read}
    for former, key in claims:
        if former not in stated:
            now.setdefault(former, key)
    return {former: holder for former, holder in found.items() if has_still(holder, former)} | now


def _named_by_path(readings: Sequence[FileReading]) -> set[str]:
    return {link.target for one in readings for link in one.facts.links if link.is_path}


def _ids_of_paths(view: View, readings: Sequence[FileReading], gone: Collection[str]) -> dict[str, list[str]]:
    """Return the entities of documents that links name by path, and that are there and not read now.

    Of several it is the one whose text the document is, if there is one.
    """
    targets = sorted(_named_by_path(readings) - {*(reading.path for reading in readings), *gone})
    ids: dict[str, list[str]] = {}
    if targets:
        condition, keyed = among(targets)
        named = {*targets}
        rows = view.cells(
            "node",
            ("id", "path", "text_ref", "type"),
            (f"(path {condition} or text_ref {condition})", [*keyed, *keyed]),
            lambda node: node.path in named or node.fields.get("text_ref") in named,
        )
        whole: dict[str, list[str]] = {}
        for key, path, text_ref, type_ in sorted(rows, key=itemgetter(0)):
            if is_hidden(type_, key):
                continue
            for one in sorted(named & {path, text_ref}):
                ids.setdefault(one, []).append(key)
                if one == text_ref:
                    whole.setdefault(one, []).append(key)
        ids |= {path: keys for path, keys in whole.items() if len(keys) == 1}
    return ids
