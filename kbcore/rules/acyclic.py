"""Rule ``acyclic``: edges of a type that the schema calls acyclic form no cycle."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from kbcore.errors import LimitExceeded
from kbcore.errors.remedies import shell
from kbcore.rules.look_ups import Edge, Look, Side
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.text.wording import pluralize

_MAX_SHOWN: Final = 20
"""Entities of one cycle that a message names."""

_MOST_WALKED: Final = 5_000
"""Entities that a walk by look-ups may meet: more of them are left to a check."""
_MOST_STEPS: Final = 32
_OTHERS: Final = "(select id from main.node where not list_contains($3::varchar[], type))"
_RESOLVED: Final = f"""l.is_resolved and list_contains($1::varchar[], l.type)
  and (not list_contains($2::varchar[], l.type) or l.from_id in {_OTHERS} or l.to_id in {_OTHERS})"""
"""An edge type of KB's own (``$2``) says nothing of the memory: of two beliefs each may replace the other in time."""
_ROUNDS: Final = 3
"""Edges that no other one leads to, or on from, are in no cycle. So often they are left out in the database, each time
of those that are left: most edges of a branch are gone then."""
_INNER: Final = """, edge{next} as materialized (select * from edge{at}
  where (type, from_id) in (select (type, to_id) from edge{at})
  and (type, to_id) in (select (type, from_id) from edge{at}))"""
_ALL: Final = f"""
with edge0 as materialized (select distinct type, from_id, to_id from link l where {_RESOLVED})
{"".join(_INNER.format(at=at, next=at + 1) for at in range(_ROUNDS))}
select * from edge{_ROUNDS} order by all
"""  # noqa: S608 - no text from outside
_WALKED: Final = f"""
with recursive walked(type, from_id, to_id, steps) as (
  select type, from_id, to_id, 0 from link l where {_RESOLVED} and from_id in (select unnest($4::varchar[]))
  union
  select l.type, l.from_id, l.to_id, w.steps + 1
  from walked w join main.link l on l.type = w.type and l.from_id = w.to_id
  where {_RESOLVED} and w.steps < {_MOST_STEPS}
)
select distinct type, from_id, to_id, (select max(steps) from walked) from walked order by all
"""  # noqa: S608 - no text from outside
"""A cycle is walked again and again, and so counts as a path that is too long."""
_PATHS: Final = "select id, path from node where id in (select unnest($1::varchar[]))"

_Graph = Mapping[str, list[str]]


def _run(context: RuleContext) -> list[Finding]:
    names = [name for name, definition in context.schema.edges.items() if definition.acyclic]
    own = [name for name in names if not context.schema.edges[name].origin]
    asked = [names, own, sorted(context.schema.memory_types)]
    rows = _near(context, asked)
    found = context.rows(_ALL, asked) if rows is None else rows
    return _findings(found, lambda ids: dict[str, str](context.rows(_PATHS, [ids])))


def _findings(
    rows: Iterable[tuple[Any, ...]],
    paths_of: Callable[[list[str]], Mapping[str, str]],
    added: Mapping[str, Collection[tuple[str, str]]] | None = None,
) -> list[Finding]:
    """Return the cycles among these edges; with ``added``, by type, those alone that contain one of these edges."""
    graphs: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    found: list[tuple[str, list[str], frozenset[str]]] = []
    for edge, from_id, to_id in rows:
        if from_id == to_id:
            found.append((edge, [from_id], frozenset({from_id})))
        else:
            graphs[edge][from_id].append(to_id)
    for edge, graph in graphs.items():
        found += [(edge, shortest_cycle(graph, group), group) for group in components(graph)]
    if added is not None:
        # An edge is in a cycle of a group if both ends are in it; one from a node to itself is a cycle of its own.
        found = [
            (edge, cycle, group)
            for edge, cycle, group in found
            if any((begin != end or len(group) == 1) and group >= {begin, end} for begin, end in added[edge])
        ]
    paths = paths_of([cycle[0] for _, cycle, _ in found]) if found else {}
    return [_finding(edge, cycle, group, paths.get(cycle[0]) or "") for edge, cycle, group in found]


def _near(context: RuleContext, asked: list[list[str]]) -> list[tuple[Any, ...]] | None:
    """Return the edges on the paths from the given ids, among which is every cycle through one of them.

    None where all are wanted, or where some way is so long that it is quicker to read all.
    """
    if context.ids is None:
        return None
    rows = context.near(_WALKED, [*asked, sorted(context.ids)])
    return None if rows and rows[0][-1] >= _MOST_STEPS else [row[:-1] for row in rows]


def _look(look: Look) -> list[Finding]:
    """Look at the cycles with an edge that became resolved: no other edge can close one.

    Before the change, where none of these edges is, all cycles that their ends lead to: such a one may remain.
    """
    added: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    ids: list[str] = []
    for change in look.changes.links:
        link, before = change.after, change.before
        if link is None or not link.is_resolved or (before is not None and before.is_resolved):
            continue
        definition = look.schema.edges.get(link.type)
        if definition is not None and definition.acyclic:
            added[link.type].append((link.from_id, link.to_id))
            ids.append(link.id)
    is_after = any(edge.is_resolved for edge in look.side.links(ids).values()) if ids else False
    rows = [row for edge, ends in added.items() for row in _circling(look, edge, ends, is_after=is_after)]
    return _findings(
        rows,
        lambda ids: {id_: node.path for id_, node in look.side.nodes(ids).items()},
        added if is_after else None,
    )


def _circling(look: Look, edge: str, ends: list[tuple[str, str]], *, is_after: bool) -> list[tuple[str, str, str]]:
    """Return the edges of a type that lead on from these ends; after a change, where they may be a part of a circle."""
    if is_after and not any(_meet(look.side, edge, to_id, from_id) for from_id, to_id in ends):
        return []
    found: dict[str, Edge] = {}
    asked, frontier = set[str](), {end for pair in ends for end in pair}
    while frontier:
        reached = [one for one in look.side.out_of(frontier, edge) if one.is_resolved]
        found |= {one.id: one for one in reached}
        _check_length(found)
        asked |= frontier
        frontier = {one.to_id for one in reached} - asked
    if not look.schema.edges[edge].origin:
        ids = {end for one in found.values() for end in (one.from_id, one.to_id)}
        memory = {id_ for id_, node in look.side.nodes(ids).items() if node.type in look.schema.memory_types}
        known = memory | (ids - look.side.nodes(ids).keys())
        found = {key: one for key, one in found.items() if not {one.from_id, one.to_id} <= known}
    return [(edge, one.from_id, one.to_id) for one in found.values()]


def _meet(side: Side, edge: str, start: str, end: str) -> bool:
    """Return whether one may come from ``start`` to ``end`` by edges of a type; walked from both, the shorter first."""
    if start == end:
        return True
    ahead, back = {start}, {end}
    ahead_edge, back_edge = {start}, {end}
    while ahead_edge and back_edge:
        if len(ahead_edge) < len(back_edge):
            ahead_edge = {one.to_id for one in side.out_of(ahead_edge, edge) if one.is_resolved} - ahead
            ahead |= ahead_edge
        else:
            back_edge = {one.from_id for one in side.into(back_edge, edge) if one.is_resolved} - back
            back |= back_edge
        if ahead & back:
            return True
        _check_length(ahead | back)
    return False


def _check_length(walked: Collection[str]) -> None:
    if len(walked) > _MOST_WALKED:
        raise LimitExceeded(
            f"More than {_MOST_WALKED:,} entities are on the paths from here; "
            f"{shell('check', '--rule', 'acyclic')} reads them."
        )


def _finding(edge: str, cycle: list[str], group: frozenset[str], path: str) -> Finding:
    shown = [*cycle, cycle[0]]
    if len(shown) > _MAX_SHOWN:
        shown = [*shown[: _MAX_SHOWN - 2], f"({len(shown) - _MAX_SHOWN + 1} more)", shown[-1]]
    others = len(group) - len(cycle)
    are = "is" if others == 1 else "are"
    more = (
        f" It shares entities with further cycles; {pluralize(others, 'more entity')} {are} on them." if others else ""
    )
    hint = (
        f"Remove one of these {edge} edges. If cycles are allowed, write `acyclic: false` below the edge "
        f"`{edge}` in a file of .kb/schema/."
    )
    message = f"{edge} forms a cycle: {' → '.join(shown)}.{more}"
    return Finding(cycle[0], message, hint, path, group, values=(edge, *cycle[1:_MAX_SHOWN]))


def _from_the_lowest(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a cycle, the first entity followed by the edge type and the others, from its lowest id on.

    One that has so many entities that not all are among the values stays as it is; so does what is no cycle.
    """
    first, *rest = parts
    if not rest or len(parts) > _MAX_SHOWN:
        return parts
    edge, *others = rest
    cycle = [first, *others]
    lowest = cycle.index(min(cycle))
    first, *others = cycle[lowest:] + cycle[:lowest]
    return first, edge, *others


def components(graph: _Graph) -> list[frozenset[str]]:
    """Return the groups of two or more nodes that all reach each other; no two groups share a node.

    Linear in nodes and edges: Tarjan's strongly connected components (1972), with a stack of its own instead
    of recursion.
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    groups: list[frozenset[str]] = []
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        order[root] = lowest[root] = len(order)
        path.append(root)
        on_path.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    groups += _cut(path, on_path, node)
            elif target not in order:
                order[target] = lowest[target] = len(order)
                path.append(target)
                on_path.add(target)
                work.append((target, iter(graph.get(target, ()))))
            elif target in on_path:
                lowest[node] = min(lowest[node], order[target])
    return groups


def _cut(path: list[str], on_path: set[str], node: str) -> Iterable[frozenset[str]]:
    """Take the nodes from ``node`` on off the path; two or more of them are a group."""
    group = set()
    while True:
        last = path.pop()
        on_path.discard(last)
        group.add(last)
        if last == node:
            return [frozenset(group)] if len(group) > 1 else []


def shortest_cycle(graph: _Graph, group: frozenset[str]) -> list[str]:
    """Return the shortest cycle through the first node of a group, from that node on."""
    start = min(group)
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in sorted(set(graph[node]) & group):
            if target == start:
                cycle = [node]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if target not in came_from:
                came_from[target] = node
                queue.append(target)
    raise ValueError("the nodes do not reach each other")


RULE: Final = Rule(
    "acyclic",
    "error",
    "Edges of a type that the schema calls acyclic (depends_on, supersedes) form no cycle. Of KB's own edge types, "
    "those inside the memory of agents are left out.",
    _run,
    example="depends_on forms a cycle: REQ-1 → REQ-2 → REQ-1.",
    remedy="Remove one of the edges of the cycle.",
    look=_look,
    sort_ids=_from_the_lowest,
)
