"""The time from which the confidence of a link counts: when it was stated last, or up to when a sleep cycle lowered it.

A cycle that writes a link confirms nothing, nor does a merge that leads it elsewhere: what it says of itself holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kbcore.model.record import SLEEP

DECAYED: Final = "decay_applied_at"
_DONE: Final = f"l.metadata ->> '$.{DECAYED}'"
LAST_WRITTEN: Final = "left join record r on r.seq = l.version"


def created_at(alias: str) -> str:
    """Return SQL for when an element was made: as its metadata say, else when KB wrote it down."""
    said = f"{alias}.metadata ->> '$.created_at'"
    return f"case when try_cast({said} as timestamptz) is not null then {said} else {alias}.created_at end"


SINCE: Final = f"""case
  when starts_with(r.source, '{SLEEP}') or l.version = l.created_seq
    then greatest({created_at("l")}, case when try_cast({_DONE} as timestamptz) is not null then {_DONE} end)
  else greatest({created_at("l")}, r.written_at) end"""
"""Of a link ``l`` with ``LAST_WRITTEN``. One that is new may be an older one that a merge or a capsule brought here."""


def confirmed_at(rows: Callable[[str, list[Any]], list[Any]], ids: Iterable[str]) -> dict[str, str]:
    """Return from when the confidence of each of these links counts, by its id; ``rows`` asks the view."""
    wanted = "where l.id in (select unnest($1::varchar[]))"
    return dict(rows(f"select l.id, {SINCE} from link l {LAST_WRITTEN} {wanted}", [sorted(ids)]))  # noqa: S608
