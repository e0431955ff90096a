"""Fields that a requirement need not have, each with a reason: an empty reason does not count."""

from __future__ import annotations

from kbcore.model.graph import Node
from kbcore.model.schema import NOT_APPLICABLE


def reason_sql(column: str, aspect: str) -> str:
    """Return the SQL for the reason that attributes give for an aspect, null where they give none.

    ``aspect`` is one of the schema's own words, so it is part of the statement.
    """
    place = f"'/{NOT_APPLICABLE}/{aspect}'"
    said = f"nullif(trim(json_extract_string({column}, {place}), ' \t\r\n'), '')"
    return f"(case when json_type({column}, {place}) = 'VARCHAR' then {said} end)"


def reason_in(node: Node, aspect: str) -> str:
    """Return the reason that a node gives for an aspect, "" where it gives none."""
    said = node.fields.get(f"attributes.{NOT_APPLICABLE}")
    text = said.get(aspect) if isinstance(said, dict) else None
    return text.strip(" \t\r\n") if isinstance(text, str) else ""
