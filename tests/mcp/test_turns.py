"""Calls on one branch take turns as they came; calls on different branches do not wait for each other."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

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


def standing(tools, line, count):
    """Wait until so many calls have their turn or wait for it there."""
    until_s = time.monotonic() + 10.0
    while tools.service.turns.standing(line) < count:
        assert time.monotonic() < until_s
        time.sleep(0.002)


def test_the_first_use_of_a_branch_holds_up_that_branch_alone(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    feature = project.workspace().folders.directory_of("feature")
    with direct(project.root) as tools, ThreadPoolExecutor(MORE_THAN_THREADS + 1) as pool:
        with slow_first_use(project):
            project.switch("feature", create=True)
            waiting = [pool.submit(tools.answer, "kb_upsert", **writing(n)) for n in range(MORE_THAN_THREADS)]
            standing(tools, feature, MORE_THAN_THREADS)
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
        assert tools.service.turns._lines == {}


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


def test_a_call_that_is_cancelled_gives_its_place_back_wherever_it_stands(tmp_path):
    turns, one = CallQueue(), tmp_path / "one"

    async def come(name, came):
        async with turns.arrival() as ticket:
            ticket.move(one)
            await ticket.reached()
            came.append(name)

    async def talk():
        came = []
        await turns.arrivals.acquire()
        calls = [asyncio.create_task(come(name, came)) for name in "abcd"]
        await asyncio.sleep(0)
        calls[1].cancel()  # one that has come and is in no line yet
        there = turns.enqueue(one, print)
        turns.arrivals.release()
        async with asyncio.timeout(10.0):
            while turns.standing(one) < 4:  # noqa: ASYNC110 - a line tells whoever is next, and nobody else
                await asyncio.sleep(0)
        calls[0].cancel()  # first of those that wait at the branch
        await asyncio.sleep(0)
        turns.leave(there)
        await asyncio.wait(calls, timeout=10.0)
        assert came == ["c", "d"]

    asyncio.run(talk())
    assert turns._lines == {}
    assert not turns.arrivals.locked()


def test_two_at_one_branch_take_turns_and_two_at_different_ones_do_not(tmp_path):
    turns, there, inside = CallQueue(), threading.Event(), threading.Event()

    def stay():
        with turns.taken(tmp_path / "one"):
            there.set()
            inside.wait(10.0)

    def come(name):
        with turns.taken(tmp_path / name):
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


def test_a_branch_that_nobody_is_at_is_forgotten(tmp_path):
    turns = CallQueue()
    for number in range(20):
        with turns.taken(tmp_path / str(number)):
            assert len(turns._lines) == 1
    assert turns._lines == {}


def test_a_call_that_waited_for_its_turn_goes_by_the_settings_of_then(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    directory = project.workspace().folders.directory_of("main")
    with direct(project.root) as tools, ThreadPoolExecutor(1) as pool:
        with tools.service.turns.taken(directory):
            waits = pool.submit(tools.answer, "kb_check")
            standing(tools, directory, 2)
            project.write({".kb/config.json": '{"rules": {"orphans": "off"}}'})
        answer = waits.result(10.0)
        assert answer["rules_run"] == tools.answer("kb_check")["rules_run"]


def test_a_first_use_that_waited_while_its_branch_was_renamed_is_refused_and_leaves_no_store(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    project.switch("old", create=True)
    directory = project.workspace().folders.directory_of("old")
    with direct(project.root) as tools, ThreadPoolExecutor(1) as pool:
        with tools.service.turns.taken(directory):
            waits = pool.submit(tools.answer, "kb_query")
            standing(tools, directory, 2)
            git(project.root, "branch", "-m", "old", "new")
            project.apply(entities=[{"id": "B", "type": "req", "title": "B", "status": "open"}])
        assert waits.result(10.0)["error"]["code"] == "branch_moved"
    assert not directory.exists()


def test_a_store_that_a_forced_rename_left_behind_is_told_once(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    project.switch("feat", create=True)
    with direct(project.root) as tools:
        tools.answer("kb_upsert", **writing())
        git(project.root, "branch", "-M", "feat", "main")
        assert "git renamed feat to main" in tools.answer("kb_query")["note"]
        assert "note" not in tools.answer("kb_query")


def test_readers_go_beside_each_other_and_writers_in_their_order(tmp_path):
    now_s = [0.0]
    turns, one, told = CallQueue(lambda: now_s[0]), tmp_path / "one", []

    def enqueue(name, *, reads):
        return turns.enqueue(one, lambda: told.append(name), reads=reads)

    reader, writer = enqueue("r1", reads=True), enqueue("w1", reads=False)
    assert turns.has_come(reader)
    assert turns.has_come(writer)
    second, patient = enqueue("w2", reads=False), enqueue("r2", reads=True)
    assert not turns.has_come(second)
    assert not turns.has_come(patient)
    now_s[0] += AFTER_WRITES_S
    turns.look(one)
    assert told == ["r2"]
    late = enqueue("r3", reads=True)
    turns.leave(writer)
    assert told == ["r2", "w2"]
    turns.leave(second)
    assert told == ["r2", "w2", "r3"]
    for place in (reader, patient, late):
        turns.leave(place)
    assert turns._lines == {}


def test_no_more_readers_are_let_in_than_there_are_views_for(tmp_path):
    turns, told = CallQueue(), []
    places = [turns.enqueue(tmp_path, lambda at=at: told.append(at), reads=True) for at in range(MAX_READERS + 1)]
    assert [turns.has_come(place) for place in places] == [True] * MAX_READERS + [False]
    turns.leave(places[1])
    assert told == [MAX_READERS]


def test_readers_that_read_for_long_keep_no_other_waiting_until_they_are_too_many(tmp_path):
    now_s, told = [0.0], []
    turns = CallQueue(lambda: now_s[0])

    def enqueue():
        return turns.enqueue(tmp_path, lambda: told.append(1), reads=True)

    slow = [enqueue() for _ in range(MAX_READERS)]
    next_one = enqueue()
    turns.look(tmp_path)
    assert not turns.has_come(next_one)
    now_s[0] += SLOW_READ_S
    turns.look(tmp_path)
    assert turns.has_come(next_one)
    assert len(told) == 1
    slow += [next_one, *(enqueue() for _ in range(MAX_VIEWS - MAX_READERS - 1))]
    now_s[0] += SLOW_READ_S
    too_many = enqueue()
    turns.look(tmp_path)
    assert [turns.has_come(place) for place in slow] == [True] * MAX_VIEWS
    assert not turns.has_come(too_many)


def test_who_waits_to_read_is_let_in_when_those_before_have_read_for_long(tmp_path):
    async def talk():
        turns = CallQueue()
        slow = [turns.enqueue(tmp_path, print, reads=True) for _ in range(MAX_READERS)]
        begun_s = time.monotonic()
        async with asyncio.timeout(10.0), turns.arrival() as ticket:
            assert not ticket.move(tmp_path, reads=True)
            await ticket.reached()
        assert time.monotonic() - begun_s >= SLOW_READ_S / 2
        for place in slow:
            turns.leave(place)
        assert (turns._lines, turns._due_s) == ({}, {})

    asyncio.run(talk())


def test_who_waits_to_read_after_a_writer_is_let_in_after_a_moment_in_a_thread_too(tmp_path):
    def read(turns):
        with turns.taken(tmp_path, reads=True):
            return time.monotonic()

    async def talk():
        turns = CallQueue()
        async with asyncio.timeout(10.0), turns.arrival() as writer:
            begun_s = time.monotonic()
            assert writer.move(tmp_path)
            assert await asyncio.to_thread(read, turns) - begun_s >= AFTER_WRITES_S

    asyncio.run(talk())


def test_many_that_wait_to_read_are_looked_at_together_and_seldom(tmp_path):
    looks = []

    def now_s():
        looks.append(1)
        return time.monotonic()

    async def wait_in_line(turns, end):
        async with turns.arrival() as ticket:
            ticket.move(tmp_path, reads=True)
            await ticket.reached()
            await end.wait()

    async def talk():
        turns, end = CallQueue(now_s), asyncio.Event()
        calls = [asyncio.create_task(wait_in_line(turns, end)) for _ in range(200)]
        async with asyncio.timeout(10.0):
            while turns.standing(tmp_path) < 200:  # noqa: ASYNC110 - a line tells whoever is next, and nobody else
                await asyncio.sleep(0.01)
        await asyncio.sleep(2 * SLOW_READ_S + 0.1)  # by now as many read as there are views for
        looks.clear()
        await asyncio.sleep(0.5)
        found = len(looks)
        end.set()
        await asyncio.gather(*calls)
        assert turns._lines == {}
        return found

    assert asyncio.run(talk()) < 10
