"""The outcomes of several reports, gathered for each test: the worst counts, and what no test matches is counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kbcore import limits
from kbcore.model.verdict import OUTCOMES, Outcome, Verdict, recorded_message
from kbcore.results.matching import KnownTests
from kbcore.results.reported import ReportedOutcome, worst

MAX_NAMED: Final = 10
"""Outcomes of one kind that are named; the rest is counted."""
MAX_VERIFIED: Final = 100_000
"""Pairs of a requirement and a test that the reports of one call may name."""
_MAX_SHOWN_CHARS: Final = 300
_DURATION_DIGITS: Final = 3


class Unmatched(msgspec.Struct, frozen=True):
    """An outcome that is recorded nowhere: its name and report; and the tests between which it cannot be decided."""

    name: str
    report: str
    line: int
    outcome: Outcome
    candidates: tuple[str, ...] = ()


class _Gathered:
    """The outcomes of one test."""

    __slots__ = ("at", "duration_s", "messages", "outcomes")

    def __init__(self) -> None:
        self.outcomes: set[Outcome] = set()
        self.at = ""
        self.duration_s: float | None = None
        self.messages: dict[Outcome, tuple[str, str]] = {}
        """By outcome, the first message in the order of names: runners that share tests out have no order."""

    def add(self, one: ReportedOutcome) -> None:
        self.outcomes.add(one.outcome)
        self.at = max(self.at, one.at)
        if one.duration_s is not None:
            self.duration_s = (self.duration_s or 0.0) + one.duration_s
        said = one.name, one.message
        self.messages[one.outcome] = min(self.messages.get(one.outcome, said), said)

    def verdict(self, now: str, commit: str) -> Verdict:
        outcome = worst(self.outcomes)
        message = self.messages[outcome][1] if outcome != "passed" else ""
        duration_s = None if self.duration_s is None else round(self.duration_s, _DURATION_DIGITS)
        # A time that is still to come is that of a clock which is ahead: it would make every later run an earlier one.
        at = min(self.at, now) if self.at else now
        return Verdict(outcome, at, commit, duration_s, recorded_message(message))


class CollectedOutcomes:
    """The outcomes so far. ``tests`` counts those that reports have, by outcome."""

    def __init__(self, names: KnownTests) -> None:
        self._names = names
        self._found: dict[str, _Gathered] = {}
        self.tests: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
        self.unmatched: list[Unmatched] = []
        self.unmatched_count = 0
        self.unmatched_failing = 0
        self.unknown_ids: dict[str, None] = {}
        self.verified: dict[tuple[str, str], None] = {}
        """Pairs of a requirement that a report names, by its text, and a test that verifies it."""

    @property
    def count(self) -> int:
        """Return how many tests the reports have."""
        return sum(self.tests.values())

    def add(self, reported: Iterable[ReportedOutcome], report: str) -> int:
        """Take in what a report has, and return how many tests that were. Raises: what reading the report raises."""
        before = self.count
        for one in reported:
            self._add(one, report)
        return self.count - before

    def _add(self, one: ReportedOutcome, report: str) -> None:
        self.tests[one.outcome] += 1
        for id_ in self._names.unknown_ids(one)[:MAX_NAMED]:
            if len(self.unknown_ids) < MAX_NAMED:
                self.unknown_ids[id_[:_MAX_SHOWN_CHARS]] = None
        match = self._names.match(one)
        for id_ in match.ids:
            self._found.setdefault(id_, _Gathered()).add(one)
        for key in one.requirements:
            self.verified |= dict.fromkeys((key[: limits.MAX_ID_CHARS], id_) for id_ in match.ids)
        if not match.ids:
            self.unmatched_count += 1
            self.unmatched_failing += one.outcome in {"failed", "error"}
            if len(self.unmatched) < MAX_NAMED:
                name = one.shown[:_MAX_SHOWN_CHARS]
                self.unmatched.append(Unmatched(name, report, one.line, one.outcome, match.candidates[:MAX_NAMED]))

    def verdicts(self, now: str, commit: str) -> dict[str, Verdict]:
        """Return the verdict of each test that a report has, by its id; ``now`` is the time where none is stated."""
        return {id_: one.verdict(now, commit) for id_, one in sorted(self._found.items())}
