"""Entities that may break other rules after a change: those that changed, and those that an edge ties to them."""

from __future__ import annotations

from typing import Final

from kbcore.view.database import among
from kbcore.view.view import View

_CHANGED: Final = """
with file as (select path from source where version > $1 union select path from source_history where ended > $1)
select id, true as is_entity from node where version > $1
union select id, true from node_history where ended > $1
union select unnest([from_id, to_id]), false from link where version > $1
union select unnest([from_id, to_id]), false from link_history where ended > $1
union select path, false from file
union select min(id), true from node where path in (from file) group by path having count(*) = 1
"""
"""A document of one entity speaks of it also where no field changed: edges to it may be suspect since, or hold now."""


def affected_since(view: View, seq: int) -> tuple[frozenset[str], list[str]]:
    """Return what may have other violations than at a seq, and those of it that are entities or files now.

    These are the ids of what changed, with what it is linked to, the ends of edges that changed, and paths of files.
    """
    changed = view.rows(_CHANGED, [seq])
    near = {key for key, _ in changed}
    if entities := [key for key, is_entity in changed if is_entity]:
        these, params = among(entities)
        ends = f"select to_id from link where from_id {these} union select from_id from link where to_id {these}"  # noqa: S608 - parameters
        near.update(row[0] for row in view.rows(ends, [*params, *params]))
    wanted = sorted(near)
    there = {*(node.id for node in view.nodes(wanted)), *(source.path for source in view.sources(wanted))}
    return frozenset(near), sorted(there)
