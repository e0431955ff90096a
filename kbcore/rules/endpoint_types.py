"""Rule ``endpoint-types``: every edge leads between types that the schema allows at its ends."""

from __future__ import annotations

from typing import Any, Final

from kbcore.model.schema import LINK, Schema
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_remedy, first_file

_JOIN: Final = """
from link l left join node f on f.id = l.from_id left join node t on t.id = l.to_id where l.is_resolved
"""
_FROM_TYPE: Final = f"coalesce(f.type, '{LINK}')"
_TO_TYPE: Final = f"coalesce(t.type, '{LINK}')"


def _run(context: RuleContext) -> list[Finding]:
    schema = context.schema
    combinations = context.near(f"select distinct l.type, {_FROM_TYPE}, {_TO_TYPE} {_JOIN}", [])
    known = {*schema.entities, LINK}
    wrong = sorted(
        (edge, from_type, to_type)
        for edge, from_type, to_type in combinations
        # a type that the schema does not know is for the rule unknown-type
        if edge in schema.edges and {from_type, to_type} <= known and not schema.fits(edge, from_type, to_type)
    )
    if not wrong:
        return []
    rows = context.near(
        f"select l.from_id, l.type, l.to_id, l.files, {_FROM_TYPE}, {_TO_TYPE} {_JOIN} "
        f"and list_contains($1, [l.type, {_FROM_TYPE}, {_TO_TYPE}])",
        [[list(combination) for combination in wrong]],
    )
    return [_finding(schema, row) for row in rows]


def _finding(schema: Schema, row: tuple[Any, ...]) -> Finding:
    from_id, edge, to_id, files, from_type, to_type = row
    definition = schema.edges[edge]
    message = f"{from_id} {edge} {to_id} leads from {from_type} to {to_type}; such an edge leads from {definition.way}."
    source = first_file(files)
    away = edge_remedy((from_id, edge, to_id), source)
    if schema.admits(edge, to_type, from_type):
        hint = f"Swap its ends: state {to_id} {edge} {from_id}, and {away}."
    else:
        fitting = [name for name in schema.edges if schema.admits(name, from_type, to_type)]
        hint = f"State {' or '.join(fitting)} instead, and {away}." if fitting else f"{away[0].upper()}{away[1:]}."
    return Finding(from_id, message, hint, source, frozenset({to_id}), values=(edge, to_id))


RULE: Final = Rule(
    "endpoint-types",
    "error",
    "Every edge leads from and to types that the schema allows for it.",
    _run,
    example="TEST-3 verified_by REQ-7 leads from test to req; such an edge leads from req to test.",
    remedy="Swap the ends, or state the edge that fits.",
)
