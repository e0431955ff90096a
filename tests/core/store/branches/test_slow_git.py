"""Git is never started while a store is locked, also where only git can say which branches there are.

The git that runs the tests may be too old to keep refs as reftable. So the repository looks as if it did, and a
stand-in passes each question on to a second git directory, which has the refs as files.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbcore.errors import BranchMoved, GitUnusable
from kbcore.store import branches
from kbcore.store.pool import Machine
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git, git_env

STAND_IN = """#!/bin/sh
for lock in '{stores}'/*/lock '{stores}'/.aside-*/lock; do
    [ ! -e "$lock" ] || flock -n "$lock" true || echo "$*" >> '{calls}.held'
done
echo "$*" >> '{calls}'
exec {git} --git-dir='{real}' --work-tree='{root}' "$@"
"""


class Meanwhile(NoSyncFs):
    """Does something each time just before the lock of a store is opened, or after a store was set aside."""

    before_lock: Callable[[], object] | None = None
    after_move: Callable[[], object] | None = None

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == "lock" and path.parent.parent.name == "branches" and self.before_lock:
            self.before_lock()
        return super().open(path, flags, mode)

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        super().replace(source, target, is_private=is_private)
        if target.name.startswith(".aside-") and self.after_move:
            self.after_move()


class Slow:
    """A project in such a repository, and what its git was asked."""

    def __init__(self, folder: Path) -> None:
        self.fs = Meanwhile()
        self.root, self.real, self.calls = folder / "project", folder / "real", folder / "calls"
        project = Project(self.root)
        for key, branch in (("A", "main"), ("B", "gone"), ("C", "kept")):
            if branch != "main":
                git(self.root, "branch", branch)
            project.apply(branch=branch, entities=[{"id": key, "type": "req", "title": "T", "status": "open"}])
        git(self.root, "branch", "-D", "gone")
        project.close()
        shutil.copytree(self.root / ".git", self.real, ignore=shutil.ignore_patterns("kb"))
        (self.root / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
        shutil.rmtree(self.root / ".git/refs/heads")
        (self.root / ".git/refs/heads").mkdir()
        (self.root / ".git/packed-refs").unlink(missing_ok=True)
        (self.root / ".git/reftable").mkdir()
        self.change()
        program = folder / "bin/git"
        program.parent.mkdir()
        program.write_text(
            STAND_IN.format(
                stores=stores_at(self.root), calls=self.calls, git=shutil.which("git"), real=self.real, root=self.root
            )
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.project = Project(self.root, fs=self.fs, is_new=False)
        env = {**git_env(), "PATH": f"{program.parent}:/usr/bin:/bin"}
        self.project.machine = Machine(self.fs, self.project.machine.clock, env)

    def change(self, *command: str) -> None:
        """Have git change a ref: it writes a new list of tables."""
        if command:
            git(self.real, *command)
        tables = self.root / ".git/reftable/tables.list"
        new = tables.with_suffix(".new")
        new.write_text("table\n")
        new.rename(tables)

    def held(self) -> str:
        """Return what git was asked while a store was locked."""
        held = self.calls.with_name("calls.held")
        return held.read_text() if held.exists() else ""

    def once(self, *command: str) -> Callable[[], None]:
        """Return what changes a ref the first time that it is called."""
        left = [command]

        def act() -> None:
            if left:
                self.change(*left.pop())

        return act


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    made = Slow(tmp_path)
    yield made
    made.project.close()


@pytest.mark.parametrize("moment", ["", "before_lock", "after_move"])
def test_gc_starts_no_git_while_a_store_is_locked(slow: Slow, moment: str) -> None:
    if moment:
        setattr(slow.fs, moment, slow.once("branch", "unrelated"))
    done = branches.collect(slow.project.workspace())
    assert (done.removed, set(done.kept)) == (("gone",), {"kept", "main"})
    assert "gone" in slow.calls.read_text()
    assert slow.held() == ""


@pytest.mark.parametrize("moment", ["before_lock", "after_move"])
def test_a_branch_that_comes_alive_meanwhile_keeps_its_store(slow: Slow, moment: str) -> None:
    setattr(slow.fs, moment, slow.once("branch", "gone"))
    done = branches.collect(slow.project.workspace())
    assert (done.removed, set(done.kept)) == ((), {"gone", "kept", "main"})
    assert done.reasons["gone"] == "its branch exists again"
    assert (stores_at(slow.root) / "gone/head.json").exists()
    assert slow.held() == ""


def test_refs_that_change_all_the_time_keep_a_store_where_it_is(slow: Slow) -> None:
    slow.fs.before_lock = slow.change
    done = branches.collect(slow.project.workspace())
    assert done.removed == ()
    assert "git keeps changing its refs" in done.reasons["gone"]
    assert slow.held() == ""


def apply(slow: Slow) -> int | None:
    return slow.project.apply(entities=[{"id": "NEW", "type": "req", "title": "T", "status": "open"}]).seq


def test_without_a_list_of_tables_git_is_asked_under_the_lock_what_head_names_and_nothing_else(slow: Slow) -> None:
    (slow.root / ".git/reftable/tables.list").unlink()
    assert apply(slow) == 2
    held = slow.held()
    asked = [{"symbolic-ref", "rev-parse"} & {*line.split()} for line in held.splitlines()]
    assert asked == [{"symbolic-ref"}, {"rev-parse"}]
    assert branches.collect(slow.project.workspace()).removed == ()
    assert slow.held() == held, "gc keeps the stores and asks nothing under the lock"


def test_a_write_starts_no_git_while_its_branch_is_locked(slow: Slow) -> None:
    slow.fs.before_lock = slow.once("branch", "unrelated")
    assert apply(slow) == 2
    assert slow.held() == ""


def test_a_write_to_a_branch_that_is_left_meanwhile_is_refused(slow: Slow) -> None:
    slow.fs.before_lock = slow.once("symbolic-ref", "HEAD", "refs/heads/kept")
    with pytest.raises(BranchMoved):
        apply(slow)
    assert slow.held() == ""


def test_a_write_while_refs_change_all_the_time_is_refused_and_nothing_is_written(slow: Slow) -> None:
    slow.fs.before_lock = slow.change
    with pytest.raises(GitUnusable, match=r"keeps changing its refs\.$"):
        apply(slow)
    slow.fs.before_lock = None
    assert slow.project.seq() == 1
    assert slow.held() == ""


def test_a_sync_starts_no_git_while_its_branch_is_locked(slow: Slow) -> None:
    slow.fs.before_lock = slow.once("branch", "unrelated")
    slow.project.sync({"docs/requirements/1.md": "---\nid: REQ-1\ntitle: T\nstatus: open\n---\n"})
    assert slow.held() == ""
