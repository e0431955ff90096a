"""A commit: what is planned, written and answered, once and whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.clock import SystemClock
from kbcore.errors import (
    BranchMoved,
    ChangesetIdReused,
    LimitExceeded,
    LockTimeout,
    ReadOnlyStore,
    ResourceLimit,
    StaleBase,
    StorageError,
    ViewDamaged,
)
from kbcore.model.read_set import NOTHING
from kbcore.model.record import DropNode
from kbcore.model.state import Changes, Draft, Stamp
from kbcore.process import interrupting
from kbcore.storage import lock
from kbcore.storage.bug_reports import BUGS
from kbcore.storage.head import Head
from kbcore.storage.layout import HEAD
from kbcore.store.branch_store import BranchStore
from kbcore.store.history.undo import revert
from kbcore.store.write_request import Request
from kbcore.view.cache_files import CacheFiles
from kbcore.view.record_rows import FoldedRecord
from kbcore.view.view import View
from tests.core.store.stored import SEGMENT, put
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import Project, req
from tests.support.repository.stores import AUTHOR, SteppingClock, Stored, planner, view_of


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.close()


def journal_of(made: Stored) -> bytes:
    return (made.directory / SEGMENT).read_bytes()


def test_a_commit_is_answered_with_what_it_changed(made: Stored) -> None:
    first = made.commit([put("A"), put("B")], message="why")
    assert (first.seq, first.applied, first.created, first.branch) == (1, True, ("A", "B"), "main")
    second = made.commit([put("A", title="New"), DropNode(id="B", base=0)])
    assert (second.seq, second.updated, second.deleted) == (2, ("A",), ("B",))
    assert made.view().rows("select message from record order by seq") == [("why",), ("",)]


def test_a_store_that_only_plans_answers_dry_runs_and_takes_no_record(made: Stored) -> None:
    made.commit([put("A")])
    before, plan = journal_of(made), planner([put("B")])
    assert made.store.trial.commit(AUTHOR, Request(dry_run=True), plan, branch="topic").created == ("B",)
    with pytest.raises(ReadOnlyStore, match="topic has no store yet"):
        made.store.trial.commit(AUTHOR, Request(), plan, branch="topic")
    assert journal_of(made) == before


def test_a_store_that_plans_for_another_has_that_made_for_a_record_alone(made: Stored, tmp_path: Path) -> None:
    made.commit([put("A")])
    before, other = journal_of(made), Stored(tmp_path / "other")
    asked: list[str] = []

    def make() -> BranchStore:
        asked.append("made")
        return other.store

    def refusing(_view: View, _stamp: Stamp) -> Draft:
        raise StaleBase("It has changed.")

    planning = made.store.planning(make)
    assert planning.commit(AUTHOR, Request(dry_run=True), planner([put("B")]), branch="topic").created == ("B",)
    with pytest.raises(StaleBase):
        planning.commit(AUTHOR, Request(), refusing, branch="topic")
    assert asked == []
    assert planning.commit(AUTHOR, Request(), planner([put("B")]), branch="topic").applied
    assert (asked, other.view().seq, journal_of(made)) == (["made"], 1, before)
    other.close()


def test_a_store_that_plans_for_another_has_none_made_for_what_changes_nothing(made: Stored) -> None:
    made.commit([put("A")], changeset_id="once", digest="d")

    def make() -> BranchStore:
        raise AssertionError("no record is to be written")

    planning = made.store.planning(make)
    same = planning.commit(AUTHOR, Request(), planner([put("A")]), branch="topic")
    assert (same.applied, same.dry_run, same.duplicate, same.branch) == (False, False, False, "topic")
    again = planning.commit(AUTHOR, Request("once", "d"), planner([put("B")]), branch="topic")
    assert (again.applied, again.dry_run, again.duplicate, again.created) == (True, False, True, ("A",))


def test_a_changeset_that_changes_nothing_writes_no_record(made: Stored) -> None:
    made.commit([put("A")])
    before = journal_of(made)
    outcome = made.commit([put("A")])
    assert (outcome.applied, outcome.seq) == (False, 1)
    assert not made.commit([]).applied
    assert journal_of(made) == before


def test_the_same_changeset_sent_again_is_answered_as_the_first_time(made: Stored) -> None:
    first = made.commit([put("A"), put("B")], changeset_id="once", digest="d")
    made.commit([put("A", title="Later"), DropNode(id="B", base=0)])
    for store in (made.store, made.reopen()):
        again = store.commit(AUTHOR, Request("once", "d"), planner([put("C")]), branch="main")
        assert (again.seq, again.duplicate, again.applied) == (1, True, True)
        assert (again.created, again.changeset_id) == (first.created, "once")
    assert made.store.head().seq == 2


def test_an_id_with_other_content_is_refused_and_names_the_first_use(made: Stored) -> None:
    made.commit([put("A")], changeset_id="once", digest="d")
    for asked in ({}, {"dry_run": True}):
        with pytest.raises(ChangesetIdReused, match="at seq 1"):
            made.commit([put("B")], changeset_id="once", digest="other", **asked)
    assert made.store.head().seq == 1


def test_an_id_that_was_used_without_a_digest_is_refused_with_one(made: Stored) -> None:
    made.commit([put("A")], changeset_id="once")
    with pytest.raises(ChangesetIdReused, match="at seq 1"):
        made.commit([put("A")], changeset_id="once", digest="d")


def test_a_changeset_without_an_id_gets_one_of_its_own(made: Stored) -> None:
    ids = {made.put(key).changeset_id for key in "ABC"}
    assert len(ids) == 3
    assert {row[0] for row in made.view().rows("select changeset_id from record")} == ids


def test_a_dry_run_plans_answers_and_writes_nothing(made: Stored) -> None:
    made.commit([put("A")])
    before = journal_of(made)
    outcome = made.commit([put("A", title="New"), put("B")], dry_run=True)
    assert (outcome.dry_run, outcome.applied, outcome.seq) == (True, False, 1)
    assert (outcome.created, outcome.updated) == (("B",), ("A",))
    assert journal_of(made) == before
    assert made.view().nodes(["B"]) == []


class CrossedFs(NoSyncFs):
    """Runs something once, when the head was read: before whoever reads it gets a view."""

    def __init__(self) -> None:
        super().__init__()
        self.then: Callable[[], object] | None = None
        self._heads: set[int] = set()

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        if path.name == HEAD:
            self._heads.add(fd)
        return fd

    def close(self, fd: int) -> None:
        super().close(fd)
        if fd in self._heads:
            self._heads.discard(fd)
            if then := self.then:
                self.then = None
                then()


def test_a_dry_run_speaks_of_the_head_that_it_planned_on(tmp_path: Path) -> None:
    made = Stored(tmp_path, fs=CrossedFs())
    made.commit([put("A")])

    def plan(view: View, stamp: Stamp) -> Draft:
        assert stamp.seq == view.seq + 1
        return planner([put("C")])(view, stamp)

    made.fs.then = lambda: made.store.commit(AUTHOR, Request(), planner([put("B")]), branch="main")
    outcome = made.store.commit(AUTHOR, Request(dry_run=True), plan, branch="main")
    assert outcome.seq == 2
    made.close()


class SetClock(SystemClock):
    """The machine's clock, but the wall clock is set by hand."""

    wall = "2026-11-20T10:00:00.000000Z"

    def now(self) -> str:
        return self.wall


def test_a_plan_ahead_on_a_later_head_than_the_one_that_was_read_gets_a_time_after_that(tmp_path: Path) -> None:
    clock = SetClock()
    made = Stored(tmp_path, fs=CrossedFs(), clock=clock)
    made.put("A")
    made.store.read(lambda view: view.seq)

    def cross() -> None:
        clock.wall = "2026-11-20T10:10:00.000000Z"
        made.put("B")
        clock.wall = "2026-11-20T10:00:05.000000Z"

    def arm() -> None:  # the first head that is read is that of preparing, the second one that of planning
        made.fs.then = cross

    made.fs.then = arm
    assert made.put("C", plans_ahead=True).seq == 3
    rows = made.store.read(lambda view: view.rows("select written_at, clock from record order by seq desc limit 1"))
    assert rows == [("2026-11-20T10:10:00.000000Z", "2026-11-20T10:00:05.000000Z")]
    made.close()


class Broken(Exception):
    """A bug."""


def test_a_bug_of_the_view_after_a_commit_is_reported_and_changes_no_answer(made: Stored) -> None:
    made.put("A")
    [view] = made.store._parts.views._idle

    def fail(*_: object) -> None:
        raise Broken

    view.adopt = fail  # type: ignore[method-assign]
    outcome = made.put("B")
    assert (outcome.applied, outcome.seq) == (True, 2)
    assert view not in made.store._parts.views._idle
    [report] = (made.cache_dir.parent / BUGS).iterdir()
    assert "Broken" in report.read_text()
    [notice] = made.store.notices
    assert str(report) in notice
    assert made.store.read(lambda view: view.rows("select id from node order by id")) == [("A",), ("B",)]


@pytest.mark.parametrize("error", [MemoryError(), ResourceLimit("no more"), ViewDamaged(), StorageError("no disk")])
def test_a_view_that_cannot_take_in_a_commit_is_thrown_away_and_no_bug_is_reported(
    made: Stored, error: Exception
) -> None:
    made.put("A")
    [view] = made.store._parts.views._idle

    def fail(*_: object) -> None:
        raise error

    view.adopt = fail  # type: ignore[method-assign]
    assert made.put("B").applied
    assert not (made.cache_dir.parent / BUGS).exists()
    assert made.store.notices == []
    assert made.store.read(lambda view: view.rows("select id from node order by id")) == [("A",), ("B",)]


def test_a_plan_that_did_not_look_at_what_it_changes_is_not_committed(made: Stored) -> None:
    made.commit([put("A")])

    def blind(view: View, stamp: Stamp) -> Draft:
        return msgspec.structs.replace(planner([put("A", title="New")])(view, stamp), loaded=NOTHING)

    with pytest.raises(AssertionError, match="without looking at"):
        made.store.commit(AUTHOR, Request(), blind, branch="main")
    assert made.store.head().seq == 1


def test_a_plan_whose_operations_are_not_those_that_were_looked_at_is_not_committed(made: Stored) -> None:
    made.commit([put("A")])

    def exchanged(view: View, stamp: Stamp) -> Draft:
        looked = planner([put("B")])(view, stamp)
        loaded = msgspec.structs.replace(looked.loaded, enough_for=looked.ops)
        other = planner([put("A", title="New")])(view, stamp)
        return msgspec.structs.replace(other, loaded=loaded)

    with pytest.raises(AssertionError, match="without looking at"):
        made.store.commit(AUTHOR, Request(), exchanged, branch="main")
    assert made.store.head().seq == 1


def test_a_plan_made_before_the_lock_keeps_its_time_if_nobody_wrote_since(made: Stored) -> None:
    times = iter([f"2100-01-01T00:00:0{second}.000000Z" for second in range(9)])
    stamps: list[Stamp] = []

    def plan(view: View, stamp: Stamp) -> Draft:
        stamps.append(stamp)
        return planner([put("A")])(view, stamp)

    made.clock.now = lambda: next(times)
    made.store.commit(AUTHOR, Request(plans_ahead=True), plan, branch="main")
    assert [stamp.at for stamp in stamps] == [made.store.head().head.at]


def test_a_dry_run_of_a_changeset_that_took_effect_says_so(made: Stored) -> None:
    made.commit([put("A")], changeset_id="once", digest="d")
    again = made.commit([put("B")], changeset_id="once", digest="d", dry_run=True)
    assert (again.duplicate, again.applied, again.seq) == (True, False, 1)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_record_above_the_limit_is_refused_before_any_write(made: Stored, dry_run: bool) -> None:
    made.commit([put("A")])
    before = journal_of(made)
    with pytest.raises(LimitExceeded, match="the limit is 1000"):
        made.commit([put("B", title="x" * 2000)], limit_bytes=1000, dry_run=dry_run)
    assert journal_of(made) == before
    assert made.put("B").seq == 2


@pytest.mark.parametrize("error", [BranchMoved, KeyboardInterrupt])
def test_a_guard_that_refuses_leaves_nothing(made: Stored, error: type[BaseException]) -> None:
    def guard() -> None:
        raise error("moved")

    with pytest.raises(error):
        made.store.commit(AUTHOR, Request(), planner([put("A")]), guard=guard, branch="main")
    assert journal_of(made) == b""
    assert made.put("A").seq == 1


class ReadOnlyFs(NoSyncFs):
    """A file system that was mounted read-only after the store was read."""

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY and path.name == SEGMENT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return super().open(path, flags, mode)


def test_a_refused_write_is_reported_with_what_its_owner_knows_of_it(made: Stored) -> None:
    store = BranchStore(
        ReadOnlyFs(),
        made.clock,
        made.directory,
        CacheFiles(made.fs, made.cache_dir),
        refused=lambda error: ReadOnlyStore(error.message, hint="Ask somebody else."),
    )
    with pytest.raises(ReadOnlyStore) as caught:
        store.commit(AUTHOR, Request(), planner([put("A")]), branch="main")
    assert caught.value.hint == "Ask somebody else."
    store.close()
    assert journal_of(made) == b""


def test_each_commit_of_a_work_can_be_stopped_before_it_begins_to_write(made: Stored) -> None:
    work = interrupting.CurrentWork()
    with interrupting.done_for(work):
        made.put("A")
        assert work.has_begun
        work.stop()
        interrupting.check()
        with pytest.raises(interrupting.Stopped):
            made.put("B")
    assert made.store.head().seq == 1


def test_a_commit_that_is_stopped_when_it_begins_to_write_goes_on_to_its_answer(made: Stored) -> None:
    work = interrupting.CurrentWork()
    with interrupting.done_for(work):
        outcome = made.store.commit(AUTHOR, Request(), planner([put("A")]), guard=work.stop, branch="main")
        interrupting.check()
        assert (outcome.seq, interrupting.is_writing(), interrupting.may_have_written()) == (1, True, True)


def test_a_planner_that_fails_leaves_nothing_and_frees_the_lock(made: Stored) -> None:
    def plan(view: View, stamp: Stamp) -> Draft:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        made.store.commit(AUTHOR, Request(), plan, branch="main")
    assert made.put("A").seq == 1


def test_two_processes_see_each_others_records_and_give_no_seq_twice(made: Stored) -> None:
    other = made.opened()
    for number in range(6):
        store = (made.store, other)[number % 2]
        plan = planner([put(f"N{number}", owner=str(number)), put("shared", owner=str(number))])
        assert store.commit(AUTHOR, Request(), plan, branch="main").seq == number + 1
    for store in (made.store, other, made.opened()):
        (node,) = view_of(store).nodes(["shared"])
        assert (node.version, node.fields["owner"]) == (6, "5")
        assert view_of(store).rows("select count(*) from node") == [(7,)]
    other.close()


def test_times_never_go_back_and_a_wrong_clock_is_on_record(tmp_path: Path) -> None:
    clock = SteppingClock()
    made = Stored(tmp_path, clock=clock)
    clock.elapsed_s = 100
    made.put("A")
    clock.elapsed_s = 0
    made.put("B")
    view = made.view()
    times = [row[0] for row in view.rows("select written_at from record order by seq")]
    assert times[0] == times[1]
    first, second = made.store.record_at(view, 1), made.store.record_at(view, 2)
    assert first
    assert second
    assert first.clock == ""
    assert "" < second.clock < second.at == times[1]


@pytest.mark.parametrize("what", ["new", "nothing", "again"])
def test_what_recovery_did_is_said_whatever_the_answer_is(made: Stored, what: str) -> None:
    made.commit([put("A")], changeset_id="once", digest="d")
    with (made.directory / SEGMENT).open("ab") as file:
        file.write(b"torn")
    asked: dict[str, Any] = {
        "new": {"ops": [put("B")]},
        "nothing": {"ops": [put("A")]},
        "again": {"ops": [put("C")], "changeset_id": "once", "digest": "d"},
    }[what]
    outcome = made.commit(asked.pop("ops"), **asked)
    assert ["quarantine" in warning for warning in outcome.warnings] == [True]


def test_a_changeset_that_names_what_changed_since_is_stale_and_others_are_not(project: Project) -> None:
    fields = {"type": "req", "title": "T", "status": "open"}
    project.apply(entities=[{"id": "A", **fields}, {"id": "B", **fields}])
    project.apply(entities=[{"id": "A", "owner": "ann"}])
    with pytest.raises(StaleBase):
        project.apply(expected_seq=1, entities=[{"id": "A", "owner": "bob"}])
    assert project.apply(expected_seq=1, entities=[{"id": "B", "owner": "bob"}]).seq == 3
    project.delete(entities=[{"id": "B"}])
    with pytest.raises(StaleBase):
        project.apply(expected_seq=3, entities=[{"id": "B", **fields}])


def test_the_lock_wait_is_that_of_the_commit(made: Stored) -> None:
    with lock.held(made.fs, made.clock, made.directory / "lock", wait_s=0):
        for wait_s in (3, 7):
            with pytest.raises(LockTimeout, match=f"waited {wait_s} s"):
                made.put("A", lock_wait_s=wait_s)


def test_a_record_that_a_reader_has_taken_in_already_is_not_taken_in_twice(made: Stored) -> None:
    made.put("A")
    seen = made.store._parts.views
    adopt = seen.adopt

    def late(entry: FoldedRecord, changes: Changes, before: Head, head: Head) -> None:
        # Another thread reads between the append and the writer's note of it.
        view_of(made.store)
        adopt(entry, changes, before, head)

    seen.adopt = late  # type: ignore[method-assign]
    made.put("B")
    assert made.view().rows("select count(*) from record") == [(2,)]


@pytest.mark.parametrize("how", ["apply", "revert", "sync"])
def test_a_changed_lock_wait_counts_for_the_next_write_of_a_store_that_is_open(project: Project, how: str) -> None:
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    project.write({".kb/config.json": '{"lockWaitSeconds": 0.03}', "docs/requirements/b.md": req("B")})
    writes: dict[str, Callable[[], object]] = {
        "apply": lambda: project.apply(entities=[{"id": "C", "type": "req", "title": "T", "status": "open"}]),
        "revert": lambda: revert(project.workspace(), "main", AUTHOR, [1], follows_head=False),
        "sync": project.sync,
    }
    directory = project.workspace().folders.directory_of("main")
    with (
        lock.held(project.machine.fs, project.machine.clock, directory / "lock"),
        pytest.raises(LockTimeout, match=r"waited 0\.03 s"),
    ):
        writes[how]()
