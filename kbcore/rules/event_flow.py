"""Rule ``event-flow``: somebody publishes every event, and somebody consumes it."""

from __future__ import annotations

from typing import Final

from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.rules.statuses import RETIRED, has_status

_SQL: Final = f"""
with heard as (select distinct type, to_id from link where stands and type in ('publishes', 'consumes'))
select * from (
  select id, path, id in (select to_id from heard where type = 'publishes') as is_published,
    id in (select to_id from heard where type = 'consumes') as is_consumed
  from node where type = 'event' and not {has_status("status", RETIRED)}
) where not (is_published and is_consumed)
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for id_, path, is_published, is_consumed in context.near(_SQL, []):
        lacking = ["publishes"] * (not is_published) + ["consumes"] * (not is_consumed)
        message = f"{id_}: nobody {' or '.join(lacking)} it."
        found.append(Finding(id_, message, _hint(id_, path, lacking), path, values=tuple(lacking)))
    return found


def _hint(id_: str, path: str, lacking: list[str]) -> str:
    edges = " and ".join(f"`{name}: [{id_}]`" for name in lacking)
    retired = f"`status: retired` in {path}" if path else "the status `retired`, with `kb apply`"
    return f"State it with the symbol that does, by {edges} below its `links:`, or retire the event: {retired}."


RULE: Final = Rule(
    "event-flow",
    "warning",
    "Somebody publishes every event and somebody consumes it, unless it is retired.",
    _run,
    example="order-placed: nobody consumes it.",
    remedy="State the symbol that publishes or consumes it, or give the event the status `retired`.",
)
