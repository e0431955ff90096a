"""Rule ``must-coverage``: every requirement of priority must has a scenario and a test, or says why it needs none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.model.not_applicable import reason_in, reason_sql
from kbcore.model.schema import NOT_APPLICABLE
from kbcore.model.statuses import RETIRED, has_status
from kbcore.rules.look_ups import Look, is_retired, text_in
from kbcore.rules.rule import Finding, Rule, RuleContext

_NEEDED: Final = (("specified_by", "scenario", "specified"), ("verified_by", "test", "verified"))
_STATED: Final = f"""
select from_id, type, to_id from link
where not is_resolved and type in ({", ".join(f"'{edge}'" for edge, _, _ in _NEEDED)})
"""  # noqa: S608 - no text from outside


def _is_covered(edge: str, aspect: str) -> str:
    """Return the SQL condition that a requirement has such an edge, or says why it needs none."""
    has_it = f"exists (select 1 from link l where l.is_resolved and l.type = '{edge}' and l.from_id = n.id)"  # noqa: S608 - constants
    return f"{has_it} or {reason_sql('n.attributes', aspect)} is not null"


_SQL: Final = f"""
select n.id, n.path, {", ".join(_is_covered(edge, aspect) for edge, _, aspect in _NEEDED)}
from node n
where n.type = 'req' and lower(n.priority) = 'must' and not {has_status("n.status", RETIRED)}
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    rows = context.near(_SQL, [])
    if (elsewhere := context.elsewhere) is None or all(all(row[2:]) for row in rows):
        return _findings(rows)
    stated = {(from_id, edge) for from_id, edge, end in context.near(_STATED, []) if elsewhere.covers(end)}
    has = stated | elsewhere.edges
    edges = [edge for edge, _, _ in _NEEDED]
    return _findings(
        (id_, path, *(is_here or (id_, edge) in has for edge, is_here in zip(edges, covered, strict=True)))
        for id_, path, *covered in rows
    )


def _look(look: Look) -> list[Finding]:
    edges = [edge for edge, _, _ in _NEEDED]
    fields = ("type", "priority", "status", f"attributes.{NOT_APPLICABLE}")
    ids = look.nodes_with(*fields) | {link.from_id for link in look.links_of(*edges)}
    needing = [
        node
        for node in look.side.nodes(ids).values()
        if node.type == "req" and text_in(node, "priority").lower() == "must" and not is_retired(node)
    ]
    if not needing:
        return []
    has = {
        (edge.from_id, edge.type)
        for edge in look.side.out_of([node.id for node in needing])
        if edge.is_resolved or (look.elsewhere and look.elsewhere.covers(edge.to_id))
    }
    return _findings(
        (node.id, node.path, *((node.id, edge) in has or bool(reason_in(node, aspect)) for edge, _, aspect in _NEEDED))
        for node in needing
    )


def _findings(rows: Iterable[tuple[Any, ...]]) -> list[Finding]:
    found = []
    for id_, path, *covered in rows:
        for (edge, what, _), has_it in zip(_NEEDED, covered, strict=True):
            if not has_it:
                message = f"{id_} has priority must, but no {what} (no edge {edge})."
                found.append(Finding(id_, message, _hint(id_, path, edge, what), path, values=(edge,)))
    return found


def _hint(id_: str, path: str, edge: str, what: str) -> str:
    there = f"add `links: [{id_}]` to the front matter of the {what}"
    here = f", or `links: [{{{edge}: [ID]}}]` to the file of {id_}" if path else ""
    stored = f"or state the edge in the store: {kb('link', id_, edge, 'ID')}"
    return f"Link it to its {what}: {there}{here}, and {kb('sync', lead='run')}; {stored}."


RULE: Final = Rule(
    "must-coverage",
    "error",
    "Every requirement of priority must has a scenario (specified_by) and a test (verified_by), "
    "unless it says with a reason that this is not applicable. "
    f"Requirements that are {', '.join(RETIRED[:-1])} or {RETIRED[-1]} need none.",
    _run,
    example="REQ-7 has priority must, but no test (no edge verified_by).",
    remedy="Link the requirement to its scenario and to its test.",
    look=_look,
)
