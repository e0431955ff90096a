"""A store that is not where it was: the guard is asked why, and if it knows nothing the refusal remains."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import BranchMoved, UnknownBranch
from kbcore.model.record import PutNode
from kbcore.store.write_request import Request
from tests.support.repository.stores import AUTHOR, Stored, planner

REQUEST = Request(lock_wait_s=0)
PLAN = planner([PutNode(id="A", base=0, set={"type": "req", "title": "A"})])


def test_a_guard_says_why_a_store_is_gone_and_otherwise_the_refusal_remains(tmp_path: Path) -> None:
    made = Stored(tmp_path)
    made.directory.rename(tmp_path / "elsewhere")
    asked: list[str] = []
    with pytest.raises(UnknownBranch):
        made.store.commit(AUTHOR, REQUEST, PLAN, guard=lambda: asked.append("?"), branch="main")
    assert asked == ["?"]

    def moved() -> None:
        raise BranchMoved("renamed")

    with pytest.raises(BranchMoved):
        made.store.commit(AUTHOR, REQUEST, PLAN, guard=moved, branch="main")
    with pytest.raises(UnknownBranch):
        made.store.commit(AUTHOR, REQUEST, PLAN, branch="main")
    made.close()
