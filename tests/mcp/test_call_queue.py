"""Calls on one branch run in the order of their arrival; calls on different branches do not wait for each other."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from kbcore.limits import MAX_READERS, MAX_VIEWS, SLOW_READ_S
from kbmcp.protocol.call_queue import AFTER_WRITES_S, CallQueue
from tests.mcp.agents import agent, direct
from tests.support.repository.repos import git

MORE_THAN_THREADS = 20
"""Calls: a server has fewer threads for them."""


def writing(number=0):
    """Return the arguments of a call that writes, and therefore makes the store of its branch."""
    return {"entities": [{"id": f"B{number}", "type": "req", "title": "B", "status": "open"}]}


@contextmanager
def slow_first_use(project):
    """Keep every branch from getting its store, as the copy of a huge one would."""
    fd = os.open(project.workspace().folders.repository_lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def queued(tools, line, count):
    """Wait until so many calls have their turn or wait for it there."""
    until_s = time.monotonic() + 10.0
    while tools.service.queue.length(line) < count:
        assert time.monotonic() < until_s
        time.sleep(0.002)


@pytest.mark.sliced
def test_the_first_use_of_a_branch_holds_up_that_branch_alone(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    feature = project.workspace().folders.directory_of("feature")
    with direct(project.root) as tools, ThreadPoolExecutor(MORE_THAN_THREADS + 1) as pool:
        with slow_first_use(project):
            project.switch("feature", create=True)
            waiting = [pool.submit(tools.answer, "kb_upsert", **writing(n)) for n in range(MORE_THAN_THREADS)]
            queued(tools, feature, MORE_THAN_THREADS)
            project.switch("main")
            assert pool.submit(tools.answer, "kb_query").result(2.0)["branch"] == "main"
            assert pool.submit(tools.answer, "kb_upsert", limt=1).result(2.0)["branch"] == "main"
            assert not any(task.done() for task in waiting)
            project.switch("feature")
        answers = [task.result() for task in waiting]
        assert [(one["branch"], one["created"]) for one in answers] == [
            ("feature", [f"B{n}"]) for n in range(len(waiting))
        ]
        assert sum("first use of feature" in one.get("note", "") for one in answers) == 1
        assert tools.service.queue._queues == {}


def test_a_call_that_has_waited_goes_by_the_settings_of_its_admission(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    main = project.workspace().folders.directory_of("main")
    with direct(project.root) as tools, ThreadPoolExecutor(1) as pool:
        with tools.service.queue.taken(main):
            waiting = pool.submit(tools.answer, "kb_upsert", **writing())
            queued(tools, main, 2)
            project.write({".kb/config.json": "{"})
        assert waiting.result(20.0)["error"]["code"] == "invalid_config"
        project.write({".kb/config.json": "{}"})
        assert tools.answer("kb_upsert", **writing())["created"] == ["B0"]


@pytest.mark.sliced
def test_the_tools_are_listed_whatever_all_calls_wait_for(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    with agent(project.root) as found, ThreadPoolExecutor(MORE_THAN_THREADS + 1) as pool:
        with slow_first_use(project):
            project.switch("feature", create=True)
            waiting = [pool.submit(found.call, "kb_upsert", **writing(n)) for n in range(MORE_THAN_THREADS)]
            time.sleep(0.2)
            assert pool.submit(found.tools).result(2.0)
            assert not any(task.done() for task in waiting)
        assert [task.result(10.0)["created"] for task in waiting] == [[f"B{n}"] for n in range(MORE_THAN_THREADS)]


def test_a_cancelled_call_leaves_the_queue_from_any_position(tmp_path):
    queue, one = CallQueue(), tmp_path / "one"

    async def come(name, arrived):
        async with queue.arrival() as ticket:
            ticket.move(one)
            await ticket.reached()
            arrived.append(name)

    async def talk():
        arrived = []
        await queue.arrivals.acquire()
        calls = [asyncio.create_task(come(name, arrived)) for name in "abcd"]
        await asyncio.sleep(0)
        calls[1].cancel()  # one that has come and is in no line yet
        there = queue.enqueue(one, print)
        queue.arrivals.release()
        async with asyncio.timeout(10.0):
            while queue.length(one) < 4:  # noqa: ASYNC110 - the queue notifies only the next call
                await asyncio.sleep(0)
        calls[0].cancel()  # first of those that wait at the branch
        await asyncio.sleep(0)
        queue.leave(there)
        await asyncio.wait(calls, timeout=10.0)
        assert arrived == ["c", "d"]

    asyncio.run(talk())
    assert queue._queues == {}
    assert not queue.arrivals.locked()


def test_calls_on_one_branch_run_one_at_a_time_and_on_different_branches_together(tmp_path):
    queue, there, inside = CallQueue(), threading.Event(), threading.Event()

    def stay():
        with queue.taken(tmp_path / "one"):
            there.set()
            inside.wait(10.0)

    def come(name):
        with queue.taken(tmp_path / name):
            return inside.is_set()

    with ThreadPoolExecutor(3) as pool:
        stays = pool.submit(stay)
        assert there.wait(10.0)
        waits = pool.submit(come, "one")
        assert pool.submit(come, "two").result(10.0) is False
        assert not waits.done()
        inside.set()
        assert waits.result(10.0) is True
        stays.result(10.0)


def test_a_queue_without_calls_is_removed(tmp_path):
    queue = CallQueue()
    for number in range(20):
        with queue.taken(tmp_path / str(number)):
            assert len(queue._queues) == 1
    assert queue._queues == {}


def test_a_call_that_waited_in_the_queue_uses_the_settings_at_its_start(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    directory = project.workspace().folders.directory_of("main")
    with direct(project.root) as tools, ThreadPoolExecutor(1) as pool:
        with tools.service.queue.taken(directory):
            waits = pool.submit(tools.answer, "kb_check")
            queued(tools, directory, 2)
            project.write({".kb/config.json": '{"rules": {"orphans": "off"}}'})
        answer = waits.result(10.0)
        assert answer["rules_run"] == tools.answer("kb_check")["rules_run"]


def test_a_first_use_that_waited_while_its_branch_was_renamed_is_refused_and_leaves_no_store(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    project.switch("old", create=True)
    directory = project.workspace().folders.directory_of("old")
    with direct(project.root) as tools, ThreadPoolExecutor(1) as pool:
        with tools.service.queue.taken(directory):
            waits = pool.submit(tools.answer, "kb_query")
            queued(tools, directory, 2)
            git(project.root, "branch", "-m", "old", "new")
            project.apply(entities=[{"id": "B", "type": "req", "title": "B", "status": "open"}])
        assert waits.result(10.0)["error"]["code"] == "branch_moved"
    assert not directory.exists()


def test_a_store_that_a_forced_rename_left_is_reported_once(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    project.switch("feat", create=True)
    with direct(project.root) as tools:
        tools.answer("kb_upsert", **writing())
        git(project.root, "branch", "-M", "feat", "main")
        assert "git renamed feat to main" in tools.answer("kb_query")["note"]
        assert "note" not in tools.answer("kb_query")


def test_readers_run_together_and_writers_in_order_of_arrival(tmp_path):
    now_s = [0.0]
    queue, one, admitted = CallQueue(lambda: now_s[0]), tmp_path / "one", []

    def enqueue(name, *, reads):
        return queue.enqueue(one, lambda: admitted.append(name), reads=reads)

    reader, writer = enqueue("r1", reads=True), enqueue("w1", reads=False)
    assert queue.is_admitted(reader)
    assert queue.is_admitted(writer)
    second, patient = enqueue("w2", reads=False), enqueue("r2", reads=True)
    assert not queue.is_admitted(second)
    assert not queue.is_admitted(patient)
    now_s[0] += AFTER_WRITES_S
    queue.admit_due(one)
    assert admitted == ["r2"]
    late = enqueue("r3", reads=True)
    queue.leave(writer)
    assert admitted == ["r2", "w2"]
    queue.leave(second)
    assert admitted == ["r2", "w2", "r3"]
    for place in (reader, patient, late):
        queue.leave(place)
    assert queue._queues == {}


def test_at_most_as_many_readers_are_admitted_as_there_are_views(tmp_path):
    queue, admitted = CallQueue(), []
    places = [queue.enqueue(tmp_path, lambda at=at: admitted.append(at), reads=True) for at in range(MAX_READERS + 1)]
    assert [queue.is_admitted(place) for place in places] == [True] * MAX_READERS + [False]
    queue.leave(places[1])
    assert admitted == [MAX_READERS]


def test_slow_readers_do_not_block_others_up_to_the_number_of_views(tmp_path):
    now_s, admitted = [0.0], []
    queue = CallQueue(lambda: now_s[0])

    def enqueue():
        return queue.enqueue(tmp_path, lambda: admitted.append(1), reads=True)

    slow = [enqueue() for _ in range(MAX_READERS)]
    next_one = enqueue()
    queue.admit_due(tmp_path)
    assert not queue.is_admitted(next_one)
    now_s[0] += SLOW_READ_S
    queue.admit_due(tmp_path)
    assert queue.is_admitted(next_one)
    assert len(admitted) == 1
    slow += [next_one, *(enqueue() for _ in range(MAX_VIEWS - MAX_READERS - 1))]
    now_s[0] += SLOW_READ_S
    too_many = enqueue()
    queue.admit_due(tmp_path)
    assert [queue.is_admitted(place) for place in slow] == [True] * MAX_VIEWS
    assert not queue.is_admitted(too_many)


def test_a_waiting_reader_is_admitted_when_earlier_readers_are_slow(tmp_path):
    async def talk():
        queue = CallQueue()
        slow = [queue.enqueue(tmp_path, print, reads=True) for _ in range(MAX_READERS)]
        begun_s = time.monotonic()
        async with asyncio.timeout(10.0), queue.arrival() as ticket:
            assert not ticket.move(tmp_path, reads=True)
            await ticket.reached()
        assert time.monotonic() - begun_s >= SLOW_READ_S / 2
        for place in slow:
            queue.leave(place)
        assert (queue._queues, queue._due_s) == ({}, {})

    asyncio.run(talk())


def test_a_reader_after_a_writer_is_admitted_after_a_time_limit_also_in_a_thread(tmp_path):
    def read(queue):
        with queue.taken(tmp_path, reads=True):
            return time.monotonic()

    async def talk():
        queue = CallQueue()
        async with asyncio.timeout(10.0), queue.arrival() as writer:
            begun_s = time.monotonic()
            assert writer.move(tmp_path)
            assert await asyncio.to_thread(read, queue) - begun_s >= AFTER_WRITES_S

    asyncio.run(talk())


def test_many_waiting_readers_are_checked_together_and_rarely(tmp_path):
    looks = []

    def now_s():
        looks.append(1)
        return time.monotonic()

    async def wait_in_line(queue, end):
        async with queue.arrival() as ticket:
            ticket.move(tmp_path, reads=True)
            await ticket.reached()
            await end.wait()

    async def talk():
        queue, end = CallQueue(now_s), asyncio.Event()
        calls = [asyncio.create_task(wait_in_line(queue, end)) for _ in range(200)]
        async with asyncio.timeout(10.0):
            while queue.length(tmp_path) < 200:  # noqa: ASYNC110 - the queue notifies only the next call
                await asyncio.sleep(0.01)
        await asyncio.sleep(2 * SLOW_READ_S + 0.1)  # by now as many read as there are views for
        looks.clear()
        await asyncio.sleep(0.5)
        found = len(looks)
        end.set()
        await asyncio.gather(*calls)
        assert queue._queues == {}
        return found

    assert asyncio.run(talk()) < 10
