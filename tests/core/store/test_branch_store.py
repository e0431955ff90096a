"""The commit protocol of one branch, and the cache that may be lost, damaged or wrong at any time."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from kbcore import interrupting
from kbcore.clock import SystemClock
from kbcore.errors import (
    BranchMoved,
    ChangesetIdReused,
    JournalCorrupt,
    LimitExceeded,
    LockTimeout,
    ReadOnlyStore,
    ResourceLimit,
    StaleBase,
    StorageError,
    ViewDamaged,
)
from kbcore.limits import MIB
from kbcore.model.changeset import Changeset, parse, parse_deletion
from kbcore.model.read_set import NOTHING
from kbcore.model.record import DropNode, PutNode, StateLink
from kbcore.model.state import Changes, Draft, Stamp
from kbcore.storage import lock
from kbcore.storage.bug_reports import BUGS
from kbcore.storage.fs import LOCK_EXCLUSIVE, RealFs
from kbcore.storage.head import Head
from kbcore.storage.layout import HEAD
from kbcore.store.apply import MOST_PRELOADED, preloading
from kbcore.store.branch_store import BranchStore
from kbcore.store.history.undo import revert
from kbcore.store.write_request import Request
from kbcore.view import replay
from kbcore.view.cache_files import VIEW, CacheFiles
from kbcore.view.fold import FoldedRecord
from kbcore.view.history import state_at
from kbcore.view.view import View
from kbmcp.tools.refusals import explain
from tests.support.disk.faultfs import NoSyncFs
from tests.support.generators.histories import FACTOR, lines_of
from tests.support.repository.project import Project, req
from tests.support.repository.stores import AUTHOR, SteppingClock, Stored, planner, view_of

SEGMENT = "journal-0000000001.jsonl"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.close()


def put(key: str, **values: Any) -> PutNode:
    return PutNode(id=key, base=0, set={"type": "req", "title": key, **values})


def state_of(made: Stored) -> list[bytes]:
    return made.store.read(lambda view: lines_of(state_at(view, view.seq)))


def journal_of(made: Stored) -> bytes:
    return (made.directory / SEGMENT).read_bytes()


def published(made: Stored, nodes: int = 30) -> list[bytes]:
    """Fill the store with a graph and its history, publish its view, and return the state."""
    made.commit([put(f"N{number}", **{"attributes.n": number}) for number in range(nodes)])
    edges = [StateLink(type="depends_on", from_id=f"N{number}", to_id="N0", base=0) for number in range(1, nodes)]
    made.commit(edges)
    made.commit([put(f"N{number}", status="done") for number in range(0, nodes, 3)])
    made.commit([DropNode(id="N5", base=0)])
    view_of(made.reopen())
    made.store.close()
    assert (made.cache_dir / VIEW).stat().st_size > 0
    made.reopen()
    return state_of(made)


# The commit protocol


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
def test_a_guard_that_refuses_leaves_nothing_behind(made: Stored, error: type[BaseException]) -> None:
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


def test_a_refused_write_is_told_with_what_its_owner_knows_of_it(made: Stored) -> None:
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


def test_a_planner_that_fails_leaves_nothing_behind_and_frees_the_lock(made: Stored) -> None:
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


# The cache


@pytest.mark.sliced(1)
@pytest.mark.parametrize("seed", range(4 * FACTOR))
def test_a_flipped_bit_in_the_cache_never_gives_a_wrong_answer(made: Stored, seed: int) -> None:
    wanted = published(made)
    path = made.cache_dir / VIEW
    content = path.read_bytes()
    chance = random.Random(seed)
    for _ in range(5):
        made.store.close()
        broken = bytearray(content)
        broken[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        made.reopen()
        assert state_of(made) == wanted
        assert made.store.read(lambda view: view.rows("select count(*) from record")) == [(4,)]


@pytest.mark.parametrize("share", [0, 0.01, 0.6, 0.999])
def test_a_cut_cache_is_built_anew(made: Stored, share: float) -> None:
    wanted = published(made)
    made.store.close()
    path = made.cache_dir / VIEW
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    made.reopen()
    assert state_of(made) == wanted


def test_a_commit_survives_a_damaged_cache(made: Stored) -> None:
    published(made)
    made.store.close()
    path = made.cache_dir / VIEW
    content = path.read_bytes()
    blocks = range(3 * 4096, len(content), 64)
    path.write_bytes(bytes(byte ^ 255 if at in blocks else byte for at, byte in enumerate(content)))
    made.reopen()
    assert made.commit([put("N1", title="New")]).updated == ("N1",)


def test_a_cache_with_an_old_stamp_or_other_tables_is_built_anew(made: Stored) -> None:
    wanted = published(made)
    for statement in ("update stamp set format = 0", "delete from stamp", "drop table record", "drop table stamp"):
        made.store.close()
        with duckdb.connect(str(made.cache_dir / VIEW)) as connection:
            connection.execute(statement)
        made.reopen()
        assert state_of(made) == wanted


def test_a_stray_log_beside_the_cache_does_no_harm(made: Stored) -> None:
    wanted = published(made)
    made.store.close()
    (made.cache_dir / f"{VIEW}.wal").write_bytes(b"left by a killed writer" * 50)
    made.reopen()
    assert state_of(made) == wanted


def test_a_cache_deleted_while_it_is_open_is_not_missed(made: Stored) -> None:
    wanted = published(made)
    for path in made.cache_dir.iterdir():
        path.unlink()
    assert state_of(made) == wanted
    assert made.put("Z").seq == 5


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "main").write_bytes(b"a file where a folder should be")
    made = Stored(tmp_path)
    made.put("A")
    made.reopen()
    assert [node.id for node in made.view().nodes(["A"])] == ["A"]


def test_a_long_tail_is_published_and_the_answers_stay(made: Stored) -> None:
    published(made)
    old = (made.cache_dir / VIEW).stat().st_ino
    for part in range(3):
        made.commit([put(f"M{part}-{number}") for number in range(900)])
    wanted = state_of(made)
    assert (made.cache_dir / VIEW).stat().st_ino != old
    assert made.view().tail_rows < 2000
    assert [path.name for path in made.cache_dir.iterdir()] == [VIEW]
    made.reopen()
    assert state_of(made) == wanted


def lengthen(made: Stored, count: int = 3) -> None:
    for part in range(count):
        made.commit([put(f"M{part}-{number}") for number in range(900)])


def test_of_several_processes_with_a_long_tail_one_publishes_and_the_others_use_its_base(made: Stored) -> None:
    published(made)
    others = [made.opened() for _ in range(2)]
    for other in others:
        view_of(other)
    lengthen(made, 2)
    for other in others:
        view_of(other)
    made.put("last one before")
    lengthen(made)
    new = (made.cache_dir / VIEW).stat().st_ino
    wanted = state_of(made)
    for other in others:
        view_of(other)
        assert (made.cache_dir / VIEW).stat().st_ino == new, "published once"
        view = view_of(other)
        assert view.tail_rows < 2000
        assert lines_of(state_at(view, view.seq)) == wanted
        other.close()


def test_a_base_published_after_one_large_record_is_used_by_other_processes(made: Stored) -> None:
    published(made)
    other = made.opened()
    view_of(other)
    made.commit([put(f"L-{number}") for number in range(2100)])
    new = base_file(made)
    for number in range(5):
        made.put(f"later {number}")
    committed(made, other, ["last"])
    assert base_file(made) == new
    assert view_of(other).tail_rows < 20
    assert state_of(made) == lines_of(state_at(view_of(other), made.store.head().seq))
    other.close()


def base_file(made: Stored) -> int:
    return (made.cache_dir / VIEW).stat().st_ino


def committed(made: Stored, store: BranchStore, keys: list[str]) -> int:
    return store.commit(AUTHOR, Request(lock_wait_s=0), planner([put(key) for key in keys]), branch="main").seq


def test_a_late_store_publishes_after_its_answer_or_before_it_reads_again(made: Stored) -> None:
    published(made)
    due: list[BranchStore] = []
    store = made.opened(publishing="late", on_due=due.append)
    old = base_file(made)
    committed(made, store, [f"L-{number}" for number in range(2100)])
    assert (due, base_file(made)) == ([store], old)
    store.publish_when_due()
    new = base_file(made)
    assert new != old
    committed(made, store, [f"M-{number}" for number in range(2100)])
    assert base_file(made) == new
    assert view_of(store).tail_rows == 0, "a reading needs the rows in tables"
    assert base_file(made) != new
    store.close()


def test_a_late_store_publishes_nothing_for_a_store_that_is_gone(made: Stored) -> None:
    published(made)
    store = made.opened(publishing="late")
    committed(made, store, [f"L-{number}" for number in range(2100)])
    made.close()
    made.directory.rename(made.directory.with_name("moved"))
    shutil.rmtree(made.cache_dir)
    store.publish_when_due()
    assert not made.cache_dir.exists()
    store.close()


def test_beside_others_a_view_is_published_while_they_use_theirs(made: Stored) -> None:
    published(made)
    due: list[BranchStore] = []
    store = made.opened(publishing="in_background", on_due=due.append)
    view_of(store)
    made.commit([put(f"L-{number}") for number in range(1500)])
    made.commit([put(f"M-{number}") for number in range(450)])
    old = base_file(made)
    committed(made, store, [f"N-{number}" for number in range(100)])
    assert (due, base_file(made)) == ([store], old)

    def use(view: View) -> int:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.publish_from_new_view, 0.0).result()
        assert base_file(made) != old
        committed(made, store, ["P"])
        return view.seq

    assert store.read(use) == store.head().seq - 1
    view = view_of(store)
    assert (view.seq, view.tail_rows) == (store.head().seq, 2)
    store.close()
    assert lines_of(state_at(view_of(made.reopen()), made.store.head().seq)) == state_of(made)
    assert [path.name for path in made.cache_dir.iterdir()] == [VIEW]


def test_a_newer_base_that_does_not_lead_to_the_head_is_not_used_instead_of_a_view_that_does(made: Stored) -> None:
    published(made)
    store, writer = made.opened(publishing="in_background"), made.opened(publishing="late")
    view_of(store)
    committed(made, writer, [f"L-{number}" for number in range(2100)])
    elsewhere = CacheFiles(made.fs, made.cache_dir.with_name("elsewhere"))
    other = BranchStore(made.fs, made.clock, made.directory, elsewhere)
    view_of(other)
    other.close()
    committed(made, writer, ["LAST"])
    writer.close()
    before = store.read(lambda view: (view.seq, view.base_seq))
    elsewhere.path.rename(made.cache_dir / VIEW)
    [journal_file] = made.directory.glob("journal-*.jsonl")
    journal_file.write_bytes(journal_file.read_bytes().replace(b'"LAST"', b'"LOST"'))
    assert store.read(lambda view: (view.seq, view.base_seq)) == before
    assert store.read(lambda view: [node.id for node in view.nodes(["LAST"])]) == ["LAST"]
    store.close()


def test_beside_others_nothing_is_published_where_another_process_did_meanwhile(made: Stored) -> None:
    published(made)
    made.clock = SystemClock()  # another process is waited for
    store = made.opened(publishing="in_background")
    view_of(store)
    made.commit([put(f"L-{number}") for number in range(2100)])
    committed(made, store, ["P"])
    new = base_file(made)
    with lock.Claim(RealFs(), made.cache_dir) as claim, ThreadPoolExecutor(1) as pool:
        assert claim.take()
        waits = pool.submit(store.publish_from_new_view, 60.0)
        with pytest.raises(TimeoutError):
            waits.result(0.2)
        claim.__exit__()
        waits.result()
    assert base_file(made) == new
    assert view_of(store).tail_rows == 2
    store.close()


def test_a_publication_beside_others_ends_when_it_is_stopped(made: Stored) -> None:
    published(made)
    made.clock = SystemClock()  # another process is waited for
    store, work = made.opened(publishing="in_background"), interrupting.CurrentWork()
    committed(made, store, [f"L-{number}" for number in range(2100)])

    def publish() -> None:
        with interrupting.done_for(work):
            store.publish_from_new_view(60.0)

    old = base_file(made)
    with lock.Claim(RealFs(), made.cache_dir) as claim, ThreadPoolExecutor(1) as pool:
        assert claim.take()
        waits = pool.submit(publish)
        work.stop()
        waits.result()
    assert base_file(made) == old
    store.publish_from_new_view(0.0)
    assert base_file(made) != old
    store.close()


def test_a_reader_takes_a_base_that_was_published_before_it_folds_a_long_tail(made: Stored) -> None:
    published(made)
    store = made.opened(publishing="in_background")
    base = view_of(store).base_seq
    made.commit([put(f"L-{number}") for number in range(2100)])
    assert store.read(lambda view: (view.base_seq, view.tail_rows)) == (base + 1, 0)
    store.close()


def test_while_another_process_publishes_nothing_is_done_for_a_while(made: Stored) -> None:
    published(made)
    old = (made.cache_dir / VIEW).stat().st_ino
    with lock.Claim(RealFs(), made.cache_dir) as claim:
        assert claim.take()
        lengthen(made)
        assert (made.cache_dir / VIEW).stat().st_ino == old
        assert made.view().tail_rows == 3 * 901
        lengthen(made, 8)
        assert (made.cache_dir / VIEW).stat().st_ino != old, "it was stopped, or takes very long"


def test_where_a_cache_cannot_be_locked_every_process_publishes(made: Stored, monkeypatch) -> None:
    published(made)
    old = (made.cache_dir / VIEW).stat().st_ino
    real = made.fs.open

    def refusing(path: Path, *given) -> int:
        if path == made.cache_dir:
            raise PermissionError
        return real(path, *given)

    monkeypatch.setattr(made.fs, "open", refusing)
    lengthen(made)
    assert (made.cache_dir / VIEW).stat().st_ino != old


def test_a_view_that_knows_more_than_the_journal_is_kept_as_a_witness_and_not_trusted(made: Stored) -> None:
    made.put("A")
    kept = {path: path.read_bytes() for path in made.directory.iterdir() if path.is_file()}
    made.put("B")
    view_of(made.reopen())
    made.store.close()
    for path, content in kept.items():
        path.write_bytes(content)
    store = made.reopen()
    assert view_of(store).rows("select id from node") == [("A",)]
    assert [one.seq for one in CacheFiles(made.fs, made.cache_dir).kept()] == [2]
    assert "Record 2 " in store.notices[0]


def test_a_running_process_notices_that_the_store_was_put_back(made: Stored) -> None:
    made.put("A")
    kept = {path: path.read_bytes() for path in made.directory.iterdir() if path.is_file()}
    made.put("B")
    assert made.view().seq == 2
    for path, content in kept.items():
        path.write_bytes(content)
    assert made.view().rows("select id from node") == [("A",)]
    assert "Record 2 " in made.store.notices[0]


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_store_that_was_put_back_and_written_on_is_read_from_its_journal(made: Stored, is_cached: bool) -> None:
    made.put("A")
    kept = {path: path.read_bytes() for path in made.directory.iterdir() if path.is_file()}
    made.put("B")
    made.put("C")
    assert made.view().seq == 3
    if is_cached:
        view_of(made.reopen())
        made.store.close()
    for path, content in kept.items():
        path.write_bytes(content)
    other = Stored(made.directory.parent.parent / "elsewhere")
    other.directory = made.directory
    other.reopen()
    for key in ("X", "Y", "Z"):
        other.put(key)
    if is_cached:
        made.reopen()
    assert made.view().rows("select id from node order by id") == [("A",), ("X",), ("Y",), ("Z",)]
    assert made.store.notices


def test_a_damaged_journal_is_not_blamed_on_the_view(made: Stored) -> None:
    published(made)
    other = made.opened()
    other.commit(AUTHOR, Request(), planner([put("Z")]), branch="main")
    segment = made.directory / SEGMENT
    segment.write_bytes(segment.read_bytes().replace(b'"Z"', b'"Y"', 1))
    with pytest.raises(JournalCorrupt):
        made.view()
    with pytest.raises(JournalCorrupt):
        made.view()
    assert {path.name for path in made.cache_dir.iterdir()} == {VIEW, "damaged.json"}


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from kbcore.storage.fs import RealFs
from tests.support.repository.stores import Stored
from tests.support.generators.histories import lines_of
from tests.support.repository.stores import AUTHOR, planner
from kbcore.view.history import state_at
from kbcore.model.record import PutNode
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
made = Stored(Path(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
view = made.view()
print(view.rows("select count(*) from node")[0][0], view.seq)
made.commit([PutNode(id=f"M{n}", base=0, set={"type": "req"}) for n in range(2500)])
print(made.view().rows("select count(*) from node")[0][0], made.view().seq)
print(sorted(path.name for path in made.cache_dir.iterdir()))
"""


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("limit_bytes", [600_000, 1_000_000])
def test_queries_and_commits_go_on_when_the_cache_finds_no_space(
    made: Stored, limit_bytes: int, is_cached: bool
) -> None:
    published(made)
    made.commit([put(f"L{number}", title="x" * 20000) for number in range(20)])
    made.store.close()
    if not is_cached:
        (made.cache_dir / VIEW).unlink()
    root = Path(__file__).resolve().parents[2]
    arguments = [sys.executable, "-c", _FULL_DISK, str(root), str(made.directory.parent.parent), str(limit_bytes)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["49 5", "2549 6"]
    assert done.stdout.splitlines()[2] == (f"['{VIEW}']" if is_cached else "[]")


class MeddlingFs(NoSyncFs):
    """Lets somebody else act right after a view got its name."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: Callable[[], object] | None = None

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        super().replace(source, target, is_private=is_private)
        if target.name == VIEW and self.meddle:
            meddle, self.meddle = self.meddle, None
            meddle()


def test_a_view_is_published_without_the_lock_and_what_another_process_publishes_at_once_does_no_harm(
    tmp_path: Path,
) -> None:
    fs = MeddlingFs()
    made = Stored(tmp_path, fs=fs)
    other = made.opened()

    def publish_more() -> None:
        # Nobody waits for a lock here: the writer that is publishing must have let go of it.
        other.commit(AUTHOR, Request(), planner([put(f"X{number}") for number in range(2100)]), branch="main")
        assert view_of(other).seq == 2

    fs.meddle = publish_more
    made.commit([put(f"M{number}") for number in range(2100)])
    assert fs.meddle is None
    assert made.store.read(lambda view: view.rows("select count(*) from node")) == [(4200,)]
    assert made.put("Y").seq == 3
    assert state_of(made) == lines_of(replay.folded(made.fs, made.directory, made.store.head()).state)
    other.close()
    made.close()


class LockWatchingFs(NoSyncFs):
    """Notes which cache files are made while the branch is locked."""

    def __init__(self) -> None:
        super().__init__()
        self.is_locked = False
        self.made: list[str] = []

    def flock(self, fd: int, operation: int) -> None:
        super().flock(fd, operation)
        self.is_locked = operation == LOCK_EXCLUSIVE

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if self.is_locked and path.suffix == ".duckdb":
            self.made.append(path.name)
        return super().open(path, flags, mode)


def test_a_writer_that_has_just_begun_builds_its_view_before_it_takes_the_lock(tmp_path: Path) -> None:
    fs = LockWatchingFs()
    made = Stored(tmp_path, fs=fs)
    made.put("A")
    made.reopen()
    made.put("B")
    assert (made.cache_dir / VIEW).exists()
    assert fs.made == []
    made.close()


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


def test_a_commit_is_answered_although_there_is_no_memory_to_publish_the_view(made: Stored) -> None:
    """Sorting all rows for a new base takes 20 MiB, what the commit looks up a part of one."""
    rows = random.Random(1)
    for part in range(3):
        made.commit([put(f"N{part}-{number}", title=rows.randbytes(500).hex()) for number in range(6000)])
    made.reopen()
    made.store.read(lambda view: view.seq)
    (made.cache_dir / "spill").write_text("no folder")
    made.close()
    old = base_file(made)
    made.store = BranchStore(made.fs, made.clock, made.directory, CacheFiles(made.fs, made.cache_dir, 12 * MIB))
    assert made.commit([put(f"M{number}") for number in range(2500)]).applied
    assert made.store.head().seq == 4
    assert base_file(made) == old, "it was not published"
    with pytest.raises(
        ResourceLimit, match=r"may use \(12 MiB: `limits\.memoryMiB` in your own .*\)\. DuckDB says: Out of Memory"
    ):
        made.store.read(lambda view: view.rows("select list(title || id) from node"))
    made.reopen()
    assert made.store.read(lambda view: view.rows("select count(*) from node")) == [(20_500,)]


def test_too_little_memory_to_read_after_a_commit_does_not_say_that_nothing_was_written(made: Stored) -> None:
    made.commit([PutNode(id=f"N{number}", base=0, set={"type": "req"}) for number in range(20_000)])
    made.close()
    (made.cache_dir / "spill").write_text("no folder")
    made.store = BranchStore(made.fs, made.clock, made.directory, CacheFiles(made.fs, made.cache_dir, 6 * MIB))

    def use_memory() -> ResourceLimit:
        with pytest.raises(ResourceLimit) as caught:
            made.store.read(lambda view: view.rows("select list(id || repeat('x', 1000)) from node"))
        return caught.value

    with interrupting.done_for(interrupting.CurrentWork()):
        before = use_memory()
        made.put("A")
        after = use_memory()
        told = explain(after, after.hint, {}, writes=True, is_dotted=False)["error"]
        interrupting.begin_answer()
        later = use_memory()
    assert [one.applied for one in (before, after, later)] == ["no", "unknown", "no"]
    assert after.message.endswith("This was after something had been written.")
    assert (told["applied"], "nothing was" in told["message"].lower()) == ("unknown", False)


class BusyClock(SystemClock):
    """Has somebody else hold the lock of a branch for a moment, at the next look at this clock after it was armed.

    It measures no time, so that each plan is a quick one.
    """

    def __init__(self, lock_file: Path) -> None:
        self.lock_file = lock_file
        self.looks_left = 0

    def monotonic_s(self) -> float:
        self.looks_left -= 1
        if self.looks_left == 0:
            fd = os.open(self.lock_file, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_EX)
            threading.Timer(0.2, os.close, [fd]).start()
        return 0.0


def test_nothing_is_loaded_while_a_changeset_that_was_planned_ahead_waits_for_the_lock(tmp_path: Path) -> None:
    clock = BusyClock(tmp_path / "branches" / "main" / "lock")
    made, other, loaded = Stored(tmp_path, clock=clock), Stored(tmp_path, clock=SystemClock()), list[View]()

    def plan(view: View, stamp: Stamp) -> Draft:
        if clock.looks_left <= 0 and view.seq == 1:
            other.put("B")  # the plan is of no use
            clock.looks_left = 1
        return msgspec.structs.replace(planner([put("C")])(view, stamp), reads=None)

    made.put("A")
    request = Request(plans_ahead=True, lock_wait_s=5.0)
    outcome = made.store.commit(AUTHOR, request, plan, loads=loaded.append, branch="main")
    assert (outcome.seq, clock.looks_left < 0, loaded) == (3, True, [])
    made.close()
    other.close()


def test_only_a_small_working_set_is_loaded_while_others_wait() -> None:
    def of(count: int) -> Changeset:
        return parse({"entities": [{"id": f"N-{number}", "type": "req"} for number in range(count)]})

    assert preloading(of(MOST_PRELOADED)) is not None
    assert preloading(of(MOST_PRELOADED + 1)) is None
    assert preloading(parse_deletion({"entities": [{"id": "N-1"}]}, needs_version=False)) is None
