"""Rule ``idle-flag``: every feature flag guards something."""

from __future__ import annotations

from typing import Final

from kbcore.errors.remedies import kb
from kbcore.model.statuses import RETIRED, has_status
from kbcore.rules.look_ups import Look, is_retired
from kbcore.rules.rule import Finding, Rule, RuleContext

_SQL: Final = f"""
select id, path from node where type = 'flag' and not {has_status("status", RETIRED)}
  and id not in (select from_id from link where is_resolved and type = 'guards')
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    return [_finding(id_, path) for id_, path in context.near(_SQL, [])]


def _look(look: Look) -> list[Finding]:
    ids = look.nodes_with("type", "status") | {link.from_id for link in look.links_of("guards")}
    flags = [node for node in look.side.nodes(ids).values() if node.type == "flag" and not is_retired(node)]
    if not flags:
        return []
    edges = look.side.out_of([node.id for node in flags])
    guarding = {edge.from_id for edge in edges if edge.is_resolved and edge.type == "guards"}
    return [_finding(node.id, node.path) for node in flags if node.id not in guarding]


def _finding(id_: str, path: str) -> Finding:
    return Finding(id_, f"{id_} guards nothing (no edge guards).", _hint(path), path)


def _hint(path: str) -> str:
    if path:
        return "Say what it switches, `links: [{guards: [ID]}]` in the file, or retire it: `status: retired`."
    return f"State what it switches, an edge guards from it, or give it the status `retired`, with {kb('apply')}."


RULE: Final = Rule(
    "idle-flag",
    "warning",
    "Every feature flag guards a symbol, an event or a requirement, unless it is retired.",
    _run,
    example="FLAG-3 guards nothing (no edge guards).",
    remedy="State what the flag switches, or give it the status `retired`.",
    look=_look,
)
