"""Rule ``against-pack``: no change was packed on one side of a merge whose file the other side deleted."""

from __future__ import annotations

from typing import Final

from kbcore.remedies import shell
from kbcore.rules.against_id import WHY_NOT
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext


def _run(_: RuleContext) -> list[Finding]:
    raise NotApplicable(WHY_NOT)


RULE: Final = Rule(
    "against-pack",
    "error",
    "No change was packed on one side of a merge whose file the other side deleted: it would hold again. "
    f"Runs with {shell('check', '--against', 'REF')}.",
    _run,
    example="origin/main deleted .kb/changes/2026-10/….jsonl, and 2 changes of it are packed here.",
    remedy="Take the changes back with KB after the merge.",
)
