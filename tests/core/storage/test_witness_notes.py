"""The notes outside of the repository that say which records were acknowledged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.maintenance.doctor import diagnose
from kbcore.storage import head as heads
from kbcore.storage import witness_notes
from kbcore.store import branches
from kbcore.store.pool import Machine
from tests.core.store.branches.losing import copied, fresh, put, refused, sentence, store_of, went_back
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git, git_env, make_repository


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


MONTH_NS = witness_notes.LOOKS_APART_NS


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


def test_notes_of_a_repository_that_is_gone_are_removed_after_twelve_looks_in_twelve_months(project: Project) -> None:
    put(project, "A")
    root, folder = other_repository(project)
    shutil.rmtree(root)
    assert looks(project, witness_notes.LOOKS - 1) == []
    # Looks that come sooner do not count, however often: a script may run it every minute.
    late = 10**18 + (witness_notes.LOOKS - 2) * MONTH_NS
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
    assert looks(project, witness_notes.LOOKS - 1) == []
    aside.rename(root)
    assert looks(project, 1, begin_ns=10**18 + 20 * MONTH_NS) == []
    root.rename(aside)
    assert looks(project, witness_notes.LOOKS - 1, begin_ns=10**18 + 30 * MONTH_NS) == []
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
    assert looks(project, 3 * witness_notes.LOOKS) == []
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
    for number in range(witness_notes.LOOKS - 1):
        assert place.sweep(10**18 + number * MONTH_NS).gone == ()
    swept = place.sweep(10**18 + witness_notes.LOOKS * MONTH_NS)
    assert swept.gone == (str(root / ".git"),)
    named = [top / ("0" * 32), folder.parent / ("0" * 16), damaged, unreadable]
    assert len(swept.problems) == len(named)
    assert all(any(str(one) in problem for problem in swept.problems) for one in named)
    assert all(one.exists() for one in named)
    assert not folder.exists()


def test_of_more_places_than_a_sweep_looks_at_each_is_looked_at_some_time(project: Project) -> None:
    put(project, "A")
    top = project.workspace().place.folder().parent.parent
    folders = [top / f"{number:032x}" / ("f" * 16) for number in range(witness_notes._MAX_SWEPT + 1)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "git-dir").write_bytes(f"/nowhere/{number}".encode() + b"\0")
    looks(project, 3)
    assert all((folder / "absent").exists() for folder in folders)


def bare_clone_of(project: Project) -> Path:
    bare = project.root.parent / "bare.git"
    git(project.root.parent, "clone", "-q", "--bare", str(project.root), str(bare))
    (bare / ".kb").mkdir()
    (bare / ".kb/config.json").write_text("{}")
    return bare


def submodule_of(project: Project) -> Path:
    outer = make_repository(project.root.parent / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(project.root), "inner")
    return outer / "inner"


@pytest.mark.parametrize("make", [bare_clone_of, submodule_of], ids=["bare", "submodule"])
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


def test_two_processes_that_write_note_only_what_is_later(project: Project) -> None:
    put(project, "A", "B")
    other = fresh(project)
    workspace = other.workspace()
    old = heads.read(workspace.machine.fs, store_of(project))
    put(project, "C")
    workspace.witness("main").note(old)
    assert workspace.place.read("main").seq == 3
