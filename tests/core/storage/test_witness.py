"""The cost of comparing a store with its second witness, and the time at which a commit is noted.

``tests/fault`` has the losses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.storage import layout
from tests.support.disk.faultfs import LoggingFs, NoSyncFs
from tests.support.repository.project import Project
from tests.support.repository.repos import git, git_env

NOTED = "main.json"


@pytest.fixture
def fs() -> LoggingFs:
    return LoggingFs()


@pytest.fixture
def project(tmp_path: Path, fs: LoggingFs) -> Iterator[Project]:
    made = Project(tmp_path / "repo", fs=fs)
    made.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    yield made
    made.close()


def test_a_head_that_others_have_replaced_since_is_compared_without_the_journal(
    project: Project, fs: LoggingFs
) -> None:
    workspace = project.workspace()
    old = workspace.store("main").head()
    project.apply(entities=[{"id": "B", "type": "req", "title": "T", "status": "open"}])
    witness = project.workspace().witness("main")
    fs.calls.clear()
    assert witness.check(old) is None
    assert ("open", layout.HEAD) in fs.calls
    assert not [name for kind, name in fs.calls if kind == "open" and name.startswith("journal")]


def test_a_commit_is_noted_once_and_before_the_lock_is_free(project: Project, fs: LoggingFs) -> None:
    fs.calls.clear()
    project.apply(entities=[{"id": "B", "type": "req", "title": "T", "status": "open"}])
    written = [at for at, call in enumerate(fs.calls) if call == ("pwrite", NOTED)]
    released = max(at for at, call in enumerate(fs.calls) if call == ("flock", layout.LOCK))
    published = max(at for at, (kind, name) in enumerate(fs.calls) if (kind, name) == ("replace", layout.HEAD))
    assert len(written) == 1
    assert published < written[0] < released


def test_a_refusal_looks_at_no_copies(project: Project, fs: LoggingFs) -> None:
    witness = project.workspace().witness("main")
    head = project.workspace().store("main").head()
    fs.calls.clear()
    witness.refuse(head)
    assert "listdir" not in {kind for kind, _ in fs.calls}
    witness.check(head)
    assert "listdir" in {kind for kind, _ in fs.calls}


FIRST_COMMIT = """
import fcntl, os, sys
from pathlib import Path
from kbcore.maintenance import epochs
from tests.support.repository.project import AUTHOR, Project

root, lock, action = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")

def look(event, args):
    if event not in STARTS:
        return
    held = "no lock file"
    if lock.exists():
        fd = os.open(lock, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = "free"
        except BlockingIOError:
            held = "held"
        os.close(fd)
    print(held, args, flush=True)

sys.addaudithook(look)
project = Project(root, is_new=False)
if action == "commit":
    project.apply(entities=[{"id": "B", "type": "req", "title": "T", "status": "open"}])
else:
    epochs.accept(project.workspace(), "main", AUTHOR)
"""


@pytest.mark.parametrize("action", ["commit", "new epoch"])
@pytest.mark.parametrize("has_store", [True, False])
def test_a_repository_gets_its_id_before_the_branch_is_locked(tmp_path: Path, action: str, has_store: bool) -> None:
    project = Project(tmp_path / "repo", is_written_to=False)
    lock = project.workspace().folders.directory_of("main") / layout.LOCK
    if has_store:
        project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
        git(project.root, "config", "--unset", "kb.id")
    project.close()
    command = [sys.executable, "-c", FIRST_COMMIT, str(project.root), str(lock), action]
    env = {**git_env(), "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    said = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    assert "kb.id" in said, "git was asked to write the id"
    assert not [line for line in said.splitlines() if line.startswith("held")], "a process was started under the lock"
    [note] = Project(project.root, is_new=False).workspace().place.entries()
    assert note.seq == (2 if has_store else 1)


class SlowClock(NoSyncFs):
    """A file system that notes the time of a change by a clock that ticks seldom."""

    def lstat(self, path: Path) -> os.stat_result:
        # Without the nanoseconds, which it makes of the seconds.
        return os.stat_result((*super().lstat(path)[:7], 0, 0, 0))


def test_a_note_that_was_written_twice_within_a_tick_of_the_clock_is_read_again(tmp_path: Path) -> None:
    project = Project(tmp_path / "repo", fs=SlowClock())
    for name in "AB":
        project.apply(entities=[{"id": name, "type": "req", "title": "T", "status": "open"}])
    directory = project.workspace().folders.directory_of("main")
    copy = shutil.copytree(directory, tmp_path / "copy")
    other = Project(project.root, fs=SlowClock(), is_new=False)
    assert other.workspace().loss_of("main") is None
    project.apply(entities=[{"id": "C", "type": "req", "title": "T", "status": "open"}])
    shutil.rmtree(directory)
    shutil.copytree(copy, directory)
    loss = other.workspace().loss_of("main")
    assert loss is not None
    assert (loss.seen, loss.now) == (3, 2)
    for one in (project, other):
        one.close()


class Changing(NoSyncFs):
    """While ``left`` is not 0, each reading of the note meets a writer: it gets a part, another one each time."""

    left = 0

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        self.noted = fd if path.name == NOTED and not flags & os.O_WRONLY else -1
        return fd

    def read(self, fd: int, length: int) -> bytes:
        data = super().read(fd, length)
        if fd == self.noted and data and self.left:
            self.left -= 1
            return data[: 100 + self.left]
        return data


def test_a_reading_that_meets_a_writer_is_not_kept_and_nothing_is_noted_over_it(tmp_path: Path) -> None:
    fs = Changing()
    project = Project(tmp_path / "repo", fs=fs)
    for name in "AB":
        project.apply(entities=[{"id": name, "type": "req", "title": "T", "status": "open"}])
    directory = project.workspace().folders.directory_of("main")
    copy = shutil.copytree(directory, tmp_path / "copy")
    project.apply(entities=[{"id": "C", "type": "req", "title": "T", "status": "open"}])
    project.close()
    shutil.rmtree(directory)
    shutil.copytree(copy, directory)
    other = Project(project.root, fs=fs, is_new=False)
    fs.left = 3
    assert other.workspace().loss_of("main") is None
    assert fs.left == 0
    loss = other.workspace().loss_of("main")
    assert loss is not None
    assert (loss.seen, loss.now) == (3, 2)
    other.close()
