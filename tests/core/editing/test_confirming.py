"""An edge is confirmed for what was looked at, and for nothing that changed since."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.editing.confirming import confirm
from kbcore.editing.documents import WriteTarget
from kbcore.errors import StaleBase
from kbcore.store.write_request import Author
from tests.support.repository.project import Project, req

ONE, TWO = "docs/requirements/1.md", "docs/requirements/2.md"
EDGE = {"type": "depends_on", "from": "REQ-2", "to": "REQ-1"}


@pytest.fixture
def suspect(project: Project) -> Project:
    project.sync({ONE: req("REQ-1"), TWO: req("REQ-2")})
    project.apply(edges=[EDGE])
    project.sync({ONE: req("REQ-1", owner="ann")})
    return project


@pytest.mark.sliced(1)
@pytest.mark.parametrize("later", [req("REQ-1", owner="bob"), req("REQ-1", owner="ann") + "More.\n"])
def test_a_change_that_comes_while_an_edge_is_confirmed_is_not_confirmed(suspect: Project, later: str) -> None:
    store = suspect.workspace().store("main")

    def read(ask: Any) -> Any:
        answer = store.read(ask)
        suspect.sync({ONE: later})
        return answer

    target = WriteTarget(suspect.workspace(), "main", Author("ann", "cli", "kb/test"), read, follows_head=True)
    with pytest.raises(StaleBase) as reported:
        confirm(target, "REQ-2")
    assert "'REQ-1' changed at seq 4, after 3." in reported.value.message
    assert suspect.seq() == 4
    assert confirm(target._replace(read=store.read), "REQ-2").seq == 5


def test_an_edge_that_is_stated_again_confirms_no_change_after_the_expected_seq(suspect: Project) -> None:
    with pytest.raises(StaleBase):
        suspect.apply(edges=[EDGE], expected_seq=2)
    assert suspect.apply(edges=[EDGE], expected_seq=3).applied
