"""A new epoch: the store goes on under a new id, a record says so, and what was read before is still of use."""

from __future__ import annotations

import msgspec
import pytest

from kbcore import branches
from kbcore.errors import HeadDamaged
from kbcore.history.log import log
from kbcore.storage import head as heads
from kbcore.storage import journal, rebuild
from kbcore.storage.head import EPOCHS, GIT_DIRECTORY, Epoch, Head
from kbcore.upkeep import epochs
from kbcore.viewcache import is_ahead, is_usable
from tests.support.project import AUTHOR, Project


def head_of(project: Project) -> Head:
    workspace = project.workspace()
    return heads.read(workspace.machine.fs, workspace.directory_of("main"))


def begin(project: Project, seen: int = 0) -> int:
    workspace = project.workspace()
    directory = workspace.directory_of("main")
    with journal.writing(workspace.machine.fs, directory, workspace.machine.clock) as writer:
        return epochs.begin_epoch(workspace, writer, AUTHOR, ["A person accepted it."], seen=seen)


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
    assert newest["message"] == epochs.NEW_EPOCH
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
    directory = project.workspace().directory_of("main")
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
    directory = project.workspace().directory_of("main")
    made = rebuild.rebuild_head(project.machine.fs, directory, project.machine.clock, branch="main").head
    assert (made.epochs, made.features_required) == (of.epochs, of.features_required)
    project.close()
    lines = (directory / of.head.file).read_bytes().splitlines(keepends=True)
    (directory / of.head.file).write_bytes(lines[0])
    [cut] = rebuild.rebuild_head(project.machine.fs, directory, project.machine.clock, branch="main").head.epochs
    assert (cut.seq, cut.seen) == (1, 2)
