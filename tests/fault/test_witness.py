"""F26: the second witness. It never reports a loss where nothing is missing, and always where something is.

The disk is left by a loss of power or by the end of the process at any call, the store is put back, moved, replaced or
deleted, and two processes write at once.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import InvalidQuery, KBError, StoreWentBack
from kbcore.maintenance import epochs
from kbcore.maintenance.adopting import adopt
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.compacting import compact
from kbcore.storage import branchdir, head, journal
from kbcore.storage.fs import RealFs
from kbcore.storage.witness import BranchWitness
from kbcore.storage.witness_notes import NotedRepository, NotesFolder
from kbcore.store import branches
from kbcore.store.branches import lost
from tests.fault.test_dying import lengths
from tests.fault.workloads import CLOCK, LINEAGE, payload
from tests.support.disk import disk
from tests.support.disk.disk import MemoryDisk
from tests.support.disk.faultfs import Crash, CrashingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import SEED, spread, tries
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

ROOT, STORE = Path("/repo/git"), Path("/repo/git/main")
ENV: Mapping[str, str] = {"HOME": "/home"}
REPOSITORY = NotedRepository(ROOT, lambda _: "c" * 32, lambda _: None)


def witness(fs: Any) -> BranchWitness:
    return BranchWitness(fs, STORE, NotesFolder(fs, ENV, REPOSITORY))


def prepared() -> MemoryDisk:
    fs = MemoryDisk()
    for folder in (ROOT.parent, ROOT, Path("/home")):
        fs.mkdir(folder)
        fs.fsync_dir(folder.parent)
    branchdir.create(fs, STORE, CLOCK, branch="main", lineage=LINEAGE)
    fs.log.clear()
    return fs


def commit(fs: Any, noted: BranchWitness, *, is_early: bool = False) -> None:
    """Commit a record as ``BranchStore`` does; with ``is_early`` the witness is written before the head is."""
    with journal.writing(fs, STORE, CLOCK, wait_s=0) as writer:
        noted.refuse(writer.head)
        at = max(CLOCK.now(), writer.head.head.at)
        if is_early:
            ahead = disk.copy_of(fs)
            with journal.writing(ahead, STORE, CLOCK, wait_s=0) as other:
                new = other.append(payload(writer.head.seq + 1, at), at)
            noted.note(new)
        new = writer.append(payload(writer.head.seq + 1, at), at)
    noted.note(new)


def false_alarm(fs: MemoryDisk) -> str:
    """Return what the next reader or writer says of a disk from which nothing that was acknowledged is missing."""
    try:
        loss = witness(fs).check(head.read(fs, STORE))
        if loss:
            return loss.sentence()
        for _ in range(2):
            commit(fs, witness(fs))
    except KBError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def moments(*, is_early: bool = False) -> list[tuple[int, MemoryDisk]]:
    """Return the disk before each call that changes it, while one writes and another reads and notes what it reads."""
    fs, found = prepared(), list[tuple[int, MemoryDisk]]()
    is_inside = False

    def look() -> None:
        nonlocal is_inside
        found.append((len(fs.log), disk.copy_of(fs)))
        if not is_inside:
            is_inside = True
            witness(fs).check(head.read(fs, STORE))
            found.append((len(fs.log), disk.copy_of(fs)))
            is_inside = False

    fs.on_change = look
    for _ in range(3):
        commit(fs, witness(fs), is_early=is_early)
    fs.on_change = lambda: None
    found.append((len(fs.log), disk.copy_of(fs)))
    return found


def alarms(found: list[tuple[int, MemoryDisk]], samples: int, tally: Any) -> list[tuple[object, str]]:
    seen: set[int] = set()
    said = []
    for at, fs in found:
        for loss, left in disk.losses(fs, samples, SEED + at):
            key = hash(disk.content(left))
            if key not in seen:
                seen.add(key)
                tally.tried()
                what = false_alarm(left)
                if what:
                    said.append(((at, loss), what))
    return said


@pytest.mark.fault("F26")
def test_no_loss_of_power_makes_the_witness_say_that_something_is_missing(tally) -> None:
    for point, what in alarms(moments(), tries(30, 2000, 40_000), tally):
        tally.violated(point, what)
    tally.done(at_least=100)


@pytest.mark.fault("F4m")
def test_a_witness_that_is_written_before_the_head_would_be_found_out(tally) -> None:
    assert alarms(moments(is_early=True), 30, tally)
    tally.done()


@pytest.mark.fault("F26")
def test_the_end_of_the_process_at_any_call_makes_no_false_alarm(tally) -> None:
    fs = prepared()

    def try_all() -> None:
        states = [disk.copy_of(fs)]
        if fs.coming:
            path, offset, data = fs.coming
            states = [disk.written_in_part(fs, path, offset, data[:made]) for made in lengths(len(data))]
        for left in states:
            tally.tried()
            what = false_alarm(left)
            if what:
                tally.violated(len(fs.log), what)

    for _ in range(3):
        fs.on_change = try_all
        commit(fs, witness(fs))
    tally.done(at_least=50)


def hashes(project: Project, branch: str = "main") -> list[str]:
    """Return the hashes of the records of a branch, as its journal has them; none where it has no store."""
    fs, directory = project.machine.fs, project.workspace().folders.directory_of(branch)
    if not directory.exists():
        return []
    return [entry.frame.sum for entry in journal.scan(fs, directory, head.read(fs, directory))]


class History:
    """Random things that are done to a branch and its store, and what was acknowledged in its place."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project, self.drawn = project, random.Random(seed)
        self.copies: list[Path] = []
        self.acknowledged: list[str] = []
        self.done: list[str] = []

    @property
    def store(self) -> Path:
        return self.project.workspace().folders.directory_of("main")

    def commit(self) -> None:
        """Write a record, unless something is missing: then writing is refused."""
        name = f"N{len(self.done)}"
        is_missing = self.is_missing()
        try:
            self.project.apply(entities=[{"id": name, "type": "req", "title": "T", "status": "open"}])
        except StoreWentBack:
            assert is_missing, "refused although nothing is missing"
        else:
            assert not is_missing, "written although something is missing"
            self.acknowledged = hashes(self.project)

    def copy(self) -> None:
        """Keep a copy of the store as it is now."""
        if self.store.exists():
            self.copies.append(Path(shutil.copytree(self.store, self.project.root.parent / f"copy{len(self.done)}")))

    def put_back(self) -> None:
        """Put any copy in the place of the store."""
        if self.copies:
            self.remove()
            shutil.copytree(self.drawn.choice(self.copies), self.store)

    def remove(self) -> None:
        """Delete the store."""
        self.project.close()
        shutil.rmtree(self.store, ignore_errors=True)

    def accept(self) -> None:
        """Have a person accept whatever is missing; right after a new epoch there is nothing to accept."""
        is_missing = self.is_missing()
        try:
            epochs.accept(self.project.workspace(), "main", AUTHOR)
        except InvalidQuery:
            assert not is_missing, "not accepted although something is missing"
        self.acknowledged = hashes(self.project)

    def compact(self) -> None:
        """Compact the store, if nothing is missing."""
        if self.store.exists() and not self.is_missing():
            compact(self.project.workspace(), "main")

    def replace(self) -> None:
        """Have KB put another store in its place, and bring the old one back, or not."""
        if self.store.exists() and not self.is_missing():
            branches.ensure(self.project.workspace(), "spare")
            branches.copy_from(self.project.workspace(), "main", "spare", replaces=True)
            if self.drawn.random() < 0.5:
                branches.restore(self.project.workspace(), "main")
            self.acknowledged = hashes(self.project)

    def restore_same(self) -> None:
        """Have KB put a copy with the same records in its place, out of a backup or a folder."""
        if self.store.exists() and hashes(self.project) and not self.is_missing():
            place = self.project.root.parent / f"same{len(self.done)}"
            if self.drawn.random() < 0.5:
                back_up(self.project.workspace(), place, tool="kb/test")
                restore(self.project.workspace(), place, AUTHOR, ["main"], replaces=True)
            else:
                adopt(self.project.workspace(), Path(shutil.copytree(self.store, place)), replaces=True)
            self.acknowledged = hashes(self.project)

    def restart(self) -> None:
        """Go on as another process."""
        self.project.close()
        self.project = Project(self.project.root, is_new=False)

    def is_missing(self) -> bool:
        """Tell whether a record that was acknowledged here is not in the store that is here now."""
        return not {*self.acknowledged} <= {*hashes(self.project)}

    def step(self) -> str:
        """Do one thing, and return what is wrong with what is said of it, if anything."""
        ways: list[Callable[[], None]] = [
            self.commit, self.commit, self.commit, self.copy, self.put_back, self.put_back, self.remove, self.accept,
            self.compact, self.replace, self.restart, self.restore_same,
        ]  # fmt: skip
        way = self.drawn.choice(ways)
        self.done.append(way.__name__)
        way()
        loss = lost.loss_of(self.project.workspace(), "main")
        if (loss is not None) != self.is_missing():
            return f"missing: {self.is_missing()}, said: {loss.sentence() if loss else 'nothing'}, after {self.done}"
        return ""


@pytest.mark.fault("F26")
def test_the_alarm_is_raised_exactly_when_acknowledged_records_are_missing(tmp_path: Path, tally) -> None:
    for number in range(tries(3, 60, 1000)):
        history = History(Project(tmp_path / f"p{number}" / "repo"), SEED + number)
        git(history.project.root, "branch", "spare")
        for _ in range(15):
            what = history.step()
            tally.tried()
            if what:
                tally.violated((SEED + number), what)
                break
        history.project.close()
    tally.done(at_least=30)


def is_put(fs: Any, project: Project) -> None:
    restore(
        Project(project.root, fs=fs, is_new=False).workspace(), project.root.parent / "backup", AUTHOR, replaces=True
    )


def is_adopted(fs: Any, project: Project) -> None:
    adopt(Project(project.root, fs=fs, is_new=False).workspace(), project.root.parent / "copy", replaces=True)


def is_brought_back(fs: Any, project: Project) -> None:
    branches.restore(Project(project.root, fs=fs, is_new=False).workspace(), "topic")


def is_copied_over(fs: Any, project: Project) -> None:
    branches.copy_from(Project(project.root, fs=fs, is_new=False).workspace(), "topic", "main", replaces=True)


def is_collected(fs: Any, project: Project) -> None:
    branches.collect(Project(project.root, fs=fs, is_new=False).workspace())


def is_renamed(fs: Any, project: Project) -> None:
    branches.open_branch(Project(project.root, fs=fs, is_new=False).workspace(), "feature")


MOVES: dict[str, tuple[Callable[[Any, Project], None], str]] = {
    "restore": (is_put, "topic"),
    "adopt": (is_adopted, "topic"),
    "branch restore": (is_brought_back, "topic"),
    "branch ensure": (is_copied_over, "topic"),
    "gc": (is_collected, ""),
    "rename": (is_renamed, "feature"),
}


def before_move(root: Path, name: str) -> Project:
    """Return a project whose branch topic was replaced by a copy of itself, with all that the move needs."""
    project = Project(root)
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    git(project.root, "branch", "topic")
    project.apply(branch="topic", entities=[{"id": "B", "type": "req", "title": "T", "status": "open"}])
    workspace = project.workspace()
    back_up(workspace, root.parent / "backup", ["topic"], tool="kb/test")
    shutil.copytree(workspace.folders.directory_of("topic"), root.parent / "copy")
    restore(workspace, root.parent / "backup", AUTHOR, replaces=True)
    if name == "gc":
        git(project.root, "branch", "-D", "topic")
    if name == "rename":
        git(project.root, "branch", "-m", "topic", "feature")
    project.close()
    return project


def what_is_wrong(root: Path, branch: str) -> str:
    """Return what is wrong with what is said after a move was interrupted, and after the store vanished then."""
    project = Project(root, is_new=False)
    for loss in lost.losses(project.workspace()):
        return f"nothing is missing, said: {loss.sentence()}"
    store = project.workspace().folders.directory_of(branch) if branch else None
    if store is None or not store.exists():
        return ""
    had = {*hashes(project, branch)}
    project.close()
    shutil.rmtree(store)
    project = Project(root, is_new=False)
    try:
        branches.open_branch(project.workspace(), branch)
    except StoreWentBack:
        return ""
    is_whole = had <= {*hashes(project, branch)}
    return "" if is_whole else "the store has vanished, and nothing is said"


@pytest.mark.sliced
@pytest.mark.fault("F26")
@pytest.mark.parametrize("name", MOVES)
def test_a_move_that_ends_at_any_call_makes_no_false_alarm_and_hides_no_loss(tmp_path: Path, name: str, tally) -> None:
    act, branch = MOVES[name]
    project = before_move(tmp_path / "kept" / "repo", name)
    (state := tmp_path / "kept" / "state").mkdir()
    shutil.copytree(notes_of(project), state, dirs_exist_ok=True)

    def put_everything_back() -> None:
        shutil.rmtree(project.root)
        shutil.copytree(tmp_path / "again", project.root, symlinks=True)
        shutil.rmtree(notes_of(project))
        shutil.copytree(state, notes_of(project))

    shutil.copytree(project.root, tmp_path / "again", symlinks=True)
    probe = LoggingFs(NoSyncFs())
    act(probe, project)
    changing = {"replace", "mkdir", "rmdir", "unlink", "pwrite"}
    for at in spread([at for at, (kind, _) in enumerate(probe.calls) if kind in changing], 6):
        put_everything_back()
        fs = CrashingFs(at, when="after", inner=NoSyncFs())
        with contextlib.suppress(Crash):
            act(fs, project)
        fs.close_all()
        tally.tried()
        wrong = what_is_wrong(project.root, branch)
        if wrong:
            tally.violated((name, at, probe.calls[at]), wrong)
    tally.done(at_least=2)


def notes_of(project: Project) -> Path:
    """Return the folder in which the last records of a repository's branches are noted."""
    folder = project.workspace().place.folder()
    assert folder
    return folder


WRITER = """
import sys; from pathlib import Path
from tests.support.repository.project import Project
from kbcore.storage.fs import RealFs
project = Project(Path(sys.argv[1]), fs=RealFs(), is_new=False)
for number in range(int(sys.argv[3])):
    project.apply(entities=[{"id": f"{sys.argv[2]}-{number}", "type": "req", "title": "T", "status": "open"}])
"""


@pytest.mark.sliced
@pytest.mark.fault("F26")
def test_two_processes_that_write_and_one_that_reads_see_no_loss(tmp_path: Path, tally) -> None:
    project = Project(tmp_path / "repo", fs=RealFs())
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    count = tries(10, 200, 2000)
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(project.root), name, str(count)]) for name in ("X", "Y")
    ]
    while any(one.poll() is None for one in running):
        loss = lost.loss_of(project.workspace(), "main")
        tally.tried()
        if loss:
            tally.violated("reading", loss.sentence())
            break
    assert [one.wait() for one in running] == [0, 0]
    assert project.seq() == 2 * count + 1
    assert project.workspace().place.read("main").seq == 2 * count + 1
    project.close()
    tally.done()


@pytest.mark.fault("F26")
def test_an_image_of_the_whole_repository_that_is_restored_is_noticed(tmp_path: Path, tally) -> None:
    project = Project(tmp_path / "repo")
    for number in range(4):
        project.apply(entities=[{"id": f"A{number}", "type": "req", "title": "T", "status": "open"}])
        if number == 1:
            project.close()
            shutil.copytree(project.root, tmp_path / "image", symlinks=True)
    project.close()
    shutil.rmtree(project.root)
    (tmp_path / "image").rename(project.root)
    again = Project(project.root, is_new=False)
    loss = lost.loss_of(again.workspace(), "main")
    assert loss
    assert (loss.seen, loss.now) == (4, 2)
    again.close()
    tally.tried()
    tally.done()
