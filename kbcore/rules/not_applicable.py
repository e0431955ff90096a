"""What a requirement says that it need not have, and why: only a reason that says something counts."""

from __future__ import annotations

from kbcore.schema import NOT_APPLICABLE


def reason(column: str, aspect: str) -> str:
    """Return the SQL for the reason that attributes give for an aspect, null where they give none.

    ``aspect`` is one of the schema's own words, so it stands in the statement.
    """
    place = f"'/{NOT_APPLICABLE}/{aspect}'"
    said = f"nullif(trim(json_extract_string({column}, {place}), ' \t\r\n'), '')"
    return f"(case when json_type({column}, {place}) = 'VARCHAR' then {said} end)"
