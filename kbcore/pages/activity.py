"""Activity on a branch: who wrote, through what, how much, and when."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.view.view import View

_WRITERS: Final = """
select actor, source, count(*), min(written_at), max(written_at), max(seq),
  sum(created)::bigint, sum(updated)::bigint, sum(deleted)::bigint, sum(edges)::bigint, count(*) over ()
from record where file <> '' and seq <= ? group by actor, source order by max(seq) desc limit ? offset ?
"""


class Activity(msgspec.Struct, frozen=True):
    """The records of one writer through one source, and the sums of what they changed."""

    actor: str
    source: str
    records: int
    first_at: str
    last_at: str
    last_seq: int
    created: int
    updated: int
    deleted: int
    edges: int


def read_activity(view: View, up_to: int, limit: int, offset: int = 0) -> tuple[list[Activity], int]:
    """Return what each writer recorded up to a seq, the last one to write first, and how many writers there are.

    ``limit`` of them are returned at most, from ``offset`` on; beyond the last one the number is 0.
    """
    found = view.rows(_WRITERS, [up_to, limit, offset])
    return [Activity(*row[:-1]) for row in found], found[0][-1] if found else 0
