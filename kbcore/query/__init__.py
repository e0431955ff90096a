"""Queries: what can be asked, how it becomes SQL, and how the answer is paged."""

from __future__ import annotations

from kbcore.query.conditions import UNREAD, Condition, conditions_of, parse_where
from kbcore.query.data_names import DataNames
from kbcore.query.keys import project, shown_entity, without_provenance
from kbcore.query.paging import Page, page, page_of, stale_ids
from kbcore.query.request import NO_PATTERN, Pattern, Query, check, empty_problems, parse_each, parse_pattern, refuse
from kbcore.query.sql import PageStatements, compile  # noqa: A004 - the verb, as in ``re.compile``
from kbcore.query.text.results import Snippet, TextMatch

__all__ = [
    "NO_PATTERN",
    "UNREAD",
    "Condition",
    "DataNames",
    "Page",
    "PageStatements",
    "Pattern",
    "Query",
    "Snippet",
    "TextMatch",
    "check",
    "compile",
    "conditions_of",
    "empty_problems",
    "page",
    "page_of",
    "parse_each",
    "parse_pattern",
    "parse_where",
    "project",
    "refuse",
    "shown_entity",
    "stale_ids",
    "without_provenance",
]
