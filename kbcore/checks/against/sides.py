"""The three states that are compared: of the common ancestors, of this side, and of the other revision.

A state is what those documents say that are not the same in all of them. This side has, besides, what clients stated in
its store; the other side has of that what was there when the two diverged, as its store does not come with its commits.
The state that changes in files give is compared in ``shared``.

Each tree is read by the settings that it holds, as ``kb check`` reads it there: a folder that one side has moved is no
deletion. Types and predicates that this branch defines in its store are known in all of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.checks.against.three_way import EdgeOfState, EntityOfState, StatedLine, StateFacts, deleted
from kbcore.errors import GitUnusable, InvalidConfig
from kbcore.extract.facts import SYNTAX_FAULTS, StatedEntity, StatedLink
from kbcore.git import Tree, blobs
from kbcore.model.graph import CLIENT, Node
from kbcore.model.schema import Schema
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import as_defined, extractors_of
from kbcore.sync.documents import RepositoryDocuments
from kbcore.sync.fields import stated_by_clients, stated_fields
from kbcore.sync.scan import FoundFile, found_at
from kbcore.sync.tree_documents import ReadBefore, TreeDocuments, TreeSettings
from kbcore.text.problems import FileProblem
from kbcore.view.history import NODES
from kbcore.view.tables import node_of
from kbcore.view.view import View

_PARTLY_READ: Final = SYNTAX_FAULTS | {"unreadable", "extractor_failed"}
"""Codes of problems with which a file was not read whole."""
_AT: Final = f"""
select {NODES.columns} from (
  select {NODES.columns} from node where version <= $2
  union all select {NODES.columns} from node_history where version <= $2 and ended > $2)
where id in (select unnest($1::varchar[]))
"""  # noqa: S608 - no text from outside


class Unread(msgspec.Struct, frozen=True):
    """A file that could not be read whole, and where that is: in this side, "" then, or in a revision."""

    path: str
    where: str
    problem: FileProblem


class States(msgspec.Struct, frozen=True):
    """The states, and the files that could not be read whole."""

    bases: list[StateFacts]
    ours: StateFacts
    theirs: StateFacts
    unread: list[Unread]

    @property
    def documented_here(self) -> set[str]:
        """Return the entities that documents of this side state, and no common ancestor has."""
        earlier = {key for base in self.bases for key in base.entities}
        return {key for key, one in self.ours.entities.items() if one.path and key not in earlier}


class _Documents(msgspec.Struct):
    """The documents of one side that are not the same in all: with the schema by which they are read."""

    name: str
    schema: Schema
    found: list[FoundFile]


def read_states(
    workspace: Workspace,
    view: View,
    branch: str,
    *,
    bases: Sequence[str],
    ours: str,
    theirs: tuple[str, str],
    has_files: bool,
) -> list[_Documents]:
    """Return the documents of commits that are not the same in all: of the common ancestors, this side, and the other.

    ``theirs`` is a commit and its name. With ``has_files`` this side is what the files of the worktree say now.

    Raises: ``InvalidConfig`` for the settings in a tree; ``GitUnusable``, also for what is not in this clone.
    """
    repo, env = workspace.repo, workspace.machine.env
    named = [*((one, one[:12]) for one in bases), (ours, ""), theirs]
    trees = [blobs.tree_of(repo, env, commit) for commit, _ in named]
    settings = TreeSettings(workspace)
    by = [
        workspace if has_files and not name else _settings(settings, tree, name)
        for (_, name), tree in zip(named, trees, strict=True)
    ]
    claims = workspace.store(branch).claims
    readers = [TreeDocuments(one, view, claims) for one in by]
    edited = _edited(workspace, view, branch, trees[-2]) if has_files else {}
    changed = _changed(trees, is_read_alike=len({one.marks for one in readers}) == 1) | edited.keys()
    _require(workspace, {tree[path].id for tree in trees for path in changed if path in tree})
    read: ReadBefore = {}
    sides = []
    for (_, name), tree, reader, own in zip(named, trees, readers, by, strict=True):
        left = changed - edited.keys() if not name else changed
        files = {path: tree[path] for path in sorted(left) if path in tree}
        sides.append(_Documents(name, view.schema(own.schema), list(reader.stated(files, tree, read))))
    sides[-2].found += [one for one in edited.values() if one is not None]
    return sides


def states_of(sides: Sequence[_Documents], view: View, seq: int) -> States:
    """Return the states of documents, with what clients stated in the store of this side.

    ``seq`` is the last record of the store when the two sides diverged.
    """
    stating = _Stating()
    found = [stating.facts(side) for side in sides]
    *bases, ours, theirs = found
    ids = sorted({key for one in found for key in one.entities})
    schema = sides[-2].schema
    now = {node.id: node for node in view.nodes(ids)}
    earlier = max(seq, view.basis.history_from)
    was = {node.id: node for node in map(node_of, view.rows(_AT, [ids, earlier]))} if ids else {}
    then = [_with_clients(one, was, schema) for one in (*bases, theirs)]
    *bases, theirs = then
    ours = _with_clients(ours, now, schema)
    ours = _with_client_edges(ours, view, sorted(deleted(bases, theirs)))
    unread = [Unread(one.path, side.name, fault) for side in sides for one in side.found if (fault := _fault(one))]
    return States(bases, ours, theirs, unread)


def _settings(settings: TreeSettings, tree: Tree, name: str) -> Workspace:
    try:
        return settings.of(tree)
    except InvalidConfig as error:
        where = f" in {name}" if name else ""
        raise InvalidConfig(f"The settings{where} cannot be used: {error.message}", hint=error.remedy) from error


def _edited(workspace: Workspace, view: View, branch: str, tree: Tree) -> dict[str, FoundFile | None]:
    """Return the documents of the worktree that are not as a commit has them; None for one that is gone."""
    differing = RepositoryDocuments(workspace, workspace.store(branch).claims).differing(view, tree)
    wants, root = as_defined(extractors_of(workspace), view), workspace.repo.worktree
    paths = [*(one.path for one in differing.read), *differing.gone]
    return {path: found_at(root, wants, path) if os.path.lexists(root / path) else None for path in paths}


def _changed(trees: Sequence[Tree], *, is_read_alike: bool) -> set[str]:
    """Return the files that are not the same in all trees, and links, whose targets may not be.

    All files, where the trees have settings by which the same file may say something else.
    """
    first = trees[0]
    if not is_read_alike:
        return {path for tree in trees for path in tree}
    links = {path for tree in trees for path, blob in tree.items() if blob.mode == blobs.LINK}
    return links | {path for tree in trees[1:] for path, _ in tree.items() ^ first.items()}


def _require(workspace: Workspace, names: Collection[str]) -> None:
    """Refuse to go on without some objects. Raises: ``GitUnusable``."""
    missing = blobs.absent(workspace.repo, workspace.machine.env, names)
    if missing:
        message = f"{len(missing)} of {len(names)} files to compare are not in this clone, such as {min(missing)}."
        raise GitUnusable(message, hint="Fetch them: `git fetch --refetch`, without a filter.")


class _Stating:
    """The facts of documents, values as the records would have them; each document is looked at once for all sides.

    A side that has a document as another one has it has the same objects, by which that is seen.
    """

    def __init__(self) -> None:
        self._entities: dict[tuple[int, int], list[EntityOfState]] = {}

    def facts(self, side: _Documents) -> StateFacts:
        """Return what the documents of one side state."""
        entities: dict[str, EntityOfState] = {}
        ids_of: dict[str, list[str]] = {}
        for one in side.found:
            for stated in self._entities_of(one, side.schema):
                entities.setdefault(stated.entity.id, stated)
                ids_of.setdefault(one.path, []).append(stated.entity.id)
        edges: dict[EdgeOfState, StatedLine] = {}
        for one in side.found:
            for link in one.facts.links if one.facts else ():
                if not link.in_text:
                    for target in ids_of.get(link.target, ()) if link.is_path else (link.target,):
                        edges.setdefault(_edge(link, target), StatedLine(one.path, link.line))
        return StateFacts(entities, edges, frozenset(one.path for one in side.found if _is_open(one)))

    def _entities_of(self, one: FoundFile, schema: Schema) -> list[EntityOfState]:
        key = (id(one), id(schema))
        if key not in self._entities:
            stated = one.facts.entities if one.facts else ()
            self._entities[key] = [EntityOfState(_as_recorded(entity, schema), one.path) for entity in stated]
        return self._entities[key]


def _as_recorded(entity: StatedEntity, schema: Schema) -> StatedEntity:
    definition = schema.entities.get(entity.type)
    if definition is None:
        return entity
    values, _ = stated_fields(entity, definition)
    del values["type"]
    return msgspec.structs.replace(entity, fields=values)


def _edge(link: StatedLink, target: str) -> EdgeOfState:
    ends = (target, link.subject) if link.reverse else (link.subject, target)
    return EdgeOfState(link.type or "", link.kind, *ends)


def _is_open(one: FoundFile) -> bool:
    """Return whether a file may state more than what was read of it."""
    facts = one.facts
    return facts is None or not facts.is_complete or bool(facts.held_back or facts.unidentified)


def _fault(one: FoundFile) -> FileProblem | None:
    """Return why a file could not be read whole, None where it was, or states something wrong at most."""
    problems = one.facts.problems if one.facts and _is_open(one) else ()
    return next((problem for problem in problems if problem.code in _PARTLY_READ), None)


def _with_clients(facts: StateFacts, nodes: Mapping[str, Node], schema: Schema) -> StateFacts:
    """Return facts with what clients had stated of these entities, where no document states it."""
    entities = dict(facts.entities)
    for key, node in nodes.items():
        own = stated_by_clients(node, schema.entities.get(node.type))
        there = entities.get(key)
        if there is not None:
            fields = {**own, **there.entity.fields}
            if fields.keys() == there.entity.fields.keys():
                continue
            entities[key] = EntityOfState(msgspec.structs.replace(there.entity, fields=fields), there.path)
        elif not node.path:
            entities[key] = EntityOfState(StatedEntity(key, node.type, own, 0), "")
    return msgspec.structs.replace(facts, entities=entities)


def _with_client_edges(facts: StateFacts, view: View, ids: Sequence[str]) -> StateFacts:
    """Return facts with the edges that clients stated at these entities: the other side has none of them."""
    edges = dict(facts.edges)
    for link in view.touching(ids) if ids else ():
        if any(statement.src == CLIENT for statement in link.statements):
            edges.setdefault(EdgeOfState(link.type, link.kind, link.from_id, link.to_id), StatedLine("", 0))
    return msgspec.structs.replace(facts, edges=edges)
