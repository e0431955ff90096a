"""A sync beside git: what git is in the middle of changing is not taken in under the wrong branch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbcore.errors import BranchMoved, NotARepository
from kbcore.store.pool import Machine
from kbcore.store.workspace import open_workspace
from kbcore.sync.checkout import WAIT_S, settled
from tests.support.disk.faultfs import NoSyncFs
from tests.support.processes.cli import environment, program
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import Project, req
from tests.support.repository.repos import add_worktree, commit_files, git, git_env

REQS = "docs/requirements"


class AtCommit(NoSyncFs):
    """Lets something happen after the files were read and before what they say is committed, once."""

    def __init__(self) -> None:
        super().__init__()
        self.happening: Callable[[], None] | None = None

    def flock(self, fd: int, operation: int) -> None:
        happening, self.happening = self.happening, None
        if happening:
            happening()
        super().flock(fd, operation)


class StandingClock(PatientClock):
    """A patient clock whose time of day goes on by waiting alone, once it is set: a slow machine makes nothing old."""

    def __init__(self) -> None:
        super().__init__()
        self.since_ns = 0

    def epoch_ns(self) -> int:
        return self.since_ns + int(sum(self.waits_s) * 1e9) if self.since_ns else super().epoch_ns()


class Beside(Project):
    """A project with a branch `feature` in git, whose state git can be stopped in by files."""

    def __init__(self, root: Path) -> None:
        self.at_commit = AtCommit()
        super().__init__(root, fs=self.at_commit)
        self.clock = StandingClock()
        self.machine = Machine(self.at_commit, self.clock, git_env())
        self.git_dir = root / ".git"
        commit_files(root, {f"{REQS}/1.md": req("REQ-1")})
        git(root, "branch", "feature")
        self.sync()
        self.age("index", 10)
        self.clock.waits_s.clear()

    def age(self, name: str, seconds: float) -> None:
        """Let a file of git's be that old."""
        path = self.git_dir / name
        then = path.stat().st_mtime_ns - int(seconds * 1e9)
        os.utime(path, ns=(then, then))

    def write_index(self) -> None:
        """Write the index again, as git does: next to it, then renamed over it. For the clock that is now."""
        (self.git_dir / "index.lock").write_bytes((self.git_dir / "index").read_bytes())
        (self.git_dir / "index.lock").rename(self.git_dir / "index")
        self.clock.since_ns = (self.git_dir / "index").stat().st_mtime_ns - int(sum(self.clock.waits_s) * 1e9)

    def move_head(self, branch: str = "feature") -> None:
        (self.git_dir / "HEAD.lock").write_text(f"ref: refs/heads/{branch}\n")
        (self.git_dir / "HEAD.lock").rename(self.git_dir / "HEAD")


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    made = Beside(tmp_path / "a project")
    yield made
    made.close()


def test_files_of_a_switch_that_is_under_way_are_not_taken_in_for_the_branch_that_is_left(beside: Beside) -> None:
    (beside.git_dir / "index.lock").touch()
    beside.write({f"{REQS}/2.md": req("REQ-2")})

    def git_goes_on() -> None:
        (beside.git_dir / "index.lock").unlink(missing_ok=True)
        beside.move_head()

    beside.clock.during = git_goes_on
    with pytest.raises(BranchMoved, match="from main to feature"):
        beside.sync()
    assert "REQ-2" in beside.sync().outcome.created, "and the branch that git went to has them"
    beside.move_head("main")
    assert beside.node("REQ-2") is None


def test_head_that_follows_the_index_a_moment_later_is_waited_for(beside: Beside) -> None:
    beside.write({f"{REQS}/2.md": req("REQ-2")})
    beside.write_index()
    beside.clock.during = beside.move_head
    with pytest.raises(BranchMoved, match="from main to feature"):
        beside.sync()


def test_head_that_has_followed_already_is_not_waited_for(beside: Beside) -> None:
    beside.write_index()
    beside.move_head()
    later = (beside.git_dir / "index").stat().st_mtime_ns + 1_000_000
    os.utime(beside.git_dir / "HEAD", ns=(later, later))
    settled(beside.workspace())
    assert beside.clock.waits_s == [], "a hook after a switch loses no time"


def test_a_lock_of_git_that_stays_refuses_the_sync_and_says_what_to_do(beside: Beside) -> None:
    lock = beside.git_dir / "index.lock"
    lock.touch()
    with pytest.raises(BranchMoved, match=r"index\.lock exists") as refused:
        beside.sync({f"{REQS}/2.md": req("REQ-2")})
    assert (refused.value.retryable, refused.value.applied) == (True, "no")
    assert str(lock) in refused.value.hint
    # What a busy machine takes between two looks is part of the wait.
    assert WAIT_S / 2 < sum(beside.clock.waits_s) < WAIT_S + 0.1
    lock.unlink()
    assert beside.sync().outcome.created == ("REQ-2",)


def test_a_worktree_that_is_moved_while_its_files_are_read_is_not_taken_for_one_whose_files_are_deleted(
    beside: Beside,
) -> None:
    linked = add_worktree(beside.root, beside.root.parent / "linked", "other")
    workspace = open_workspace(linked, beside.machine, beside.pool)
    checkout = settled(workspace)
    checkout.guard()
    git(beside.root, "worktree", "move", linked, beside.root.parent / "elsewhere")
    for look in (checkout.guard, lambda: settled(workspace)):
        with pytest.raises(NotARepository, match=f"moved: {linked}"):
            look()


def test_a_switch_that_begins_while_files_are_read_starts_the_sync_over(beside: Beside) -> None:
    lock = beside.git_dir / "index.lock"
    beside.at_commit.happening = lock.touch
    beside.clock.during = lambda: lock.unlink(missing_ok=True)
    assert beside.sync({f"{REQS}/2.md": req("REQ-2")}).outcome.created == ("REQ-2",)
    assert beside.clock.waits_s, "it waited for git, then read the files again"


def test_a_switch_whose_head_is_still_to_move_starts_the_sync_over(beside: Beside) -> None:
    beside.at_commit.happening = beside.write_index
    beside.clock.during = beside.move_head
    with pytest.raises(BranchMoved, match="from main to feature"):
        beside.sync({f"{REQS}/2.md": req("REQ-2")})
    beside.move_head("main")
    assert beside.node("REQ-2") is None


def test_a_switch_there_and_back_starts_the_sync_over(beside: Beside) -> None:
    def there_and_back() -> None:
        for branch in ("feature", "main"):
            beside.write_index()
            beside.move_head(branch)
        beside.write({f"{REQS}/2.md": None})

    beside.at_commit.happening = there_and_back
    answer = beside.sync({f"{REQS}/2.md": req("REQ-2")})
    assert answer.outcome.created == (), "what the other branch had in between is not taken in"


def test_a_git_that_never_rests_is_reported_in_the_end(beside: Beside) -> None:
    def switch() -> None:
        beside.move_head()
        beside.move_head("main")
        beside.at_commit.happening = switch

    beside.at_commit.happening = switch
    with pytest.raises(BranchMoved, match="while its files were read"):
        beside.sync({f"{REQS}/2.md": req("REQ-2")})


def test_adding_to_the_index_meanwhile_does_not_disturb_a_sync(beside: Beside) -> None:
    beside.at_commit.happening = beside.write_index
    beside.age("HEAD", 60)
    assert beside.sync({f"{REQS}/2.md": req("REQ-2")}).outcome.created == ("REQ-2",)
    assert len(beside.clock.waits_s) == 1


def test_an_index_that_git_wrote_since_is_not_taken_for_the_one_that_was_seen(beside: Beside) -> None:
    seen = settled(beside.workspace())
    assert seen.index_sum()
    beside.write({"new.txt": "new"})
    git(beside.root, "add", "new.txt")
    assert not seen.index_sum()
    assert settled(beside.workspace()).index_sum()


def test_a_hook_that_git_runs_while_it_holds_the_index_is_not_refused(beside: Beside) -> None:
    (beside.git_dir / "index.lock").touch()
    beside.machine = Machine(beside.at_commit, beside.clock, git_env({"GIT_INDEX_FILE": ".git/index.lock"}))
    assert beside.sync({f"{REQS}/2.md": req("REQ-2")}).outcome.created == ("REQ-2",)


def test_a_pre_commit_hook_syncs_while_git_commits(tmp_path: Path) -> None:
    project = Project(tmp_path / "a project")
    commit_files(project.root, {f"{REQS}/1.md": req("REQ-1")})
    hook = project.root / ".git/hooks/pre-commit"
    kb = " ".join(f"'{word}'" for word in program())
    hook.write_text(f"#!/bin/sh\ntest -e .git/index.lock || exit 9\nexec {kb} sync\n")
    hook.chmod(0o755)
    project.write({f"{REQS}/1.md": req("REQ-1", status="done")})
    git(project.root, "commit", "--quiet", "-a", "-m", "change", env=environment())
    assert project.node("REQ-1").fields["status"] == "done"
    project.close()


MOVED = '{"extractors": {"markdown": {"paths": {"req": ["reqs/*.md"]}}}}'


def pull_that_moves_the_documents(beside: Beside) -> None:
    """Do what a pull does that moves a folder and the setting that names it."""
    old = beside.root / REQS / "1.md"
    if old.exists():
        beside.write({"reqs/1.md": old.read_bytes(), ".kb/config.json": MOVED, f"{REQS}/1.md": None})


def test_settings_that_git_brought_while_it_was_waited_for_are_those_that_count(beside: Beside) -> None:
    (beside.git_dir / "index.lock").touch()

    def git_goes_on() -> None:
        pull_that_moves_the_documents(beside)
        (beside.git_dir / "index.lock").unlink(missing_ok=True)

    beside.clock.during = git_goes_on
    answer = beside.sync()
    assert (answer.outcome.deleted, answer.outcome.updated) == ((), ("REQ-1",))


def test_settings_that_came_with_another_commit_count_when_the_sync_starts_over(beside: Beside) -> None:
    def git_moves() -> None:
        pull_that_moves_the_documents(beside)
        git(beside.root, "commit", "--quiet", "--allow-empty", "-m", "pulled")
        beside.move_head("main")
        beside.age("index", 10)

    beside.write({f"{REQS}/2.md": req("REQ-2")})
    beside.at_commit.happening = git_moves
    answer = beside.sync()
    assert answer.outcome.deleted == ()
    assert beside.node("REQ-1").path == "reqs/1.md"
