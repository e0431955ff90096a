"""Rule ``stale-decision``: no symbol is constrained by a decision that is deprecated or superseded."""

from __future__ import annotations

from typing import Any, Final

from kbcore.rules.rule import Finding, Rule, RuleContext, edge_remedy, first_file
from kbcore.rules.statuses import OUTDATED, TENTATIVE, has_status
from kbcore.visible import in_quotes

_SQL: Final = f"""
with successor as (
  select l.to_id as id, min(l.from_id) as by_id
  from main.link l join main.node s on s.id = l.from_id
  where l.stands and l.type = 'supersedes' and l.from_id <> l.to_id and not {has_status("s.status", TENTATIVE)}
    and l.to_id in (select to_id from link where type = 'constrained_by')
  group by l.to_id
)
select l.from_id, l.to_id, l.files, a.status, a.path, successor.by_id
from link l join node a on a.id = l.to_id left join successor on successor.id = a.id
where l.stands and l.type = 'constrained_by' and a.type = 'adr'
  and (successor.by_id is not null or {has_status("a.status", OUTDATED)})
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    return [_finding(*row) for row in context.near(_SQL, [])]


def _finding(*row: Any) -> Finding:
    symbol, decision, files, status, path, successor = row
    source = first_file(files)
    why = f"is superseded by {successor}" if successor else f"has the status {in_quotes(status)}"
    away = edge_remedy((symbol, "constrained_by", decision), source)
    instead = f"Link {symbol} to {successor} instead" if successor else f"Link {symbol} to the decision that holds now"
    where = f" If {decision} still holds, correct that in {path or decision}."
    message = f"{symbol} is constrained by {decision}, which {why}."
    return Finding(symbol, message, f"{instead}, and {away}.{where}", source, frozenset({decision}), values=(decision,))


RULE: Final = Rule(
    "stale-decision",
    "error",
    "No symbol is constrained by a decision (adr) that is deprecated or superseded, by its status or by a "
    "supersedes edge. A successor that is only a draft or proposed, or was rejected or withdrawn, does not count.",
    _run,
    example="SYM-2 is constrained by ADR-1, which is superseded by ADR-4.",
    remedy="Link the symbol to the decision that holds now.",
)
