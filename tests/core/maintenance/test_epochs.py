"""A new epoch: the store goes on under a new id, a record says so, and what was read before is still of use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import HeadDamaged, InvalidQuery, KBError
from kbcore.maintenance import epochs
from kbcore.model.record import EPOCH
from kbcore.storage import head as heads
from kbcore.storage import journal, rebuild
from kbcore.storage.head import EPOCHS, GIT_DIRECTORY, Epoch, Head
from kbcore.store import branches
from kbcore.store.history.log import log
from kbcore.view.opening import is_ahead, is_usable
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git, git_env


def head_of(project: Project) -> Head:
    workspace = project.workspace()
    return heads.read(workspace.machine.fs, workspace.folders.directory_of("main"))


def begin(project: Project, seen: int = 0) -> int:
    workspace = project.workspace()
    directory = workspace.folders.directory_of("main")
    with journal.writing(workspace.machine.fs, directory, workspace.machine.clock) as writer:
        said, ended = epochs.ending(writer.head, ["A person accepted it."], workspace.machine.clock.now(), seen=seen)
        return epochs.begin_epoch(workspace, writer, AUTHOR, said, [ended])


def put(project: Project, *names: str) -> None:
    for name in names:
        project.apply(entities=[{"id": name, "type": "req", "title": "T", "status": "open"}])


def test_a_new_epoch_gives_the_store_another_id_and_keeps_its_history(project: Project) -> None:
    put(project, "A", "B")
    old = head_of(project)
    assert begin(project, seen=5) == 3
    new = head_of(project)
    assert (new.store_id != old.store_id, new.lineage, new.seq) == (True, old.lineage, 3)
    [ended] = new.epochs
    assert (ended.store_id, ended.seq, ended.hash, ended.seen) == (old.store_id, 2, old.hash, 5)
    assert new.features_required == (EPOCHS, GIT_DIRECTORY)
    put(project, "C")
    assert (head_of(project).epochs, project.seq()) == (new.epochs, 4)


def test_the_record_of_a_new_epoch_names_the_old_id_and_the_lost_seqs(project: Project) -> None:
    put(project, "A", "B")
    old = head_of(project)
    begin(project, seen=5)
    [newest, *_] = log(project.view())
    assert newest["source"] == EPOCH
    store, _, _ = branches.open_branch(project.workspace(), None)
    repair = store.read(lambda view: store.record_at(view, 3)).repair
    assert f"The store id was {old.store_id} up to seq 2" in repair
    assert "3 records are lost: 3 to 5. Their changeset ids are forgotten" in repair


def test_a_view_of_the_time_before_is_used_and_one_of_lost_records_is_not(project: Project) -> None:
    put(project, "A", "B")
    before = project.view().basis
    begin(project, seen=5)
    head = head_of(project)
    assert is_usable(before, head)
    lost = msgspec.structs.replace(before, seq=4, sum="f" * 64)
    assert (is_usable(lost, head), is_ahead(lost, head)) == (False, True)


def test_only_the_newest_epochs_are_kept(project: Project) -> None:
    put(project, "A")
    of = head_of(project)
    for _ in range(heads.MAX_EPOCHS + 3):
        of = heads.with_epoch(of, Epoch(of.store_id, of.seq, of.hash, of.seq, "2026-11-20T00:00:00.000000Z"))
    assert len(of.epochs) == heads.MAX_EPOCHS
    assert len(heads.encode(of)) < 40_000


@pytest.mark.parametrize("harm", [{"seq": 9}, {"seen": 0}])
def test_a_head_with_impossible_epochs_is_damaged(project: Project, harm: dict[str, int]) -> None:
    put(project, "A")
    begin(project)
    of = head_of(project)
    wrong = msgspec.structs.replace(of, epochs=(msgspec.structs.replace(of.epochs[0], **harm),))
    directory = project.workspace().folders.directory_of("main")
    with pytest.raises(HeadDamaged, match="epoch that ended after the last record"):
        heads.decode(heads.encode(wrong), directory)
    same = msgspec.structs.replace(of, store_id=of.epochs[0].store_id)
    with pytest.raises(HeadDamaged, match="store id is that of an epoch"):
        heads.decode(heads.encode(same), directory)
    plain = msgspec.structs.replace(of, features_required=())
    with pytest.raises(HeadDamaged, match="does not require the feature"):
        heads.decode(heads.encode(plain), directory)


def test_a_rebuilt_head_keeps_the_epochs(project: Project) -> None:
    put(project, "A", "B")
    begin(project)
    put(project, "C")
    of = head_of(project)
    directory = project.workspace().folders.directory_of("main")
    made = rebuild.rebuild_head(project.machine.fs, directory, project.machine.clock, branch="main").head
    assert (made.epochs, made.features_required) == (of.epochs, of.features_required)
    project.close()
    lines = (directory / of.head.file).read_bytes().splitlines(keepends=True)
    (directory / of.head.file).write_bytes(lines[0])
    [cut] = rebuild.rebuild_head(project.machine.fs, directory, project.machine.clock, branch="main").head.epochs
    assert (cut.seq, cut.seen) == (1, 2)


ACCEPT = """
import sys; from pathlib import Path
from kbcore.errors import InvalidQuery
from kbcore.storage.fs import RealFs
from kbcore.maintenance import epochs
from kbcore.model.record import EPOCH
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git, git_env
project = Project(Path(sys.argv[1]), fs=RealFs(), is_new=False)
try:
    print(epochs.accept(project.workspace(), "main", AUTHOR).seq)
except InvalidQuery as error:
    print(error.message)
"""


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_gone", [True, False])
def test_of_two_that_accept_one_loss_at_once_the_second_learns_that_nothing_is_missing(
    project: Project, is_gone: bool
) -> None:
    put(project, "A")
    store = project.workspace().folders.directory_of("main")
    copy = shutil.copytree(store, project.root.parent / "copy")
    put(project, "B")
    project.close()
    shutil.rmtree(store)
    if not is_gone:
        shutil.copytree(copy, store)
    command = [sys.executable, "-c", ACCEPT, str(project.root)]
    env = {**git_env(), "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(one.communicate(timeout=60)[0].strip() for one in running)
    assert said[0] == ("1" if is_gone else "2")
    assert said[1].startswith("Nothing is missing from the store of main any more")
    assert head_of(project).seq == int(said[0])


class Meanwhile(NoSyncFs):
    """Does something once, just before the lock of a branch is opened."""

    act: Callable[[], object] | None = None

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == "lock" and path.parent.name == "main" and self.act:
            act, self.act = self.act, None
            act()
        return super().open(path, flags, mode)


def test_a_loss_that_another_process_accepts_before_the_branch_is_locked_is_not_accepted_twice(tmp_path: Path) -> None:
    fs = Meanwhile()
    project = Project(tmp_path / "repo", fs=fs)
    put(project, "A")
    copy = shutil.copytree(project.workspace().folders.directory_of("main"), tmp_path / "copy")
    put(project, "B")
    project.close()
    shutil.rmtree(project.workspace().folders.directory_of("main"))
    shutil.copytree(copy, project.workspace().folders.directory_of("main"))
    other = Project(project.root, is_new=False)
    fs.act = lambda: epochs.accept(other.workspace(), "main", AUTHOR)
    with pytest.raises(InvalidQuery, match="there is nothing to accept"):
        epochs.accept(project.workspace(), "main", AUTHOR)
    assert len(head_of(project).epochs) == 1
    other.close()
    project.close()


def test_a_store_that_has_just_begun_an_epoch_begins_no_other_until_it_is_written_to(project: Project) -> None:
    put(project, "A")
    assert epochs.accept(project.workspace(), "main", AUTHOR).seq == 2
    with pytest.raises(InvalidQuery, match="nothing to accept"):
        epochs.question(project.workspace(), "main")
    with pytest.raises(InvalidQuery, match="nothing to accept"):
        epochs.accept(project.workspace(), "main", AUTHOR)
    put(project, "B")
    assert epochs.accept(project.workspace(), "main", AUTHOR).seq == 4


def test_a_branch_that_is_gone_from_git_is_given_up_once(project: Project) -> None:
    project.switch("topic", create=True)
    put(project, "A")
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    project.close()
    shutil.rmtree(project.workspace().folders.directory_of("topic"))
    workspace = project.workspace()
    assert epochs.accept(workspace, "topic", AUTHOR).seq == 0
    with pytest.raises(KBError):
        epochs.accept(workspace, "topic", AUTHOR)
