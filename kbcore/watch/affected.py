"""Which entities may break other rules after a change: what changed, and what stands at the other end of an edge."""

from __future__ import annotations

from typing import Final

from kbcore.view.database import among
from kbcore.view.view import View

_CHANGED: Final = """
select id, true as is_entity from node where version > $1
union select id, true from node_history where ended > $1
union select unnest([from_id, to_id]), false from link where version > $1
union select unnest([from_id, to_id]), false from link_history where ended > $1
"""


def affected_since(view: View, seq: int) -> tuple[frozenset[str], list[str]]:
    """Return the ids whose violations may be others than at a seq, and those of them that are entities now.

    These are what changed, with what it is linked to, and the ends of edges that changed.
    """
    changed = view.rows(_CHANGED, [seq])
    near = {key for key, _ in changed}
    if entities := [key for key, is_entity in changed if is_entity]:
        these, params = among(entities)
        ends = f"select to_id from link where from_id {these} union select from_id from link where to_id {these}"  # noqa: S608 - parameters
        near.update(row[0] for row in view.rows(ends, [*params, *params]))
    return frozenset(near), [node.id for node in view.nodes(sorted(near))]
