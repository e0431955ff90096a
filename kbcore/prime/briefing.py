"""Reads a briefing: the state of a branch for one actor, and the context of what it is about to change."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.model.schema import TASK
from kbcore.model.statuses import CLOSED
from kbcore.query.context.facts import Fact, Tie
from kbcore.query.context.gathering import changed_after, of_type
from kbcore.share.state import find_state
from kbcore.store.workspace import Workspace
from kbcore.sync.context import Context, ContextRequest, find_context
from kbcore.view.view import View

_LAST: Final = """
select seq, written_at from record where file <> '' and actor = $1 and ($2 = '' or session <> $2)
order by seq desc limit 1
"""
_RECORDS: Final = """
select actor, count(*) from record where file <> '' and seq > ? and seq <= ? group by actor order by actor
"""
_DELETED: Final = """
select count(distinct h.id) from node_history h where h.ended > ? and h.type <> 'symbol'
  and not exists (select 1 from node n where n.id = h.id)
"""


class LastRecord(msgspec.Struct, frozen=True):
    """The last record of the actor in another session, and the records after it, counted by their actors."""

    seq: int
    at: str
    records: dict[str, int] = {}
    deleted: int = 0
    """Entities that were deleted since, but symbols of code."""


class Briefing(msgspec.Struct, frozen=True):
    """The state of a branch for one actor. ``last`` is None for an actor without a record on it.

    ``sharing`` are sentences on what is not shared and what is contested, as texts with commands. ``pending`` is the
    number of files that are not recorded, None where it is not known.
    """

    branch: str
    seq: int
    last: LastRecord | None
    changed: tuple[Fact, ...]
    tasks: tuple[Fact, ...]
    sharing: tuple[str, ...]
    context: Context
    pending: int | None = 0


def find_briefing(
    workspace: Workspace, view: View, branch: str, *, actor: str, session: str, asked: ContextRequest
) -> Briefing:
    """Return the briefing of an actor; records of ``session`` are of now, and not of its last session.

    Raises: as ``find_context`` and ``find_state``.
    """
    found = view.rows(_LAST, [actor, session])
    last = _since(view, *found[0]) if found else None
    state = find_state(workspace, branch, view)
    return Briefing(
        branch=branch,
        seq=view.recorded_seq,
        last=last,
        changed=changed_after(view.rows, last.seq) if last else (),
        tasks=of_type(view.rows, TASK, Tie(), CLOSED),
        sharing=tuple(state.sentences(with_actors=False)) if state else (),
        context=find_context(workspace, view, branch, asked),
    )


def _since(view: View, seq: int, at: str) -> LastRecord:
    [(deleted,)] = view.rows(_DELETED, [seq])
    return LastRecord(seq, at, dict(view.rows(_RECORDS, [seq, view.recorded_seq])), deleted)
