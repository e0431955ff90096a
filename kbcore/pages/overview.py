"""The overview of a branch: what there is, how far requirements are covered, what rules find, and the last records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore.query.conflicts import ContestedValue
from kbcore.query.coverage import Counts, CoverageGroup
from kbcore.rules import CheckReport, Severity
from kbcore.store.history.log import log
from kbcore.view.view import View

LAST_RECORDS: Final = 10
_TYPES: Final = "select coalesce(type, ''), coalesce(status, ''), count(*) from node group by all order by all"


class TypeCount(msgspec.Struct, frozen=True):
    """The number of entities of a type, in all and by their status."""

    type: str
    total: int
    statuses: tuple[tuple[str, int], ...]


class RuleCount(msgspec.Struct, frozen=True):
    """The findings of one rule. ``status`` is that of its run, ``reason`` why it could not run."""

    rule: str
    severity: Severity
    violations: int
    status: str
    reason: str = ""


class Overview(msgspec.Struct, frozen=True):
    """The overview of a branch as of a seq; ``records`` are the last ones, newest first, as ``kb log`` has them."""

    types: tuple[TypeCount, ...]
    edges: int
    requirements: CoverageGroup
    retired: int
    rules: tuple[RuleCount, ...]
    is_ok: bool
    suppressed: int
    in_baseline: int
    conflicts: int
    records: tuple[dict[str, Any], ...]

    @property
    def entities(self) -> int:
        """Return how many entities there are."""
        return sum(one.total for one in self.types)

    @property
    def errors(self) -> int:
        """Return how many violations are errors."""
        return sum(one.violations for one in self.rules if one.severity == "error")

    @property
    def warnings(self) -> int:
        """Return how many violations are warnings."""
        return sum(one.violations for one in self.rules if one.severity == "warning")

    def as_json(self) -> dict[str, Any]:
        """Return the overview as JSON."""
        return {
            "entities": {one.type: {"total": one.total, "statuses": dict(one.statuses)} for one in self.types},
            "edges": self.edges,
            "requirements": {**self.requirements.as_json(), "retired": self.retired},
            "check": {
                "ok": self.is_ok,
                "errors": self.errors,
                "warnings": self.warnings,
                "suppressed": self.suppressed,
                "in_baseline": self.in_baseline,
                "rules": {one.rule: one.violations for one in self.rules},
            },
            "conflicts": self.conflicts,
            "records": list(self.records),
        }


def read_overview(view: View, counts: Counts, report: CheckReport, conflicts: Sequence[ContestedValue]) -> Overview:
    """Return the overview of the branch of a view, with what its requirements, rules and conflicts are."""
    statuses: dict[str, list[tuple[str, int]]] = {}
    for type_, status, count in view.rows(_TYPES, []):
        statuses.setdefault(type_, []).append((status, count))
    types = tuple(TypeCount(name, sum(count for _, count in found), tuple(found)) for name, found in statuses.items())
    edges = view.rows("select count(*) from link where is_resolved", [])[0][0]
    return Overview(
        types,
        edges,
        counts.total,
        counts.retired,
        count_rules(report),
        report.ok,
        report.suppressed,
        report.in_baseline,
        len(conflicts),
        tuple(log(view, limit=LAST_RECORDS)),
    )


def count_rules(report: CheckReport) -> tuple[RuleCount, ...]:
    """Return what each rule found that ran or could not, in the order of the rules."""
    found = Counter(one.rule for one in report.violations)
    severities = {one.rule: one.severity for one in report.violations}
    return tuple(
        RuleCount(run.id, severities.get(run.id, run.severity), found[run.id], run.status, run.reason)
        for run in report.rules
        if run.status in {"ran", "not_run"}
    )
