"""Phase 7: the confidence of a link that was not confirmed for long is multiplied by a factor for each period.

``decay_applied_at`` is the time up to which that was done, so that it never happens twice for the same period, however
often a cycle runs, and a link that is stated again begins again. What a file states, and what is suspect, is left:
a change would confirm it. So is what is contested, which is for people to decide.
"""

from __future__ import annotations

from typing import Final

from kbcore.errors.remedies import shell
from kbcore.kip.confidence import DECAYED, LAST_WRITTEN, SINCE
from kbcore.kip.sleep.memory import Memory, days_later, hours_between
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.kip.sleep.placing import FILES
from kbcore.model.concepts import DEFINING
from kbcore.model.values import normal_time
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.view.history import counted_times

_DIGITS: Final = 6
_OLD: Final = f"""select * from (
  select l.id, l.confidence, {SINCE} as since, len(l.files) = 0, l.created_seq
  from link l {LAST_WRITTEN}
  where l.is_resolved and l.contested = '{{}}' and l.type in (select unnest($3::varchar[])) and l.confidence > $4
    and l.from_id not in (select id from node where type in (select unnest($6::varchar[])))
) where since <= $5 or since > $7 order by id
"""  # noqa: S608 - constants


def plan(memory: Memory) -> PhaseResult:
    """Return the confidences that sink."""
    wanted = memory.settings
    step = PhaseResult(memory.work())
    period = memory.ago(wanted.decay_after_days)  # also for a text that is no time
    found = memory.ask(_OLD, memory.predicates, wanted.decay_floor, period, [*DEFINING], memory.now)
    settle = counted_times(memory.view.rows)
    timed = [(*row[:2], normal_time(row[2]) or period, *row[3:]) for row in found]
    # A time that is yet to come is that of a clock which was ahead.
    rows = [row for row in timed if (settle(row[4], row[2]) if row[2] > memory.now else row[2]) <= period]
    free = {row[0]: (row[1], min(row[2], period)) for row in rows if row[3]}
    step.leave(FILES, len(rows) - len(free))
    doubted = {one.id for one in suspect_edges(memory.view.rows, free)} if free else set[str]()
    step.leave(f"suspect, for {shell('check')}", len(doubted))
    taken = [key for key in free if key not in doubted]
    step.leave(LATER, len(taken) - len(taken[: step.room]))
    for draft in step.work.stored_links(taken[: step.room]):
        confidence, since = free[draft.id]
        periods = int(hours_between(since, memory.now) / 24 / wanted.decay_after_days)
        lower = max(wanted.decay_floor, round(confidence * wanted.decay_factor**periods, _DIGITS))
        applied = days_later(since, periods * wanted.decay_after_days)
        draft.edits.set_members({}, {"confidence": lower, DECAYED: applied})
        step.items += 1
    step.count("confidences lowered", step.items)
    return step
