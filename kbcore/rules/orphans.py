"""Rule ``orphans``: no entity stands alone."""

from __future__ import annotations

from typing import Final

from kbcore.rules.rule import Finding, Rule, RuleContext

_SQL: Final = """
select n.id, n.type, n.path from node n
where n.id not in (select from_id from link where stands union all select to_id from link where stands)
"""


def _run(context: RuleContext) -> list[Finding]:
    return [
        Finding(id_, f"The {type_} {id_} is linked to nothing.", _hint(context, type_, path), path)
        for id_, type_, path in context.rows(_SQL, [])
    ]


def _hint(context: RuleContext, type_: str, path: str) -> str:
    fitting = [name for name, edge in context.schema.edges.items() if type_ in (*edge.from_types, *edge.to_types)]
    edges = f" ({', '.join(fitting)})" if fitting else ""
    where = f"below `links:` in {path}" if path else "with `kb apply`"
    return f"State what it belongs to{edges}, {where}, or remove it if nobody needs it."


RULE: Final = Rule(
    "orphans",
    "warning",
    "Every entity has at least one edge, whatever its type and direction.",
    _run,
)
