"""The pages by their addresses, and those that each page leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kbweb.server.pages.coverage import coverage, matrix, overview, requirements
from kbweb.server.pages.entities import entities
from kbweb.server.pages.entity import entity
from kbweb.server.pages.findings import conflicts, violations
from kbweb.server.pages.history import activity, changes, preview, record, records
from kbweb.server.pages.page import PageOf
from kbweb.server.pages.review import review

PAGES: Final[Mapping[str, PageOf]] = {
    "/": overview,
    "/coverage": coverage,
    "/requirements": requirements,
    "/matrix": matrix,
    "/violations": violations,
    "/conflicts": conflicts,
    "/review": review,
    "/entities": entities,
    "/entity/{key:path}": entity,
    "/records": records,
    "/record/{key}": record,
    "/record/{key}/revert": preview,
    "/changes": changes,
    "/activity": activity,
}
"""The pages by their addresses."""
NAVIGATION: Final = {
    "overview": "Overview",
    "coverage": "Coverage",
    "requirements": "Requirements",
    "matrix": "Matrix",
    "violations": "Violations",
    "conflicts": "Conflicts",
    "review": "Review",
    "entities": "Entities",
    "records": "Records",
    "changes": "Changes",
    "activity": "Activity",
}
"""The pages that each page leads to, with their titles."""
