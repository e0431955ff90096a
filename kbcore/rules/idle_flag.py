"""Rule ``idle-flag``: every feature flag guards something."""

from __future__ import annotations

from typing import Final

from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.rules.statuses import RETIRED, has_status

_SQL: Final = f"""
select id, path from node where type = 'flag' and not {has_status("status", RETIRED)}
  and id not in (select from_id from link where stands and type = 'guards')
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    return [
        Finding(id_, f"{id_} guards nothing (no edge guards).", _hint(path), path)
        for id_, path in context.near(_SQL, [])
    ]


def _hint(path: str) -> str:
    if path:
        return f"Say what it switches, `links: [{{guards: [ID]}}]` in {path}, or retire it: `status: retired`."
    return "State what it switches, an edge guards from it, or give it the status `retired`, with `kb apply`."


RULE: Final = Rule(
    "idle-flag",
    "warning",
    "Every feature flag guards a symbol, an event or a requirement, unless it is retired.",
    _run,
    example="FLAG-3 guards nothing (no edge guards).",
    remedy="State what the flag switches, or give it the status `retired`.",
)
