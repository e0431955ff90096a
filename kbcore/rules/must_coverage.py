"""Rule ``must-coverage``: every requirement of priority must has a scenario and a test, or says why it needs none."""

from __future__ import annotations

from typing import Final

from kbcore.rules.not_applicable import reason
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.rules.statuses import RETIRED, has_status

_NEEDED: Final = (("specified_by", "scenario", "specified"), ("verified_by", "test", "verified"))


def _is_covered(edge: str, aspect: str) -> str:
    """Return the SQL condition that a requirement has such an edge, or says why it needs none."""
    has_it = f"exists (select 1 from link l where l.stands and l.type = '{edge}' and l.from_id = n.id)"  # noqa: S608 - constants
    return f"{has_it} or {reason('n.attributes', aspect)} is not null"


_SQL: Final = f"""
select n.id, n.path, {", ".join(_is_covered(edge, aspect) for edge, _, aspect in _NEEDED)}
from node n
where n.type = 'req' and lower(n.priority) = 'must' and not {has_status("n.status", RETIRED)}
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for id_, path, *covered in context.near(_SQL, []):
        for (edge, what, _), has_it in zip(_NEEDED, covered, strict=True):
            if not has_it:
                message = f"{id_} has priority must, but no {what} (no edge {edge})."
                found.append(Finding(id_, message, _hint(id_, path, edge, what), path, values=(edge,)))
    return found


def _hint(id_: str, path: str, edge: str, what: str) -> str:
    there = f"add `links: [{id_}]` to the front matter of the {what}"
    here = f", or `links: [{{{edge}: [ID]}}]` to {path}" if path else ""
    return f"Link it to its {what}: {there}{here}, and run `kb sync`."


RULE: Final = Rule(
    "must-coverage",
    "error",
    "Every requirement of priority must has a scenario (specified_by) and a test (verified_by), "
    "unless it says with a reason that this is not applicable. "
    f"Requirements that are {', '.join(RETIRED[:-1])} or {RETIRED[-1]} need none.",
    _run,
    example="REQ-7 has priority must, but no test (no edge verified_by).",
    remedy="Link the requirement to its scenario and to its test.",
)
