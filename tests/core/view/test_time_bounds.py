"""A write whose statements take too long, or that is stopped: whole or absent, and the branch is free again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import StatementTimeout
from kbcore.model.record import PutNode
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.storage import lock
from kbcore.storage.layout import LOCK
from kbcore.store.write_request import Request
from kbcore.view.cache_files import VIEW
from tests.support.repository.stores import AUTHOR, Stored, planner
from tests.support.views.large import SLOW

PUT = PutNode(id="REQ-2", base=0, set={"type": "req", "title": "two"})


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    made = Stored(tmp_path)
    made.put("REQ-1")
    yield made
    made.close()


def slowly(view: Any, stamp: Any) -> Any:
    """Plan with a statement that takes minutes."""
    view.rows(SLOW)
    return planner([PUT])(view, stamp)


def titles(stored: Stored) -> list[str]:
    return [row[0] for row in stored.reopen().read(lambda view: view.rows("select title from node order by id"))]


def test_a_statement_under_the_lock_ends_in_time_with_nothing_written_and_the_lock_free(stored: Stored) -> None:
    token = interrupting._statement_s.set(0.2)
    try:
        with pytest.raises(StatementTimeout) as caught:
            stored.store.commit(AUTHOR, Request(), slowly, branch="main")
    finally:
        interrupting._statement_s.reset(token)
    assert caught.value.applied == "no"
    assert stored.put("REQ-3", lock_wait_s=0).seq == 2
    assert titles(stored) == ["REQ-1", "REQ-3"]


def test_a_write_that_is_stopped_before_it_is_written_leaves_nothing_and_frees_the_lock(stored: Stored) -> None:
    work = CurrentWork()
    threading.Timer(0.2, work.stop).start()
    begun_s = time.monotonic()
    with interrupting.done_for(work), pytest.raises(Stopped):
        stored.store.commit(AUTHOR, Request(), slowly, branch="main")
    assert time.monotonic() - begun_s < 2
    assert stored.put("REQ-3", lock_wait_s=0).seq == 2


def test_a_write_that_is_stopped_when_it_is_written_is_reported_and_its_view_is_thrown_away(stored: Stored) -> None:
    ops = [PutNode(id=f"N-{number:04}", base=0, set={"type": "req", "title": "t"}) for number in range(2100)]
    work = CurrentWork()
    with interrupting.done_for(work):
        outcome = stored.store.commit(AUTHOR, Request(), planner(ops), guard=work.stop, branch="main")
    assert (outcome.applied, outcome.seq, work.is_committed) == (True, 2, True)
    assert [path.name for path in stored.cache_dir.iterdir() if path.name != VIEW] == []
    assert stored.store.read(lambda view: view.rows("select count(*) from node")) == [(2101,)]


def test_who_waits_for_a_lock_ends_when_its_work_is_stopped(stored: Stored) -> None:
    work = CurrentWork()
    threading.Timer(0.2, work.stop).start()
    begun_s = time.monotonic()
    with lock.held(stored.fs, SystemClock(), stored.directory / LOCK):
        waiting = lock.held(stored.fs, SystemClock(), stored.directory / LOCK, wait_s=30)
        with interrupting.done_for(work), pytest.raises(Stopped):
            waiting.__enter__()
    assert time.monotonic() - begun_s < 2


def test_a_statement_that_ends_after_a_commit_does_not_say_that_nothing_was_written(stored: Stored) -> None:
    token = interrupting._statement_s.set(0.2)
    try:
        with interrupting.done_for(CurrentWork()):
            stored.put("REQ-2")
            with pytest.raises(StatementTimeout) as caught:
                stored.store.read(lambda view: view.rows(SLOW))
    finally:
        interrupting._statement_s.reset(token)
    assert caught.value.applied == "unknown"
    assert "Nothing was written" not in caught.value.message_for(writes=True)


def test_what_follows_a_commit_is_not_stopped_and_the_next_commit_is(stored: Stored) -> None:
    work = CurrentWork()
    with interrupting.done_for(work):
        stored.store.commit(AUTHOR, Request(), planner([PUT]), guard=work.stop, branch="main")
        assert stored.store.read(lambda view: view.rows("select count(*) from node")) == [(2,)]
        with pytest.raises(Stopped):
            stored.put("REQ-3")
    assert work.has_written
    assert titles(stored) == ["REQ-1", "two"]
