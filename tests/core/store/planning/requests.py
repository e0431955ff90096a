"""Requests of clients as plain values."""

from __future__ import annotations

from typing import Any

from kbcore.errors import (
    KBError,
)
from kbcore.model.changeset import Changeset


def req(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(name: str, from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": name, "from": from_id, "to": to_id, **fields}


def faults(found: KBError | Changeset) -> set[tuple[str, str]]:
    problems = found.problems if isinstance(found, Changeset) else found.details
    assert len({problem.path for problem in problems}) == len(problems)
    return {(problem.path, problem.code) for problem in problems}
