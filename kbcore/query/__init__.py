"""Queries: what can be asked, how it becomes SQL, and how the answer is paged."""

from __future__ import annotations

from kbcore.query.keys import project
from kbcore.query.paging import Page, Rows, page
from kbcore.query.request import DEFAULT_LIMIT, Pattern, Query, check, parse_pattern, parse_where
from kbcore.query.sql import Compiled, compile  # noqa: A004 - the verb, as in ``re.compile``

__all__ = [
    "DEFAULT_LIMIT",
    "Compiled",
    "Page",
    "Pattern",
    "Query",
    "Rows",
    "check",
    "compile",
    "page",
    "parse_pattern",
    "parse_where",
    "project",
]
