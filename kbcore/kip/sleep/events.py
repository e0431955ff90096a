"""Phase 5: old events that were not consolidated are marked; to consolidate them is a decision for an agent."""

from __future__ import annotations

from typing import Final

from kbcore.kip.sleep.assess import STALE
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.kip.sleep.placing import FILES
from kbcore.kip.sleep.writing import edit

_UNMARKED: Final = f"select n.id, len(n.files) = 0 {STALE} and state <> 'pending' order by n.id"


def plan(memory: Memory) -> PhaseResult:
    """Return the marks that old events get."""
    step = PhaseResult(memory.work())
    rows = memory.ask(_UNMARKED, memory.ago(memory.settings.stale_event_days))
    free = [key for key, is_free in rows if is_free]
    step.leave(FILES, len(rows) - len(free))
    step.leave(LATER, len(free) - len(free[: step.room]))
    free = free[: step.room]
    step.work.look_up(free)
    for key in free:
        event = step.work.node(key, 0)
        if event is not None:
            edit(step, event, {"consolidation_status": "pending"})
    step.count("events marked pending", len(free))
    return step
