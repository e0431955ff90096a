"""Rule ``against-edge``: no edge was stated on one side of a merge to what the other side deleted."""

from __future__ import annotations

from typing import Final

from kbcore.remedies import shell
from kbcore.rules.against_id import WHY_NOT
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext


def _run(_: RuleContext) -> list[Finding]:
    raise NotApplicable(WHY_NOT)


RULE: Final = Rule(
    "against-edge",
    "error",
    "No edge was stated on one side of a merge to or from an entity that the other side deleted. "
    f"Runs with {shell('check', '--against', 'REF')}.",
    _run,
    example="SYM-2 implements REQ-7 was stated here (docs/symbols.yaml:12), and origin/main deleted REQ-7.",
    remedy="Take the edge out, or bring the entity back.",
)
