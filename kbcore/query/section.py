"""A part of the graph to look at: the neighbourhood of an entity, or the whole graph as far as the limit goes.

What is left out is counted. The same graph always gives the same part, in the same order: the neighbourhood nearest
first, the whole graph from those with the most edges on, and then by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kbcore import limits
from kbcore.model.proposals import OF_LINK
from kbcore.query import sql
from kbcore.query.subject import COLUMNS, Subject, subject_of
from kbcore.query.walk import WalkDirections, WalkStatement, reach
from kbcore.view.tables import Rows


class Arrow(msgspec.Struct, frozen=True):
    """An edge between two entities of a section."""

    type: str
    kind: str
    from_id: str
    to_id: str
    is_proposed: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the edge as JSON names it."""
        shown: dict[str, Any] = {"type": self.type, "from": self.from_id, "to": self.to_id}
        return shown | ({"kind": self.kind} if self.kind else {}) | ({"proposed": True} if self.is_proposed else {})


class Section(msgspec.Struct, frozen=True):
    """Entities and the resolved edges between them. ``entities`` and ``edges`` count those without the limits."""

    nodes: list[Subject]
    arrows: list[Arrow]
    entities: int
    edges: int

    @property
    def is_cut(self) -> bool:
        """Return whether something was left out for a limit."""
        return self.entities > len(self.nodes) or self.edges > len(self.arrows)


class SectionRequest(msgspec.Struct, frozen=True):
    """The section: around ``start`` ("" for the whole graph) in at most ``depth`` steps either way along edges.

    ``types`` are the entity types to show, ``follow`` the edge types to walk and to show; none means all. The start is
    always shown. A walk also passes through entities of other types.
    """

    start: str = ""
    depth: int = 1
    types: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()
    limit: int = limits.DEFAULT_SECTION_ROWS


def section(rows: Rows, at: int | None, wanted: SectionRequest) -> Section:
    """Return a part of the graph as of a seq (None: the head), in two statements."""
    nodes, entities = _nodes(rows, at, wanted)
    arrows, edges = _arrows(rows, at, wanted, [node.id for node in nodes])
    return Section(nodes, arrows, entities, edges)


def _nodes(rows: Rows, at: int | None, wanted: SectionRequest) -> tuple[list[Subject], int]:
    statement = sql.statement(at)
    among = f" and {_typed(statement, wanted)}" if wanted.types else ""
    if wanted.start:
        follow = wanted.follow or None
        begin = reach(statement, wanted.start, WalkDirections(follow, follow), wanted.depth)
        source, place = f"reach r join {statement.node} n using (id)", "r.steps"
    else:
        along = f" and type {statement.among(wanted.follow)}" if wanted.follow else ""
        ends = (f"select {end} as id from {statement.link} where is_resolved{along}" for end in ("from_id", "to_id"))  # noqa: S608 - fixed names
        begin = f"with degree as (select id, count(*) as edges from ({' union all '.join(ends)}) group by id) "  # noqa: S608 - fixed names
        source, place = f"{statement.node} n left join degree d using (id)", "coalesce(d.edges, 0) desc"
    found = rows(
        f"{begin}select {COLUMNS}, count(*) over () from {source} where true{among} "  # noqa: S608 - fixed names
        f"order by {place}, n.id limit {statement.bind(wanted.limit)}",
        statement.params,
    )
    return [subject_of(row) for row in found], found[0][-1] if found else 0


def _typed(statement: WalkStatement, wanted: SectionRequest) -> str:
    is_start = f" or n.id = {statement.bind(wanted.start)}" if wanted.start else ""
    return f"(n.type {statement.among(wanted.types)}{is_start})"


def _arrows(rows: Rows, at: int | None, wanted: SectionRequest, ids: Sequence[str]) -> tuple[list[Arrow], int]:
    statement = sql.statement(at)
    shown = f"(select unnest({statement.bind(list(ids))}::varchar[]))"
    along = f" and type {statement.among(wanted.follow)}" if wanted.follow else ""
    found = rows(
        f"select type, kind, from_id, to_id, {OF_LINK}, count(*) over () from {statement.link} "  # noqa: S608 - fixed names
        f"where is_resolved{along} and from_id in {shown} and to_id in {shown} order by from_id, type, to_id, kind "
        f"limit {statement.bind(limits.MAX_DRAWN_EDGES)}",
        statement.params,
    )
    return [Arrow(*row[:5]) for row in found], found[0][-1] if found else 0
