"""Rule ``orphans``: no entity is without edges."""

from __future__ import annotations

from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.model.concepts import DEFINING, VOCABULARY
from kbcore.model.graph import Node
from kbcore.model.schema import Schema
from kbcore.rules.look_ups import Look, may_lack_an_end
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.view.tables import IS_MENTION, IS_OF_CODE_OR_INDEX, MAY_LACK_AN_END, Rows

_SQL: Final = f"""
with tie as (select from_id, to_id from link where not {MAY_LACK_AN_END})
select n.id, n.type, n.path, coalesce(s.extractor, '')
from (select * from node where not {IS_OF_CODE_OR_INDEX}) n left join source s on s.path = n.path
where n.id not in (select from_id from tie union all select to_id from tie)
  and n.type not in (select unnest($1::varchar[])) and n.type not in (select unnest($4::varchar[]))
  and (n.type not in (select unnest($2::varchar[])) or n.type || ' ' || n.name not in (select unnest($3::varchar[])))
"""  # noqa: S608 - a constant
"""An entity with an unresolved link is left to the rule ``unresolved-reference``, which says what is wrong with it."""
_KNOWN: Final = [
    [*DEFINING],
    sorted({kind for kind, _ in VOCABULARY}),
    sorted(f"{kind} {name}" for kind, name in VOCABULARY),
]
"""Definitions of types and predicates, and elements of every store: they need no link."""


_HAS: Final = f"""select exists (from link where is_resolved and not {IS_MENTION}),
  exists (from link where is_resolved), exists (from link)
"""
"""Links in texts do not show that a project links its entities: they are written for readers."""
_HAD: Final = f"select exists (from link_history where is_resolved and not {IS_MENTION})"


def why_it_waits(rows: Rows) -> str:
    """Return why the rule does not judge a branch: before the first edge every entity is alone."""
    [(has_edges, has_mentions, has_any)] = rows(_HAS, [])
    if has_edges or had_edges(rows):
        return ""
    if has_mentions:
        return "The branch has no edge yet but links in texts; the rule is run from the first other one on."
    kind = "resolved edge" if has_any else "edge"
    return f"The branch has no {kind} yet; the rule is run from the first one on."


def had_edges(rows: Rows) -> bool:
    """Return whether a branch had an edge before that is no link in a text, as far as its history is known."""
    return bool(rows(_HAD, [])[0][0])


def _run(context: RuleContext) -> list[Finding]:
    return [_finding(context.schema, row) for row in context.near(_SQL, [*_KNOWN, sorted(_memos(context.schema))])]


def _memos(schema: Schema) -> set[str]:
    """Return the types of notes and tasks: they are remembered for themselves."""
    return {name for name, one in schema.entities.items() if one.is_memo}


def _look(look: Look) -> list[Finding]:
    ids = look.nodes_with("type", "name") | {end for link in look.links_of() for end in (link.from_id, link.to_id)}
    changed = look.side.links([one.key for one in look.changes.links]).values()
    linked = {end for edge in changed if not may_lack_an_end(edge) for end in (edge.from_id, edge.to_id)}
    memos = _memos(look.schema)
    nodes = [node for node in look.side.nodes(ids - linked).values() if not (_is_known(node) or node.type in memos)]
    if not nodes:
        return []
    alone = {node.id for node in nodes}
    alone -= {edge.from_id for edge in look.side.out_of(alone) if not may_lack_an_end(edge)}
    alone -= {edge.to_id for edge in look.side.into(alone) if not may_lack_an_end(edge)}
    if not alone or not look.has_or_had_edges():
        return []
    extractors = {one.path: one.extractor for one in look.side.sources({node.path for node in nodes})}
    rows = [(node.id, node.type, node.path, extractors.get(node.path, "")) for node in nodes if node.id in alone]
    return [_finding(look.schema, row) for row in rows]


def _is_known(node: Node) -> bool:
    """Return whether a node needs no link: what the SQL says with ``_KNOWN``."""
    return (
        node.is_of_code_or_index or node.type in DEFINING or (node.type, node.fields.get("name", node.id)) in VOCABULARY
    )


def _finding(schema: Schema, row: tuple[Any, ...]) -> Finding:
    id_, type_, path, extractor = row
    return Finding(id_, f"{id_} ({type_}) is linked to nothing.", _hint(schema, type_, path, extractor), path)


def _hint(schema: Schema, type_: str, path: str, extractor: str) -> str:
    """Return how a link of an entity is stated: in the words of its file, where a file defines it."""
    otherwise = "or remove it if it is not needed."
    if extractor.startswith("gherkin/"):
        return f"State what it belongs to with a tag above it in its file, `@links:ID`, {otherwise}"
    leading = [name for name, edge in schema.edges.items() if type_ in edge.from_types]
    if path:
        typed = f" or below the edge that leads there ({', '.join(leading)})" if leading else ""
        here = f"below `links:` in its file, by its id alone{typed}"
        return f"State what it belongs to {here}, or with {kb('link')}, {otherwise}"
    fitting = [name for name, edge in schema.edges.items() if type_ in (*edge.from_types, *edge.to_types)]
    edges = f" ({', '.join(fitting)})" if fitting else ""
    return f"State what it belongs to by an edge from it or to it{edges} with {kb('link')}, {otherwise}"


RULE: Final = Rule(
    "orphans",
    "warning",
    "Every entity has at least one edge, whatever its type and direction. One with an unresolved link is left to "
    "`unresolved-reference`. Notes, tasks and definitions of types and predicates need none, nor does what is read out "
    "of source code or an index of it.",
    _run,
    example="SYM-9 (symbol) is linked to nothing.",
    remedy="State what it belongs to, or remove it.",
    look=_look,
)
