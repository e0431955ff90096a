"""Rule ``conflict``: changes that have not seen each other agree on every field.

A change file that could not be read is reported too: nobody knows whether its changes agree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from kbcore.errors.remedies import EdgeWords, kb, shell
from kbcore.extract.changes import OF_CHANGES
from kbcore.model.claims.fold import DELETED, ID
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.view.contested import CONTESTED_ROWS, choices, shown_value

_NONE: Final = "{}"
_SQL: Final = f"""{CONTESTED_ROWS}union all
select path, '', '', '', '', '', '{_NONE}' from source where not is_ok and {OF_CHANGES[0]}
"""  # noqa: S608 - no text from outside
"""Of each contested element what ``CONTESTED_ROWS`` says; of a change file that could not be read, the path."""
UNREAD: Final = "unread"


def _run(context: RuleContext) -> list[Finding]:
    rows = context.near(_SQL, [])
    ids = {row[0] for row in rows if row[-1] != _NONE and not row[2]}
    made = context.creations(ids) if ids else {}
    found = []
    for row in rows:
        more = _separation(made.get(row[0], ()))
        found += [_finding(row, field, values, more) for field, values in _fields(row[-1])] or [_unread(row[0])]
    return found


def _separation(made: Sequence[tuple[str, str]]) -> str:
    """Return how things that got one id are separated, as a sentence; "" where changes made one of them at most."""
    if not made:
        return ""
    by = " and ".join(f"{name} by {actor}" for name, actor in made)
    return f" It was made more than once, {by}: if these are several things, {kb('rename', made[-1][0], 'NEW')}."


def _unread(path: str) -> Finding:
    message = "The change file could not be read, so its changes were not compared with others."
    remedy = f"{kb('check', '--rule', 'unreadable-source')} says why, and what to do."
    return Finding(path, message, remedy, path, code=UNREAD, names_id=False)


def _fields(contested: str) -> list[tuple[str, list[dict[str, Any]]]]:
    return sorted(json.loads(contested).items())


def _finding(row: tuple[Any, ...], field: str, values: list[dict[str, Any]], more: str) -> Finding:
    key, name, type_, subject, other, kind, _ = row
    changes = [change for value in values for change in value.get("changes", [value])]
    if field == DELETED:
        who = " and ".join(dict.fromkeys(str(one["actor"]) for one in values))
        message = f"{name} was deleted by {who}, who had not seen all changes of it."
    else:
        what = "The id" if field == ID else f"`{field}`"
        said = "; ".join(_said(value, field) for value in values)
        message = f"{what} of {name} is contested: {said}."
    edge = EdgeWords(type_, subject, other, kind) if type_ else None
    remedy = f"Decide: {choices(key, field, values, edge)}{more}"
    file = min((str(one["file"]) for one in changes if "file" in one), default="")
    concerns = frozenset({other} - {""})
    return Finding(subject, message, remedy, file, concerns, field=field, values=(name,))


def _said(value: dict[str, Any], field: str) -> str:
    who = ", ".join(dict.fromkeys(str(one["actor"]) for one in value["changes"]))
    return f"{shown_value(value, field)} by {who}"


RULE: Final = Rule(
    "conflict",
    "error",
    "No field is contested: changes that have not seen each other give it one value, and none of them deletes what "
    "another changes. A change file that could not be read is named, as its changes are not compared.",
    _run,
    example='`title` of REQ-7 is contested: "Refund" by ann; "Pay back" by bob.',
    remedy=f"Decide which value holds: {shell('resolve')} lists the values, and takes one of them.",
    sees_proposals=True,
)
