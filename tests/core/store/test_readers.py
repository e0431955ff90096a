"""Threads that read one branch of one process: each from a view of its own, beside each other and beside a writer."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kbcore.limits import MAX_READERS, MAX_VIEWS
from kbcore.model.record import PutNode
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.storage.fs import RealFs
from kbcore.store.write_request import Request
from tests.support.repository.stores import AUTHOR, Stored, planner
from tests.support.views.large import SLOW

WAIT_S = 20.0
IDS = "select count(*) from node"


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    made = Stored(tmp_path, fs=RealFs())  # the rename of other tests leaves a moment without a head
    made.put("A")
    yield made
    made.close()


@pytest.fixture
def slow(stored: Stored) -> Iterator[Callable[[], CurrentWork]]:
    """Begin a read that takes minutes, in a thread of its own; it is stopped in the end."""
    works: list[CurrentWork] = []

    def read(work: CurrentWork, has_begun: threading.Event) -> None:
        def use(view: Any) -> None:
            has_begun.set()
            view.rows(SLOW)

        with interrupting.done_for(work), pytest.raises(Stopped):
            stored.store.read(use)

    def begin() -> CurrentWork:
        work, has_begun = CurrentWork(), threading.Event()
        works.append(work)
        tasks.append(pool.submit(read, work, has_begun))
        assert has_begun.wait(WAIT_S)
        return work

    tasks: list[Any] = []
    with ThreadPoolExecutor(MAX_VIEWS + 2) as pool:
        yield begin
        for work in works:
            work.stop()
        for task in tasks:
            task.result(WAIT_S)


def test_a_slow_read_keeps_neither_a_reader_nor_a_writer_waiting(
    stored: Stored, slow: Callable[[], CurrentWork]
) -> None:
    slow()
    assert stored.store.read(lambda view: view.rows(IDS)) == [(1,)]
    assert stored.put("B").seq == 2
    assert stored.store.read(lambda view: (view.seq, view.rows(IDS))) == (2, [(2,)])


def test_a_reader_keeps_the_state_that_it_began_with(stored: Stored) -> None:
    def use(view: Any) -> tuple[Any, Any]:
        first = view.rows(IDS)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(stored.put, "B").result(WAIT_S)
        return first, view.rows(IDS)

    assert stored.store.read(use) == ([(1,)], [(1,)])
    assert stored.store.read(lambda view: view.rows(IDS)) == [(2,)]


def test_a_read_of_the_same_thread_is_answered_from_the_same_view(stored: Stored) -> None:
    assert stored.store.read(lambda view: stored.store.read(lambda other: other is view))


@pytest.mark.sliced
def test_one_reader_too_many_waits_and_a_writer_does_not(stored: Stored, slow: Callable[[], CurrentWork]) -> None:
    works = [slow() for _ in range(MAX_VIEWS)]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stored.store.read, lambda view: view.rows(IDS))
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        assert stored.put("B").seq == 2
        works[0].stop()
        assert waiting.result(WAIT_S) == [(2,)]


@pytest.mark.sliced
def test_a_quick_read_does_not_wait_for_slow_ones(stored: Stored, slow: Callable[[], CurrentWork]) -> None:
    for _ in range(MAX_VIEWS - 1):
        slow()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(stored.store.read, lambda view: view.rows(IDS)).result(WAIT_S) == [(1,)]


@pytest.mark.sliced
def test_whoever_waits_for_a_view_can_be_stopped(stored: Stored, slow: Callable[[], CurrentWork]) -> None:
    for _ in range(MAX_VIEWS):
        slow()
    work = CurrentWork()
    threading.Timer(0.2, work.stop).start()
    with interrupting.done_for(work), pytest.raises(Stopped):
        stored.store.read(lambda view: view.rows(IDS))


def test_views_are_lent_again_and_few_are_kept(stored: Stored) -> None:
    there = threading.Barrier(MAX_READERS)

    def use(view: Any) -> Any:
        there.wait(WAIT_S)
        return view

    with ThreadPoolExecutor(MAX_READERS) as pool:
        views = list(pool.map(lambda _: stored.store.read(use), range(MAX_READERS)))
    assert len(set(map(id, views))) == MAX_READERS
    assert len(stored.store._parts.views._idle) == 2
    again = stored.store.read(lambda view: view)
    assert again in views


def test_a_publication_lets_the_other_views_go(stored: Stored) -> None:
    """They would publish the same tail once more."""
    with ThreadPoolExecutor(1) as pool:
        stored.store.read(lambda _: pool.submit(stored.store.read, lambda view: view.rows(IDS)).result(WAIT_S))
    assert len(stored.store._parts.views._idle) == 2
    ops = [PutNode(id=f"N-{number:04}", base=0, set={"type": "req", "title": "t"}) for number in range(2100)]
    stored.commit(ops)
    assert len(stored.store._parts.views._idle) == 1
    assert stored.store.read(lambda view: (view.tail_rows, view.rows(IDS))) == (0, [(2101,)])


@pytest.mark.sliced
def test_readers_and_writers_at_once_see_whole_records_and_never_go_back(stored: Stored) -> None:
    is_done = threading.Event()

    def read(_: int) -> int:
        seen, count = 0, 0
        while not is_done.is_set() or not count:
            seq, rows = stored.store.read(lambda view: (view.seq, view.rows(IDS)[0][0]))
            assert seq >= seen
            assert rows == seq
            seen, count = seq, count + 1
        return count

    with ThreadPoolExecutor(MAX_READERS) as pool:
        readers = [pool.submit(read, number) for number in range(MAX_READERS)]
        for number in range(40):
            stored.put(f"B-{number}", lock_wait_s=10)
        is_done.set()
        assert all(task.result(WAIT_S) for task in readers)
    assert stored.reopen().read(lambda view: view.rows(IDS)) == [(41,)]


def test_a_commit_is_not_taken_into_a_view_of_a_store_that_was_replaced(tmp_path: Path) -> None:
    """Both stores end at the same seq."""
    stored, other = Stored(tmp_path / "one"), Stored(tmp_path / "other")
    stored.put("OLD")
    other.put("NEW")
    is_reading, may_end = threading.Event(), threading.Event()

    def use(_: Any) -> None:
        is_reading.set()
        may_end.wait(WAIT_S)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(stored.store.read, use)
        assert is_reading.wait(WAIT_S)
        shutil.rmtree(stored.directory)
        shutil.copytree(other.directory, stored.directory)

        def guard() -> None:
            """Let the reader give back its view of the old store between the plan and the commit."""
            may_end.set()
            reader.result(WAIT_S)

        op = PutNode(id="ADDED", base=0, set={"type": "req", "title": "t"})
        assert stored.store.commit(AUTHOR, Request(), planner([op]), guard=guard, branch="main").seq == 2

    def ids(view: Any) -> list[Any]:
        return [key for (key,) in view.rows("select id from node order by id")]

    def both(view: Any) -> list[Any]:
        return [ids(view), pool.submit(stored.store.read, ids).result(WAIT_S)]

    with ThreadPoolExecutor(1) as pool:
        assert stored.store.read(both) == [["ADDED", "NEW"]] * 2
    stored.close()
    other.close()


def test_a_view_that_cannot_take_in_a_commit_is_closed(stored: Stored) -> None:
    stored.store.read(lambda view: view.rows(IDS))
    head = stored.store.head()
    [view] = stored.store._parts.views._idle
    stored.store._parts.views.adopt(None, None, head, head)  # type: ignore[arg-type]
    [notice] = stored.store.notices
    assert "AttributeError" in notice
    assert stored.store._parts.views._idle == []
    with pytest.raises(Exception, match="closed"):
        view.rows(IDS)


def test_a_view_in_whose_use_an_unknown_error_came_up_is_not_used_again(stored: Stored) -> None:
    seen: list[Any] = []

    def fail(view: Any) -> None:
        seen.append(view)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stored.store.read(fail)
    assert stored.store.read(lambda view: view) not in seen
