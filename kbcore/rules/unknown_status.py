"""Rule ``unknown-status``: every status is one that the schema lists for the type."""

from __future__ import annotations

from typing import Final

from kbcore.model.graph import UNKNOWN_STATUS
from kbcore.model.schema import Schema
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view.tables import Rows


def statuses(rows: Rows, schema: Schema) -> list[tuple[str, str, str, str]]:
    """Return the id, the type, the status and the file of each entity with a status that its type does not have."""
    listed = {name: one.statuses for name, one in schema.entities.items() if one.statuses}
    if not listed:
        return []
    pairs = rows(
        "select distinct type, status from node where list_contains($1, type) and trim(status) <> ''", [list(listed)]
    )
    wrong = sorted([type_, status] for type_, status in pairs if status not in listed[type_])
    if not wrong:
        return []
    found = rows("select id, type, status, path from node where list_contains($1, [type, status])", [wrong])
    return [(id_, type_, status, path) for id_, type_, status, path in found]


def _run(context: RuleContext) -> list[Finding]:
    found = statuses(context.near, context.schema)
    known = context.schema.entities
    hints = {pair: _hint(*pair, known[pair[0]].statuses) for pair in {(type_, status) for _, type_, status, _ in found}}
    return [
        Finding(
            id_,
            f"{id_} has the status {in_quotes(status)}, which no {type_} has.",
            hints[type_, status],
            path,
            field="status",
            values=(status,),
        )
        for id_, type_, status, path in found
    ]


def _hint(type_: str, status: str, known: tuple[str, ...]) -> str:
    return f"{did_you_mean(status, known)} Or list it below `statuses:` of `{type_}` in a file of .kb/schema/."


RULE: Final = Rule(
    UNKNOWN_STATUS,
    "warning",
    "Every status is one that the schema lists for the type of the entity; where it lists none, any will do.",
    _run,
    example="REQ-7 has the status 'finished', which no req has.",
    remedy="Give a status that the schema lists, or list this one below `statuses:` of the type.",
)
