"""A store that begins a new epoch, and copies of stores that went on by themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kbcore.maintenance import repair
from kbcore.maintenance.doctor import diagnose
from kbcore.storage import head as heads
from kbcore.store import branches
from kbcore.store.history.log import log
from tests.core.store.branches.losing import accepted, copied, fresh, put, put_back, sentence, store_of, went_back
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


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
    assert "The store goes on without them: a new head was requested." in newest["repair"]
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


@pytest.mark.sliced
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


def test_a_repository_that_is_cloned_again_in_the_same_place_is_no_loss(project: Project) -> None:
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
