"""Activity on a branch: who wrote, through what, how much, and when."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.view.view import View

MAX_WRITERS: Final = 500
_WRITERS: Final = f"""
select actor, source, count(*), min(written_at), max(written_at), max(seq),
  sum(created)::bigint, sum(updated)::bigint, sum(deleted)::bigint, sum(edges)::bigint
from record where file <> '' and seq <= ? group by actor, source order by max(seq) desc limit {MAX_WRITERS}
"""  # noqa: S608 - no text from outside


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


def read_activity(view: View, up_to: int) -> list[Activity]:
    """Return what each writer recorded up to a seq, the last one to write first; at most ``MAX_WRITERS``."""
    return [Activity(*row) for row in view.rows(_WRITERS, [up_to])]
