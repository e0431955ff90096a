"""A changeset that is only tried on a view meets what a commit would meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import LimitExceeded
from kbcore.model.read_set import NOTHING
from kbcore.model.record import PutNode
from kbcore.model.state import Draft, Stamp
from kbcore.store.dry_run import take
from kbcore.store.write_request import Planner, Request
from kbcore.view.view import View
from tests.support.repository.stores import AUTHOR, Stored, planner

NOW = "2026-11-20T09:30:00.000000Z"


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    made = Stored(tmp_path)
    made.put("A")
    with closing(made), closing(made.store.view_until(1)) as view:
        yield view


def titled(key: str, title: str) -> Planner:
    return planner([PutNode(id=key, base=0, set={"type": "req", "title": title})])


def test_what_is_tried_is_seen_by_what_is_tried_next(view: View) -> None:
    assert take(view, AUTHOR, Request(), titled("A", "New"), NOW)
    assert not take(view, AUTHOR, Request(), titled("A", "New"), NOW)
    assert view.seq == 2


def test_a_trial_is_refused_where_a_commit_would_be(view: View) -> None:
    with pytest.raises(LimitExceeded, match="the limit is 1000"):
        take(view, AUTHOR, Request(limit_bytes=1000), titled("B", "x" * 2000), NOW)
    assert view.seq == 1


def test_a_trial_that_did_not_look_at_what_it_changes_is_refused(view: View) -> None:
    def blind(view: View, stamp: Stamp) -> Draft:
        return msgspec.structs.replace(titled("A", "New")(view, stamp), loaded=NOTHING)

    with pytest.raises(AssertionError, match="without looking at"):
        take(view, AUTHOR, Request(), blind, NOW)
