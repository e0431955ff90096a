"""Rules ``against-…``: what two revisions decide, each in its own way, before they are merged.

What they look at is no part of the state: ``kbcore.checks.against`` brings it along. Anywhere else they have nothing to
say.
"""

from __future__ import annotations

from typing import Final

from kbcore.errors.remedies import shell
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext


def _run(_: RuleContext) -> list[Finding]:
    raise NotApplicable("It compares with another revision, and none is named here.")


def _rule(name: str, description: str, example: str, remedy: str) -> Rule:
    said = f"{description} Runs with {shell('check', '--against', 'REF')}."
    return Rule(f"against-{name}", "error", said, _run, example=example, remedy=remedy)


ID: Final = _rule(
    "id",
    "No id was made on both sides of a merge for something else, and no entity was renamed to another id on each. "
    "No id is a former one of an entity of each side, or of one side where the other side made it.",
    "REQ-8 was made here (docs/requirements/login.md:2) and in origin/main (docs/requirements/logout.md:2).",
    f"Give the entity of this side another id ({shell('rename')}), and take the old one out of its `former_ids`. A "
    "former id is taken out of the `former_ids` of one of the two.",
)
FIELD: Final = _rule(
    "field",
    "No field was changed on both sides of a merge to different values, and nothing was changed on one side that the "
    "other side deleted. Tags and former ids may be.",
    "`status` of REQ-7 is 'approved' here (docs/requirements/7.md:4) and 'rejected' in origin/main "
    "(docs/requirements/7.md:4), and was another one before.",
    "Agree on one value, and state it on this side before the merge.",
)
EDGE: Final = _rule(
    "edge",
    "No edge was stated on one side of a merge to or from an entity that the other side deleted.",
    "SYM-2 implements REQ-7 was stated here (docs/symbols.yaml:12), and origin/main deleted REQ-7.",
    "Take the edge out, or bring the entity back.",
)
PACK: Final = _rule(
    "pack",
    "No change was packed on one side of a merge whose file the other side deleted: it would hold again.",
    "origin/main deleted .kb/changes/2026-10/….jsonl, and 2 changes of it are packed here.",
    "Take the changes back with KB after the merge.",
)
RULES: Final = (ID, FIELD, EDGE, PACK)
