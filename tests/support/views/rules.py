"""Runs one rule on a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kbcore import rules
from kbcore.model.schema import CORE, Schema
from kbcore.rules import CheckReport, RuleContext, Violation
from kbcore.rules.rule import BranchFiles
from tests.support.views.graph import Graph


def report_of(
    graph: Graph, rule: str, *, schema: Schema = CORE, ids: Iterable[str] | None = None, tree: BranchFiles | None = None
) -> CheckReport:
    """Return the report of one rule on a graph, which has no files unless a tree is given."""
    context = RuleContext(graph.rows, schema, None if ids is None else frozenset(ids), tree=tree)
    return rules.check(context, {}, only=[rule])


def violations(graph: Graph, rule: str, **around: Any) -> list[Violation]:
    """Return what a rule finds, with the options of ``report_of``; it must have been able to run."""
    report = report_of(graph, rule, **around)
    assert [run.status for run in report.rules] == ["ran"], report.rules
    return report.violations
