"""Run the rules in force over a view: KB's own and the project's, at the levels that the configuration sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kbcore.errors import NotFound, Problem
from kbcore.rules import Report, RuleContext, check, load_rules
from kbcore.view.sandbox import Sandbox
from kbcore.view.view import View
from kbcore.visible import in_quotes
from kbcore.workspace import RULES, Workspace
from kbcore.writes import nearest_id

_KNOWN: Final = """
select a.id from unnest($1::varchar[]) as a(id)
where a.id in (select id from node union all select id from link union all select from_id from link
  union all select to_id from link union all select path from source)
"""
"""What a violation can be about: what is there, what a link names, and a file."""


def run_checks(workspace: Workspace, view: View, *, only: Sequence[str] = (), ids: Sequence[str] = ()) -> Report:
    """Return what the rules found; ``only`` names the rules to run, ``ids`` the entities to look at.

    Raises: ``NotFound`` for unknown ids or an unknown rule; ``InvalidConfig`` for settings or rules files that cannot
    be used.
    """
    _check_ids(view, ids)
    project = load_rules(workspace.texts_in(RULES))
    with Sandbox(view.lend, workspace.config.rule_time_s) as sandbox:
        context = RuleContext(view.rows, workspace.schema, frozenset(ids) or None, sandbox)
        return check(context, workspace.config.rules, only=only, project=project)


def _check_ids(view: View, ids: Sequence[str]) -> None:
    """Refuse ids of which nothing is known: the answer to a mistyped one would read as if nothing were wrong."""
    known = {row[0] for row in view.rows(_KNOWN, [list(ids)])} if ids else set()
    problems = []
    for at, key in enumerate(ids):
        if key not in known:
            near = nearest_id(view, key)
            hint = f"Did you mean {in_quotes(near)}?" if near else ""
            problems.append(Problem(f"$.ids[{at}]", "unknown_id", f"There is no {in_quotes(key)}.", hint))
    if problems:
        raise NotFound(problems[0].message, hint=problems[0].hint, details=problems if len(problems) > 1 else ())
