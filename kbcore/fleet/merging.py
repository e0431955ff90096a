"""Answers of many branches as one: rows with their repository, and coverage in groups. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from kbcore.fleet.local import Answer
from kbcore.model.schema import ASPECTS

By = Literal["requirement", "repo", "owner", "tag"]
_SHOWS: Final = dict.fromkeys(ASPECTS)


def rows_of(answers: Iterable[Answer], *, best_first: bool, limit: int) -> list[dict[str, Any]]:
    """Return the rows of queries, each with its repository: in the order of repositories, or with the best score first.

    A score compares entities of one repository: it depends on how often words are there.
    """
    found = [{"repo": one.repo, "branch": one.branch, **row} for one in answers for row in one.value.get("rows", ())]
    if best_first:
        found.sort(key=lambda row: (-row["score"], row["repo"], row["branch"], row["id"]))
    return found[:limit]


def violations_of(answers: Iterable[Answer]) -> list[dict[str, Any]]:
    """Return the violations of all branches, each with its repository, errors first."""
    found = [{"repo": one.repo, "branch": one.branch, **row} for one in answers for row in one.value["violations"]]
    return sorted(found, key=lambda row: str(row["severity"]))


def coverage_rows(answers: Iterable[Answer], by: By) -> list[dict[str, Any]]:
    """Return a row for each requirement, or for each group: how many have, lack or need not have an aspect.

    A requirement is in the group of each of its owners or tags; ``name`` is None for those that have none.
    """
    requirements = [
        {"repo": one.repo, "branch": one.branch, **row} for one in answers for row in one.value["requirements"]
    ]
    if by == "requirement":
        return [row | {"states": {name: state_of(row, name) for name in ASPECTS}} for row in requirements]
    groups: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for row in requirements:
        for name in (*_groups(row, by),) or (None,):
            groups[name].append(row)
    return [_group(name, groups[name]) for name in sorted(groups, key=lambda name: (name is None, name or ""))]


def lacking_rows(rows: Iterable[dict[str, Any]], aspects: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of which every one of these aspects is lacking: of a requirement, or of some of a group."""
    return [
        row
        for row in rows
        if all(row["states"][name] == "no" if "states" in row else row[name]["no"] for name in aspects)
    ]


def total_of(answers: Iterable[Answer]) -> dict[str, Any]:
    """Return the numbers of all requirements, each counted once."""
    return _group(None, [row for one in answers for row in one.value["requirements"]])


def _groups(row: dict[str, Any], by: By) -> Sequence[str]:
    return [row["repo"]] if by == "repo" else row["owners"] if by == "owner" else row["tags"]


def _group(name: str | None, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "requirements": len(rows)}
    for aspect in _SHOWS:
        states = [state_of(row, aspect) for row in rows]
        yes, no = states.count("yes"), states.count("no")
        percent = yes * 1000 // (yes + no) / 10 if yes + no else None
        found[aspect] = {"yes": yes, "no": no, "not_applicable": states.count("not_applicable"), "percent": percent}
    return found


def state_of(row: dict[str, Any], aspect: str) -> str:
    """Return the state of an aspect of a requirement, as ``coverage.Requirement.state``."""
    if row[aspect]:
        return "yes"
    return "not_applicable" if aspect in row["not_applicable"] else "no"
