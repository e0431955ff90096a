"""Run the rules in force over a view: KB's own and the project's, at the levels that the configuration sets."""

from __future__ import annotations

from collections.abc import Sequence

from kbcore.rules import Report, RuleContext, check, load_rules
from kbcore.view.view import View
from kbcore.workspace import RULES, Workspace


def run_checks(
    workspace: Workspace, view: View, *, only: Sequence[str] = (), ids: frozenset[str] | None = None
) -> Report:
    """Return what the rules found; ``only`` names the rules to run, ``ids`` the entities to look at.

    Raises: ``NotFound`` for an unknown rule; ``InvalidConfig`` for settings or rules files that cannot be used.
    """
    context = RuleContext(view.rows, workspace.schema, ids)
    project = load_rules(workspace.texts_in(RULES))
    return check(context, workspace.config.rules, only=only, project=project)
