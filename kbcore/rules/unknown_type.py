"""Rule ``unknown-type``: the schema knows the type of every entity and of every edge."""

from __future__ import annotations

from typing import Final

from kbcore.model.concepts import PREDICATE, TYPE, how_to_add
from kbcore.rules.rule import Finding, Rule, RuleContext, first_file
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean


def _run(context: RuleContext) -> list[Finding]:
    schema = context.schema
    nodes = context.near("select id, type, path from node where not list_contains($1, type)", [list(schema.entities)])
    links = context.near(
        "select from_id, type, to_id, files from link where type <> '' and not list_contains($1, type)",
        [list(schema.edges)],
    )
    hints = {("entities", name): _hint("entities", name, list(schema.entities)) for name in {row[1] for row in nodes}}
    hints |= {("edges", name): _hint("edges", name, list(schema.edges)) for name in {row[1] for row in links}}
    found = [
        Finding(
            id_,
            f"{id_} has the type {in_quotes(type_)}, which the schema does not know.",
            hints["entities", type_],
            path,
            field="type",
            values=(type_,),
        )
        for id_, type_, path in nodes
    ]
    for from_id, type_, to_id, files in links:
        message = f"{from_id} {type_} {to_id}: the schema does not know the edge type {in_quotes(type_)}."
        hint, concerned = hints["edges", type_], frozenset({to_id})
        found.append(Finding(from_id, message, hint, first_file(files), concerned, values=(type_, to_id)))
    return found


def _hint(section: str, name: str, known: list[str]) -> str:
    what = TYPE if section == "entities" else PREDICATE
    return f"{did_you_mean(name, known)} {how_to_add(what, name, by_record=False)}"


RULE: Final = Rule(
    "unknown-type",
    "error",
    "The schema knows the type of every entity and of every edge; a schema file may have been removed.",
    _run,
    example="RISK-1 has the type 'risk', which the schema does not know.",
    remedy="Restore the schema file, or give another type.",
)
