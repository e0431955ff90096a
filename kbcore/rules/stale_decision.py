"""Rule ``stale-decision``: no symbol is constrained by a decision that is deprecated or superseded."""

from __future__ import annotations

from typing import Any, Final

from kbcore.model.statuses import OUTDATED, TENTATIVE, has_status, is_status
from kbcore.rules.look_ups import Look, text_in
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_remedy, first_file
from kbcore.text.escaping import in_quotes

_SQL: Final = f"""
with successor as (
  select l.to_id as id, min(l.from_id) as by_id
  from main.link l join main.node s on s.id = l.from_id
  where l.is_resolved and l.type = 'supersedes' and l.from_id <> l.to_id and not {has_status("s.status", TENTATIVE)}
    and l.to_id in (select to_id from link where type = 'constrained_by')
  group by l.to_id
)
select l.from_id, l.to_id, l.files, a.status, a.path, successor.by_id
from link l join node a on a.id = l.to_id left join successor on successor.id = a.id
where l.is_resolved and l.type = 'constrained_by' and a.type = 'adr'
  and (successor.by_id is not null or {has_status("a.status", OUTDATED)})
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    return [_finding(*row) for row in context.near(_SQL, [])]


def _look(look: Look) -> list[Finding]:
    nodes = look.nodes_with("type", "status")
    superseded = {edge.to_id for edge in look.side.out_of(nodes) if edge.type == "supersedes"} if nodes else set()
    ids = nodes | superseded | {link.to_id for link in look.links_of("constrained_by", "supersedes")}
    decisions = {id_: node for id_, node in look.side.nodes(ids).items() if node.type == "adr"}
    if not decisions:
        return []
    edges = [edge for edge in look.side.into(decisions) if edge.is_resolved]
    by = [edge for edge in edges if edge.type == "supersedes" and edge.from_id != edge.to_id]
    known = look.side.nodes({edge.from_id for edge in by})
    successors: dict[str, str] = {}
    for edge in sorted(by, key=lambda one: one.from_id):
        node = known.get(edge.from_id)
        if node is not None and not is_status(text_in(node, "status"), TENTATIVE):
            successors.setdefault(edge.to_id, node.id)
    rows = []
    for edge in edges:
        decision, successor = decisions[edge.to_id], successors.get(edge.to_id)
        status = text_in(decision, "status")
        if edge.type == "constrained_by" and (successor or is_status(status, OUTDATED)):
            rows.append((edge.from_id, decision.id, edge.files, status, decision.path, successor))
    return [_finding(*row) for row in rows]


def _finding(*row: Any) -> Finding:
    symbol, decision, files, status, path, successor = row
    source = first_file(files)
    why = f"is superseded by {successor}" if successor else f"has the status {in_quotes(status)}"
    away = edge_remedy((symbol, "constrained_by", decision), source)
    instead = f"Link {symbol} to {successor} instead" if successor else f"Link {symbol} to the decision in force now"
    where = f" If {decision} is still in force, correct that in  {path or decision}."
    message = f"{symbol} is constrained by {decision}, which {why}."
    return Finding(symbol, message, f"{instead}, and {away}.{where}", source, frozenset({decision}), values=(decision,))


RULE: Final = Rule(
    "stale-decision",
    "error",
    "No symbol is constrained by a decision (adr) that is deprecated or superseded, by its status or by a "
    "supersedes edge. A successor that is only a draft or proposed, or was rejected or withdrawn, does not count.",
    _run,
    example="SYM-2 is constrained by ADR-1, which is superseded by ADR-4.",
    remedy="Link the symbol to the decision in force now.",
    look=_look,
)
