"""Phase 1: the state of the memory. Counts only; nothing is written."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kbcore.kip.confidence import created_at
from kbcore.kip.sleep.memory import Memory
from kbcore.model.concepts import ARCHIVED, DOMAIN, EVENT, PERSON, SLEEP_TASK, SYSTEM, UNSORTED, concept_id

ORPHANS: Final = f"""from mine n where n.type not in ('{DOMAIN}', '{SLEEP_TASK}') and len(n.files) = 0
and coalesce(n.status, '') <> 'archived' and n.id not in (select from_id from member)
"""  # noqa: S608 - constants
"""Concepts of clients that belong to no domain. Domains are what others belong to, and tasks belong to an actor."""

_TIME: Final = f"""coalesce(
  case when regexp_full_match(t, '.+([zZ]|[+-][0-9]{{2}}:?[0-9]{{2}})') then try_cast(t as timestamptz) end,
  try_cast(t || 'Z' as timestamptz), try_cast(t || 'T00:00:00Z' as timestamptz),
  try_cast({created_at("n")} as timestamptz))"""
STALE: Final = f"""from (
  select *, attributes ->> '$.start_time' as t, coalesce(attributes ->> '$.consolidation_status', '') as state from mine
) n where n.type = '{EVENT}' and coalesce(n.status, '') <> 'archived' and state not in ('completed', 'archived')
and {_TIME} < $3::timestamptz
and n.id not in (select from_id from link where is_resolved and type = 'consolidated_to')
"""  # noqa: S608 - constants
"""Events that began before ``$3`` and of which nothing that lasts was taken out. One without a time counts from when it
was written down."""

STALE_FREE: Final = f"{STALE} and len(n.files) = 0"
"""Those of them that a cycle or an agent may see to: what a file states is left alone."""

TASKS: Final = f"""from mine n where n.type = '{SLEEP_TASK}' and len(n.files) = 0 and (
  n.id in (select from_id from link where is_resolved and type = 'assigned_to'
    and to_id = '{concept_id(PERSON, SYSTEM)}')
  or n.id not in (select from_id from link where is_resolved and type = 'assigned_to'))
"""  # noqa: S608 - constants
"""Tasks for the sleeping mind, or without an assignee."""

DOMAINS: Final = f"""from (
  select n.*, (select count(*) from member m where m.to_id = n.id) as members from mine n
  where n.type = '{DOMAIN}' and coalesce(n.status, '') <> 'archived'
) n"""  # noqa: S608 - constants
"""Domains in use, with how many belong to each; those of the vocabulary aside."""

UNSORTED_ID: Final = concept_id(DOMAIN, UNSORTED)
ARCHIVED_ID: Final = concept_id(DOMAIN, ARCHIVED)

WAITING: Final = f"from node n where n.id in (select from_id from member where to_id = '{UNSORTED_ID}')"  # noqa: S608
"""Concepts of any type that wait in Unsorted: who put one there did not know where it belongs."""

# That something waits in Unsorted is no knowledge that one could be sure of: the second measure counts it.
_COUNTS: Final = f"""select
  (select count(*) from mine), (select count(*) {ORPHANS}),
  (select count(*) {WAITING}), (select count(*) {STALE_FREE}),
  (select count(*) {TASKS} and coalesce(n.status, 'pending') = 'pending'),
  domain.*, (select avg(confidence::decimal(18, 12)) from link
    where is_resolved and type in (select unnest($4::varchar[]))
    and id not in (select id from member where to_id = '{UNSORTED_ID}'))
from (select count(*), count(*) filter (members not between $5 and $6) {DOMAINS}) domain
"""  # noqa: S608 - constants
_BY_TYPE: Final = f"select n.type, count(*) {ORPHANS} group by all order by all"


class Metric(msgspec.Struct, frozen=True):
    """One measure of order, and its target; ``value`` is None where there is nothing to measure."""

    name: str
    value: float | None
    target: str
    is_met: bool


class Assessment(msgspec.Struct, frozen=True):
    """The state of a memory. ``orphans`` are counted by type, as KIP calls it."""

    concepts: int
    tasks: int
    domains: int
    orphans: dict[str, int]
    metrics: tuple[Metric, ...]

    def metric(self, name: str) -> Metric:
        """Return a metric by its name."""
        return next(one for one in self.metrics if one.name == name)

    def as_json(self) -> dict[str, Any]:
        """Return the assessment as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def assess(memory: Memory) -> Assessment:
    """Return the state of a memory. A view computes it once."""
    key = memory.view.seq, memory.now, memory.settings, tuple(memory.types), tuple(memory.predicates)
    return memory.view.once("sleep state", key, lambda _: _assessed(memory))


def _assessed(memory: Memory) -> Assessment:
    wanted = memory.settings
    bounds = wanted.least_members, wanted.most_members
    cutoff = memory.ago(wanted.stale_event_days)
    [row] = memory.ask(_COUNTS, cutoff, memory.predicates, *bounds)
    concepts, orphans, unsorted, stale, tasks, domains, odd, confidence = row
    average = None if confidence is None else round(confidence, 4)
    metrics = (
        _fewer("orphans", orphans, wanted.most_orphans),
        _fewer("unsorted", unsorted, wanted.most_unsorted),
        _fewer("stale_events", stale, wanted.most_stale_events),
        Metric(
            "average_confidence",
            average,
            f"> {wanted.least_confidence:g}",
            is_met=average is None or average > wanted.least_confidence,
        ),
        Metric("domains_out_of_bounds", odd, f"0 (each {bounds[0]}-{bounds[1]} members)", is_met=not odd),
    )
    by_type = dict(memory.ask(_BY_TYPE)) if orphans else {}
    return Assessment(concepts, tasks, domains, by_type, metrics)


def _fewer(name: str, value: int, most: int) -> Metric:
    return Metric(name, value, f"< {most}", is_met=value < most or not value)
