"""Rules: what `kb check` says about the state of a branch, each rule in a file of its own."""

from __future__ import annotations

from kbcore.rules.registry import NAMES, ON_DEMAND, RULES, Level, Report, RuleRun, Violation, check, look
from kbcore.rules.rule import Finding, Rule, RuleContext, Severity
from kbcore.rules.rulesfile import load_rules

__all__ = [
    "NAMES",
    "ON_DEMAND",
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
    "look",
]
