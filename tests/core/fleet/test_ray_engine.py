"""The engine ``ray`` where something fails: parts, repositories, workers, the process that asks."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from kbcore.clock import SystemClock
from kbcore.config.user import UserLimits, UserSettings
from kbcore.errors import InvalidQuery, WorkersUnavailable
from kbcore.fleet import head, local, ray_engine, reading
from kbcore.fleet.asking import RowsQuestion
from kbcore.fleet.local import Answer
from kbcore.fleet.place import FolderPlace
from kbcore.fleet.ray_engine import RayOptions
from kbcore.fleet.reading import FleetSelection, UnreadRepository
from kbcore.limits import MIB
from kbcore.query import Query
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.fleets import exported, flip_a_bit, needs_ray
from tests.support.repository.project import req
from tests.support.repository.repos import git_env

pytestmark = [pytest.mark.slow, needs_ray]
MACHINE = Machine(NoSyncFs(), SystemClock(), git_env())
USER = UserSettings(UserLimits(memory_bytes=256 * MIB))
QUESTION = RowsQuestion(Query())
NAMES = ("a", "b", "c", "d", "e", "f")
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""As the system lists 127.0.0.1, the same in IPv6, and ::1."""
_LONGEST_S = 240.0


class KillingPlace(FolderPlace):
    """A folder whose reader is killed where it reads a part of one repository: once, or whenever it does."""

    def __init__(self, folder: Path, repo: str, *, once: bool) -> None:
        super().__init__(RealFs(), SystemClock(), folder)
        self._killing = f"repo={repo}/"
        self._marker = folder / "killed"
        self._is_once = once
        self._own = os.getpid()

    def read(self, path: str, limit_bytes: int) -> bytes | None:
        if self._killing in path and path.endswith(".parquet") and os.getpid() != self._own:
            is_first = not self._marker.exists()
            with self._marker.open("a") as file:
                file.write("killed\n")
            if is_first or not self._is_once:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().read(path, limit_bytes)


@pytest.fixture(scope="module")
def engine():
    with ray_engine.started(RayOptions(2, shard=3)) as started:
        yield started


@pytest.fixture
def place(project, tmp_path):
    """A place with six repositories that hold the same."""
    found = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2", owner="ann")})
    for name in NAMES:
        exported(project, found, name)
    return found


def heads_in(place):
    return reading.find(place, FleetSelection()).heads


def here(place):
    return list(local.ask(place, heads_in(place), QUESTION, MACHINE, USER))


def names_of(answers, kind):
    return [one.repo for one in answers if isinstance(one, kind)]


def test_a_shard_whose_worker_was_killed_is_asked_again(engine, place, tmp_path):
    killing = KillingPlace(tmp_path / "place", "c", once=True)
    found = list(engine.ask(killing, heads_in(place), QUESTION, USER))
    assert (tmp_path / "place" / "killed").exists()
    assert found == here(place)


def test_only_a_repository_that_always_kills_its_worker_has_no_answer(engine, place, tmp_path):
    killing = KillingPlace(tmp_path / "place", "c", once=False)
    found = list(engine.ask(killing, heads_in(place), QUESTION, USER))
    assert names_of(found, Answer) == ["a", "b", "d", "e", "f"]
    [failure] = [one for one in found if isinstance(one, UnreadRepository)]
    assert (failure.repo, failure.code) == ("c", "workers_unavailable")
    assert "3 times" in failure.message
    assert failure.hint
    tries = 1 + ray_engine.RETRIES
    assert (tmp_path / "place" / "killed").read_text().count("killed") in {
        tries,
        2 * tries,
    }  # with its shard, and alone


def test_damaged_parts_are_answered_as_by_this_process(engine, place, tmp_path):
    folder = tmp_path / "place"
    paths = {name: head.head_path(name, "main") for name in NAMES}
    kept = {name: head.decode((folder / path).read_bytes(), path) for name, path in paths.items()}
    (folder / kept["a"].parts[0].path).unlink()
    part = folder / kept["b"].parts[0].path
    part.write_bytes(part.read_bytes()[:-1])
    flip_a_bit(folder, "c")
    newer = msgspec.structs.replace(kept["d"], format=head.FORMAT + 1)
    (folder / paths["d"]).write_bytes(head.encode(newer))
    assert [one.code for one in reading.find(place, FleetSelection()).failures] == ["format_too_new"]
    found = list(engine.ask(place, heads_in(place), QUESTION, USER))
    assert found == here(place)
    assert names_of(found, UnreadRepository) == ["a", "b", "c"]


def test_a_repository_that_goes_away_after_its_head_was_read_is_named(engine, place, tmp_path):
    heads = heads_in(place)
    for kind in (tmp_path / "place").glob("kind=*"):
        shutil.rmtree(kind / "repo=e")
    (tmp_path / "place" / head.head_path("e", "main")).unlink()
    found = list(engine.ask(place, heads, QUESTION, USER))
    assert names_of(found, UnreadRepository) == ["e"]
    assert names_of(found, Answer) == ["a", "b", "c", "d", "f"]


def test_a_statement_that_is_refused_says_so(engine, place):
    with pytest.raises(InvalidQuery, match="The statement is refused"):
        engine.sql(place, heads_in(place), "drop table entity", 10, user=USER)


def test_no_other_machine_reaches_the_processes(engine):
    assert engine.addresses == {"127.0.0.1"}
    assert os.environ.get("RAY_AUTH_TOKEN")
    sockets = {
        link_of(fd)
        for pid in family_of(os.getpid())
        for fd in Path(f"/proc/{pid}/fd").glob("*")
        if link_of(fd).startswith("socket:")
    }
    listening = [
        line.split()[1].partition(":")[0]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in sockets
    ]
    assert len(listening) > 3
    assert {*listening} <= LOOPBACK


def test_the_memory_of_a_worker_is_bounded(engine):
    assert engine.memory_bytes > 0
    tiny = UserSettings(UserLimits(memory_bytes=64 * MIB))
    assert engine.bounded(tiny).limits.memory_bytes == 64 * MIB
    assert engine.bounded(UserSettings(UserLimits(memory_bytes=2**60))).limits.memory_bytes == engine.memory_bytes


def test_an_address_without_a_cluster_is_refused():
    words = [sys.executable, "-c", _ASK_NOBODY]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=_LONGEST_S, env=git_env(), check=False)
    assert ran.stdout.splitlines()[-1:] == [WorkersUnavailable.code], ran.stderr


_ASK_NOBODY = """
from kbcore.errors import KBError
from kbcore.fleet.ray_engine import RayOptions, started
try:
    with started(RayOptions(address="127.0.0.1:1")):
        print("started")
except KBError as error:
    print(error.code)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_ended_leaves_no_other_one(number):
    child = subprocess.Popen([sys.executable, "-c", _ASK_AND_WAIT], stdout=subprocess.PIPE, text=True, env=git_env())
    with child:
        try:
            assert child.stdout.readline() == "started\n"
            family = {pid: begun(pid) for pid in family_of(child.pid)}
            assert len(family) > 3
        finally:
            child.send_signal(number)
    # Two of Ray's own processes end when a call to another one, which is gone, has taken a minute.
    end_s = time.monotonic() + _LONGEST_S
    while left := [pid for pid, at in family.items() if begun(pid) == at]:
        assert time.monotonic() < end_s, left
        time.sleep(0.2)


_ASK_AND_WAIT = """
import time
from kbcore.fleet.ray_engine import RayOptions, started
with started(RayOptions(1)) as engine:
    print("started", flush=True)
    time.sleep(600)
"""


def family_of(pid):
    """Return a process and its descendants."""
    found = [pid]
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [one for child in listed.read_text().split() for one in family_of(int(child))]
    return found


def begun(pid):
    """Return when a process began, None when it is gone or only waits to be waited for."""
    try:
        cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if cells[0] == "Z" else cells[19]


def link_of(path):
    try:
        return str(path.readlink())
    except OSError:
        return ""  # it was closed meanwhile
