"""Rule ``against-id``: no id was made on both sides of a merge.

What it looks at is no part of the state: ``kbcore.checks.against`` brings it along. Anywhere else it has nothing to
say.
"""

from __future__ import annotations

from typing import Final

from kbcore.remedies import shell
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext

WHY_NOT: Final = "It compares with another revision, and none is named here."


def _run(_: RuleContext) -> list[Finding]:
    raise NotApplicable(WHY_NOT)


RULE: Final = Rule(
    "against-id",
    "error",
    "No id was made on both sides of a merge for something else, and no entity was renamed to another id on each. "
    f"Runs with {shell('check', '--against', 'REF')}.",
    _run,
    example="REQ-8 was made here (docs/requirements/login.md:2) and in origin/main (docs/requirements/logout.md:2).",
    remedy="Give the entity of this side another id (`kb rename`), and take the old one out of its `former_ids`.",
)
