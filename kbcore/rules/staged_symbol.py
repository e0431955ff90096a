"""Rule ``staged-symbol``: what is staged of the source code says which requirement it is for.

What it looks at is no part of the state: ``kbcore.checks.introduced`` brings it along. Anywhere else it has nothing to
say.
"""

from __future__ import annotations

from typing import Final

from kbcore.errors.remedies import shell
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext


def _run(_: RuleContext) -> list[Finding]:
    raise NotApplicable("It judges what is staged, and nothing is looked at as staged here.")


RULE: Final = Rule(
    "staged-symbol",
    "error",
    "Every staged symbol, and every staged file that `staged.symbols` names, says which requirement it implements: "
    f"by an edge, or by a comment `kb: implements ID`. Runs with {shell('check', '--staged')}.",
    _run,
    example="src/login.py names no requirement.",
    remedy="State which requirement it implements, in the manifest that lists the symbol or in a comment of the file.",
)
