"""Rules: what `kb check` says about the state of a branch, each rule in a file of its own, or beside similar ones."""

from __future__ import annotations

from kbcore.rules.registry import (
    NAMES,
    ON_DEMAND,
    RULES,
    CheckReport,
    Level,
    RuleRun,
    Violation,
    check,
    check_names,
    look,
)
from kbcore.rules.rule import Finding, Rule, RuleContext, Severity
from kbcore.rules.rules_file import load_rules

__all__ = [
    "NAMES",
    "ON_DEMAND",
    "RULES",
    "CheckReport",
    "Finding",
    "Level",
    "Rule",
    "RuleContext",
    "RuleRun",
    "Severity",
    "Violation",
    "check",
    "check_names",
    "load_rules",
    "look",
]
