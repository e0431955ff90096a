"""Many processes on one branch: nothing lost, nothing twice, no gap in seq. The fault suite goes further."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.model.record import PutNode
from kbcore.model.state import Draft, Stamp
from kbcore.storage import journal, lock
from kbcore.storage.fs import RealFs
from kbcore.store.write_request import Request
from kbcore.view.view import View
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git_env
from tests.support.repository.stores import AUTHOR as WRITER
from tests.support.repository.stores import SteppingClock, Stored, planner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project whose file system does each thing in one step, as other processes may rely on."""
    made = Project(tmp_path / "a project", fs=RealFs())
    yield made
    made.close()


def start(project: Project, what: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.processes.worker", str(project.root), what, name, str(count)],
        cwd=ROOT,
        env=git_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(workers: list[subprocess.Popen[str]]) -> set[str]:
    """Return what the workers acknowledged; each must have ended well."""
    acknowledged: set[str] = set()
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, err
        acknowledged.update(out.split())
    return acknowledged


def records(project: Project, branch: str = "main") -> list[int]:
    directory = stores_at(project.root) / branch
    fs = RealFs()
    return [entry.frame.seq for entry in journal.scan(fs, directory, journal.read_head(fs, directory))]


@pytest.mark.sliced
def test_writers_and_syncs_at_once_lose_nothing(project: Project) -> None:
    project.apply(entities=[{"id": "first", "type": "req", "title": "t", "status": "open"}])
    workers = [start(project, "apply", f"w{number}", 15) for number in range(2)]
    workers += [start(project, "sync", f"s{number}", 5) for number in range(2)]
    acknowledged = finished(workers)
    seqs = records(project)
    assert seqs == list(range(1, len(seqs) + 1))
    project.close()
    project.sync()
    present = {row[0] for row in project.view().rows("select id from node")}
    assert acknowledged <= present
    assert present == acknowledged | {"first"}


@pytest.mark.sliced
def test_two_first_syncs_of_a_new_branch_give_one_store(project: Project) -> None:
    project.apply(entities=[{"id": "first", "type": "req", "title": "t", "status": "open"}])
    project.switch("feature/new", create=True)
    finished([start(project, "sync", f"s{number}", 2) for number in range(3)])
    assert len(records(project, "feature%2fnew")) >= 2
    assert project.node("first")
    assert {f"s{worker}-{number}" for worker in range(3) for number in range(2)} <= {
        row[0] for row in project.view().rows("select id from node")
    }


def test_a_record_once_written_never_changes(project: Project) -> None:
    path = stores_at(project.root) / "main/journal-0000000001.jsonl"
    project.sync({"docs/requirements/1.md": req("A")})
    written = path.read_bytes()
    project.apply(entities=[{"id": "B", "type": "req", "title": "t", "status": "open"}])
    project.sync({"docs/requirements/1.md": None})
    project.delete(entities=[{"id": "B"}])
    assert path.read_bytes().startswith(written)


@pytest.mark.sliced
def test_an_agents_write_survives_a_sync_that_runs_at_the_same_time(project: Project) -> None:
    project.sync({f"docs/requirements/{number}.md": req(f"R{number}", title="Old") for number in range(50)})
    project.write({f"docs/requirements/{number}.md": req(f"R{number}", title="New") for number in range(50)})
    worker = start(project, "sync", "other", 3)
    for number in range(20):
        project.apply(entities=[{"id": f"R{number}", "owner": "agent"}])
    finished([worker])
    project.sync()
    nodes = project.view().nodes([f"R{number}" for number in range(50)])
    assert {node.fields["title"] for node in nodes} == {"New"}
    assert {node.id for node in nodes if node.fields.get("owner") == "agent"} == {f"R{number}" for number in range(20)}


def test_a_writer_that_waits_reads_before_it_holds_the_lock_what_its_plan_asks_for(tmp_path: Path) -> None:
    stored = Stored(tmp_path, fs=RealFs(), clock=SystemClock())
    stored.put("A")
    other = Stored(tmp_path, fs=RealFs(), clock=SystemClock())
    loaded = list[int]()
    has_loaded = threading.Event()

    def loads(view: View) -> None:
        loaded.append(view.seq)
        has_loaded.set()

    def put(name: str) -> int:
        ops = [PutNode(id=name, base=0, set={"type": "req", "title": "t"})]
        return stored.store.commit(WRITER, Request(lock_wait_s=60), planner(ops), loads=loads, branch="main").seq

    assert put("B") == 2
    assert loaded == [], "nobody else had the lock"
    with ThreadPoolExecutor(1) as pool:
        with journal.writing(other.fs, other.directory, other.clock):
            waiting = pool.submit(put, "C")
            assert has_loaded.wait(60)
            assert not waiting.done()
        assert waiting.result() == 3
    assert loaded == [2]
    for one in (stored, other):
        one.close()


class ReleasingClock(SteppingClock):
    """Ends a lock when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = contextlib.ExitStack()

    def sleep(self, wait_s: float) -> None:
        super().sleep(wait_s)
        self.lock.close()


class Crowded(NoSyncFs):
    """Files of a writer: others write just before it locks the branch, and lock it until the writer has waited."""

    def __init__(self, root: Path, records: int) -> None:
        super().__init__()
        self.others = Stored(root)
        self.records = records
        self.clock = ReleasingClock()

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == "lock" and self.records:
            count, self.records = self.records, 0
            for number in range(count):
                self.others.put(f"OTHER-{number}")
            self.clock.lock.enter_context(lock.held(self.others.fs, self.others.clock, path))
        return super().open(path, flags, mode)


def crowded(
    root: Path, records: int, *, loads: Callable[[View], object] | None, plans_ahead: bool = False
) -> list[int]:
    """Write one entity beside others; return how many records were yet to be folded at each planning."""
    Stored(root).put("A")
    crowd = Crowded(root, 0)
    stored = Stored(root, fs=crowd, clock=crowd.clock)
    stored.put("B")
    crowd.records = records
    pending = []

    def plan(view: View, stamp: Stamp) -> Draft:
        pending.append(len(view._pending.entries))
        return planner([PutNode(id="C", base=0, set={"type": "req", "title": "t"})])(view, stamp)

    request = Request(lock_wait_s=60, plans_ahead=plans_ahead)
    assert stored.store.commit(WRITER, request, plan, loads=loads, branch="main").seq == 3 + records
    for one in (stored, crowd.others):
        one.close()
    return pending


def test_a_writer_that_waits_folds_many_records_before_it_holds_the_lock(tmp_path: Path) -> None:
    assert crowded(tmp_path, 512, loads=None) == [0]


def test_only_a_writer_that_plans_under_the_lock_reads_before_it_what_the_plan_asks_for(tmp_path: Path) -> None:
    loaded: list[int] = []
    assert len(crowded(tmp_path / "under", 2, loads=lambda view: loaded.append(view.seq))) == 1
    assert loaded == [4]
    assert len(crowded(tmp_path / "ahead", 2, loads=lambda view: loaded.append(view.seq), plans_ahead=True)) == 2
    assert loaded == [4]


def test_a_view_that_is_near_the_head_is_not_asked_before_the_lock(tmp_path: Path) -> None:
    stored, other = Stored(tmp_path, fs=RealFs()), Stored(tmp_path, fs=RealFs())
    stored.put("A")
    seen = stored.store._parts.views
    assert seen.is_ready(stored.store.head())
    for number in range(63):
        other.put(f"B-{number}")
    assert seen.is_ready(stored.store.head())
    other.put("C")
    assert not seen.is_ready(stored.store.head()), "64 records would be taken in under the lock"
    stored.put("D")
    assert seen.is_ready(stored.store.head())
    stored.store.close()
    assert not seen.is_ready(stored.store.head()), "no view is open"
    for one in (stored, other):
        one.close()
