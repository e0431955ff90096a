"""Rule ``unresolved-reference``: whatever a link names exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.ids import in_other_repo
from kbcore.rules.elsewhere import KnownReferences
from kbcore.rules.look_ups import Edge, Look, may_lack_an_end
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_name, edge_remedy, first_file
from kbcore.view.likeness import lookalikes
from kbcore.view.tables import MAY_LACK_AN_END

_SQL: Final = f"""
with known as (select id from node union all select id from link where is_resolved)
select l.from_id, l.type, l.kind, l.to_id, l.files, f.id is not null, t.id is not null
from link l left join known f on f.id = l.from_id left join known t on t.id = l.to_id
where not l.is_resolved and not {MAY_LACK_AN_END}
"""  # noqa: S608 - a constant


def _run(context: RuleContext) -> list[Finding]:
    rows = context.near(_SQL, [])
    missing = {row[0] for row in rows if not row[5]} | {row[3] for row in rows if not row[6]}
    return _findings(rows, lookalikes(context.rows, missing), context.elsewhere)


def _look(look: Look) -> list[Finding]:
    edges = dict(look.side.links([one.key for one in look.changes.links]))
    ends = look.came_or_went()  # of an edge that lacks both ends, and now one
    if ends:
        edges |= {edge.id: edge for edge in (*look.side.out_of(ends), *look.side.into(ends))}
    waiting = [edge for edge in edges.values() if not edge.is_resolved and not may_lack_an_end(edge)]
    if not waiting:
        return []
    named = {end for edge in waiting for end in (edge.from_id, edge.to_id)}
    there = {*look.side.nodes(named), *(id_ for id_, edge in look.side.links(named).items() if edge.is_resolved)}
    return _findings([_row(edge, there) for edge in waiting], {}, look.elsewhere)


def _row(edge: Edge, there: set[str]) -> tuple[Any, ...]:
    return edge.from_id, edge.type, edge.kind, edge.to_id, edge.files, edge.from_id in there, edge.to_id in there


def _findings(
    rows: Sequence[tuple[Any, ...]], alike: dict[str, str], elsewhere: KnownReferences | None
) -> list[Finding]:
    found = []
    for from_id, type_, kind, to_id, files, has_from, has_to in rows:
        name = edge_name(type_, kind)
        gone = [end for end, is_there in ((from_id, has_from), (to_id, has_to)) if not is_there]
        if elsewhere and gone:
            gone = [end for end in gone if not elsewhere.has(end)]
            if not gone:
                continue
        source = first_file(files)
        hint = _hint((from_id, name, to_id), gone, alike, source, elsewhere)
        here = from_id if has_from or not has_to else to_id
        message = _message((from_id, name, to_id), gone, elsewhere)
        values = (name, to_id if here == from_id else from_id)
        code = "" if gone else "undecided"
        found.append(Finding(here, message, hint, source, frozenset({from_id, to_id}), code, values=values))
    return found


def _message(edge: tuple[str, str, str], gone: list[str], elsewhere: KnownReferences | None) -> str:
    from_id, name, to_id = edge
    said = f"{from_id} {name} {to_id}" if name else f"{from_id} links to {to_id}"
    if not gone:
        return f"{said}, but what kind of edge that is has not been decided."
    if elsewhere and _of_itself(gone, elsewhere):
        return f"{said}, but {elsewhere.own} is this repository itself."
    repos = [
        named[0] for end in gone if elsewhere and (named := in_other_repo(end)) and named[0] not in elsewhere.repos
    ]
    if repos:
        return f"{said}, but no repository {repos[0]} is in the fleet."
    return f"{said}, but there is no {' and no '.join(dict.fromkeys(gone))}."


def _of_itself(gone: Iterable[str], elsewhere: KnownReferences) -> list[str]:
    """Return the ids without the name of the repository, where that is the one that states them."""
    named = [in_other_repo(end) for end in gone]
    return [one[1] for one in named if one and one[0] == elsewhere.own]


def _hint(
    edge: tuple[str, str, str], gone: list[str], alike: dict[str, str], source: str, elsewhere: KnownReferences | None
) -> str:
    if not gone:
        return f"{kb('sync', lead='Run')}; if it stays, state the link with a type."
    if elsewhere and (ids := _of_itself(gone, elsewhere)):
        where = f" in the file and {kb('sync', lead='run')}" if source else f", and {edge_remedy(edge, source)}"
        return f"Write {' and '.join(ids)} alone{where}."
    if any(map(in_other_repo, gone)) and source:
        what = "have that repository export to the same place"
        if elsewhere is None:
            what = f"{kb('fleet', 'init', 'PLACE', lead='run')} if it names an entity of another repository"
        return f"Correct it in the file and {kb('sync', lead='run')}, or {what}."
    near = [alike[end] for end in gone if end in alike]
    if near:
        where = (
            f"Correct it in the file and {kb('sync', lead='run')}." if source else "State the edge again with that id."
        )
        return f"Did you mean {' and '.join(near)}? {where}"
    if edge[1] or source:
        return f"Create what is missing, or {edge_remedy(edge, source)}."
    return "Create what is missing."


RULE: Final = Rule(
    "unresolved-reference",
    "error",
    "Both ends of every link exist: no symbol implements a requirement that is not there.",
    _run,
    example="SYM-2 implements REQ-70, but there is no REQ-70.",
    remedy="Correct the id, create what it names, or take the link out.",
    look=_look,
)
