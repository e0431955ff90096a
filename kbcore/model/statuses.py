"""Statuses that take an entity out of service, for the rules that exempt or report them."""

from __future__ import annotations

import re
from typing import Final

RETIRED: Final = ("deprecated", "obsolete", "rejected", "removed", "retired", "superseded", "withdrawn")
"""Statuses of entities that need no more work."""

CLOSED: Final = (*RETIRED, "cancelled", "canceled", "closed", "completed", "done", "dropped", "finished", "resolved")
"""The first words of statuses of tasks that need no more work."""

OUTDATED: Final = ("deprecated", "superseded")
"""A decision with one of these should bind no work any more."""

TENTATIVE: Final = ("draft", "proposed", "rejected", "withdrawn")
"""A decision with one of these has not taken the place of another."""


def has_status(column: str, statuses: tuple[str, ...]) -> str:
    """Return the SQL condition that a status begins with one of these words, whatever its case.

    ``Superseded by ADR-7`` is superseded. The words are this module's own, so they stand in the statement.
    """
    listed = ", ".join(f"'{status}'" for status in statuses)
    return f"regexp_extract(lower(coalesce({column}, '')), '[a-z]+') in ({listed})"


def is_status(status: str, statuses: tuple[str, ...]) -> bool:
    """Tell what the condition of ``has_status`` does of the value of a column."""
    found = re.search("[a-z]+", status.lower())
    return found is not None and found[0] in statuses
