"""Rule ``required-fields``: every entity has the fields that its type requires, and every edge its kind."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from kbcore.errors.remedies import kb, shell
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_remedy, first_file
from kbcore.view.tables import NODE


def _run(context: RuleContext) -> list[Finding]:
    return [*_entities(context), *_edges(context)]


def _entities(context: RuleContext) -> list[Finding]:
    types: defaultdict[str, list[str]] = defaultdict(list)
    for name, definition in context.schema.entities.items():
        for field in definition.required_fields:
            types[field].append(name)
    fields, params = list(types), list[Any](types.values())
    missing = ", ".join(
        f"case when list_contains(${at}, type) and {_is_missing(field, params)} then {at} end"
        for at, field in enumerate(fields, start=1)
    )
    rows = context.near(
        f"select id, type, path, lacking from (select id, type, path, list_filter([{missing}], "  # noqa: S608
        "lambda field: field is not null) as lacking from node) where len(lacking) > 0",
        params,
    )
    return [_finding(id_, type_, path, fields[at - 1]) for id_, type_, path, lacking in rows for at in lacking]


def _is_missing(field: str, params: list[Any]) -> str:
    """Return the SQL condition that a field is absent, or empty; only names of columns enter it as they are."""
    if field in NODE:
        return f"coalesce(len({field}), 0) = 0" if NODE[field].endswith("[]") else f"coalesce(trim({field}), '') = ''"
    params.append("/" + field.removeprefix("attributes.").replace("~", "~0").replace("/", "~1"))
    return f"coalesce(json_type(attributes, ${len(params)}), 'NULL') = 'NULL'"


def _finding(id_: str, type_: str, path: str, field: str) -> Finding:
    name = field.removeprefix("attributes.")
    if path:
        hint = f"Add `{name}:` to the file and {kb('sync', lead='run')}."
    else:
        hint = f"Write it with {kb('apply')}: an entity with the id and `{field}`."
    return Finding(id_, f"{id_} has no `{field}`, which every {type_} needs.", hint, path, field=field)


def _edges(context: RuleContext) -> list[Finding]:
    names = [name for name, definition in context.schema.edges.items() if definition.needs_kind]
    rows = context.near(
        "select from_id, type, to_id, files from link where is_resolved and kind = '' and list_contains($1, type)",
        [names],
    )
    found = []
    for from_id, type_, to_id, files in rows:
        source = first_file(files)
        message = f"{from_id} {type_} {to_id} has no `kind`, which every {type_} needs."
        away = edge_remedy((from_id, type_, to_id), source)
        hint = f"State it again with a `kind` that says how the two belong together, and {away}."
        found.append(Finding(from_id, message, hint, source, frozenset({to_id}), field="kind", values=(type_, to_id)))
    return found


RULE: Final = Rule(
    "required-fields",
    "error",
    "Every entity has the fields that its type requires, and every edge that needs a kind has one.",
    _run,
    example="REQ-7 has no `title`, which every req needs.",
    remedy=f"Add the field to the file, or write it with {shell('apply')}.",
)
