"""The stores that gc removes, what it says of them, and how they come back."""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kbcore.clock import SystemClock, text_of
from kbcore.errors import KBError, UnknownBranch
from kbcore.storage import head
from kbcore.storage.trashed import ASIDE
from kbcore.store import branches
from kbcore.store.branches.lost import losses
from tests.core.store.branches.making import req
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import STORES_NAME, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import add_worktree, git


class Interrupted(NoSyncFs):
    """Runs something once, just before the lock of a store is opened or right after a store was set aside."""

    def __init__(self) -> None:
        super().__init__()
        self.before_lock: Callable[[], object] | None = None
        self.after_move: Callable[[], object] | None = None

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == "lock" and self.before_lock is not None:
            act, self.before_lock = self.before_lock, None
            act()
        return super().open(path, flags, mode)

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        super().replace(source, target, is_private=is_private)
        if target.name.startswith(ASIDE) and self.after_move is not None:
            act, self.after_move = self.after_move, None
            act()


def store_of(project: Project, branch: str, *keys: str, keeps: bool = False) -> None:
    """Give a branch a store with these entities; git has the branch only for as long, unless it is to keep it."""
    git(project.root, "branch", branch)
    project.view(branch)
    for key in keys:
        project.apply(branch=branch, entities=[req(key)])
    if not keeps:
        git(project.root, "branch", "-D", branch)


def lost(project: Project, **options: bool) -> dict[str, int | None]:
    return {one.name: one.records for one in branches.collect(project.workspace(), **options).trash}


@pytest.mark.sliced
@pytest.mark.parametrize("moment", ["before_lock", "after_move"])
@pytest.mark.parametrize("how", ["branch", "switch", "worktree", "unborn"])
def test_a_branch_that_comes_alive_while_gc_runs_keeps_its_store(tmp_path: Path, moment: str, how: str) -> None:
    fs = Interrupted()
    project = Project(tmp_path / "project", fs=fs)
    project.apply(entities=[req("A")])
    store_of(project, "back", "B")
    store_of(project, "gone")
    setattr(
        fs,
        moment,
        {
            "branch": lambda: git(project.root, "branch", "back"),
            "switch": lambda: project.switch("back", create=True),
            "worktree": lambda: add_worktree(project.root, tmp_path / "tree", "back"),
            "unborn": lambda: git(project.root, "symbolic-ref", "HEAD", "refs/heads/back"),
        }[how],
    )
    done = branches.collect(project.workspace())
    assert (done.removed, done.kept) == (("gone",), ("back", "main"))
    assert head.read(fs, stores_at(project.root) / "back").seq == 2
    project.close()


def test_gc_says_of_each_store_how_many_of_its_records_are_nowhere_else(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "nothing")
    store_of(project, "own", "B", "C")
    store_of(project, "before", "D", "E")
    project.apply(entities=[req("F")])
    store_of(project, "behind")
    assert lost(project, dry_run=True) == {"nothing": 0, "own": 2, "before": 2, "behind": 0}
    assert lost(project) == {"nothing": 0, "own": 2, "before": 2, "behind": 0}


def test_what_another_remaining_branch_has_as_well_is_not_lost(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "first", "B", "C", keeps=True)
    git(project.root, "branch", "second")
    branches.copy_from(project.workspace(), "second", "first")
    project.apply(branch="second", entities=[req("D")])
    project.apply(branch="first", entities=[req("E")])
    git(project.root, "branch", "-D", "first")
    assert lost(project) == {"first": 1}
    git(project.root, "branch", "-D", "second")
    assert lost(project) == {"second": 3}


def test_a_history_that_was_pruned_elsewhere_is_not_lost(project: Project) -> None:
    from kbcore.maintenance.compacting import compact

    for key in ("A", "B", "C"):
        project.apply(entities=[req(key)])
    store_of(project, "behind")
    project.apply(entities=[req("D")])
    workspace = project.workspace()
    compact(workspace, "main")
    compact(workspace, "main", prune_before=4)
    assert lost(project, dry_run=True) == {"behind": 0}


def test_of_a_damaged_store_gc_says_that_it_cannot_tell(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "broken", "B")
    next((stores_at(project.root) / "broken").glob("journal-*.jsonl")).write_bytes(b"")
    store_of(project, "own", "C")
    assert lost(project) == {"broken": None, "own": 1}


def test_a_store_comes_back_from_the_trash_in_one_step_and_changes_places_with_what_is_there(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "topic", "OLD")
    branches.collect(project.workspace())
    store_of(project, "topic", "NEW", keeps=True)
    for key, other in (("OLD", "NEW"), ("NEW", "OLD"), ("OLD", "NEW")):
        done = branches.restore(project.workspace(), "topic")
        assert (done.branch, done.seq, done.exists_in_git) == ("topic", 2, True)
        assert branches.TRASH in done.replaced
        assert project.view("topic").nodes([key])
        assert not project.view("topic").nodes([other])
        store = branches.open_branch(project.workspace(), "topic")[0]
        assert store.notices == []


class SetClock(SystemClock):
    """A clock that stays at a time of its own."""

    def __init__(self, time: str) -> None:
        self.time = time

    def now(self) -> str:
        return self.time


@pytest.mark.parametrize(
    "times",
    [
        ("2026-12-31T23:59:59.999999Z", "2026-11-01T00:00:00.000000Z", "2025-01-01T00:00:00.000000Z"),
        ("2026-11-01T00:00:00.000000Z", "2026-11-01T00:00:00.000000Z", "2026-11-01T00:00:00.000001Z"),
    ],
    ids=["set back", "standing still"],
)
def test_the_store_that_came_to_the_trash_last_is_found_whatever_the_clock_said(
    project: Project, times: tuple[str, ...]
) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "branch", "topic")
    for number, time in enumerate(times):
        project.apply(branch="topic", entities=[req(f"K{number}")])
        project.machine.clock = SetClock(time)
        branches.copy_from(project.workspace(), "topic", "main", replaces=True)
        project.machine.clock = SystemClock()
    project.write({f"{STORES_NAME}/.trash/topic~kept by hand/head.json": "{}"})
    branches.restore(project.workspace(), "topic")
    assert [node.id for node in project.view("topic").nodes(["K0", "K1", "K2"])] == ["K2"]


@pytest.mark.parametrize("name", ["feature/login", "CON", "x" * 200, "ünï"])
def test_any_store_can_be_brought_back_by_its_name(project: Project, name: str) -> None:
    project.apply(entities=[req("A")])
    store_of(project, name, "B")
    assert branches.collect(project.workspace()).removed == (name,)
    assert not branches.restore(project.workspace(), name).exists_in_git
    assert project.view(name).nodes(["B"])


def test_a_name_that_is_not_in_the_trash_is_refused_with_the_nearest(project: Project) -> None:
    with pytest.raises(UnknownBranch) as refused:
        branches.restore(project.workspace(), "topic")
    assert "empty" in refused.value.hint
    store_of(project, "topic")
    branches.collect(project.workspace())
    with pytest.raises(UnknownBranch) as refused:
        branches.restore(project.workspace(), "../topik")
    assert "'topic'" in refused.value.hint


class LaterClock(SystemClock):
    """Is some days ahead."""

    days = 0

    def now(self) -> str:
        return text_of(datetime.now(UTC) + timedelta(days=self.days))


@pytest.fixture
def later(tmp_path: Path) -> Iterator[tuple[Project, LaterClock]]:
    """A project with two stores in the trash, the second of them 50 days younger."""
    clock = LaterClock()
    project = Project(tmp_path / "project")
    project.machine.clock = clock
    project.apply(entities=[req("A")])
    store_of(project, "first", "B")
    branches.collect(project.workspace())
    clock.days = 50
    store_of(project, "second", "C")
    branches.collect(project.workspace())
    yield project, clock
    project.close()


def in_trash(project: Project) -> list[str]:
    return [one.branch for one in branches.held(project.workspace(), max_proven=0)]


def test_the_trash_is_emptied_of_what_came_there_long_ago(later: tuple[Project, LaterClock]) -> None:
    project, clock = later
    assert branches.empty(project.workspace()).deleted == ()
    clock.days = 91
    tried = branches.empty(project.workspace(), dry_run=True)
    assert ([one.branch for one in tried.deleted], tried.left, in_trash(project)) == (["first"], 1, ["second", "first"])
    done = branches.empty(project.workspace())
    assert ([(one.branch, one.seq) for one in done.deleted], done.left) == ([("first", 2)], 1)
    assert in_trash(project) == ["second"]
    assert not list(stores_at(project.root).glob(".tmp-*"))
    assert branches.empty(project.workspace(), older_than_days=0).left == 0
    # Nothing is missed afterwards, and the name can be used again.
    assert losses(project.workspace()) == []
    store_of(project, "first", "D", keeps=True)
    assert losses(project.workspace()) == []


def test_a_replaced_store_that_was_deleted_is_not_missed(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "topic", "B", keeps=True)
    branches.copy_from(project.workspace(), "topic", "main", replaces=True)
    assert len(branches.empty(project.workspace(), older_than_days=0).deleted) == 1
    assert losses(project.workspace()) == []
    project.apply(branch="topic", entities=[req("C")])


def test_a_store_that_may_have_missing_records_stays_in_the_trash(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "topic", "B", keeps=True)
    branches.copy_from(project.workspace(), "topic", "main", replaces=True)
    project.apply(branch="topic", entities=[req("C")])
    project.close()
    shutil.rmtree(stores_at(project.root) / "topic")
    other = Project(project.root, is_new=False)
    done = branches.empty(other.workspace(), older_than_days=0)
    assert ([one.branch for one in done.kept], done.deleted, done.left) == (["topic"], (), 1)
    other.close()


def test_the_trash_is_proven_when_that_is_asked_for(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_of(project, "sound", "B")
    store_of(project, "bad", "C")
    branches.collect(project.workspace())
    assert [one.damage for one in branches.held(project.workspace(), max_proven=0)] == [None, None]
    found = {one.branch: one for one in branches.held(project.workspace(), max_proven=sys.maxsize)}
    segment = next(found["bad"].entry.path.glob("journal-*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b"Title of C", b"Title of X"))
    found = {one.branch: one for one in branches.held(project.workspace(), max_proven=sys.maxsize)}
    assert found["sound"].damage == ""
    assert found["bad"].damage


class Undeletable(NoSyncFs):
    """Deletes no file of a journal while it is set not to."""

    refuses = False

    def unlink(self, path: Path) -> None:
        if self.refuses and path.name.startswith("journal-"):
            raise PermissionError(errno.EACCES, "no", str(path))
        super().unlink(path)


def test_a_store_that_is_deleted_half_is_no_store_in_the_trash_and_is_cleared_by_gc(tmp_path: Path) -> None:
    fs = Undeletable()
    project = Project(tmp_path / "project", fs=fs)
    project.apply(entities=[req("A")])
    store_of(project, "gone", "B")
    branches.collect(project.workspace())
    fs.refuses = True
    with pytest.raises(KBError, match="cannot delete"):
        branches.empty(project.workspace(), older_than_days=0)
    fs.refuses = False
    assert (in_trash(project), losses(project.workspace())) == ([], [])
    branches.collect(project.workspace())
    assert not list(stores_at(project.root).glob(".tmp-*"))
    project.close()
