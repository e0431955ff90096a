"""Rule ``failing-test``: no requirement is verified by a test that failed when it was last run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kbcore.errors.remedies import kb
from kbcore.model.statuses import RETIRED, has_status
from kbcore.model.verdict import (
    COLUMNS,
    IS_FAILING,
    REQUIREMENT,
    TEST,
    VERDICT,
    VERIFIED_BY,
    Verdict,
    verdict_of,
    verdict_of_cells,
)
from kbcore.rules.look_ups import Look, is_retired
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.text.wording import shortened

_MESSAGE_CHARS: Final = 200
_SQL: Final = f"""
select r.id, r.path, n.id, {COLUMNS}
from node n join link l on l.to_id = n.id and l.is_resolved and l.type = '{VERIFIED_BY}'
join node r on r.id = l.from_id and r.type = '{REQUIREMENT}' and not {has_status("r.status", RETIRED)}
where n.type = '{TEST}' and {IS_FAILING} order by 1, 3
"""  # noqa: S608 - constants
_HINT: Final = (
    f"Correct what the test shows, or the test; run it, and {kb('results', 'FILE', lead='run')} with the new report."
)


def _run(context: RuleContext) -> list[Finding]:
    return _findings(
        (id_, path, test, verdict_of_cells(outcome, run)) for id_, path, test, outcome, run in context.near(_SQL, [])
    )


def _look(look: Look) -> list[Finding]:
    named = {link.from_id for link in look.links_of(VERIFIED_BY)} | look.nodes_with("type", "status")
    turned = look.nodes_with("type", VERDICT)
    named |= {edge.from_id for edge in look.side.into(turned, VERIFIED_BY)} if turned else set()
    requirements = {
        id_: node for id_, node in look.side.nodes(named).items() if node.type == REQUIREMENT and not is_retired(node)
    }
    edges = [one for one in look.side.out_of(requirements, VERIFIED_BY) if one.is_resolved] if requirements else []
    tests = look.side.nodes({edge.to_id for edge in edges}) if edges else {}
    return _findings(
        (edge.from_id, requirements[edge.from_id].path, edge.to_id, verdict_of(tests[edge.to_id].fields))
        for edge in sorted(edges, key=lambda one: (one.from_id, one.to_id))
        if edge.to_id in tests and tests[edge.to_id].type == TEST
    )


def _findings(rows: Iterable[tuple[str, str, str, Verdict | None]]) -> list[Finding]:
    found = []
    for id_, path, test, verdict in rows:
        if verdict is not None and verdict.is_failing:
            fails = f"{id_} is verified by {test}, but that test fails {verdict.failing_since()}".rstrip()
            said = verdict.message.partition("\n")[0]
            message = f"{fails}: {shortened(said, _MESSAGE_CHARS)}" if said else f"{fails}."
            found.append(Finding(id_, message, _HINT, path, frozenset({test}), values=(VERIFIED_BY, test)))
    return found


RULE: Final = Rule(
    "failing-test",
    "error",
    "No requirement is verified by a test that failed when it was last run, as `kb results` has recorded it. "
    f"Requirements that are {', '.join(RETIRED[:-1])} or {RETIRED[-1]} are passed over.",
    _run,
    example="REQ-7 is verified by TEST-3, but that test fails since 2026-11-20T09:30:00Z: expected 4, got 3",
    remedy="Correct what the test shows, or the test, and record the new results.",
    look=_look,
)
