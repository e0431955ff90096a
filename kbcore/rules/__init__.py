"""Rules: what `kb check` says about the state of a branch, each rule in a file of its own."""

from __future__ import annotations

from kbcore.rules.project import load_rules
from kbcore.rules.registry import NAMES, RULES, Level, Report, RuleRun, Violation, check
from kbcore.rules.rule import Finding, Rule, RuleContext, Severity

__all__ = [
    "NAMES",
    "RULES",
    "Finding",
    "Level",
    "Report",
    "Rule",
    "RuleContext",
    "RuleRun",
    "Severity",
    "Violation",
    "check",
    "load_rules",
]
