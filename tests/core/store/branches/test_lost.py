"""A store that went back or is gone is noticed, named and not written to, until a person accepts the loss."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import StoreWentBack
from kbcore.maintenance import epochs, repair
from kbcore.maintenance.adopting import adopt
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.doctor import diagnose
from kbcore.storage import head as heads
from kbcore.storage import journal, witness
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.branches.choosing import choose_noted
from kbcore.store.history.log import log
from kbcore.store.pool import Machine
from kbcore.view.cache_files import AHEAD
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import commit_files, git, git_env, make_repository


def put(project: Project, *names: str) -> None:
    for name in names:
        project.apply(entities=[{"id": name, "type": "req", "title": "T", "status": "open"}])


def store_of(project: Project, branch: str = "main") -> Path:
    return project.workspace().folders.directory_of(branch)


def copied(project: Project, branch: str = "main") -> Path:
    """Return a copy of the store as it is now."""
    aside = project.root.parent / f"copy of {branch}"
    shutil.rmtree(aside, ignore_errors=True)
    return Path(shutil.copytree(store_of(project, branch), aside))


def put_back(project: Project, copy: Path, branch: str = "main") -> None:
    project.close()
    shutil.rmtree(store_of(project, branch))
    shutil.copytree(copy, store_of(project, branch))


def sentence(project: Project, branch: str = "main") -> str:
    loss = lost.loss_of(project.workspace(), branch)
    return loss.sentence() if loss else ""


def refused(project: Project) -> str:
    with pytest.raises(StoreWentBack) as caught:
        put(project, "LATER")
    return str(caught.value)


def went_back(project: Project) -> str:
    """Write four records, put the store back to two, and return the id of the store."""
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C", "D")
    put_back(project, copy)
    return heads.read(project.machine.fs, store_of(project)).store_id


def accepted(project: Project, branch: str = "main") -> epochs.NewEpoch:
    return epochs.accept(project.workspace(), branch, AUTHOR)


def fresh(project: Project, root: Path | None = None) -> Project:
    """Return the same repository, or one elsewhere, as another process sees it."""
    project.close()
    return Project(root or project.root, is_new=False)


def test_a_store_that_is_as_it_was_left_is_no_loss(project: Project) -> None:
    put(project, "A", "B")
    assert sentence(project) == ""
    assert sentence(fresh(project)) == ""
    assert project.workspace().place.read("main").seq == 2


def test_a_store_that_was_put_back_is_named_with_the_seqs_and_refused(project: Project) -> None:
    went_back(project)
    said = "The store of main went back to an earlier state. seen: 4, now: 2; records 3 to 4 are missing."
    assert sentence(project) == said
    assert refused(fresh(project)) == said
    assert heads.read(project.machine.fs, store_of(project)).seq == 2


def test_what_reads_a_store_that_went_back_warns_every_time(project: Project) -> None:
    went_back(project)
    for _ in range(2):
        store, _, _ = branches.open_branch(project.workspace(), None)
        assert store.read(lambda view: view.seq) == 2
        assert "seen: 4, now: 2" in store.warnings[0]


def test_the_view_of_the_missing_records_is_kept(project: Project) -> None:
    put(project, "A")
    copy = copied(project)
    put(project, *"BCD")
    fresh(project).node("A")
    put_back(project, copy)
    other = fresh(project)
    other.node("A")
    accepted(other)
    other.node("A")
    assert [path.name[:8] for path in project.workspace().folders.cache_of("main").glob(f"{AHEAD}*")] == ["ahead-4-"]


@pytest.mark.parametrize("write", [
    lambda project: compact(project.workspace(), "main"),
    lambda project: repair.rebuild_snapshots(project.workspace(), "main", AUTHOR),
    lambda project: branches.copy_from(project.workspace(), "main", "topic", replaces=True),
    lambda project: project.apply(dry_run=True, entities=[{"id": "Z", "type": "req", "title": "T", "status": "open"}]),
])  # fmt: skip
def test_nothing_else_writes_to_a_store_that_went_back(project: Project, write: Callable[[Project], object]) -> None:
    git(project.root, "branch", "topic")
    put(project, "A")
    branches.ensure(project.workspace(), "topic")
    went_back(project)
    before = (store_of(project) / "head.json").read_bytes()
    with pytest.raises(StoreWentBack):
        write(project)
    assert (store_of(project) / "head.json").read_bytes() == before


def test_accepting_gives_the_store_a_new_id_and_says_what_is_forgotten(project: Project) -> None:
    old = went_back(project)
    begun = accepted(project)
    assert begun.done[1] == f"2 records are lost: 3 to 4. {epochs.forgotten()}"
    now = heads.read(project.machine.fs, store_of(project))
    assert now.store_id != old
    assert [(one.store_id, one.seq, one.seen) for one in now.epochs] == [(old, 2, 4)]
    put(fresh(project), "C")
    assert sentence(project) == ""


def test_restoring_the_files_ends_the_refusal(project: Project) -> None:
    put(project, "A", "B")
    old = copied(project)
    put(project, "C")
    new = project.root.parent / "new"
    shutil.copytree(store_of(project), new)
    put_back(project, old)
    refused(project)
    put_back(project, new)
    put(project, "D")
    assert sentence(project) == ""


def test_a_newer_state_than_the_one_that_was_seen_is_taken_over(project: Project) -> None:
    put(project, "A")
    seen = project.workspace().place.read("main")
    put(project, "B", "C")
    assert project.workspace().place.write("main", seen)
    other = fresh(project)
    assert sentence(other) == ""
    assert other.workspace().place.read("main").seq == 3


@pytest.mark.parametrize("compacts", [False, True])
def test_records_that_took_the_place_of_lost_ones_are_noticed(project: Project, compacts: bool) -> None:
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C", "D")
    seen = project.workspace().place.read("main")
    put_back(project, copy)
    shutil.rmtree(project.workspace().place.folder())
    other = fresh(project)
    if compacts:
        compact(other.workspace(), "main")
    put(other, "X", "Y", "Z")
    other.workspace().place.write("main", seen)
    assert "The store of main has another record 4 than the one that was acknowledged" in sentence(fresh(project))


@pytest.mark.parametrize("what", ["branches/main", "branches", ""])
def test_a_store_that_is_gone_is_named_and_no_other_is_made(project: Project, what: str) -> None:
    put(project, "A", "B")
    project.close()
    (project.root / ".kb").mkdir(exist_ok=True)
    target = store_of(project) if what == "branches/main" else store_of(project).parent
    shutil.rmtree(target if what else store_of(project).parent.parent)
    (project.root / ".kb").mkdir(exist_ok=True)
    (project.root / ".kb/config.json").write_text("{}")
    other = fresh(project)
    assert sentence(other) == "The store of main is gone. seen: 2, now: no store; records 1 to 2 are missing."
    assert "is gone" in refused(other)
    with pytest.raises(StoreWentBack):
        branches.open_to_read(other.workspace(), None)
    begun = accepted(other)
    assert begun.seq == 1
    put(other, "C")
    assert sentence(fresh(other)) == ""


def test_the_store_of_another_branch_answers_for_one_that_is_gone_and_says_so(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    project.close()
    shutil.rmtree(store_of(project, "topic"))
    workspace = project.workspace()
    _, choice, ensured = branches.open_to_read(workspace, None)
    assert (choice.branch, workspace.answering("topic"), ensured.is_warning) == ("topic", "main", True)
    assert "seen: 2, now: no store; records 1 to 2 are missing" in ensured.notice
    accepted(project, "topic")
    assert project.seq() == 2  # the one record of main, and the one of the new epoch


def test_a_store_that_another_was_put_in_the_place_of_by_hand_is_missed(project: Project) -> None:
    put(project, "A", "B")
    other = Project(project.root.parent / "other")
    put(other, "X", "Y", "Z")
    put_back(project, copied(other))
    said = sentence(fresh(project))
    assert "Another store has the place of the one of main. seen: 2, now: 3" in said
    accepted(project)
    put(project, "C")
    assert sentence(fresh(project)) == ""
    other.close()


def adopted_by(project: Project) -> list[str]:
    """Return what the advice about the store of main says to take over."""
    [loss] = [one for one in lost.losses(project.workspace()) if one.branch == "main"]
    found = re.findall(r"`kb doctor --adopt (.*?)`", lost.remedy(project.workspace(), loss))
    return [word for one in found for word in shlex.split(one)]


def moved_aside(project: Project, name: str = "kb-moved") -> Path:
    """Return a copy of all stores, in a folder as the remedy of another setting names it."""
    data = store_of(project).parent.parent
    return Path(shutil.copytree(data, data.with_name(name))) / "branches"


def test_a_store_that_was_moved_aside_is_advised_only_where_it_has_the_missing_records(project: Project) -> None:
    git(project.root, "branch", "topic")
    put(project, "A")
    project.apply(branch="topic", entities=[{"id": "T", "type": "req", "title": "T", "status": "open"}])
    put(project, "B")
    copy = copied(project)
    put(project, "C")
    whole = moved_aside(project, "kb-moved-2")
    put_back(project, copy)
    moved_aside(project)
    assert adopted_by(project) == []  # the branch has a store
    project.close()
    shutil.rmtree(store_of(project))
    assert adopted_by(project) == [str(whole / "main")]  # topic has a store
    project.close()
    shutil.rmtree(store_of(project, "topic"))
    assert adopted_by(fresh(project)) == [str(whole)]
    adopt(project.workspace(), whole)
    assert lost.losses(fresh(project).workspace()) == []


def test_a_store_that_was_moved_aside_and_ends_before_the_loss_is_not_advised(project: Project) -> None:
    put(project, "A")
    moved_aside(project)
    put(project, "B")
    damaged = moved_aside(project, "kb-moved-2")
    (damaged / "main/head.json").write_bytes(b"{}")
    project.close()
    shutil.rmtree(store_of(project))
    assert adopted_by(fresh(project)) == []


def test_an_older_head_file_is_no_loss_as_long_as_the_records_are_there(project: Project) -> None:
    put(project, "A", "B")
    old = (store_of(project) / "head.json").read_bytes()
    put(project, "C")
    project.close()
    (store_of(project) / "head.json").write_bytes(old)
    assert sentence(fresh(project)) == ""
    put(project, "D")
    assert project.seq() == 4


def test_what_kb_puts_away_itself_is_no_loss(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    git(project.root, "switch", "--quiet", "main")
    git(project.root, "branch", "spare")
    branches.ensure(project.workspace(), "spare")
    branches.copy_from(project.workspace(), "topic", "spare", replaces=True)
    assert sentence(project, "topic") == ""
    branches.restore(project.workspace(), "topic")
    assert sentence(project, "topic") == ""
    git(project.root, "branch", "-m", "topic", "feature")
    project.switch("feature")
    put(project, "C")
    assert sentence(project, "feature") == ""
    project.switch("main")
    git(project.root, "branch", "-D", "feature")
    branches.collect(project.workspace())
    trash = store_of(project).parent / branches.TRASH
    shutil.rmtree(trash)
    assert lost.losses(fresh(project).workspace()) == []


def test_gc_keeps_a_store_that_lacks_records_and_one_that_is_gone_can_be_given_up(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    copy = copied(project, "topic")
    put(project, "C")
    put_back(project, copy, "topic")
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    collected = branches.collect(project.workspace())
    assert (collected.removed, collected.reasons["topic"]) == ((), "acknowledged records are missing from it")
    project.close()
    shutil.rmtree(store_of(project, "topic"))
    assert choose_noted(project.workspace(), "topic") == "topic"
    assert accepted(project, "topic").seq == 0
    assert lost.losses(project.workspace()) == []


@pytest.mark.parametrize("is_main_noted", [False, True])
def test_a_deleted_branch_is_given_up_while_the_folder_of_the_stores_is_missing(
    project: Project, is_main_noted: bool
) -> None:
    if is_main_noted:
        put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    project.close()
    folder = store_of(project).parent
    shutil.rmtree(folder)
    (project.root / ".kb").mkdir(exist_ok=True)
    (project.root / ".kb/config.json").write_text("{}")
    project = fresh(project)
    # The command is the one that the refusal names.
    [of_topic] = [one for one in lost.losses(project.workspace()) if one.branch == "topic"]
    assert "`kb doctor --new-epoch --branch topic`" in lost.remedy(project.workspace(), of_topic)
    assert accepted(project, "topic").seq == 0
    assert not folder.exists()
    assert [one.branch for one in lost.losses(project.workspace())] == (["main"] if is_main_noted else [])
    if is_main_noted:
        accepted(project)
    put(project, "C")


def test_a_new_head_that_gives_records_up_begins_a_new_epoch(project: Project) -> None:
    put(project, "A", "B", "C")
    old = heads.read(project.machine.fs, store_of(project))
    project.close()
    path = store_of(project) / old.head.file
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    done = repair.rebuild_head(project.workspace(), "main", AUTHOR)
    assert any("seen: 3, now: 2; record 3 is missing" in doubt for doubt in done.doubts)
    now = heads.read(project.machine.fs, store_of(project))
    assert [(one.store_id, one.seq, one.seen) for one in now.epochs] == [(old.store_id, 2, 3)]
    [newest, *_] = log(fresh(project).view())
    assert "The store goes on without them: a new head was asked for." in newest["repair"]
    assert "A person accepted" not in newest["repair"], "nobody was asked"
    put(project, "D")


def of_two_epochs(project: Project) -> tuple[Path, list[str]]:
    """Write records 1 to 4, an epoch with record 5, and 6; return a copy that ends at 2, and both store ids."""
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C", "D")
    first = heads.read(project.machine.fs, store_of(project)).store_id
    accepted(project)
    put(project, "E")
    return copy, [first, heads.read(project.machine.fs, store_of(project)).store_id]


def test_a_store_of_an_earlier_epoch_in_the_place_of_the_present_one_lacks_what_came_after_it(project: Project) -> None:
    copy, (first, second) = of_two_epochs(project)
    put_back(project, copy)
    assert sentence(project) == (
        "Another store has the place of the one of main. seen: 6, now: 2; "
        f"records 3 to 4 of the store {first[:12]} and records 5 to 6 of the store {second[:12]} are missing."
    )
    assert "4 records are lost: 3 to 6." in accepted(project).done[1]
    now = heads.read(project.machine.fs, store_of(project))
    assert now.store_id not in {first, second}, "a reference to record 3 under the first id means no other record"
    assert {one.store_id: (one.seq, one.seen) for one in now.epochs} == {first: (2, 4), second: (0, 6)}
    assert sentence(project) == ""
    put(fresh(project), "F")


def test_a_copy_that_went_on_by_itself_does_not_say_which_record_was_the_first_to_be_lost(project: Project) -> None:
    copy, (_, second) = of_two_epochs(project)
    twin = Project(project.root.parent / "twin")
    shutil.copytree(copy, store_of(twin))
    put(twin, "X", "Y", "Z")
    twin.close()
    put_back(project, store_of(twin))
    assert f"record 6 of the store {second[:12]} and some before it may be missing" in sentence(project)
    assert "Record 6 and some before it are lost." in accepted(project).done[1]


def test_a_copy_that_went_on_and_began_an_epoch_does_not_say_which_record_was_the_first_to_be_lost(
    project: Project,
) -> None:
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C", "D")
    first = heads.read(project.machine.fs, store_of(project)).store_id
    twin = Project(project.root.parent / "twin")
    shutil.copytree(copy, store_of(twin))
    put(twin, "X")
    accepted(twin)
    put(twin, "Y")
    twin.close()
    put_back(project, store_of(twin))
    assert sentence(project) == (
        "Another store has the place of the one of main. seen: 4, now: 5; "
        f"record 4 of the store {first[:12]} and some before it may be missing."
    )
    assert "Record 4 and some before it are lost." in accepted(project).done[1]


@pytest.mark.parametrize(("left", "missing"), [(5, "record 6 is"), (3, "records 4 to 6 are")])
def test_a_new_head_without_the_old_one_names_exactly_the_records_that_are_gone(
    left: int, missing: str, project: Project
) -> None:
    of_two_epochs(project)
    project.close()
    path = store_of(project) / heads.read(project.machine.fs, store_of(project)).head.file
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:left]))
    (store_of(project) / "head.json").unlink()
    done = repair.rebuild_head(project.workspace(), "main", AUTHOR)
    assert any(f"seen: 6, now: {left}; {missing} missing" in doubt for doubt in done.doubts), done.doubts
    assert sentence(project) == ""
    put(fresh(project), "F")


def test_a_repository_that_was_moved_keeps_its_protection_and_does_not_complain(project: Project) -> None:
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C")
    project.close()
    moved = fresh(project, project.root.rename(project.root.parent / "moved"))
    assert sentence(moved) == ""
    assert moved.workspace().place.read("main").seq == 3
    assert moved.workspace().place.others() == []
    put_back(moved, copy)
    assert "seen: 3, now: 2" in sentence(moved)


def test_a_copy_of_a_repository_does_not_complain_until_both_go_on(project: Project) -> None:
    put(project, "A", "B")
    project.close()
    root = project.root.parent / "twin"
    shutil.copytree(project.root, root, symlinks=True)
    put(project, "C")
    twin = fresh(project, root)

    def warnings(one: Project) -> tuple[str, ...]:
        store, _, _ = branches.open_branch(one.workspace(), None)
        store.read(lambda view: view.seq)
        return store.warnings

    assert (warnings(twin), warnings(project)) == ((), ())
    put(twin, "X")
    assert ["have the same store id and other records" in said for said in warnings(twin)] == [True]
    assert ["have the same store id and other records" in said for said in warnings(project)] == [True]
    put(project, "D", "E")
    assert len(warnings(twin)) == 1
    accepted(twin)
    assert (warnings(twin), warnings(project)) == ((), ())
    twin.close()


def test_a_copy_of_an_older_state_whose_original_was_deleted_is_only_hinted_at(project: Project) -> None:
    put(project, "A", "B")
    project.close()
    root = project.root.parent / "twin"
    shutil.copytree(project.root, root, symlinks=True)
    put(project, "C")
    project.close()
    shutil.rmtree(project.root)
    twin = fresh(project, root)
    assert sentence(twin) == ""
    put(twin, "X")
    [hint] = [one for one in diagnose(twin.workspace()).findings if one.code == "seen_elsewhere"]
    assert "main was seen at seq 3 in" in hint.message
    twin.close()


def test_a_repository_that_is_cloned_anew_in_the_same_place_is_no_loss(project: Project) -> None:
    git(project.root, "commit", "--allow-empty", "-qm", "x")
    put(project, "A", "B")
    project.close()
    aside = project.root.rename(project.root.parent / "origin")
    shutil.rmtree(aside / ".kb")
    git(project.root.parent, "clone", "-q", str(aside), str(project.root))
    (project.root / ".kb").mkdir(exist_ok=True)
    (project.root / ".kb/config.json").write_text("{}")
    other = fresh(project)
    assert sentence(other) == ""
    put(other, "X")
    git(project.root, "init", "-q")
    assert other.workspace().place.read("main").seq == 1


def test_a_worktree_is_protected_by_the_same_witness(project: Project) -> None:
    git(project.root, "commit", "--allow-empty", "-qm", "x")
    went_back(project)
    root = project.root.parent / "tree"
    git(project.root, "worktree", "add", "-q", str(root), "-b", "other")
    tree = fresh(project, root)
    assert "seen: 4, now: 2" in sentence(tree)
    tree.close()


def test_without_a_home_a_process_remembers_what_it_has_seen(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    env = {name: value for name, value in git_env().items() if name != "HOME"}
    project.machine = Machine(NoSyncFs(), SystemClock(), env)
    put(project, "A")
    copy = copied(project)
    put(project, "B")
    [note] = [one for one in diagnose(project.workspace()).findings if one.code == "no_witness"]
    assert "a store that goes back is not noticed" in note.message
    shutil.rmtree(store_of(project))
    shutil.copytree(copy, store_of(project))
    assert "seen: 2, now: 1" in refused(project)


def test_a_state_folder_that_cannot_be_written_never_fails_a_commit(project: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    project.machine = Machine(NoSyncFs(), SystemClock(), {**git_env(), "XDG_STATE_HOME": str(tmp_path / "file")})
    put(project, "A", "B")
    assert project.seq() == 2
    assert project.workspace().place.unavailable


def test_what_is_noted_is_only_for_the_user(project: Project, tmp_path: Path) -> None:
    state = tmp_path / "state"
    project.machine = Machine(NoSyncFs(), SystemClock(), {**git_env(), "XDG_STATE_HOME": str(state)})
    put(project, "A")
    found = list(state.rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in found if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in found if path.is_file()} == {0o600}
    assert len([path for path in found if path.is_file()]) == 2


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_to_is_not_believed(project: Project, tmp_path: Path, mode: int) -> None:
    state = tmp_path / "state"
    (state / "kb/witness").mkdir(parents=True)
    (state / "kb/witness").chmod(mode)
    project.machine = Machine(NoSyncFs(), SystemClock(), {**git_env(), "XDG_STATE_HOME": str(state)})
    put(project, "A")
    assert list((state / "kb/witness").iterdir()) == []


@pytest.mark.parametrize("cut", [0, 1, 100, 300])
def test_a_witness_that_is_cut_off_is_named_and_counts_as_none_until_the_next_commit(
    project: Project, cut: int
) -> None:
    went_back(project)
    path = project.workspace().place.folder() / "main.json"
    path.write_bytes(path.read_bytes()[:cut])
    again = fresh(project)
    assert sentence(again) == ""
    for _ in range(2):  # reading does not make it whole: nobody knows what was noted
        store, _, _ = branches.open_branch(again.workspace(), None)
        store.read(lambda view: view.seq)
        [said] = store.warnings
        assert f"The note of the last acknowledged record of main is damaged: {path} is not what KB wrote." in said
        [damaged] = [one for one in diagnose(again.workspace()).findings if one.code == "witness_damaged"]
        assert (damaged.severity, damaged.branch, damaged.file) == ("warning", "main", str(path))
        assert "the next write to the branch makes a new note" in damaged.remedy
        assert path.stat().st_size == cut
    warnings = again.apply(entities=[{"id": "NEW", "type": "req", "title": "T", "status": "open"}]).warnings
    [warning] = [one for one in warnings if "acknowledged record" in one]  # once, to the one who writes
    assert f"of main was damaged, and this write replaced it: {path} is not what KB wrote." in warning
    store.read(lambda view: view.seq)
    assert store.warnings == ()
    assert again.workspace().place.read("main").seq == 3
    assert not [one for one in diagnose(again.workspace()).findings if one.code == "witness_damaged"]


def test_a_process_that_remembers_more_than_a_damaged_witness_is_not_deceived(project: Project) -> None:
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C")
    path = project.workspace().place.folder() / "main.json"
    path.write_bytes(b"x" * 512)
    shutil.rmtree(store_of(project))
    shutil.copytree(copy, store_of(project))
    assert "seen: 3, now: 2" in sentence(project)


def test_a_witness_that_is_no_file_is_named(project: Project) -> None:
    put(project, "A")
    path = project.workspace().place.folder() / "main.json"
    path.unlink()
    path.mkdir()
    [damaged] = fresh(project).workspace().place.damaged()
    assert str(path) in damaged.sentence()


def test_a_flipped_bit_in_a_witness_is_no_loss_and_is_named(project: Project) -> None:
    put(project, "A")
    path = project.workspace().place.folder() / "main.json"
    data = path.read_bytes()
    for at in range(data.index(b"\n") + 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        again = fresh(project)
        assert sentence(again) == "", at
        assert [one.branch for one in again.workspace().place.damaged()] == ["main"], at


@pytest.mark.parametrize("length", [0, 600, 20_000])
def test_a_damaged_note_of_any_length_is_replaced_by_the_next_write(project: Project, length: int) -> None:
    put(project, "A")
    path = project.workspace().place.folder() / "main.json"
    path.write_bytes(b"x" * length)
    again = fresh(project)
    put(again, "B")
    assert not list(again.workspace().place.damaged())
    assert again.workspace().place.read("main").seq == 2
    assert path.stat().st_size in {512, 1024}  # by the length of the path
    # A process that knows what was noted replaces it as well.
    path.write_bytes(b"x" * length)
    put(again, "C")
    assert again.workspace().place.read("main").seq == 3


def test_a_folder_in_the_place_of_a_note_is_named_until_it_is_removed_and_nothing_is_left_beside_it(
    project: Project,
) -> None:
    put(project, "A")
    path = project.workspace().place.folder() / "main.json"
    path.unlink()
    path.mkdir()
    again = fresh(project)
    for name in "BC":
        put(again, name)
        [damaged] = again.workspace().place.damaged()
        assert str(path) in damaged.message()
        assert "Where that fails, as in the place of a folder, remove what is there." in damaged.remedy()
    assert sorted(one.name for one in path.parent.iterdir()) == ["git-dir", "main.json"]
    path.rmdir()
    put(again, "D")
    assert again.workspace().place.read("main").seq == 4


MONTH_NS = witness.LOOKS_APART_NS


def looks(project: Project, count: int, *, begin_ns: int = 10**18, apart_ns: int = MONTH_NS) -> list[str]:
    """Sweep so often; return what was removed."""
    place = project.workspace().place
    return [gone for number in range(count) for gone in place.sweep(begin_ns + number * apart_ns).gone]


def other_repository(project: Project, name: str = "other") -> tuple[Path, Path]:
    """Return another repository with a note, and the folder of that."""
    other = Project(project.root.parent / name)
    put(other, "A")
    folder = other.workspace().place.folder()
    other.close()
    assert folder
    return other.root, folder


def test_notes_of_a_repository_that_is_gone_are_removed_after_twelve_looks_a_month_apart(project: Project) -> None:
    put(project, "A")
    root, folder = other_repository(project)
    shutil.rmtree(root)
    assert looks(project, witness.LOOKS - 1) == []
    # Looks that come sooner do not count, however often: a script may run it every minute.
    late = 10**18 + (witness.LOOKS - 2) * MONTH_NS
    assert looks(project, 50, begin_ns=late + 1, apart_ns=10**9) == []
    assert folder.is_dir()
    assert project.workspace().place.sweep(late + MONTH_NS, dry_run=True).gone == (str(root / ".git"),)
    assert folder.is_dir()
    assert project.workspace().place.sweep(late + MONTH_NS).gone == (str(root / ".git"),)
    assert not folder.parent.exists()
    assert project.workspace().place.read("main").seq == 1


def test_notes_of_a_repository_that_comes_back_are_kept_and_the_count_begins_again(project: Project) -> None:
    root, folder = other_repository(project)
    aside = root.rename(root.parent / "unmounted")
    assert looks(project, witness.LOOKS - 1) == []
    aside.rename(root)
    assert looks(project, 1, begin_ns=10**18 + 20 * MONTH_NS) == []
    root.rename(aside)
    assert looks(project, witness.LOOKS - 1, begin_ns=10**18 + 30 * MONTH_NS) == []
    aside.rename(root)
    again = Project(root, is_new=False)
    assert again.workspace().place.read("main").seq == 1
    assert folder.is_dir()
    again.close()


@pytest.mark.parametrize("what", ["there", "not readable", "its place is not known", "its place is a file"])
def test_notes_of_a_repository_that_may_be_there_are_never_removed(project: Project, what: str) -> None:
    root, folder = other_repository(project)
    if what == "not readable":
        (root / ".git/config").write_text("[kb\n\tid = \n")
    if what == "its place is not known":
        (folder / "git-dir").write_bytes(b"/some")
        shutil.rmtree(root)
    if what == "its place is a file":
        (folder / "git-dir").write_bytes(b"relative\0")
    assert looks(project, 3 * witness.LOOKS) == []
    assert folder.is_dir()


def test_a_note_whose_place_is_damaged_names_it_again_with_the_next_write(project: Project) -> None:
    put(project, "A")
    path = project.workspace().place.folder() / "git-dir"
    path.write_bytes(b"/elsewhere")
    put(fresh(project), "B")
    assert path.read_bytes() == bytes(project.root / ".git") + b"\0"


def test_a_sweep_goes_on_where_one_place_cannot_be_judged_and_names_it(project: Project) -> None:
    put(project, "A")
    root, folder = other_repository(project)
    shutil.rmtree(root)
    _, damaged = other_repository(project, "damaged")
    (damaged / "git-dir").write_bytes(b"")
    _, unreadable = other_repository(project, "unreadable")
    (unreadable / "git-dir").unlink()
    (unreadable / "git-dir").mkdir()
    top = folder.parent.parent
    (top / ("0" * 32)).write_text("a file in the place of the folder of a repository")
    (folder.parent / ("0" * 16)).write_text("a file in the place of a place")
    (top / ".DS_Store").write_text("")
    (folder.parent / ".DS_Store").write_text("")
    place = project.workspace().place
    for number in range(witness.LOOKS - 1):
        assert place.sweep(10**18 + number * MONTH_NS).gone == ()
    swept = place.sweep(10**18 + witness.LOOKS * MONTH_NS)
    assert swept.gone == (str(root / ".git"),)
    named = [top / ("0" * 32), folder.parent / ("0" * 16), damaged, unreadable]
    assert len(swept.problems) == len(named)
    assert all(any(str(one) in problem for problem in swept.problems) for one in named)
    assert all(one.exists() for one in named)
    assert not folder.exists()


def test_of_more_places_than_a_sweep_looks_at_each_is_looked_at_some_time(project: Project) -> None:
    put(project, "A")
    top = project.workspace().place.folder().parent.parent
    folders = [top / f"{number:032x}" / ("f" * 16) for number in range(witness._MAX_SWEPT + 1)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "git-dir").write_bytes(f"/nowhere/{number}".encode() + b"\0")
    looks(project, 3)
    assert all((folder / "absent").exists() for folder in folders)


def bare_of(project: Project) -> Path:
    bare = project.root.parent / "bare.git"
    git(project.root.parent, "clone", "-q", "--bare", str(project.root), str(bare))
    (bare / ".kb").mkdir()
    (bare / ".kb/config.json").write_text("{}")
    return bare


def submodule_of(project: Project) -> Path:
    outer = make_repository(project.root.parent / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(project.root), "inner")
    return outer / "inner"


@pytest.mark.parametrize("make", [bare_of, submodule_of], ids=["bare", "submodule"])
def test_a_bare_repository_and_a_submodule_have_a_witness_of_their_own(
    project: Project, make: Callable[[Project], Path]
) -> None:
    commit_files(project.root, {".kb/config.json": "{}"})
    put(project, "A")
    other = Project(make(project), is_new=False)
    assert sentence(other) == ""
    went_back(other)
    assert "seen: 4, now: 2" in refused(other)
    assert sentence(project) == ""
    assert other.workspace().place.folder().parent != project.workspace().place.folder().parent
    other.close()


@pytest.mark.parametrize("copies", [["cp", "-a"], ["tar"]], ids=["cp", "tar"])
def test_two_copies_of_a_repository_notice_each_other_when_they_meet(project: Project, copies: list[str]) -> None:
    put(project, "A", "B")
    project.close()
    root = project.root.parent / "elsewhere" / "twin"
    root.parent.mkdir()
    if copies == ["tar"]:
        packed = project.root.parent / "twin.tar"
        subprocess.run(["tar", "-C", project.root, "-cf", packed, "."], check=True)
        root.mkdir()
        subprocess.run(["tar", "-C", root, "-xf", packed], check=True)
    else:
        subprocess.run([*copies, project.root, root], check=True)
    twin = fresh(project, root)
    put(project, "C")
    put(twin, "X")
    for one in (twin, project):
        store, _, _ = branches.open_branch(one.workspace(), None)
        store.read(lambda view: view.seq)
        [said] = store.warnings
        assert "have the same store id and other records" in said
    # One is moved to where the other was: the place is known, its records are not those that were noted.
    twin.close()
    project.close()
    shutil.rmtree(project.root)
    root.rename(project.root)
    here = fresh(project)
    assert "seen: 3" in sentence(here)


def test_an_id_of_the_repository_that_kb_did_not_make_leads_nowhere(project: Project) -> None:
    put(project, "A")
    git(project.root, "config", "kb.id", "../../../../etc")
    assert project.workspace().place.folder() is None
    put(fresh(project), "B")
    assert project.workspace().place.folder() is not None


def test_two_processes_that_write_note_only_what_is_later(project: Project) -> None:
    put(project, "A", "B")
    other = fresh(project)
    workspace = other.workspace()
    old = heads.read(workspace.machine.fs, store_of(project))
    put(project, "C")
    workspace.witness("main").note(old)
    assert workspace.place.read("main").seq == 3


def test_a_commit_between_reading_the_head_and_the_witness_is_no_loss(project: Project) -> None:
    put(project, "A")
    old = journal.read_head(project.machine.fs, store_of(project))
    put(project, "B")
    assert project.workspace().witness("main").check(old) is None


def test_a_head_that_was_read_before_a_compaction_and_a_commit_is_no_loss(project: Project) -> None:
    put(project, "A")
    old = journal.read_head(project.machine.fs, store_of(project))
    compact(project.workspace(), "main")
    put(project, "B")
    assert project.workspace().witness("main").check(old) is None


@pytest.mark.parametrize(("keys", "said"), [("A", "record 1 is missing"), ("AB", "records 1 to 2 are missing")])
def test_a_single_missing_record_is_not_called_several(project: Project, keys: str, said: str) -> None:
    put(project, *keys)
    project.close()
    shutil.rmtree(store_of(project))
    assert sentence(project).endswith(f"; {said}.")
    begun = accepted(project)
    assert epochs.forgotten(is_one=keys == "A") in begun.done[1]
