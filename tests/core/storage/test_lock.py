"""One at a time: among threads, processes and file systems that cannot lock."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import LockTimeout, LockUnsupported, StorageError
from kbcore.process import interrupting
from kbcore.storage import lock
from tests.core.storage.making import CLOCK, FS, FakeClock
from tests.support.disk.faultfs import FailingFs, LoggingFs

ROOT = Path(__file__).parents[3]
HOLD = """
import sys
from pathlib import Path
from kbcore.clock import SystemClock
from kbcore.storage import lock
from kbcore.storage.fs import RealFs
with lock.held(RealFs(), SystemClock(), Path(sys.argv[1]), command="kb sync"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lock_held_elsewhere_times_out_and_names_its_holder(tmp_path: Path, holder: subprocess.Popen) -> None:
    with pytest.raises(LockTimeout) as caught, lock.held(FS, SystemClock(), tmp_path / "lock", wait_s=0.05):
        pass
    message = caught.value.message
    assert message.startswith(
        f"{tmp_path}/lock is held by kb sync (process {holder.pid} on {socket.gethostname()}, since 20"
    )
    assert message.endswith("); waited 0.05 s")
    assert caught.value.data["holder"]["pid"] == holder.pid


def test_work_that_is_done_already_is_refused_and_names_who_does_it(tmp_path: Path, holder: subprocess.Popen) -> None:
    reported = f"The sweep is being done, by kb sync \\(process {holder.pid} on .*\\)\\."
    with pytest.raises(StorageError, match=reported) as caught, sweeping(tmp_path):
        pass
    assert caught.value.data["holder"]["pid"] == holder.pid


def test_work_that_is_done_already_by_nobody_knows_whom_is_refused_too(tmp_path: Path) -> None:
    with sweeping(tmp_path):
        (tmp_path / "lock").write_bytes(b"")
        with pytest.raises(StorageError, match=r"The sweep is being done, by another process\."), sweeping(tmp_path):
            pass


def sweeping(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Return what does work that one process at a time does."""
    already = "The sweep is being done"
    return lock.alone(FS, CLOCK, folder / "lock", command="sweep", refusal=StorageError, already=already)


def test_the_lock_of_a_killed_holder_is_free_at_once(tmp_path: Path, holder: subprocess.Popen) -> None:
    holder.kill()
    holder.wait()
    start = time.monotonic()
    with lock.held(FS, SystemClock(), tmp_path / "lock"):
        assert time.monotonic() - start < 0.5


def test_a_waiter_gets_the_lock_soon_after_its_holder_dies(tmp_path: Path, holder: subprocess.Popen) -> None:
    died: list[float] = []

    def kill() -> None:
        died.append(time.monotonic())
        holder.kill()

    timer = threading.Timer(0.1, kill)
    timer.start()
    with lock.held(FS, SystemClock(), tmp_path / "lock"):
        assert time.monotonic() - died[0] < 0.5
    timer.join()


def test_a_stopped_holder_is_never_robbed(tmp_path: Path, holder: subprocess.Popen) -> None:
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(LockTimeout), lock.held(FS, SystemClock(), tmp_path / "lock", wait_s=0.1):
        pass
    holder.send_signal(signal.SIGCONT)


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with lock.held(FS, SystemClock(), tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_it_cannot_be_taken_twice(tmp_path: Path) -> None:
    with (
        lock.held(FS, CLOCK, tmp_path / "lock", command="outer"),
        pytest.raises(LockTimeout, match=f"held by outer .process {os.getpid()} on"),
        lock.held(FS, CLOCK, tmp_path / "lock", wait_s=0),
    ):
        pass


def test_it_is_free_again_after_an_error_inside(tmp_path: Path) -> None:
    with pytest.raises(KeyError), lock.held(FS, CLOCK, tmp_path / "lock"):
        raise KeyError
    with lock.held(FS, CLOCK, tmp_path / "lock", wait_s=0):
        pass


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    ready, go = os.pipe()
    with lock.held(FS, CLOCK, tmp_path / "lock"):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)
            os._exit(0)
    with lock.held(FS, CLOCK, tmp_path / "lock", wait_s=0):
        pass
    os.close(go)
    os.close(ready)
    os.waitpid(child, 0)


class Counting(FakeClock):
    """Keeps the pauses that a waiter makes."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def sleep(self, wait_s: float) -> None:
        self.pauses.append(wait_s)
        super().sleep(wait_s)


def pauses_of_a_waiter(path: Path, wait_s: float, *, is_next: bool = True) -> list[float]:
    clock = Counting()
    with lock.held(FS, CLOCK, path), lock.QueueLock(FS, path.parent) as queue:
        assert is_next or queue.take()
        with pytest.raises(LockTimeout), lock.held(FS, clock, path, wait_s=wait_s):
            pass
    return clock.pauses


def in_bounds(pauses: list[float], middles: list[float]) -> bool:
    return all(middle * 0.5 <= pause <= middle * 1.5 for pause, middle in zip(pauses, middles, strict=False))


def test_who_is_next_looks_often_and_less_often_the_longer_the_lock_is_held(tmp_path: Path) -> None:
    pauses = pauses_of_a_waiter(tmp_path / "lock", 3)
    assert sum(pauses) == pytest.approx(3)
    assert in_bounds(pauses[:20], [0.001] * 20)
    assert all(0.01 <= pause <= 0.03 for pause in pauses[-20:-1])


def test_one_that_is_not_next_looks_once_more_when_its_time_is_over(tmp_path: Path) -> None:
    assert sum(pauses_of_a_waiter(tmp_path / "lock", 0.1, is_next=False)) == pytest.approx(0.1)


def test_one_that_does_not_wait_does_not_get_ready(tmp_path: Path) -> None:
    fs = LoggingFs()
    with (
        lock.held(FS, CLOCK, tmp_path / "lock"),
        pytest.raises(LockTimeout),
        lock.held(fs, CLOCK, tmp_path / "lock", wait_s=0, meanwhile=lambda: pytest.fail("it waits for nothing")),
    ):
        pass
    assert ("open", tmp_path.name) not in fs.calls


def test_a_wait_ends_when_the_work_is_stopped(tmp_path: Path) -> None:
    work = interrupting.CurrentWork()
    with (
        lock.held(FS, CLOCK, tmp_path / "lock"),
        interrupting.done_for(work),
        pytest.raises(interrupting.Stopped),
        lock.held(FS, Freeing(0.3, work.stop), tmp_path / "lock"),
    ):
        pass


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_keeps_nobody_from_being_next(tmp_path: Path) -> None:
    ready, go = os.pipe()
    with lock.QueueLock(FS, tmp_path) as queue:
        assert queue.take()
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)
            os._exit(0)
    with lock.QueueLock(FS, tmp_path) as other:
        assert other.take()
    os.close(go)
    os.close(ready)
    os.waitpid(child, 0)


def test_who_holds_a_lock_is_found_out_without_keeping_it_or_a_descriptor(tmp_path: Path) -> None:
    fs, path = LoggingFs(), tmp_path / "lock"
    assert lock.live_holder(fs, path) == ""
    with lock.held(FS, CLOCK, path, command="kb sync"):
        assert lock.live_holder(fs, path).startswith("kb sync (process ")
        path.write_bytes(b"")
        assert lock.live_holder(fs, path) == "another process"
    assert lock.live_holder(fs, path) == ""
    assert not fs.names, "a descriptor stays open"
    assert [kind for kind, _ in fs.calls[-3:]] == ["flock", "flock", "close"], "it is given back before it is closed"


def test_others_look_more_often_the_longer_they_have_waited(tmp_path: Path) -> None:
    pauses = pauses_of_a_waiter(tmp_path / "lock", 3, is_next=False)
    assert sum(pauses) == pytest.approx(3)
    assert in_bounds(pauses, [0.0112, 0.008, 0.008, 0.008, 0.008, 0.008])
    assert all(0.01 <= pause <= 0.03 for pause in pauses[-20:-1])


class Bounded(Counting):
    """A clock on which somebody who sleeps too often fails."""

    def sleep(self, wait_s: float) -> None:
        super().sleep(wait_s)
        assert len(self.pauses) < 1000, "the wait does not end"


@pytest.mark.parametrize("since_s", [0.0, 0.7, 9.4, 143.7, 17241.6, 1e9])
def test_a_wait_ends_although_the_rest_of_it_is_too_short_to_change_the_time(tmp_path: Path, since_s: float) -> None:
    with lock.held(FS, CLOCK, tmp_path / "lock"):
        for step in range(20):
            clock = Bounded()
            clock.elapsed_s = since_s + step / 7
            with pytest.raises(LockTimeout), lock.held(FS, clock, tmp_path / "lock", wait_s=0.1):
                pass
            assert sum(clock.pauses) == pytest.approx(0.1, rel=1e-4)


class Freeing(FakeClock):
    """Lets go of something when somebody has slept for so long."""

    def __init__(self, after_s: float, release: Callable[[], object]) -> None:
        super().__init__()
        self.after_s = after_s
        self.release = release
        self.is_free = False

    def sleep(self, wait_s: float) -> None:
        super().sleep(wait_s)
        if self.elapsed_s >= self.after_s and not self.is_free:
            self.is_free = True
            self.release()


@pytest.mark.parametrize(("stopped", "within_s"), [(False, 0.31), (True, 0.53)])
def test_one_that_was_stopped_while_it_was_next_delays_the_others_for_half_a_second(
    tmp_path: Path, stopped: bool, within_s: float
) -> None:
    with contextlib.ExitStack() as holder, lock.QueueLock(FS, tmp_path) as queue:
        holder.enter_context(lock.held(FS, CLOCK, tmp_path / "lock"))
        assert queue.take() or not stopped
        if not stopped:
            queue.__exit__()
        clock = Freeing(0.3, holder.close)
        with lock.held(FS, clock, tmp_path / "lock"):
            assert clock.is_free
            assert (0.5 if stopped else 0.3) <= clock.elapsed_s <= within_s


def test_a_free_lock_is_taken_at_once_whoever_is_next(tmp_path: Path) -> None:
    clock = FakeClock()
    with lock.QueueLock(FS, tmp_path) as queue:
        assert queue.take()
        with lock.held(FS, clock, tmp_path / "lock", wait_s=0):
            assert clock.elapsed_s < 0.002


def test_who_waits_is_next_once_the_one_before_has_the_lock(tmp_path: Path) -> None:
    got: list[int] = []

    def work(number: int) -> None:
        with lock.held(FS, SystemClock(), tmp_path / "lock"):
            got.append(number)
            time.sleep(0.05)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    with lock.held(FS, CLOCK, tmp_path / "lock"):
        for thread in threads:
            thread.start()
            time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert got[0] == 0, "the one that came first was next"
    assert sorted(got) == [0, 1, 2, 3, 4]


def test_what_is_to_be_done_meanwhile_is_done_once_and_only_by_one_that_waits(tmp_path: Path) -> None:
    done: list[float] = []
    with contextlib.ExitStack() as holder:
        holder.enter_context(lock.held(FS, CLOCK, tmp_path / "lock", meanwhile=lambda: done.append(0)))
        assert done == []
        clock = Freeing(0.1, holder.close)
        with lock.held(FS, clock, tmp_path / "lock", meanwhile=lambda: done.append(clock.elapsed_s)):
            assert done == [0]
    with (
        lock.held(FS, CLOCK, tmp_path / "lock"),
        pytest.raises(ZeroDivisionError),
        lock.held(FS, CLOCK, tmp_path / "lock", meanwhile=lambda: 1 // 0),
    ):
        pass
    with lock.QueueLock(FS, tmp_path) as queue:
        assert queue.take(), "nobody is next any more"


@pytest.mark.parametrize(("point", "call"), [(4, "open"), (5, "flock")])
def test_where_directories_cannot_be_locked_there_is_no_queue_and_the_lock_is_taken_all_the_same(
    tmp_path: Path, point: int, call: str
) -> None:
    fs = FailingFs(point, errno.ENOTSUP)
    with contextlib.ExitStack() as holder:
        holder.enter_context(lock.held(FS, CLOCK, tmp_path / "lock"))
        clock = Freeing(0.3, holder.close)
        with lock.held(fs, clock, tmp_path / "lock"):
            assert 0.3 <= clock.elapsed_s <= 0.33
    assert fs.calls[point][0] == call
    assert not fs.names, "a descriptor stays open"


def test_who_waits_opens_the_lock_file_once(tmp_path: Path) -> None:
    fs, clock = LoggingFs(), FakeClock()
    with (
        lock.held(FS, CLOCK, tmp_path / "lock"),
        pytest.raises(LockTimeout),
        lock.held(fs, clock, tmp_path / "lock", wait_s=0.1),
    ):
        pass
    assert sum(kind == "flock" for kind, _ in fs.calls) > 10
    opened = [name for kind, name in fs.calls if kind == "open"]
    assert opened == ["lock", tmp_path.name, "lock"], "the last time to read who holds it"


def test_who_waits_for_a_lock_file_that_is_moved_away_takes_the_new_one(tmp_path: Path) -> None:
    directory = tmp_path / "main"
    directory.mkdir()

    def move() -> None:
        directory.rename(tmp_path / "trash")
        directory.mkdir()

    clock = Freeing(0.1, move)
    with lock.held(FS, CLOCK, directory / "lock"), lock.held(FS, clock, directory / "lock", wait_s=1):
        assert 0.1 <= clock.elapsed_s <= 0.2, "the old one is not free yet"


def test_those_who_wait_do_not_look_at_the_same_moments(tmp_path: Path) -> None:
    one, other = (pauses_of_a_waiter(tmp_path / "lock", 0.5) for _ in range(2))
    assert not set(one[:-1]) & set(other[:-1])


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused(tmp_path: Path, code: int) -> None:
    with (
        pytest.raises(LockUnsupported, match=f"cannot lock {tmp_path}/lock: "),
        lock.held(FailingFs(1, code), CLOCK, tmp_path / "lock"),
    ):
        pass


def test_another_failure_to_lock_is_explained(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=f"cannot lock {tmp_path}/lock: Input/output error"),
        lock.held(FailingFs(1), CLOCK, tmp_path / "lock"),
    ):
        pass


def test_a_failed_release_does_not_hide_how_the_block_ended(tmp_path: Path) -> None:
    fs = FailingFs(5, lasting=True)
    with lock.held(fs, CLOCK, tmp_path / "lock"):
        pass
    assert [kind for kind, _ in fs.calls[5:]] == ["flock", "close"]
    fs.close_all()


def test_a_lock_whose_directory_was_moved_away_is_not_taken(tmp_path: Path) -> None:
    directory = tmp_path / "main"
    directory.mkdir()

    class Moving(LoggingFs):
        def _run(self, kind, method, args):
            result = super()._run(kind, method, args)
            if kind == "flock" and len(self.calls) == 2:
                directory.rename(tmp_path / "trash")
                directory.mkdir()
            return result

    fs = Moving()
    with (
        lock.held(fs, CLOCK, directory / "lock"),
        pytest.raises(LockTimeout),
        lock.held(FS, CLOCK, directory / "lock", wait_s=0),
    ):
        pass
    assert [kind for kind, _ in fs.calls].count("open") == 3, "the lock, the new directory, and the new lock"


@pytest.mark.parametrize("other", [{"st_dev": 1}, {"st_ino": 1}])
def test_a_lock_file_that_is_another_one_by_now_is_not_taken(tmp_path: Path, other: dict) -> None:
    class Elsewhere(LoggingFs):
        def _run(self, kind, method, args):
            found = super()._run(kind, method, args)
            if kind != "lstat":
                return found
            places = [getattr(found, name) for name in ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid")]
            places[2 if "st_dev" in other else 1] += 1
            return os.stat_result((*places, 0, 0, 0, 0))

    fs = Elsewhere()
    with pytest.raises(LockTimeout), lock.held(fs, CLOCK, tmp_path / "lock", wait_s=0.1):
        pass
    assert not fs.names, "a descriptor stays open"


def test_a_lock_file_that_is_not_there_names_nobody(tmp_path: Path) -> None:
    assert lock.read_holder(FS, tmp_path / "lock") is None


def test_the_lock_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.held(FS, CLOCK, path, command="kb" * 99):
        before = path.stat().st_ino, path.stat().st_size
    with lock.held(FS, CLOCK, path, command="\x01é\\" * 50):
        assert lock.read_holder(FS, path) is not None
    assert (path.stat().st_ino, path.stat().st_size) == before


@pytest.mark.parametrize("content", [b"", b" " * 1024, b"{", b'{"pid":"x"}', b"x" * 5000])
def test_an_unreadable_holder_is_another_process(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lock"
    with lock.held(FS, CLOCK, path):
        path.write_bytes(content)
        with (
            pytest.raises(LockTimeout, match="is held by another process; waited 0 s"),
            lock.held(FS, CLOCK, path, wait_s=0),
        ):
            pass


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="symbolic link"), lock.held(FS, CLOCK, tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()
