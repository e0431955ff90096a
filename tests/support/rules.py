"""Runs one rule on a graph."""

from __future__ import annotations

from collections.abc import Iterable

from kbcore import rules
from kbcore.rules import RuleContext, Violation
from kbcore.schema import CORE, Schema
from tests.support.graph import Graph


def violations(graph: Graph, rule: str, *, schema: Schema = CORE, ids: Iterable[str] | None = None) -> list[Violation]:
    """Return what a rule finds; it must have been able to run."""
    context = RuleContext(graph.rows, schema, None if ids is None else frozenset(ids))
    report = rules.check(context, {}, only=[rule])
    assert [run.status for run in report.rules] == ["ran"], report.rules
    return report.violations
