"""Rule ``endpoint-types``: every edge leads between types that the schema allows at its ends."""

from __future__ import annotations

from typing import Any, Final

from kbcore.ids import LINK_ID_PREFIX
from kbcore.model.schema import LINK, Schema
from kbcore.rules.look_ups import Look
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_name, edge_remedy, first_file

_JOIN: Final = """
from link l left join node f on f.id = l.from_id left join node t on t.id = l.to_id where l.is_resolved
"""
_FROM_TYPE, _TO_TYPE = (
    f"coalesce({node}.type, if(starts_with(l.{end}, '{LINK_ID_PREFIX}'), '{LINK}', ''))"
    for node, end in (("f", "from_id"), ("t", "to_id"))
)
"""The types at both ends; "" for a hidden entity, which an edge of any type may lead to."""


def _run(context: RuleContext) -> list[Finding]:
    schema = context.schema
    combinations = context.near(f"select distinct l.type, {_FROM_TYPE}, {_TO_TYPE} {_JOIN}", [])
    wrong = sorted(combination for combination in combinations if _is_wrong(schema, *combination))
    if not wrong:
        return []
    rows = context.near(
        f"select l.from_id, l.type, l.kind, l.to_id, l.files, {_FROM_TYPE}, {_TO_TYPE} {_JOIN} "
        f"and list_contains($1, [l.type, {_FROM_TYPE}, {_TO_TYPE}])",
        [[list(combination) for combination in wrong]],
    )
    return [_finding(schema, row) for row in rows]


def _look(look: Look) -> list[Finding]:
    ids = look.nodes_with("type")
    edges = look.side.links({link.id for link in look.links_of()})
    edges |= {edge.id: edge for edge in (*look.side.out_of(ids), *look.side.into(ids))}
    resolved = [edge for edge in edges.values() if edge.is_resolved]
    nodes = look.side.nodes({end for edge in resolved for end in (edge.from_id, edge.to_id)})
    types = {key: node.type for key, node in nodes.items()}
    rows = [
        (
            one.from_id,
            one.type,
            one.kind,
            one.to_id,
            one.files,
            types.get(one.from_id, LINK),
            types.get(one.to_id, LINK),
        )
        for one in resolved
    ]
    return [_finding(look.schema, row) for row in rows if _is_wrong(look.schema, row[1], *row[5:])]


def _is_wrong(schema: Schema, edge: str, from_type: str, to_type: str) -> bool:
    """Tell whether an edge does not fit; a type that the schema does not know is for the rule unknown-type."""
    known = edge in schema.edges and {from_type, to_type} <= {*schema.entities, LINK}
    return known and not schema.fits(edge, from_type, to_type)


def _finding(schema: Schema, row: tuple[Any, ...]) -> Finding:
    from_id, edge, kind, to_id, files, from_type, to_type = row
    definition, name = schema.edges[edge], edge_name(edge, kind)
    message = f"{from_id} {name} {to_id} leads from {from_type} to {to_type}; such an edge leads from {definition.way}."
    source = first_file(files)
    away = edge_remedy((from_id, name, to_id), source)
    if schema.admits(edge, to_type, from_type):
        hint = f"Swap its ends: state {to_id} {name} {from_id}, and {away}."
    else:
        fitting = [other for other in schema.edges if schema.admits(other, from_type, to_type)]
        hint = f"State {' or '.join(fitting)} instead, and {away}." if fitting else f"{away[0].upper()}{away[1:]}."
    return Finding(from_id, message, hint, source, frozenset({to_id}), values=(name, to_id))


RULE: Final = Rule(
    "endpoint-types",
    "error",
    "Every edge leads from and to types that the schema allows for it.",
    _run,
    example="TEST-3 verified_by REQ-7 leads from test to req; such an edge leads from req to test.",
    remedy="Swap the ends, or state the edge that fits.",
    look=_look,
)
