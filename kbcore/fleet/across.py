"""Edges across repositories: which references to others lead somewhere, and impact and coverage over all of them.

A pass over the edges of all branches finds the references, ``REPO:ID``. Impact and coverage are those of one
repository, asked of one graph in which an id begins with its repository; so they count as they do there. Of several
branches of a repository the default one is in that graph, or the first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import progress
from kbcore.config.user import UserSettings
from kbcore.errors import KBError, NotFound, StorageError
from kbcore.fleet import settings
from kbcore.fleet.asking import seq_before
from kbcore.fleet.head import FleetHead
from kbcore.fleet.local import Answer
from kbcore.fleet.place import Place, read_part
from kbcore.fleet.reading import ExportedSettings, Failure, Selection, copied, failure_of, find, opened, shared_database
from kbcore.limits import MAX_TRAVERSAL_DEPTH
from kbcore.model.schema import ASPECTS, CORE, Schema
from kbcore.query import coverage, subject
from kbcore.query.impact import PARTS, Impact, impact
from kbcore.query.walk import path_text
from kbcore.rules.elsewhere import Elsewhere
from kbcore.storage import files
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view import database
from kbcore.view.fleet_sql import BranchParts, open_branches
from kbcore.view.tables import Rows

EDGES: Final = ("edge",)
ENTITIES: Final = ("entity",)
FACTS: Final = (*ENTITIES, *EDGES)
_SHOWING: Final = frozenset(edge for edge, _, _ in coverage.ENDS.values())
_MOST_GUESSED: Final = 10_000
"""Of so many ids at most the nearest is looked for."""


class Asker(msgspec.Struct, frozen=True):
    """Who asks: the machine, the settings of the user, and the first instant that does not count, "" for now."""

    machine: Machine
    user: UserSettings
    before: str = ""


class Reference(msgspec.Struct, frozen=True):
    """An edge of which an end is in another repository."""

    type: str
    from_repo: str
    from_id: str
    to_repo: str
    to_id: str

    @property
    def start(self) -> str:
        """The end that it comes from, with its repository."""
        return f"{self.from_repo}:{self.from_id}"

    @property
    def end(self) -> str:
        """The end that it leads to, with its repository."""
        return f"{self.to_repo}:{self.to_id}"


class Affected(msgspec.Struct, frozen=True):
    """What a change of an entity affects in all repositories; ``rows`` are nearest first within each part."""

    found: Impact
    rows: list[dict[str, Any]]
    failures: list[Failure]


def references(place: Place, heads: Sequence[FleetHead], asker: Asker) -> tuple[list[Reference], list[Failure]]:
    """Return the edges across repositories that these branches state, and the branches that could not be read."""
    with _database(place, heads, asker, EDGES) as (rows, failures):
        found = rows("select distinct type, from_repo, from_id, to_repo, to_id from across order by all", [])
        return [Reference(*row) for row in found], failures


def find_elsewhere(place: Place, heads: Sequence[FleetHead], asker: Asker) -> Elsewhere:
    """Return which references of these branches lead to an entity, wherever in the place that is.

    What cannot be read is ``unread``: where it is asked itself, its own answer says why.
    """
    found, _ = references(place, heads, asker)
    others, unread = _heads_of(place, {repo for one in found for repo in (one.from_repo, one.to_repo)}, heads)
    with _database(place, others, asker, ENTITIES) as (rows, failures):
        wanted = sorted({end for one in found for end in (one.start, one.end)})
        named = "repo || ':' || id in (select unnest($1::varchar[]))"
        types = dict(rows(f"select repo || ':' || id, type from entity where {named}", [wanted]))  # noqa: S608 - fixed
    repos = frozenset(one.repo for one in (*heads, *others))
    edges = {_meant(one, types) for one in found if one.start in types and one.end in types}
    return Elsewhere(frozenset(types), repos, unread | {one.repo for one in failures}, frozenset(edges))


def affected(
    place: Place, heads: Sequence[FleetHead], name: tuple[str, str], asker: Asker, *, depth: int = MAX_TRAVERSAL_DEPTH
) -> Affected:
    """Return what a change of an entity affects, in at most so many steps. ``name`` is its repository and its id.

    Raises: ``NotFound`` where the place does not have it, with what may be meant; ``StorageError`` where its
        repository cannot be read.
    """
    repo, id_ = name
    if repo not in {one.repo for one in heads}:
        names = {one.repo for one in heads}
        raise NotFound(f"There is no repository {in_quotes(repo)} in the place.", hint=did_you_mean(repo, names))
    with _database(place, _one_branch_each(heads), asker, FACTS, is_graph=True) as (rows, failures):
        start = subject.find(rows, f"{repo}:{id_}", None)
        if start is None:
            raise _not_there(rows, repo, id_, failures)
        first = sorted(heads, key=lambda one: one.repo != repo)
        found = impact(rows, _schema_of(place, first, asker), start, depth=depth)
        parts = [(part, one) for part in PARTS for one in getattr(found, part)]
        names_of = _names(rows, [one.subject.id for _, one in parts])
    return Affected(
        found,
        [
            {
                "part": part,
                "repo": names_of[one.subject.id][0],
                **one.subject.as_json(),
                "id": names_of[one.subject.id][1],
                "depth": len(one.path),
                "path": path_text(one.path),
            }
            for part, one in parts
        ],
        failures,
    )


def find_others(
    place: Place, heads: Sequence[FleetHead], asker: Asker
) -> tuple[Callable[[Answer], Answer], list[Failure]]:
    """Return what counts in an answer on coverage what other repositories state, or have; and what could not be read.

    ``heads`` are all branches whose edges count.
    """
    heads = _one_branch_each(heads)
    found, failures = references(place, heads, asker)
    showing = [one for one in found if not one.type or one.type in _SHOWING]
    if not showing:
        return (lambda answer: answer), failures
    repos = {repo for one in showing for repo in (one.from_repo, one.to_repo)}
    ends = {end for one in showing for end in (one.start, one.end)}
    with _database(place, [one for one in heads if one.repo in repos], asker, FACTS, is_graph=True) as (rows, more):
        whole = {one.id: one.as_json() for one in coverage.read(rows, None).requirements if one.id in ends}
    branches = {(one.repo, one.branch) for one in heads}

    def counted(answer: Answer) -> Answer:
        if (answer.repo, answer.branch) not in branches:
            return answer
        requirements = [_counted(answer.repo, row, whole) for row in answer.value["requirements"]]
        return msgspec.structs.replace(answer, value={**answer.value, "requirements": requirements})

    known = {(one.repo, one.branch) for one in failures}
    return counted, [*failures, *(one for one in more if (one.repo, one.branch) not in known)]


def _meant(one: Reference, types: Mapping[str, str]) -> tuple[str, str]:
    """Return where an edge comes from, and its type: a link without one is the edge that the types of its ends mean."""
    if one.type:
        return one.start, one.type
    type_, _, is_reversed = CORE.bare_edge(types[one.start], types[one.end])
    return (one.end if is_reversed else one.start), type_


def _counted(repo: str, row: dict[str, Any], whole: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a requirement with what the graph of all repositories shows of it; ids of its own lose the repository."""
    found = whole.get(f"{repo}:{row['id']}")
    if found is None:
        return row

    def own(id_: str) -> str:
        return id_.removeprefix(f"{repo}:")

    shown = {name: [own(one) for one in found[name]] for name in ASPECTS}
    failing = [{**one, "id": own(one["id"])} for one in found["failing"]]
    proposed = {name: [own(one) for one in ids] for name, ids in found.get("proposed", {}).items()}
    return {**row, **shown, "failing": failing, **({"proposed": proposed} if proposed else {})}


def _heads_of(
    place: Place, repos: Collection[str], heads: Iterable[FleetHead]
) -> tuple[list[FleetHead], frozenset[str]]:
    """Return the branches of these repositories, and which could not be read.

    The branches are those that are asked, and of other repositories the default ones.
    """
    there = [one for one in heads if one.repo in repos]
    rest = sorted({*repos} - {one.repo for one in there})
    if not rest:
        return there, frozenset()
    found = find(place, Selection(tuple(map(escape, rest))))
    return [*there, *found.heads], frozenset(one.repo for one in found.failures)


def _one_branch_each(heads: Iterable[FleetHead]) -> list[FleetHead]:
    found: dict[str, FleetHead] = {}
    for one in heads:
        if one.repo not in found or (one.is_default and not found[one.repo].is_default):
            found[one.repo] = one
    return [*found.values()]


@contextlib.contextmanager
def _database(
    place: Place, heads: Sequence[FleetHead], asker: Asker, kinds: Collection[str], *, is_graph: bool = False
) -> Iterator[tuple[Rows, list[Failure]]]:
    """Lend a database over the parts of these kinds, with the branches that could not be read."""
    with database.scratch_folder() as folder:
        branches, failures = list[BranchParts](), list[Failure]()
        for number, head in enumerate(progress.track(heads, len(heads), "repositories read", every=1)):
            own = Path(folder) / str(number)
            files.make_directory(RealFs(), own)
            try:
                at = None
                if asker.before:
                    with (
                        shared_database(asker.user) as shared,
                        opened(place, head, asker.machine, asker.user, shared) as member,
                    ):
                        at = seq_before(member.view, asker.before)
                branches.append(BranchParts(head.repo, head.branch, copied(place, head, own, kinds), at))
            except KBError as error:
                failures.append(failure_of(head.repo, head.branch, error))
        connection = open_branches(branches, [folder], is_graph=is_graph)
        try:
            yield connection.rows, failures
        finally:
            connection.close()


def _schema_of(place: Place, heads: Iterable[FleetHead], asker: Asker) -> Schema:
    """Return the edge types of all these repositories; of several definitions of a name the first one counts."""
    edges, seen = dict(CORE.edges), set[str]()
    for head in heads:
        if head.settings.sha256 in seen:
            continue
        seen.add(head.settings.sha256)
        texts = settings.decode(read_part(place, head.settings), head.settings.path)
        own = ExportedSettings(texts, asker.machine, asker.user).schema
        edges |= {name: one for name, one in own.edges.items() if name not in edges}
    return msgspec.structs.replace(CORE, edges=edges)


def _not_there(rows: Rows, repo: str, id_: str, failures: Sequence[Failure]) -> KBError:
    for one in failures:
        if one.repo == repo:
            return StorageError(f"{repo} could not be read: {one.message}", hint=one.hint)
    ids = [row[0] for row in rows("select id from entity where repo = $1 order by id limit $2", [repo, _MOST_GUESSED])]
    return NotFound(f"There is no {in_quotes(id_)} in {repo}.", hint=did_you_mean(id_, ids))


def _names(rows: Rows, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the repository and the id there of each of these ids of the graph."""
    found = rows(
        "select id, repo, substr(id, length(repo) + 2) from node where id in (select unnest($1::varchar[]))", [[*ids]]
    )
    return {row[0]: (row[1], row[2]) for row in found}
