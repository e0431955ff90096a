"""Verdicts of tests as analyses ask for them: of some tests, and of those that verify requirements and fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kbcore.model.verdict import COLUMNS, IS_FAILING, OUTCOME, TEST, VERIFIED_BY, Verdict, verdict_of_cells
from kbcore.query import sql
from kbcore.view.tables import Rows


class FailingTest(msgspec.Struct, frozen=True):
    """A test that failed when it was last run."""

    id: str
    verdict: Verdict

    @property
    def since(self) -> str:
        """Return since when it fails, as part of a sentence; "" where that is not known."""
        return self.verdict.failing_since()

    def as_json(self) -> dict[str, Any]:
        """Return the id with the members of the verdict that are set."""
        return {"id": self.id, **self.verdict.as_json()}


def verdicts_of(rows: Rows, at: int | None, ids: Sequence[str]) -> dict[str, Verdict]:
    """Return the verdicts of these tests as of a seq (None: the head), as far as they have any. One statement."""
    if not ids:
        return {}
    statement = sql.statement(at)
    condition = f"{OUTCOME} is not null and n.id in (select unnest({statement.bind([*ids])}::varchar[]))"
    found = rows(f"select n.id, {COLUMNS} from {statement.node} n where {condition}", statement.params)  # noqa: S608 - fixed names
    read = {id_: verdict_of_cells(outcome, run) for id_, outcome, run in found}
    return {id_: one for id_, one in read.items() if one is not None}


def failing_tests(
    rows: Rows, at: int | None, requirements: Sequence[str] | None = None
) -> dict[str, tuple[FailingTest, ...]]:
    """Return the failing tests of requirements that are verified by one, as of a seq (None: the head).

    With ``requirements`` only of these; both in the order of ids. One statement, linear in tests and edges.
    """
    statement = sql.statement(at)
    test = statement.bind(TEST)
    among = ""
    if requirements is not None:
        among = f" and l.from_id in (select unnest({statement.bind([*requirements])}::varchar[]))"
    found = rows(
        f"select l.from_id, n.id, {COLUMNS} from {statement.node} n "  # noqa: S608 - fixed names
        f"join {statement.link} l on l.to_id = n.id and l.is_resolved and l.type = '{VERIFIED_BY}' "
        f"where n.type = {test} and {IS_FAILING}{among} order by 1, 2",
        statement.params,
    )
    tests: dict[str, tuple[FailingTest, ...]] = {}
    for requirement, id_, outcome, run in found:
        verdict = verdict_of_cells(outcome, run)
        if verdict is not None:
            tests[requirement] = (*tests.get(requirement, ()), FailingTest(id_, verdict))
    return tests
