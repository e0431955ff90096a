"""A store that vanishes is noticed even where KB moved another one with the same records to the trash before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.errors import JournalCorrupt, StoreWentBack
from kbcore.maintenance import doctor
from kbcore.maintenance.adopting import adopt
from kbcore.maintenance.backup import back_up, restore
from kbcore.storage import head, trashed
from kbcore.store import branches
from kbcore.store.pool import Machine
from tests.core.store.branches.losing import put, sentence, store_of
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


def remove(project: Project, branch: str = "main") -> None:
    project.close()
    shutil.rmtree(store_of(project, branch))


def fresh(project: Project) -> Project:
    project.close()
    return Project(project.root, is_new=False)


def restored(project: Project) -> None:
    file = project.root.parent / "kb.backup"
    back_up(project.workspace(), file, tool="kb/test", replaces=file.exists())
    restore(project.workspace(), file, AUTHOR, replaces=True)


def adopted(project: Project) -> None:
    copy = Path(shutil.copytree(store_of(project), project.root.parent / "copy"))
    adopt(project.workspace(), copy, replaces=True)


def exchanged(project: Project) -> None:
    """Have two stores with the same records change places."""
    restored(project)
    branches.restore(project.workspace(), "main")


def repeated(project: Project) -> None:
    for _ in range(3):
        restored(project)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("act", [restored, adopted, exchanged, repeated])
def test_a_store_that_vanishes_after_it_was_replaced_by_one_with_the_same_records_is_missed(
    project: Project, act: Callable[[Project], None]
) -> None:
    put(project, "A", "B")
    act(project)
    assert sentence(fresh(project)) == ""
    remove(project)
    other = fresh(project)
    assert sentence(other) == "The store of main is missing. seen: 2, now: no store; records 1 to 2 are missing."
    with pytest.raises(StoreWentBack) as refused:
        put(other, "A")
    assert "`kb branch restore main` brings it back" in refused.value.hint
    branches.restore(other.workspace(), "main")
    assert sentence(fresh(other)) == ""
    put(other, "C")
    assert other.seq() == 3


def test_a_store_of_an_earlier_epoch_in_the_place_of_a_replaced_one_is_missed(project: Project) -> None:
    put(project, "A")
    copy = shutil.copytree(store_of(project), project.root.parent / "earlier")
    from kbcore.maintenance import epochs

    epochs.accept(project.workspace(), "main", AUTHOR)
    restored(project)
    remove(project)
    shutil.copytree(copy, store_of(project))
    assert "Another store has the place of the one of main. seen: 2, now: 1" in sentence(fresh(project))


def topic_is_gone(project: Project) -> Path:
    """Have gc move the store of a branch away that git deleted, keep a copy of it, and make the branch again."""
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    copy = Path(shutil.copytree(store_of(project, "topic"), project.root.parent / "of topic"))
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    assert branches.collect(project.workspace()).removed == ("topic",)
    git(project.root, "branch", "topic")
    return copy


def test_a_store_that_was_adopted_into_the_place_of_a_deleted_one_is_missed_when_it_vanishes(project: Project) -> None:
    copy = topic_is_gone(project)
    adopt(project.workspace(), copy)
    assert sentence(fresh(project), "topic") == ""
    remove(project, "topic")
    assert "The store of topic is missing. seen: 2" in sentence(fresh(project), "topic")


def test_a_deleted_store_whose_note_was_not_removed_is_no_loss_and_its_branch_begins_with_a_new_one(
    project: Project,
) -> None:
    place = project.workspace().place
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    seen = place.read("topic")
    assert seen
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    branches.collect(project.workspace())
    place.write("topic", seen)  # as if the process had ended before it removed the note
    git(project.root, "branch", "topic")
    assert sentence(fresh(project), "topic") == ""
    assert branches.open_branch(project.workspace(), "topic")[2].is_new
    assert sentence(fresh(project), "topic") == ""


def as_user(project: Project, home: Path) -> Project:
    """Return the repository as another user has it, who notes what is acknowledged in a home folder of their own."""
    home.mkdir(exist_ok=True)
    other = Project(project.root, is_new=False)
    env = {**other.machine.env, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    other.machine = Machine(other.machine.fs, other.machine.clock, env)
    return other


def test_what_another_user_replaced_or_deleted_is_no_loss_and_what_vanished_then_is(
    project: Project, tmp_path: Path
) -> None:
    put(project, "A", "B")
    git(project.root, "branch", "spare")
    other = as_user(project, tmp_path / "other")
    assert sentence(other) == ""
    branches.ensure(project.workspace(), "spare")
    for _ in range(2):
        branches.copy_from(project.workspace(), "main", "spare", replaces=True)
    unaware = shutil.copytree(tmp_path / "other", tmp_path / "unaware")
    assert sentence(as_user(project, tmp_path / "other")) == ""
    remove(project)
    for home in (tmp_path / "other", unaware):
        assert "The store of main is missing" in sentence(as_user(project, home))


def test_a_renamed_branch_is_missed_when_its_store_vanishes_and_its_former_name_is_not(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    git(project.root, "branch", "-m", "topic", "feature")
    put(project, "C")
    assert sentence(fresh(project), "topic") == ""
    remove(project, "feature")
    assert "The store of feature is missing. seen: 3" in sentence(fresh(project), "feature")
    assert sentence(fresh(project), "topic") == ""


def damaged_trash(project: Project) -> Path:
    """Have the trash hold a store of topic with a changed byte, and topic have a sound one."""
    topic_is_gone(project)
    branches.ensure(project.workspace(), "topic")
    [entry] = trashed.stores_in_trash(project.machine.fs, store_of(project).parent)
    journal = next(entry.path.glob("journal-*.jsonl"))
    journal.write_bytes(journal.read_bytes().replace(b'"B"', b'"X"'))
    return entry.path


def test_a_damaged_store_in_the_trash_does_not_take_the_place_of_a_sound_one(project: Project) -> None:
    place = damaged_trash(project)
    before = head.read(project.machine.fs, store_of(project, "topic"))
    with pytest.raises(JournalCorrupt, match="the checksum does not match the record") as refused:
        branches.restore(project.workspace(), "topic")
    assert (
        "`kb help even-damaged` describes brings it back as it is; the present store goes to the trash."
        in refused.value.hint
    )
    assert place.exists()
    assert head.read(project.machine.fs, store_of(project, "topic")) == before


def test_a_damaged_store_in_the_trash_is_not_copied(project: Project) -> None:
    damaged_trash(project)
    remove(project, "topic")
    with pytest.raises(JournalCorrupt, match="Nothing was copied") as refused:
        branches.copy_from(project.workspace(), "main", "topic", replaces=True)
    assert "`kb help even-damaged`" in refused.value.hint
    assert project.node("A")


def test_a_damaged_store_comes_back_where_a_person_says_so_and_is_repaired_there(project: Project) -> None:
    damaged_trash(project)
    done = branches.restore(project.workspace(), "topic", even_damaged=True)
    assert (done.is_damaged, done.seq, bool(done.replaced)) == (True, 2, True)
    assert not branches.restore(project.workspace(), "topic").is_damaged


def test_the_store_before_a_damaged_one_comes_back_once_that_was_moved_out_of_the_trash(project: Project) -> None:
    put(project, "A")
    for _ in range(2):
        restored(project)
    trash = store_of(project).parent / branches.TRASH
    damaged = max(trash.iterdir())
    (damaged / "head.json").write_bytes(b"{}")
    with pytest.raises(JournalCorrupt) as refused:
        branches.restore(project.workspace(), "main")
    assert f"move {damaged} out of the trash" in refused.value.hint
    damaged.rename(project.root.parent / "moved out")
    assert branches.restore(project.workspace(), "main").seq == 1


def trash_findings(project: Project) -> list[tuple[str, str, str]]:
    found = doctor.diagnose(project.workspace()).findings
    return [(one.severity, one.code, one.message) for one in found if one.code.startswith("trash_")]


def test_doctor_proves_the_stores_in_the_trash(project: Project) -> None:
    damaged_trash(project)
    put(project, "C")
    restored(project)
    *sound, damaged = sorted(trash_findings(project))
    assert [one[:2] for one in sound] == [("note", "trash_sound")] * 2
    assert ["of main" in sound[0][2], "proves up to seq 2" in sound[0][2]] == [True, True]
    assert (damaged[:2], "of topic" in damaged[2]) == (("warning", "trash_damaged"), True)
    assert damaged[2].count("journal-") == 1


def test_doctor_proves_only_so_much_of_the_trash(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, "A")
    for _ in range(3):
        restored(project)
    monkeypatch.setattr(doctor, "MAX_PROVEN", 2)
    assert [code for _, code, _ in trash_findings(project)] == ["trash_sound", "trash_sound", "trash_not_proven"]
    monkeypatch.setattr(doctor, "MAX_PROVEN_BYTES", 10)
    [(_, code, message)] = trash_findings(project)
    assert (code, message.startswith("3 stores in the trash")) == ("trash_not_proven", True)
