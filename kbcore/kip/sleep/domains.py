"""Phase 8: domains that nothing belongs to are put away; those that are too small or too large are for judgement."""

from __future__ import annotations

from typing import Final

from kbcore.kip.confidence import created_at
from kbcore.kip.sleep.assess import DOMAINS
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.kip.sleep.placing import FILES
from kbcore.kip.sleep.writing import put_away

KEPT: Final = "coalesce(n.attributes ->> '$.keep', '') = 'true'"
"""Somebody said that the domain stays as it is."""
_EMPTY: Final = f"""select n.id, len(n.files) = 0, {created_at("n")} {DOMAINS}
where members = 0 and not {KEPT} order by n.id
"""


def plan(memory: Memory) -> PhaseResult:
    """Return the empty domains that are put away; a new one is given time to be filled."""
    step = PhaseResult(memory.work())
    rows = memory.ask(_EMPTY)
    free = [(key, made) for key, is_free, made in rows if is_free]
    step.leave(FILES, len(rows) - len(free))
    before = memory.ago(memory.settings.stale_event_days)
    old = [key for key, made in free if made < before]
    step.leave("empty domains too new to archive", len(free) - len(old))
    taken = old[: step.room // 3]
    step.leave(LATER, len(old) - len(taken))
    step.work.look_up(taken)
    drafts = [draft for key in taken if (draft := step.work.node(key, 0))]
    step.count("empty domains archived", put_away(step, memory, drafts))
    return step
