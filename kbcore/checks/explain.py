"""The explanation of one rule: what it asks for, where its severity comes from, and how often it is broken now."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kbcore.checks import place_for_prolog, rule_named, rule_times, run_checks
from kbcore.checks.trials import TrialRun, run_trials
from kbcore.config.user import UserLimits
from kbcore.rules import load_rules
from kbcore.rules.project import ProjectRule, Value
from kbcore.store.settings_files import RULES
from kbcore.store.workspace import Workspace
from kbcore.view.view import View

CORE: Final = "KB"
"""The source of rules, severities and limits by default."""


class ShownParameter(msgspec.Struct, frozen=True):
    """A parameter of a rule: the value in force, what says so (file and line), and the default."""

    name: str
    value: Value
    source: str
    default: Value


class Explained(msgspec.Struct, frozen=True):
    """A rule in full. A ``source`` is a file and line, or ``KB``.

    ``level`` is what the configuration makes of the rule, ``off`` where it turns it off. ``violations`` counts those of
    now, without those ``in_baseline`` and ``suppressed``; ``status`` and ``reason`` are those of the run that counted
    them. The last members are of a project's rules.
    """

    id: str
    description: str
    source: str
    level: Literal["error", "warning", "off"]
    level_source: str
    severity: Literal["error", "warning"]
    example: str
    remedy: str
    status: str
    reason: str
    violations: int
    in_baseline: int
    suppressed: int
    params: tuple[ShownParameter, ...] = ()
    sql: str = ""
    prolog: str = ""
    """The text of the whole file that states it."""
    time_limit_seconds: float | None = None
    time_limit_source: str = ""
    tests: tuple[TrialRun, ...] = ()


def explain(workspace: Workspace, view: View, name: str, *, branch: str) -> Explained:
    """Return what there is to say of a rule, with the tests that it brings along and its violations in a branch.

    Raises: ``NotFound`` for an unknown rule; ``InvalidConfig``.
    """
    rule = rule_named(workspace, name)
    report = run_checks(workspace, view, branch=branch, only=[name])
    config = workspace.config
    most = workspace.user.limits
    own = rule if isinstance(rule, ProjectRule) else None
    found = Explained(
        id=rule.id,
        description=rule.description,
        source=own.source if own else CORE,
        level=config.rules.get(name, rule.severity),
        level_source=config.rules_at.get(name, own.severity_at if own else CORE),
        severity=rule.severity,
        example=rule.example,
        remedy=rule.remedy,
        status=report.rules[0].status,
        reason=report.rules[0].reason,
        violations=len(report.violations),
        in_baseline=report.in_baseline,
        suppressed=report.suppressed,
    )
    if own is None:
        return found
    return msgspec.structs.replace(
        found,
        params=tuple(ShownParameter(one.name, one.value, one.source, one.default) for one in own.params),
        sql=own.sql.strip(),
        prolog=own.prolog.strip("\n"),
        time_limit_seconds=min(own.time_s or config.rule_time_s, most.rule_time_s),
        time_limit_source=_time_source(own, config.rule_time_s, most),
        tests=tuple(try_rules(workspace, [name])),
    )


def _time_source(rule: ProjectRule, usual_s: float, most: UserLimits) -> str:
    if (rule.time_s or usual_s) > most.rule_time_s:
        return most.name_of("rule_time_s")
    return rule.time_at if rule.time_s else "`ruleTimeLimitSeconds`"


def try_rules(workspace: Workspace, only: list[str]) -> list[TrialRun]:
    """Return how the tests of the project's rules end, of all or of these.

    Raises: ``NotFound`` for an unknown rule; ``InvalidConfig``.
    """
    for name in only:
        rule_named(workspace, name)
    # A rule is tested as its file has it, whatever the settings say to its parameters.
    rules = load_rules(workspace.texts_in(RULES))
    asked = [rule for rule in rules if not only or rule.id in only]
    return run_trials(
        asked,
        workspace.schema,
        rule_times(workspace),
        lambda view, of, left: place_for_prolog(workspace, view, workspace.schema, of, left),
    )
