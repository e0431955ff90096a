"""Answers of many branches as one: rows with their repository, and coverage in groups. Pure.

Each answer is looked at once, and only what is shown is kept: the memory is that of what is shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from kbcore.fleet.local import Answer
from kbcore.model.schema import ASPECTS

By = Literal["requirement", "repo", "owner", "tag"]


class MergedRows(NamedTuple):
    """The rows that are shown, and how many there are."""

    rows: list[dict[str, Any]]
    total: int


class MergedReport(NamedTuple):
    """The violations of all branches, errors first; how many branches there are; the rules that could not run."""

    violations: list[dict[str, Any]]
    branches: int
    not_run: list[dict[str, Any]]


class MergedCoverage(NamedTuple):
    """A row for each requirement or group; the numbers of all requirements, each counted once; how many are retired."""

    rows: list[dict[str, Any]]
    total: dict[str, Any]
    retired: int


def merged_rows(answers: Iterable[Answer], *, best_first: bool, limit: int) -> MergedRows:
    """Return the first rows of queries, each with its repository: in the order of answers, or the best score first.

    A score compares entities of one repository: it depends on how often words are there.
    """
    rows, total = list[dict[str, Any]](), 0
    for one in answers:
        total += one.value["total"]
        new = (_named(one, row) for row in one.value.get("rows", ()))
        if best_first:
            rows = sorted([*rows, *new], key=lambda row: (-row["score"], row["repo"], row["branch"], row["id"]))[:limit]
        else:
            rows += islice(new, limit - len(rows))
    return MergedRows(rows, total)


def merged_report(answers: Iterable[Answer]) -> MergedReport:
    """Return the reports of the rules as one."""
    violations, not_run, branches = list[dict[str, Any]](), list[dict[str, Any]](), 0
    for one in answers:
        branches += 1
        violations += (_named(one, row) for row in one.value["violations"])
        not_run += (_named(one, run) for run in one.value["rules"] if run["status"] == "not_run")
    return MergedReport(sorted(violations, key=lambda row: str(row["severity"])), branches, not_run)


def coverage_of(answers: Iterable[Answer], by: By) -> MergedCoverage:
    """Return a row for each requirement, or for each group: how many have, lack or need not have an aspect.

    A requirement is in the group of each of its owners or tags; ``name`` is None for those that have none.
    """
    rows, retired, total = list[dict[str, Any]](), 0, _Tally()
    groups: dict[str | None, _Tally] = defaultdict(_Tally)
    for one in answers:
        retired += one.value["retired"]
        for row in one.value["requirements"]:
            states = {name: state_of(row, name) for name in ASPECTS}
            total.add(states)
            if by == "requirement":
                rows.append(_named(one, row) | {"states": states})
                continue
            for name in (*_groups(one, row, by),) or (None,):
                groups[name].add(states)
    ordered = sorted(groups, key=lambda name: (name is None, name or ""))
    return MergedCoverage(rows or [groups[name].shown(name) for name in ordered], total.shown(None), retired)


def _named(answer: Answer, row: dict[str, Any]) -> dict[str, Any]:
    return {"repo": answer.repo, "branch": answer.branch, **row}


def lacking_rows(rows: Iterable[dict[str, Any]], aspects: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of which every one of these aspects is lacking: of a requirement, or of some of a group."""
    return [
        row
        for row in rows
        if all(row["states"][name] == "no" if "states" in row else row[name]["no"] for name in aspects)
    ]


def _groups(answer: Answer, row: dict[str, Any], by: By) -> Sequence[str]:
    return [answer.repo] if by == "repo" else row["owners"] if by == "owner" else row["tags"]


class _Tally:
    """The number of requirements of a group in each state of each aspect."""

    def __init__(self) -> None:
        self.requirements = 0
        self.states: Counter[tuple[str, str]] = Counter()

    def add(self, states: dict[str, str]) -> None:
        self.requirements += 1
        self.states.update(states.items())

    def shown(self, name: str | None) -> dict[str, Any]:
        found: dict[str, Any] = {"name": name, "requirements": self.requirements}
        for aspect in ASPECTS:
            yes, no, other = (self.states[aspect, state] for state in ("yes", "no", "not_applicable"))
            percent = yes * 1000 // (yes + no) / 10 if yes + no else None
            found[aspect] = {"yes": yes, "no": no, "not_applicable": other, "percent": percent}
        return found


def state_of(row: dict[str, Any], aspect: str) -> str:
    """Return the state of an aspect of a requirement, as ``coverage.Requirement.state``."""
    if row[aspect]:
        return "yes"
    return "not_applicable" if aspect in row["not_applicable"] else "no"
