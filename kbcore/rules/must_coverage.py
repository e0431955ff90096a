"""Rule ``must-coverage``: every requirement of priority must has a scenario and a test."""

from __future__ import annotations

from typing import Final

from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.rules.statuses import RETIRED, has_status

_NEEDED: Final = (("specified_by", "scenario"), ("verified_by", "test"))
_SQL: Final = f"""
select n.id, n.path,
  exists (select 1 from link l where l.stands and l.type = '{_NEEDED[0][0]}' and l.from_id = n.id),
  exists (select 1 from link l where l.stands and l.type = '{_NEEDED[1][0]}' and l.from_id = n.id)
from node n
where n.type = 'req' and lower(n.priority) = 'must' and not {has_status("n.status", RETIRED)}
"""  # noqa: S608 - no text from outside


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for id_, path, *covered in context.rows(_SQL, []):
        for (edge, what), has_it in zip(_NEEDED, covered, strict=True):
            if not has_it:
                message = f"{id_} has priority must, but no {what} (no edge {edge})."
                found.append(Finding(id_, message, _hint(id_, path, edge, what), path))
    return found


def _hint(id_: str, path: str, edge: str, what: str) -> str:
    there = f"add `links: [{id_}]` to the front matter of the {what}"
    here = f", or `links: [{{{edge}: [ID]}}]` to {path}" if path else ""
    return f"Link it to its {what}: {there}{here}, and run `kb sync`."


RULE: Final = Rule(
    "must-coverage",
    "error",
    "Every requirement of priority must has a scenario (specified_by) and a test (verified_by). "
    f"Requirements that are {', '.join(RETIRED[:-1])} or {RETIRED[-1]} need none.",
    _run,
)
