"""Entities that a change affects, through every type of edge, as far as the schema propagates effects.

An effect goes from one end of an edge to the other as ``EdgeType.impact`` says, and on from there, with two
exceptions. It ends after an edge that needs a kind, whose meaning only its author knows: what that leads to is
related. And over an edge that works both ways between different types it does not come back to a sibling of where it
came from: a changed symbol affects the requirement that it implements, but not the others that implement it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.model.proposals import of_link
from kbcore.model.schema import EdgeType, Schema
from kbcore.model.verdict import REQUIREMENT, TEST, Verdict
from kbcore.query import sql
from kbcore.query.owners import read_owners
from kbcore.query.subject import COLUMNS, WIDTH, Subject, subject_of
from kbcore.query.verdicts import FailingTest, failing_tests, verdicts_of
from kbcore.query.walk import Path, PathStep, walked_json
from kbcore.text.code_owners import NONE, CodeOwners
from kbcore.view.tables import Rows

DECISION: Final = "adr"
PARTS: Final = ("direct", "transitive", "tests", "related", "decisions")
"""The lists of an impact that hold entities."""
FIELDS: Final = ("id", "type", "title", "status", "owner", "depth", "path", "verdict")
"""The members of an entity in these lists."""


class Affected(msgspec.Struct, frozen=True):
    """An entity, and one shortest way on which the effect comes to it; of a decision, from it backwards."""

    subject: Subject
    path: Path

    def as_json(self) -> dict[str, Any]:
        """Return entity and way as JSON."""
        return {**self.subject.as_json(), **walked_json(self.path)}


class Person(msgspec.Struct, frozen=True):
    """An owner of something that is changed or affected, with the ids of that.

    ``given_by`` are the lines of ``CODEOWNERS`` that give it for some of these, as ``file:line``.
    """

    owner: str
    ids: tuple[str, ...]
    given_by: tuple[str, ...] = ()

    def as_json(self, limit: int) -> dict[str, Any]:
        """Return the owner and the first ids as JSON."""
        shown: dict[str, Any] = {"owner": self.owner, "entities": len(self.ids), "ids": list(self.ids[:limit])}
        return shown | ({"given_by": list(self.given_by[:limit])} if self.given_by else {})


class Impact(msgspec.Struct, frozen=True):
    """The effects of a change of ``start``; every list is whole, nearest first, then by id.

    ``direct`` and ``transitive`` have what is affected in one step and in more, without tests: those are ``tests`` to
    run. ``related`` is tied to the start or to something affected by an edge of which only its kind says what it means.
    ``decisions`` bind the start or something affected. With ``goes_on`` there is more beyond the depth or the limit.
    """

    start: Subject
    direct: list[Affected]
    transitive: list[Affected]
    tests: list[Affected]
    related: list[Affected]
    decisions: list[Affected]
    people: list[Person]
    goes_on: bool
    path: str = ""
    """The file or line whose entities are changed; ``starts`` are these."""
    starts: tuple[Subject, ...] = ()
    verdicts: dict[str, Verdict] = {}
    """The last verdicts of ``tests``, by their ids, as far as there are any."""
    failing: dict[str, tuple[FailingTest, ...]] = {}
    """By the ids of requirements that are changed or affected: the tests that verify them and failed last."""


class _Edge(msgspec.Struct, frozen=True):
    """An edge as a level of the walk meets it."""

    near: str
    step: PathStep
    far: Subject
    is_binding: bool


def impact_json(
    found: Impact, *, depth: int, limit: int, fields: Sequence[str] = (), type_: str = ""
) -> dict[str, Any]:
    """Return the impact as JSON: at most ``limit`` of each part, and how many there are.

    Where they are given, only the ``fields`` of what is affected are shown beside its id, and only what is of
    ``type_``; people are shown where ``owner`` is a field.
    """
    parts = {name: [one for one in getattr(found, name) if type_ in {"", one.subject.type}] for name in PARTS}
    people = [one.as_json(limit) for one in found.people if not fields or "owner" in fields]
    return {
        **(
            {"path": found.path, "entities": [one.as_json() for one in found.starts[:limit]]}
            if found.path
            else {"entity": found.start.as_json()}
        ),
        "depth": depth,
        **{name: [_shown(found, one, fields) for one in part[:limit]] for name, part in parts.items()},
        "failing": [
            {"id": id_, "tests": [one.as_json() for one in tests[:limit]]}
            for id_, tests in [*found.failing.items()][:limit]
        ],
        "people": people[:limit],
        "totals": {
            **{name: len(part) for name, part in parts.items()},
            "failing": len(found.failing),
            "people": len(people),
        },
        "goes_on": found.goes_on,
    }


def _shown(found: Impact, one: Affected, fields: Sequence[str]) -> dict[str, Any]:
    verdict = found.verdicts.get(one.subject.id)
    shown = one.as_json() | ({"verdict": verdict.as_json()} if verdict else {})
    return {name: value for name, value in shown.items() if not fields or name in {"id", *fields}}


def impact(
    rows: Rows,
    schema: Schema,
    start: Subject,
    *,
    at: int | None = None,
    depth: int = limits.MAX_TRAVERSAL_DEPTH,
    of_files: CodeOwners = NONE,
) -> Impact:
    """Return what a change of an entity affects as of a seq (None: the head), in at most so many steps.

    ``of_files`` are the owners of files, for what has none of its own. One statement a step; what is read is what the
    affected entities are tied to.
    """
    found = _walked(_Walk(schema, start, [start]), rows, schema, at, depth).answer()
    return _with_people(_with_verdicts(found, rows, at), rows, at, of_files)


def _walked(walk: _Walk, rows: Rows, schema: Schema, at: int | None, depth: int) -> _Walk:
    for step in range(depth + 1):
        if not walk.frontier or walk.is_full:
            break
        edges = _edges(rows, schema, at, sorted({id_ for id_, _ in walk.frontier}))
        walk.bind(edges)
        if step < depth:
            walk.advance(edges)
        else:
            walk.goes_on = walk.leads_on(edges)
    return walk


def impact_of_path(
    rows: Rows,
    schema: Schema,
    place: str,
    starts: Sequence[Subject],
    *,
    at: int | None = None,
    depth: int = limits.MAX_TRAVERSAL_DEPTH,
    of_files: CodeOwners = NONE,
) -> Impact:
    """Return what a change of a file affects: of all that is in it, as ``impact`` does of one entity."""
    whole = Subject(place, "file", "", "", "")
    walk = _walked(_Walk(schema, whole, starts), rows, schema, at, depth)
    found = msgspec.structs.replace(walk.answer(), path=place, starts=tuple(starts))
    return _with_people(_with_verdicts(found, rows, at), rows, at, of_files)


def _with_verdicts(found: Impact, rows: Rows, at: int | None) -> Impact:
    """Return an impact with what the last runs of tests say."""
    affected = [one.subject for one in (*found.direct, *found.transitive)]
    requirements = [one.id for one in (found.start, *found.starts, *affected) if one.type == REQUIREMENT]
    return msgspec.structs.replace(
        found,
        verdicts=verdicts_of(rows, at, [one.subject.id for one in found.tests]),
        failing=failing_tests(rows, at, requirements) if requirements else {},
    )


def _with_people(found: Impact, rows: Rows, at: int | None, of_files: CodeOwners) -> Impact:
    """Return an impact with the owners of what is changed or affected."""
    starts = found.starts or (found.start,)
    affected = _ordered((*found.direct, *found.transitive, *found.tests))
    ids = [*(one.id for one in starts), *(one.subject.id for one in affected)]
    owned = read_owners(rows, at, ids, of_files)
    of_owner: dict[str, list[str]] = {}
    lines: dict[str, dict[str, None]] = {}
    for id_ in ids:
        for owner in owned[id_].owners if id_ in owned else ():
            of_owner.setdefault(owner, []).append(id_)
            lines.setdefault(owner, {}).update(dict.fromkeys(owned[id_].given_by))
    people = [Person(owner, tuple(ids), tuple(lines[owner])) for owner, ids in sorted(of_owner.items())]
    return msgspec.structs.replace(found, people=people)


def _edges(rows: Rows, schema: Schema, at: int | None, ids: Sequence[str]) -> list[_Edge]:
    """Return every edge on which an effect leaves these entities, and every one by which a decision binds them."""
    statement = sql.statement(at)
    left = f"(select unnest({statement.bind(list(ids))}::varchar[]))"
    affecting = {is_against: _carrying(schema, is_against=is_against, is_binding=False) for is_against in (False, True)}
    binding = {is_against: _carrying(schema, is_against=is_against, is_binding=True) for is_against in (False, True)}
    parts = []
    for is_against in (False, True):
        wanted = [f"e.type {statement.among(affecting[is_against])}"] if affecting[is_against] else []
        if binding[is_against]:
            wanted.append(f"(n.type = '{DECISION}' and e.type {statement.among(binding[is_against])})")
        if wanted:
            near, far = ("to_id", "from_id") if is_against else ("from_id", "to_id")
            parts.append(
                f"select {COLUMNS}, e.type, e.kind, e.from_id, e.to_id, {is_against}, {of_link('e')}, e.{near} "  # noqa: S608 - fixed names
                f"from {statement.link} e join {statement.node} n on n.id = e.{far} "
                f"where e.is_resolved and e.{near} in {left} and ({' or '.join(wanted)})"
            )
    found = []
    for row in rows(f"select * from ({' union all '.join(parts)}) order by all", statement.params) if parts else ():  # noqa: S608
        step, end = PathStep(*row[WIDTH : WIDTH + 6]), subject_of(row)
        if step.type in affecting[step.is_against]:
            found.append(_Edge(row[-1], step, end, is_binding=False))
        if step.type in binding[step.is_against] and end.type == DECISION:
            found.append(_Edge(row[-1], step, end, is_binding=True))
    return found


def _carrying(schema: Schema, *, is_against: bool, is_binding: bool) -> list[str]:
    """Return the edge types along which, or against which, an effect leaves; or comes, from what binds."""
    if is_binding:
        return [one.name for one in schema.edges.values() if _carries(one, not is_against) and not one.needs_kind]
    return [one.name for one in schema.edges.values() if _carries(one, is_against)]


def _carries(edge: EdgeType, is_against: bool) -> bool:
    """Return whether an effect goes along an edge, or against it."""
    return edge.impact in {"both", "from" if is_against else "to"}


_Arrival = tuple[str, bool] | None
"""The edge type over which an effect came and whether against it, where it may not go back over that type."""


class _Walk:
    """The effect so far: what it came to, on which way, and where it has just arrived."""

    def __init__(self, schema: Schema, start: Subject, starts: Sequence[Subject]) -> None:
        self._schema = schema
        self._start = start
        self._starts = {one.id: one for one in starts}
        self._paths: dict[str, Affected] = {one.id: Affected(one, ()) for one in starts}
        self._related: dict[str, Affected] = {}
        self._decisions: dict[str, Affected] = {}
        self._seen: dict[str, set[_Arrival]] = {one.id: {None} for one in starts}
        self.frontier: list[tuple[str, _Arrival]] = [(one.id, None) for one in starts]
        self.goes_on = False

    @property
    def is_full(self) -> bool:
        """Return whether more is affected than is looked at."""
        return len(self._paths) > limits.MAX_AFFECTED

    def advance(self, edges: Sequence[_Edge]) -> None:
        """Take one step on."""
        leaving: dict[str, list[_Edge]] = {}
        for edge in edges:
            if not edge.is_binding:
                leaving.setdefault(edge.near, []).append(edge)
        here, self.frontier = self.frontier, []
        for id_, arrival in here:
            for edge in leaving.get(id_, ()):
                if _may_leave(edge, arrival):
                    self._take(edge)
        self.frontier.sort(key=lambda one: (one[0], one[1] or ("", False)))

    def _take(self, edge: _Edge) -> None:
        definition = self._schema.edges[edge.step.type]
        found = Affected(edge.far, (*self._paths[edge.near].path, edge.step))
        if definition.needs_kind:
            self._related.setdefault(edge.far.id, found)
            return
        arrival = (edge.step.type, edge.step.is_against) if _has_siblings(definition) else None
        seen = self._seen.setdefault(edge.far.id, set())
        if None not in seen and arrival not in seen:
            seen.add(arrival)
            self._paths.setdefault(edge.far.id, found)
            self.frontier.append((edge.far.id, arrival))

    def bind(self, edges: Iterable[_Edge]) -> None:
        """Take in the decisions that bind what is affected."""
        for edge in edges:
            if edge.is_binding:
                path = (*self._paths[edge.near].path, edge.step)
                self._decisions.setdefault(edge.far.id, Affected(edge.far, path))

    def leads_on(self, edges: Iterable[_Edge]) -> bool:
        """Return whether a further step would come to something new."""
        arrivals: dict[str, list[_Arrival]] = {}
        for id_, arrival in self.frontier:
            arrivals.setdefault(id_, []).append(arrival)
        return any(
            not edge.is_binding
            and edge.far.id not in self._paths
            and edge.far.id not in self._related
            and any(_may_leave(edge, arrival) for arrival in arrivals.get(edge.near, ()))
            for edge in edges
        )

    def answer(self) -> Impact:
        """Return all of it, in groups."""
        affected = _ordered(one for id_, one in self._paths.items() if id_ not in self._starts)
        others = [one for one in affected if one.subject.type != TEST]
        related = _ordered(one for id_, one in self._related.items() if id_ not in self._paths)
        decisions = _ordered(one for id_, one in self._decisions.items() if id_ not in self._paths)
        return Impact(
            self._start,
            [one for one in others if len(one.path) == 1],
            [one for one in others if len(one.path) > 1],
            [one for one in affected if one.subject.type == TEST],
            related,
            decisions,
            [],
            self.goes_on or self.is_full,
        )


def _may_leave(edge: _Edge, arrival: _Arrival) -> bool:
    return arrival is None or (edge.step.type, not edge.step.is_against) != arrival


def _has_siblings(edge: EdgeType) -> bool:
    return edge.impact == "both" and not {*edge.from_types} & {*edge.to_types}


def _ordered(found: Iterable[Affected]) -> list[Affected]:
    return sorted(found, key=lambda one: (len(one.path), one.subject.id))
