"""The file, and its line, that states a fact: looked for only when a refusal has to name it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from kbcore.errors import DerivedFact, NotFound, NotSynced, Problem, Rejected, of_problems
from kbcore.errors.remedies import kb
from kbcore.extract.changes import FOLDER
from kbcore.extract.facts import Facts
from kbcore.ids import is_link_id
from kbcore.model.changeset import Changeset, EdgeDelete, EdgeWrite
from kbcore.model.graph import CLIENT, Link, Node
from kbcore.model.renames import paired
from kbcore.model.state import Changes
from kbcore.store.apply import Reading
from kbcore.store.planning.plan_builder import WHOLE_EXPORT, edge_words, stated_problem
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.scan import read_named
from kbcore.text.escaping import in_quotes

if TYPE_CHECKING:
    from kbcore.view.view import View

DERIVED: Final = DerivedFact.code
"""The code of a problem with a fact that a file states."""

_NOT_THERE: Final = frozenset({"unknown_entity", "not_found", "missing_field"})
"""Codes of problems with an entity that no record has."""
SYNC_FIRST: Final = f"{kb('sync', lead='Run')} first."


def unrecorded(read: Reading, ids: Collection[str]) -> dict[str, str]:
    """Return the file that states each of these entities and edges that no record has.

    The folder of change files for an entity of clients; "" for an edge of clients, which a change file states, or to
    whose end a rename in files gives another id.
    """

    def stated_by(link: Link) -> str:
        return next((one.src for one in link.statements if one.src != CLIENT), "")

    def on(view: View) -> dict[str, str]:
        links = view.links(sorted(filter(is_link_id, ids)))
        nodes = view.nodes(sorted(key for key in ids if not is_link_id(key)))
        files = {link.id: stated_by(link) for link in links if link.created_seq > view.recorded_seq}
        return files | {node.id: node.path or FOLDER for node in nodes if node.created_seq > view.recorded_seq}

    found: dict[str, str] = read(on) if ids else {}
    return found


def unrecorded_words(words: str, path: str) -> str:
    """Return that a file states an element, in words, that no record has; "" where only clients state it."""
    if not path:
        return f"A change file or a rename in files makes {words}, but it is not recorded yet."
    return f"{in_quotes(path)} states {words}, but it is not recorded yet."


def withdrawn(read: Reading, recorded: Reading, ids: Collection[str]) -> list[str]:
    """Return those of these entities that the records have and that go with the next sync: no file states them now."""

    def known(view: View, keys: Collection[str]) -> set[str]:
        """Return those of these ids that name an entity, or are a former id of one."""
        there = {node.id for node in view.nodes(sorted(keys))}
        present = view.renamed({*keys} - there)
        now = {node.id for node in view.nodes(sorted(present.values()))} if present else set()
        return there | {key for key, one in present.items() if one in now}

    absent: set[str] = read(lambda view: {*ids} - known(view, ids) if view.overlay_mark else set()) if ids else set()
    return sorted(recorded(lambda view: known(view, absent))) if absent else []


def withdrawn_words(key: str) -> str:
    """Return that no file states an entity any more."""
    return f"No file states {in_quotes(key)} any more, which is not recorded yet."


def moved_words(key: str, now: str, before: str) -> str:
    """Return that an entity is in another file than the records say."""
    where = f"{in_quotes(now)}, and was in {in_quotes(before)}"
    return f"{in_quotes(key)} is in {where}. That is not recorded yet."


def check_free(read: Reading, recorded: Reading, key: str) -> None:
    """Refuse a new id that the records have and that no file states any more. Raises: ``NotSynced``."""
    if withdrawn(read, recorded, [key]):
        raise NotSynced(withdrawn_words(key), hint=SYNC_FIRST)


def check_withdrawn(read: Reading, recorded: Reading, changeset: Changeset) -> None:
    """Refuse to write to an entity, or to link to one, that no file states any more: the next sync removes it.

    ``recorded`` reads the records alone.

    Raises: ``NotSynced``.
    """
    edges = changeset.edges  # an edge to it may be removed: nothing of that is lost
    places = {edge.to_id: f"{edge.path}.to" for edge in edges} | {edge.from_id: f"{edge.path}.from" for edge in edges}
    places |= {item.id: f"{item.path}.id" for item in changeset.entities}
    places |= {item.id: f"{item.path}.id" for item in changeset.entity_deletes}
    _refuse_withdrawn(read, recorded, places, "The changeset names what was removed")


def check_withdrawn_of_undo(read: Reading, recorded: Reading, changes: Changes) -> None:
    """Refuse an undo that changes an entity, or makes an edge to one, that no file states any more.

    It may remove them: nothing of that is lost. ``recorded`` reads the records alone.

    Raises: ``NotSynced``.
    """
    whole = paired(changes)
    nodes = [(one.before or one.after).id for one in whole.nodes if one.after is not None]
    links = [one.after for one in whole.links if one.after is not None]
    places = {key: key for key in (*nodes, *(end for link in links for end in (link.from_id, link.to_id)))}
    _refuse_withdrawn(read, recorded, places, "The undo changes what was removed")


def _refuse_withdrawn(read: Reading, recorded: Reading, places: Mapping[str, str], what: str) -> None:
    """Refuse a write of these ids, each with its place in the request. Raises: ``NotSynced``."""
    named = [key for key in places if key and not is_link_id(key)]
    problems = [
        Problem(places[key], NotSynced.code, withdrawn_words(key), SYNC_FIRST, subject=key)
        for key in withdrawn(read, recorded, named)
    ]
    if problems:
        raise of_problems(NotSynced, what, problems)


def check_unrecorded(read: Reading, recorded: Reading, changeset: Changeset) -> None:
    """Refuse to create what a file states that is not recorded yet, also by an upsert of an entity that no record has.

    ``recorded`` reads the records alone.

    Raises: ``NotSynced``.
    """
    upserted = [one.id for one in changeset.entities if one.mode == "upsert" and "type" in one.values and one.id]
    there = recorded(lambda view: {one.id for one in view.nodes(upserted)}) if upserted else set()
    created = {*upserted} - there
    places = {
        one.id: (f"{one.path}.id", in_quotes(one.id))
        for one in changeset.entities
        if one.mode == "create" or one.id in created
    }
    places |= {one.id: (one.path, edge_words(one)) for one in changeset.edges if one.mode == "create"}
    places.pop("", None)
    files = unrecorded(read, places.keys())
    if files:
        is_import = any(one.is_import for one in changeset.entities) or any(one.is_import for one in changeset.edges)
        hint = WHOLE_EXPORT if is_import else SYNC_FIRST
        problems = [
            Problem(places[key][0], NotSynced.code, unrecorded_words(places[key][1], path), hint, path)
            for key, path in sorted(files.items())
        ]
        raise of_problems(NotSynced, "The changeset is to create what exists already", problems)


def with_unrecorded(read: Reading, changeset: Changeset, refused: Rejected | NotFound) -> Rejected | NotFound:
    """Return a refusal that names the files of what is missing because no record has it yet."""
    edges: list[EdgeWrite | EdgeDelete] = [*changeset.edges, *changeset.edge_deletes]
    ids = {f"{edge.path}.from": [edge.from_id] for edge in changeset.edges}
    ids |= {f"{edge.path}.to": [edge.to_id] for edge in changeset.edges}
    ids |= {edge.path: [edge.from_id, edge.to_id, edge.id] for edge in edges}
    ids |= {item.path: [item.id] for item in changeset.entities}
    ids |= {item.path: [item.id] for item in changeset.entity_deletes}
    words = {edge.id: edge_words(edge) for edge in edges}

    def ids_of(problem: Problem) -> list[str]:
        place = problem.path if problem.path in ids else problem.path.rpartition(".")[0]
        return ids.get(place, []) if problem.code in _NOT_THERE else []

    files = unrecorded(read, {key for problem in refused.details for key in ids_of(problem) if key})
    if not files:
        return refused
    found: list[Problem] = []
    named: set[str] = set()
    for problem in refused.details:
        key = next((one for one in ids_of(problem) if one in files), "")
        if not key:
            found.append(problem)
        elif key not in named:  # an entity with several fields missing is named once
            named.add(key)
            said = unrecorded_words(words.get(key, in_quotes(key)), files[key])
            found.append(Problem(problem.path, problem.code, said, SYNC_FIRST, files[key]))
    error = NotSynced if len(found) == len(named) else type(refused)
    return of_problems(error, refused.what, found, data=refused.data)


def with_places(
    workspace: Workspace,
    changeset: Changeset,
    refused: Rejected | NotFound,
    *,
    branch: str,
    read: Reading | None = None,
) -> Rejected | NotFound:
    """Return a refusal that names files where these state what it is about; the same one where they do not."""
    if read is not None:
        refused = _with_moved(read, refused)
    if isinstance(refused, Rejected) and any(problem.code == DERIVED for problem in refused.details):
        refused = with_lines(workspace, refused, branch=branch)
    return refused if read is None else with_unrecorded(read, changeset, refused)


def _with_moved(read: Reading, refused: Rejected | NotFound) -> Rejected | NotFound:
    """Return a refusal that names the file which states an entity now, where no record has yet that it moved there."""
    ids = {one.subject for one in refused.details if one.source and one.subject}

    def on(view: View) -> dict[str, Node]:
        return {node.id: node for node in view.nodes(sorted(ids))} if view.overlay_mark else {}

    nodes: dict[str, Node] = read(on) if ids else {}
    found = [_present(one, nodes.get(one.subject)) for one in refused.details]
    if found == list(refused.details):
        return refused
    error = NotSynced if all(one.code == NotSynced.code for one in found) else type(refused)
    return of_problems(error, refused.what, found, data=refused.data)


def _present(problem: Problem, node: Node | None) -> Problem:
    """Return a problem with an entity that names the file in which it is now."""
    if node is None or not node.path or problem.source in {"", node.path, *node.owners.values()}:
        return problem
    if problem.code == DERIVED and problem.field in {"", *node.owners}:
        owner = node.owners.get(problem.field, node.path)
        return stated_problem(problem.path, node.id, [owner], field=problem.field)
    said = moved_words(node.id, node.path, problem.source)
    return Problem(problem.path, NotSynced.code, said, SYNC_FIRST, node.path, subject=node.id)


def with_lines(workspace: Workspace, refused: Rejected, *, branch: str) -> Rejected:
    """Return a refusal whose problems with facts of files name file and line, as far as these can be read now.

    A branch that is not checked out has no files here: its refusals name the file alone.
    """
    if not workspace.repo.has_worktree or workspace.head().branch != branch:
        return refused
    facts: dict[str, Facts] = {}
    details = []
    for problem in refused.details:
        is_derived = problem.code == DERIVED
        if is_derived and problem.source not in facts:
            facts[problem.source] = read_named(workspace.repo.worktree, extractors_of(workspace), problem.source)
        details.append(_located(problem, facts[problem.source]) if is_derived else problem)
    return of_problems(type(refused), refused.what, details, hint=refused.remedy, data=refused.data)


def _located(problem: Problem, facts: Facts) -> Problem:
    entity = next((one for one in facts.entities if one.id == problem.subject), None)
    if entity is None:
        return problem
    line = entity.lines.get(problem.field, entity.line)
    files = (problem.source, *problem.values)
    return stated_problem(problem.path, problem.subject, files, field=problem.field, line=line)
