"""Shortcuts for what is undone, and for what prevents it."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.errors import RevertConflict
from kbcore.store.answers import Outcome
from kbcore.store.history import undo
from kbcore.store.history.undo import UndoOptions
from tests.support.repository.project import AUTHOR, Project


def revert(project: Project, *seqs: int, force: bool = False, **options: Any) -> Outcome:
    asked = UndoOptions(force=force, **options)
    return undo.revert(project.workspace(), "main", AUTHOR, seqs, asked, follows_head=True)


def rollback(project: Project, to_seq: int, **options: Any) -> Outcome:
    return undo.rollback(project.workspace(), "main", AUTHOR, to_seq, UndoOptions(**options), follows_head=True)


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id, **fields}


def conflicts(error: pytest.ExceptionInfo[RevertConflict]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = error.value.as_json()["conflicts"]
    return found
