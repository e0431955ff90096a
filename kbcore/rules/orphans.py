"""Rule ``orphans``: no entity stands alone."""

from __future__ import annotations

from typing import Final

from kbcore.concepts import VOCABULARY
from kbcore.rules.rule import Finding, Rows, Rule, RuleContext
from kbcore.schema import MENTIONS, Schema

_SQL: Final = """
select n.id, n.type, n.path, coalesce(s.extractor, '') from node n left join source s on s.path = n.path
where n.id not in (select from_id from link where stands union all select to_id from link where stands)
  and (n.type not in (select unnest($1::varchar[])) or n.type || ' ' || n.name not in (select unnest($2::varchar[])))
"""
_KNOWN: Final = [sorted({kind for kind, _ in VOCABULARY}), sorted(f"{kind} {name}" for kind, name in VOCABULARY)]
"""What every store knows need not be linked to anything."""


_HAS: Final = f"""select exists (from link where stands and (type <> '{MENTIONS}' or len(files) = 0)),
  exists (from link where stands)
"""
"""Links in texts do not show that a project links its entities: they are written for readers."""


def why_it_waits(rows: Rows) -> str:
    """Return why the rule does not judge a branch: before the first edge every entity is alone."""
    [(has_edges, has_mentions)] = rows(_HAS, [])
    if has_edges:
        return ""
    if has_mentions:
        return "The branch has no edge yet but links in texts; the rule is run from the first other one on."
    return "The branch has no edge yet; the rule is run from the first one on."


def _run(context: RuleContext) -> list[Finding]:
    return [
        Finding(id_, f"{id_} ({type_}) is linked to nothing.", _hint(context.schema, type_, path, extractor), path)
        for id_, type_, path, extractor in context.near(_SQL, _KNOWN)
    ]


def _hint(schema: Schema, type_: str, path: str, extractor: str) -> str:
    """Return how a link of an entity is stated: in the words of its file, where a file defines it."""
    otherwise = "or remove it if nobody needs it."
    if extractor.startswith("gherkin/"):
        return f"State what it belongs to with a tag above it in {path}, `@links:ID`, {otherwise}"
    leading = [name for name, edge in schema.edges.items() if type_ in edge.from_types]
    if path:
        typed = f" or below the edge that leads there ({', '.join(leading)})" if leading else ""
        return f"State what it belongs to below `links:` in {path}, by its id alone{typed}, {otherwise}"
    fitting = [name for name, edge in schema.edges.items() if type_ in (*edge.from_types, *edge.to_types)]
    edges = f" ({', '.join(fitting)})" if fitting else ""
    return f"State what it belongs to by an edge from it or to it{edges} with `kb apply`, {otherwise}"


RULE: Final = Rule(
    "orphans",
    "warning",
    "Every entity has at least one edge, whatever its type and direction.",
    _run,
    example="SYM-9 (symbol) is linked to nothing.",
    remedy="State what it belongs to, or remove it.",
)
