"""Requests to KB while git is in the middle of renaming a branch; each step of the rename is made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.errors import BranchMoved, GitUnusable, UnknownBranch
from kbcore.store import branches
from kbcore.store.pool import Machine
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import Project, req
from tests.support.repository.repos import add_worktree, git


def entity(key: str) -> dict[str, str]:
    return {"id": key, "type": "req", "title": key, "status": "open"}


class Rename:
    """A rename that was carried out, taken back to one of its steps, and finished while KB waits."""

    def __init__(self, project: Project, old: str, new: str) -> None:
        self.git_dir = project.root / ".git"
        self.old, self.new = old, new
        self.head = (self.git_dir / "HEAD").read_bytes()
        git(project.root, "branch", "-m", old, new)
        self.after = {path: path.read_bytes() for path in (self.git_dir / "HEAD", self._ref(new), self._log(new))}

    def _ref(self, name: str) -> Path:
        return self.git_dir / "refs/heads" / name

    def _log(self, name: str) -> Path:
        return self.git_dir / "logs/refs/heads" / name

    def back_to(self, step: str) -> None:
        """Leave it where HEAD has not followed, where the reflog has moved, or where that is aside and all is old."""
        (self.git_dir / "HEAD").write_bytes(self.head)
        if step == "head":
            return
        commit = self._ref(self.new).read_bytes()
        self._ref(self.new).unlink()
        lines = self._log(self.new).read_bytes().splitlines(keepends=True)
        self._log(self.new).write_bytes(b"".join(lines[:-1]))
        if step == "log":
            return
        self._log(self.new).rename(self.git_dir / "logs/refs/.tmp-renamed-log")
        self._ref(self.old).write_bytes(commit)

    def finish(self) -> None:
        (self.git_dir / "logs/refs/.tmp-renamed-log").unlink(missing_ok=True)
        self._ref(self.old).unlink(missing_ok=True)
        for path, content in self.after.items():
            path.write_bytes(content)


@pytest.fixture
def topic(project: Project) -> Project:
    """A project on a branch that has a fact of its own, and was renamed since: the store has the former name."""
    project.apply(entities=[entity("A")])
    project.switch("topic", create=True)
    project.apply(entities=[entity("MINE")])
    git(project.root, "branch", "-m", "topic", "middle")
    return project


def waiting(project: Project, during: Callable[[], None] | None) -> PatientClock:
    clock = PatientClock(during=during)
    project.machine = Machine(NoSyncFs(), clock, project.machine.env)
    return clock


STEPS = ["aside", "log", "head"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("step", STEPS)
def test_a_first_use_in_the_middle_of_a_rename_waits_and_finds_the_branch_moved(topic: Project, step: str) -> None:
    rename = Rename(topic, "middle", "new")
    rename.back_to(step)
    clock = waiting(topic, rename.finish)
    with pytest.raises(BranchMoved):
        topic.apply(entities=[entity("LATE")])
    assert len(clock.waits_s) == 1
    assert topic.node("MINE"), "the store came along"
    assert {name for name, _ in branches.stores(topic.workspace())} == {"main", "new"}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("step", STEPS)
def test_gc_in_the_middle_of_a_rename_waits_and_keeps_the_store(topic: Project, step: str) -> None:
    rename = Rename(topic, "middle", "new")
    rename.back_to(step)
    waiting(topic, rename.finish)
    assert branches.collect(topic.workspace()).removed == ()
    rename.finish()
    assert topic.node("MINE")


def test_gc_gives_up_when_git_never_gets_done(topic: Project) -> None:
    Rename(topic, "middle", "new").back_to("aside")
    clock = PatientClock()
    clock.epoch_ns = lambda: (topic.root / ".git/logs/refs/.tmp-renamed-log").stat().st_ctime_ns  # type: ignore[method-assign]
    topic.machine = Machine(NoSyncFs(), clock, topic.machine.env)
    with pytest.raises(GitUnusable, match="keeps renaming"):
        branches.collect(topic.workspace())
    assert [name for name, _ in branches.stores(topic.workspace())] == ["main", "topic"]


def test_another_worktree_that_does_not_follow_yet_does_not_keep_the_store_from_the_new_name(topic: Project) -> None:
    other = add_worktree(topic.root, topic.root.parent / "other", "side")
    head = topic.root / ".git/worktrees" / other.name / "HEAD"
    head.write_bytes(b"ref: refs/heads/topic\n")
    _, _, used = branches.open_branch(topic.workspace(), None)
    assert used.copied_from == "topic"
    assert topic.node("MINE")


def test_an_orphan_branch_under_a_name_that_was_given_up_gets_a_store_after_a_while(topic: Project) -> None:
    assert topic.node("MINE")
    git(topic.root, "switch", "--quiet", "--orphan", "topic")
    clock = waiting(topic, None)
    topic.apply(entities=[entity("B")])
    assert set(clock.waits_s) == {0.05}
    assert topic.node("MINE") is None


def test_a_first_use_without_a_rename_waits_for_nothing(topic: Project) -> None:
    clock = waiting(topic, None)
    topic.switch("next", create=True)
    topic.sync({"docs/requirements/a.md": req("NEXT")})
    assert [wait_s for wait_s in clock.waits_s if wait_s == 0.05] == []
    with pytest.raises(UnknownBranch):
        topic.view("nobody")
