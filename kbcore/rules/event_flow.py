"""Rule ``event-flow``: every event is published and consumed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.model.statuses import RETIRED, has_status
from kbcore.rules.look_ups import Look, is_retired
from kbcore.rules.rule import Finding, Rule, RuleContext

_SQL: Final = f"""
with linked as (select distinct type, to_id from link where is_resolved and type in ('publishes', 'consumes'))
select * from (
  select id, path, id in (select to_id from linked where type = 'publishes') as is_published,
    id in (select to_id from linked where type = 'consumes') as is_consumed
  from node where type = 'event' and not {has_status("status", RETIRED)}
) where not (is_published and is_consumed)
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    return _findings(context.near(_SQL, []))


def _look(look: Look) -> list[Finding]:
    ids = look.nodes_with("type", "status") | {link.to_id for link in look.links_of("publishes", "consumes")}
    events = [node for node in look.side.nodes(ids).values() if node.type == "event" and not is_retired(node)]
    if not events:
        return []
    has = {(edge.to_id, edge.type) for edge in look.side.into([node.id for node in events]) if edge.is_resolved}
    rows = [(node.id, node.path, (node.id, "publishes") in has, (node.id, "consumes") in has) for node in events]
    return _findings(row for row in rows if not all(row[2:]))


def _findings(rows: Iterable[tuple[Any, ...]]) -> list[Finding]:
    found = []
    for id_, path, is_published, is_consumed in rows:
        lacking = ["publishes"] * (not is_published) + ["consumes"] * (not is_consumed)
        message = f"{id_}: nothing {' or '.join(lacking)} it."
        found.append(Finding(id_, message, _hint(id_, path, lacking), path, values=tuple(lacking)))
    return found


def _hint(id_: str, path: str, lacking: list[str]) -> str:
    edges = " and ".join(f"`{name}: [{id_}]`" for name in lacking)
    retired = "`status: retired` in the file" if path else f"the status `retired`, with {kb('apply')}"
    stored = " and ".join(kb("link", "ID", name, id_) for name in lacking)
    stated = f"by {edges} below its `links:` or by {stored}"
    return f"State it with the symbol that does, {stated}, or retire the event: {retired}."


RULE: Final = Rule(
    "event-flow",
    "warning",
    "Something publishes every event and something consumes it, unless it is retired.",
    _run,
    example="order-placed: nothing consumes it.",
    remedy="State the symbol that publishes or consumes it, or give the event the status `retired`.",
    look=_look,
)
