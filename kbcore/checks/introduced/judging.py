"""Two states judged by the rules in force now, and what the later one has that the earlier one had not."""

from __future__ import annotations

from kbcore.checks.introduced.compare import Introduced, introduced
from kbcore.checks.introduced.identity import numbers_in
from kbcore.rules import CheckReport
from kbcore.view.view import View

_NAMED = (
    "select id from unnest($1::varchar[]) as a(id) where id in "
    "(select id from node union all select from_id from link union all select to_id from link)"
)


def apart(was: CheckReport, now: CheckReport, before: View, after: View) -> Introduced:
    """Return what one report holds and an earlier one does not; a number that names something is no number."""
    numbers = numbers_in([*was.violations, *now.violations])
    names = {row[0] for view in (before, after) for row in view.rows(_NAMED, [sorted(numbers)])} if numbers else set()
    ids = {id_ for one in was.violations for id_ in (one.id, *one.values)}
    return introduced(was, now, names, after.renamed(ids) if ids else {})
