"""The view that a store reads from: built, kept in step, and never trusted against the journal."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import msgspec
import pytest

from kbcore.clock import SystemClock
from kbcore.errors import (
    JournalCorrupt,
    ResourceLimit,
)
from kbcore.limits import MIB
from kbcore.model.changeset import Changeset, parse, parse_deletion
from kbcore.model.record import PutNode
from kbcore.model.state import Draft, Stamp
from kbcore.process import interrupting
from kbcore.storage.fs import LOCK_EXCLUSIVE
from kbcore.store.apply import MOST_PRELOADED, preloading
from kbcore.store.branch_store import BranchStore
from kbcore.store.write_request import Request
from kbcore.view.cache_files import VIEW, CacheFiles
from kbcore.view.view import View
from kbmcp.tools.refusals import error_json
from tests.core.store.stored import SEGMENT, published, put, state_of
from tests.support.disk.faultfs import NoSyncFs
from tests.support.generators.histories import FACTOR
from tests.support.repository.stores import AUTHOR, Stored, planner, view_of


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.close()


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
def test_a_cut_cache_is_built_again(made: Stored, share: float) -> None:
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


def test_a_cache_with_an_old_stamp_or_other_tables_is_built_again(made: Stored) -> None:
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
        reported = error_json(after, after.hint, {}, writes=True, is_dotted=False)["error"]
        interrupting.begin_answer()
        later = use_memory()
    assert [one.applied for one in (before, after, later)] == ["no", "unknown", "no"]
    assert after.message.endswith("This was after something had been written.")
    assert (reported["applied"], "nothing was" in reported["message"].lower()) == ("unknown", False)


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
