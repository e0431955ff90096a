"""Violations by rule, and those of one rule that are the same problem together: what a report shows first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kbcore.rules import Violation
from kbcore.rules.rule import Severity
from kbcore.text.problems import MORE

FEW: Final = 5
"""The most violations of a rule shown one by one; of more, the most kinds."""


class Alike(NamedTuple):
    """A violation, and the others of the same kind that share its entry."""

    first: Violation
    others: Sequence[Violation] = ()

    @property
    def elsewhere(self) -> list[Violation]:
        """Return the others by what they are about and where: none is named twice, nor what the first one names."""
        places = {(self.first.id, self.first.source): self.first}
        for one in self.others:
            places.setdefault((one.id, one.source), one)
        return [*places.values()][1:]

    @property
    def shared(self) -> str:
        """Return the field and the values that all of them have in common, "" where they have none."""
        return " ".join(one for one in (self.first.field, *self.first.values) if one)


class RuleGroup(NamedTuple):
    """The shown violations of one rule, and their number in all."""

    rule: str
    severity: Severity
    shown: list[Alike]
    total: int
    is_cut: bool = False
    """True if there are more than ``total``, as ``is_cut`` says."""

    @property
    def hidden(self) -> int:
        """Return how many violations are in no entry that is shown."""
        return self.total - sum(1 + len(one.others) for one in self.shown)


def is_cut(violations: Iterable[Violation]) -> bool:
    """Return whether one of them represents further ones: of a file with very many problems only the first are kept."""
    return any(one.code == MORE for one in violations)


def by_rule(violations: Sequence[Violation]) -> dict[tuple[Severity, str], list[Violation]]:
    """Return the violations of each severity and rule, in their order."""
    groups: dict[tuple[Severity, str], list[Violation]] = {}
    for one in violations:
        groups.setdefault((one.severity, one.rule), []).append(one)
    return groups


def grouped(violations: Sequence[Violation], limit: int | None = None, *, few: int = FEW) -> list[RuleGroup]:
    """Return what to show of each rule: ``limit`` violations one by one, else those of one kind together.

    Without a limit up to ``few`` violations of a rule are shown one by one, and of more the first ``few`` kinds.
    """
    groups = []
    for (severity, rule), found in by_rule(violations).items():
        if limit is not None or len(found) <= few:
            alike = [Alike(one) for one in found[:limit]]
        else:
            kinds: dict[tuple[str, ...], list[Violation]] = {}
            for one in found:
                kinds.setdefault(one.kind, []).append(one)
            alike = [Alike(first, others) for first, *others in kinds.values()][:few]
        groups.append(RuleGroup(rule, severity, alike, len(found), is_cut(found)))
    return groups


def statistics(violations: Sequence[Violation]) -> list[tuple[str, str, int]]:
    """Return each rule that was broken with its severity and how often, errors first, then the most frequent."""
    rows = [(rule, severity, len(found)) for (severity, rule), found in by_rule(violations).items()]
    return sorted(rows, key=lambda row: (row[1], -row[2], row[0]))
