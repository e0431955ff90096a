"""Phase 9: the cycle is written down: when it was, and what the records of all its phases changed.

The journal knows what was done since the cycle before, also where a process ended in the middle of it or a phase ran by
itself; the maintenance log sums that up.
"""

from __future__ import annotations

from typing import Any, Final

from kbcore import limits
from kbcore.kip.kml.drafts import distinct
from kbcore.kip.sleep.assess import assess
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import PhaseResult
from kbcore.kip.sleep.writing import edit
from kbcore.model.concepts import DEFINING, PERSON, SYSTEM, concept_id
from kbcore.model.graph import Node
from kbcore.model.record import SLEEP
from kbcore.store.planning.conflicts import contested_in

LAST: Final = "last_sleep_cycle"
LOG: Final = "maintenance_log"
NUMBER: Final = 9
"""The number of this phase: its record ends a cycle."""

SYSTEM_ID: Final = concept_id(PERSON, SYSTEM)
_RECORDS: Final = f"""select message, created + updated + deleted + edges from record
where starts_with(source, '{SLEEP}') and seq > (
  select coalesce(max(seq), 0) from record where source = '{SLEEP}{NUMBER}'
) order by seq
"""  # noqa: S608 - constants
_MEMORY: Final = """select exists(from mine) or exists(from node where type in (select unnest($4::varchar[])))
or exists(from link where is_resolved and len(files) = 0 and type in (select unnest($3::varchar[])))"""
"""True if a client wrote a concept, a definition or a proposition; what files state is no memory."""


def last_cycle(memory: Memory) -> str:
    """Return when the last cycle ended, "" where there was none."""
    rows = memory.view.rows("select attributes ->> '$.last_sleep_cycle' from node where id = ?", [SYSTEM_ID])
    return str(rows[0][0] or "") if rows else ""


def plan(memory: Memory) -> PhaseResult:
    """Return the entry of the maintenance log.

    There is none where this cycle has written its own and nothing came since, nor where there is no memory: a project
    that does not use KIP is left without ``$system``.
    """
    step = PhaseResult(memory.work())
    records = memory.view.rows(_RECORDS)
    system = step.work.node(SYSTEM_ID, 0)
    if system is None or system.old is None or (last_cycle(memory) == memory.now and not records):
        return step
    if not records and not system.old.version and not memory.ask(_MEMORY, memory.predicates, sorted(DEFINING))[0][0]:
        step.issues.append("There is no memory to keep in order yet, so that no log of its maintenance is begun.")
        return step
    entry = {
        "timestamp": memory.now,
        "actions_taken": "; ".join(f"{message} ({count})" for message, count in records) or "nothing to do",
        "items_processed": sum(count for _, count in records),
        "issues_found": [f"{one.name} is {one.value:g}, target {one.target}" for one in _unmet(memory)],
    }
    entries = _entries(system.old)
    system.has_seen = True  # where branches had cycles of their own, this cycle comes after both
    edit(step, system, {LAST: memory.now, LOG: [*entries, entry][-limits.MAX_SLEEP_LOG :]})
    step.count("entries in the maintenance log")
    return step


def _entries(system: Node) -> list[Any]:
    """Return the maintenance log; with the cycles of all branches, in the order of their times."""
    field = f"attributes.{LOG}"
    values = contested_in(system).get(field, [{"value": system.fields.get(field)}])
    logs = [log for one in values if isinstance(log := one.get("value"), list)]
    if len(logs) == 1:
        return list(logs[0])
    return sorted(distinct(entry for log in logs for entry in log), key=_time_of)


def _time_of(entry: Any) -> str:
    return str(entry.get("timestamp", "")) if isinstance(entry, dict) else ""


def _unmet(memory: Memory) -> list[Any]:
    return [one for one in assess(memory).metrics if not one.is_met and one.value is not None]
