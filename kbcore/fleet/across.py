"""Edges across repositories: which references to others lead somewhere, and impact and coverage over all of them.

A pass over the edges of all branches finds the references, ``REPO:ID``. Impact and coverage are those of one
repository, asked of one graph in which an id begins with its repository; so they count as they do there. Of several
branches of a repository the default one is in that graph, or the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from glob import escape
from typing import Any, Final

import msgspec

from kbcore.errors import KBError, NotFound, StorageError
from kbcore.fleet.head import FleetHead
from kbcore.fleet.local import Answer, opened_together
from kbcore.fleet.place import Place
from kbcore.fleet.reading import Asker, FleetSelection, UnreadRepository, find
from kbcore.limits import MAX_TRAVERSAL_DEPTH
from kbcore.model.schema import ASPECTS, CORE, Schema
from kbcore.query import coverage, subject
from kbcore.query.impact import PARTS, Impact, impact
from kbcore.query.walk import path_text
from kbcore.rules.elsewhere import KnownReferences
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view.fleet_sql import BranchParts
from kbcore.view.tables import Rows

EDGES: Final = ("edge",)
ENTITIES: Final = ("entity",)
FACTS: Final = (*ENTITIES, *EDGES)
_SHOWING: Final = frozenset(edge for edge, _, _ in coverage.ENDS.values())
_MOST_GUESSED: Final = 10_000
"""Of so many ids at most the nearest is looked for."""
_TYPES: Final = "select repo || ':' || id, type from entity where repo || ':' || id in (select unnest($1::varchar[]))"
_PROPOSED: Final = "select repo || ':' || id from proposed where repo || ':' || id in (select unnest($1::varchar[]))"


class Reference(msgspec.Struct, frozen=True):
    """An edge of which an end is in another repository, and the branch that states it.

    ``is_proposed`` where nobody has accepted it there.
    """

    repo: str
    branch: str
    is_proposed: bool
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


class FleetImpact(msgspec.Struct, frozen=True):
    """The entities that a change affects in all repositories; ``rows`` are nearest first within each part."""

    found: Impact
    rows: list[dict[str, Any]]
    failures: list[UnreadRepository]


def find_elsewhere(place: Place, heads: Sequence[FleetHead], asker: Asker) -> KnownReferences:
    """Return which references of these branches lead to an entity, wherever in the place that is.

    What cannot be read is ``unread``: where it is asked itself, its own answer says why.
    """
    with opened_together(place, heads, asker, EDGES) as opened:
        found = _references(opened.connection.rows)
        schemas = {(one.repo, one.branch): one.schema for one in opened.branches}
    others, unread = _heads_of(place, {repo for one in found for repo in (one.from_repo, one.to_repo)}, heads)
    wanted = sorted({end for one in found for end in (one.start, one.end)})
    with opened_together(place, others, asker, ENTITIES) as opened:
        types = dict(opened.connection.rows(_TYPES, [wanted]))
        proposed = frozenset(row[0] for row in opened.connection.rows(_PROPOSED, [wanted]))
        unread |= {one.repo for one in opened.failures}
    edges = {
        _meant(one, types, schemas[one.repo, one.branch])
        for one in found
        if not one.is_proposed and {one.start, one.end} <= types.keys() - proposed
    }
    repos = frozenset(one.repo for one in (*heads, *others))
    return KnownReferences(frozenset(types), repos, unread, frozenset(edges), proposed)


def affected(
    place: Place, heads: Sequence[FleetHead], name: tuple[str, str], asker: Asker, *, depth: int = MAX_TRAVERSAL_DEPTH
) -> FleetImpact:
    """Return what a change of an entity affects, in at most so many steps. ``name`` is its repository and its id.

    Raises: ``NotFound`` where the place does not have it, with what may be meant; ``StorageError`` where its
        repository cannot be read.
    """
    repo, id_ = name
    if repo not in {one.repo for one in heads}:
        names = {one.repo for one in heads}
        raise NotFound(f"There is no repository {in_quotes(repo)} in the place.", hint=did_you_mean(repo, names))
    with opened_together(place, _one_branch_each(heads), asker, FACTS, is_graph=True) as opened:
        rows, failures = opened.connection.rows, opened.failures
        start = subject.find(rows, f"{repo}:{id_}", None)
        if start is None:
            raise _not_there(rows, name, failures, is_past=bool(asker.before))
        found = impact(rows, _schema_of(sorted(opened.branches, key=lambda one: one.repo != repo)), start, depth=depth)
        parts = [(part, one) for part in PARTS for one in getattr(found, part)]
        names_of = _names(rows, [one.subject.id for _, one in parts])
    return FleetImpact(
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
) -> tuple[Callable[[Answer], Answer], list[UnreadRepository]]:
    """Return what counts in an answer on coverage what other repositories state, or have; and what could not be read.

    ``heads`` are all branches whose edges count.
    """
    heads = _one_branch_each(heads)
    with opened_together(place, heads, asker, EDGES) as opened:
        found, failures = _references(opened.connection.rows), opened.failures
    showing = [one for one in found if not one.type or one.type in _SHOWING]
    if not showing:
        return (lambda answer: answer), failures
    repos = {repo for one in showing for repo in (one.from_repo, one.to_repo)}
    ends = {end for one in showing for end in (one.start, one.end)}
    stating = [one for one in heads if one.repo in repos]
    with opened_together(place, stating, asker, FACTS, is_graph=True) as opened:
        covered, more = coverage.read(opened.connection.rows, None), opened.failures
    whole = {one.id: one.as_json() for one in covered.requirements if one.id in ends}
    branches = {(one.repo, one.branch) for one in heads}

    def counted(answer: Answer) -> Answer:
        if (answer.repo, answer.branch) not in branches:
            return answer
        requirements = [_counted(answer.repo, row, whole) for row in answer.value["requirements"]]
        return msgspec.structs.replace(answer, value={**answer.value, "requirements": requirements})

    known = {(one.repo, one.branch) for one in failures}
    return counted, [*failures, *(one for one in more if (one.repo, one.branch) not in known)]


_REFERENCES: Final = f"select distinct {', '.join(Reference.__struct_fields__)} from across order by all"  # noqa: S608


def _references(rows: Rows) -> list[Reference]:
    """Return the edges across repositories that the branches of a database state."""
    return [Reference(*row) for row in rows(_REFERENCES, [])]


def _meant(one: Reference, types: Mapping[str, str], schema: Schema) -> tuple[str, str]:
    """Return where an edge comes from, and its type: a link without one is the edge that the types of its ends mean."""
    if one.type:
        return one.start, one.type
    type_, _, is_reversed = schema.bare_edge(types[one.start], types[one.end])
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
    found = find(place, FleetSelection(tuple(map(escape, rest))))
    return [*there, *found.heads], frozenset(one.repo for one in found.failures)


def _one_branch_each(heads: Iterable[FleetHead]) -> list[FleetHead]:
    found: dict[str, FleetHead] = {}
    for one in heads:
        if one.repo not in found or (one.is_default and not found[one.repo].is_default):
            found[one.repo] = one
    return [*found.values()]


def _schema_of(branches: Iterable[BranchParts]) -> Schema:
    """Return the edge types of all these branches; of several definitions of a name the first one counts."""
    edges = dict(CORE.edges)
    for schema in {id(one.schema): one.schema for one in branches}.values():
        edges |= {name: one for name, one in schema.edges.items() if name not in edges}
    return msgspec.structs.replace(CORE, edges=edges)


def _not_there(rows: Rows, name: tuple[str, str], failures: Sequence[UnreadRepository], *, is_past: bool) -> KBError:
    repo, id_ = name
    for one in failures:
        if one.repo == repo:
            return StorageError(f"{repo} could not be read: {one.message}", hint=one.hint)
    ids = [row[0] for row in rows("select id from entity where repo = $1 order by id limit $2", [repo, _MOST_GUESSED])]
    if is_past and not ids:
        return NotFound(f"{repo} had no entity at that time.", hint="Name a later time, or leave --at out.")
    verb, then = ("was", " at that time") if is_past else ("is", "")
    hint = did_you_mean(id_, ids) or "It has no entity. `kb fleet query` lists those of all repositories."
    return NotFound(f"There {verb} no {in_quotes(id_)} in {repo}{then}.", hint=hint)


def _names(rows: Rows, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the repository and the id there of each of these ids of the graph."""
    found = rows(
        "select id, repo, substr(id, length(repo) + 2) from node where id in (select unnest($1::varchar[]))", [[*ids]]
    )
    return {row[0]: (row[1], row[2]) for row in found}
