"""The contested fields of a branch in SQL, and the commands that decide one, each with the value that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kbcore.errors.remedies import EdgeWords, decision, kb
from kbcore.model.claims.fold import DELETED, ID
from kbcore.secrets import masked_in
from kbcore.text.escaping import json_text
from kbcore.text.wording import shortened

CONTESTED_ROWS: Final = """
select id, id, '', id, '', '', contested from node where contested <> '{}'
union all
select id, from_id || ' ' || type || case when kind = '' then ' ' else ':' || kind || ' ' end || to_id, type, from_id,
  to_id, kind, contested
from link where contested <> '{}'
"""
"""Of each contested element: its id, its name, and its fields; of an edge type, ends and kind, of an entity its id."""
_VALUE_CHARS: Final = 40
_SHOWN: Final = 3


def choices(key: str, field: str, values: Sequence[Mapping[str, Any]], edge: EdgeWords | None = None) -> str:
    """Return what decides a conflict, as the end of a sentence: a command for each of the first values, as marks.

    ``edge`` is what names an edge for tools, whose id ``key`` is.
    """
    if field == DELETED:
        return f"{decision(key, field, 'keep')} keeps it, {kb('delete', key)} deletes it."
    if field == ID:
        others = [str(value["value"]) for value in values if value.get("value", key) != key]
        said = [f"{decision(key, field, 'keep')} keeps this id"]
        said += [f"{kb('rename', key, other)} takes the other one" for other in others[:_SHOWN]]
        return f"{', '.join(said)}."
    said = [
        f"{decision(key, field, str(number), edge)} takes {shown_value(value, field)}"
        for number, value in enumerate(values[:_SHOWN], 1)
    ]
    more = f", {kb('resolve', key)} lists all" if len(values) > _SHOWN else ""
    return f"{', '.join(said)}{more}."


def shown_value(value: Mapping[str, Any], field: str) -> str:
    """Return a value of a conflict as text, "no value" where it is removed; secrets are masked."""
    return shortened(json_text(masked_in(value["value"], field)), _VALUE_CHARS) if "value" in value else "no value"
