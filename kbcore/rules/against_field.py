"""Rule ``against-field``: no field was changed on both sides of a merge, to different values."""

from __future__ import annotations

from typing import Final

from kbcore.remedies import shell
from kbcore.rules.against_id import WHY_NOT
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext


def _run(_: RuleContext) -> list[Finding]:
    raise NotApplicable(WHY_NOT)


RULE: Final = Rule(
    "against-field",
    "error",
    "No field was changed on both sides of a merge to different values, and nothing was changed on one side that the "
    f"other side deleted. Tags and former ids may be. Runs with {shell('check', '--against', 'REF')}.",
    _run,
    example="`status` of REQ-7 is 'approved' here (docs/requirements/7.md:4) and 'rejected' in origin/main "
    "(docs/requirements/7.md:4), and was another one before.",
    remedy="Agree on one value, and state it on this side before the merge.",
)
