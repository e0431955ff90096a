"""A view is published after many records: by one process, without the lock, and at no cost to an answer."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import (
    ResourceLimit,
)
from kbcore.limits import MIB
from kbcore.process import interrupting
from kbcore.storage import lock
from kbcore.storage.fs import RealFs
from kbcore.store.branch_store import BranchStore
from kbcore.store.write_request import Request
from kbcore.view import replay
from kbcore.view.cache_files import VIEW, CacheFiles
from kbcore.view.history import state_at
from kbcore.view.view import View
from tests.core.store.stored import published, put, state_of
from tests.support.disk.faultfs import NoSyncFs
from tests.support.generators.histories import lines_of
from tests.support.repository.stores import AUTHOR, Stored, planner, view_of


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.close()


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
    with lock.QueueLock(RealFs(), made.cache_dir) as queue, ThreadPoolExecutor(1) as pool:
        assert queue.take()
        waits = pool.submit(store.publish_from_new_view, 60.0)
        with pytest.raises(TimeoutError):
            waits.result(0.2)
        queue.__exit__()
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
    with lock.QueueLock(RealFs(), made.cache_dir) as queue, ThreadPoolExecutor(1) as pool:
        assert queue.take()
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
    with lock.QueueLock(RealFs(), made.cache_dir) as queue:
        assert queue.take()
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
