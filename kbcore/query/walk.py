"""The walk of a query along edges: what it reaches, how far away that is, and one shortest path to it. Pure.

An entity is met once, with the fewest steps. Of several shortest paths the one is shown whose last step begins at the
first id, and so on backwards: the same graph always shows the same path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import msgspec

from kbcore.model.proposals import OF_LINK
from kbcore.query.request import Query
from kbcore.view.tables import Rows

AGAINST = "^"
"""Before an edge type: the other way along it."""


class WalkStatement(Protocol):
    """A statement in the making: its parameters, and the tables as of its seq."""

    params: list[Any]
    node: str
    link: str

    def bind(self, value: Any) -> str:
        """Return the placeholder of a value."""

    def among(self, values: Collection[str]) -> str:
        """Return ``in (…)``."""


class WalkDirections(msgspec.Struct, frozen=True):
    """The edge types that a walk goes along, and those it goes against; None is every type."""

    along: tuple[str, ...] | None = None
    against: tuple[str, ...] | None = ()


class PathStep(msgspec.Struct, frozen=True):
    """One edge of a path as it is, and whether the path goes against it."""

    type: str
    kind: str
    from_id: str
    to_id: str
    is_against: bool
    is_proposed: bool = False
    """Nobody has accepted the edge."""

    def as_json(self) -> dict[str, Any]:
        """Return the edge as JSON names it."""
        kind = {"kind": self.kind} if self.kind else {}
        mark = {"proposed": True} if self.is_proposed else {}
        return {"from": self.from_id, "type": self.type, **kind, "to": self.to_id, **mark}


Path = tuple[PathStep, ...]
"""The steps from the start of a walk to what it reached; never empty."""


def walked_json(path: Path) -> dict[str, Any]:
    """Return what an answer in JSON says of an entity that a walk reached."""
    return {"depth": len(path), "path": [step.as_json() for step in path]}


def path_text(path: Sequence[PathStep]) -> str:
    """Return a path in one line: ``REQ-2 → depends_on → REQ-1 ← implements ← SYM-1``."""
    words = [path[0].to_id if path[0].is_against else path[0].from_id] if path else []
    for step in path:
        name = f"{step.type}:{step.kind}" if step.kind else step.type
        name = f"{name} (proposed)" if step.is_proposed else name
        words.append(f"← {name} ← {step.from_id}" if step.is_against else f"→ {name} → {step.to_id}")
    return " ".join(words)


def ways_of(follow: Sequence[str], *, is_reverse: bool) -> WalkDirections:
    """Return the ways that ``follow`` names: ``^implements`` goes against the edge; ``is_reverse`` turns every way."""
    along = tuple(name for name in follow if not name.startswith(AGAINST)) if follow else None
    against = tuple(name.removeprefix(AGAINST) for name in follow if name.startswith(AGAINST))
    return WalkDirections(against, along) if is_reverse else WalkDirections(along, against)


def reach(
    statement: WalkStatement, start: str, ways: WalkDirections, depth: int, *, with_last_step: bool = False
) -> str:
    """Return the beginning of a statement: ``reach`` holds every id that the walk meets, once, and its ``steps``.

    With ``with_last_step`` it also holds the ``last`` step to each. The start is in it, with no steps.
    """
    begin, most = statement.bind(start), statement.bind(depth)
    last = ("struct(prev varchar, type varchar, kind varchar, is_against boolean, is_new boolean)", "e.edge")
    kept = (f", null::{last[0]}", f", min({last[1]})", ", last") if with_last_step else ("", "", "")
    return (
        f"with recursive reach(id, steps{kept[2]}) using key (id) as (select {begin}::varchar, 0{kept[0]} union "  # noqa: S608 - fixed names
        f"select e.far, min(r.steps) + 1{kept[1]} from reach r join ({_edges(statement, ways)}) e on e.near = r.id "
        f"where r.steps < {most} and not exists (select 1 from recurring.reach seen where seen.id = e.far) "
        "group by e.far) "
    )


def _edges(statement: WalkStatement, ways: WalkDirections) -> str:
    """Return SQL for every edge that may be walked, from its near end to its far one."""
    parts = []
    for types, near, far, is_against in (
        (ways.along, "from_id", "to_id", "false"),
        (ways.against, "to_id", "from_id", "true"),
    ):
        if types != ():
            among = f" and type {statement.among(types)}" if types else ""
            edge = f"{{'prev': {near}, 'type': type, 'kind': kind, 'is_against': {is_against}, 'is_new': {OF_LINK}}}"
            parts.append(
                f"select {near} as near, {far} as far, {edge} as edge "  # noqa: S608 - fixed names
                f"from {statement.link} where is_resolved{among}"
            )
    return " union all ".join(parts)


def beginning(statement: WalkStatement, query: Query, *, with_last_step: bool = False) -> str:
    """Return the beginning of a statement that answers a query: its walk, "" where it asks for none."""
    if not query.from_id:
        return ""
    ways = ways_of(query.follow, is_reverse=query.reverse)
    return reach(statement, query.from_id, ways, query.depth, with_last_step=with_last_step)


def trails(statement: WalkStatement, query: Query, ids: Sequence[str]) -> str:
    """Return the statement for the last step to each of these ids, and to everything on the paths to them."""
    return (
        f"{beginning(statement, query, with_last_step=True)}"  # noqa: S608 - fixed names
        f", trail(id) as (select unnest({statement.bind(list(ids))}::varchar[]) union "
        "select r.last.prev from trail join reach r using (id) where r.steps > 0) "
        "select id, last.prev, last.type, last.kind, last.is_against, last.is_new "
        "from trail join reach using (id) where steps > 0"
    )


def read_paths(rows: Rows, sql: str, params: Sequence[Any], ids: Sequence[str]) -> dict[str, Path]:
    """Return the path to each of these ids, from the rows of ``trails``."""
    last = {
        id_: PathStep(type_, kind, id_ if is_against else prev, prev if is_against else id_, is_against, is_new)
        for id_, prev, type_, kind, is_against, is_new in rows(sql, params)
    }
    return {id_: _path_to(last, id_) for id_ in ids if id_ in last}


def _path_to(last: dict[str, PathStep], id_: str) -> Path:
    steps = []
    while id_ in last:
        steps.append(last[id_])
        id_ = last[id_].to_id if last[id_].is_against else last[id_].from_id
    return tuple(reversed(steps))
