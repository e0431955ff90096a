"""Which entities may break other rules after a change: what changed, and what stands at the other end of an edge."""

from __future__ import annotations

from collections.abc import Collection

from kbcore.view.view import View

_NEAR = """
with changed as (select unnest($1::varchar[]) as id)
select id from changed
union select to_id from link where from_id in (select id from changed)
union select from_id from link where to_id in (select id from changed)
"""
_KNOWN = "select id from node where id in (select unnest(?::varchar[]))"


def affected_by(view: View, changed: Collection[str]) -> tuple[frozenset[str], list[str]]:
    """Return the ids whose violations may be others after these changed, and those of them that are entities now."""
    near = [row[0] for row in view.rows(_NEAR, [sorted(changed)])]
    return frozenset(near), [row[0] for row in view.rows(_KNOWN, [near])]
