"""A branch that git renamed keeps its facts; where git does not say so, a person can."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.errors import BranchMoved, InvalidQuery, KBError, UnknownBranch
from kbcore.model.record import PutNode
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.folders import REPOSITORY_LOCK
from kbcore.store.write_request import Request
from tests.core.store.branches.making import first_use, req, trashed
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import commit_files, git, git_env, start_conflicting_rebase
from tests.support.repository.stores import planner


@pytest.fixture
def topic(project: Project) -> Project:
    """A project on branch topic, which has a fact of its own."""
    project.apply(entities=[req("A")])
    project.switch("topic", create=True)
    project.apply(entities=[req("MINE")], changeset_id="mine")
    return project


def test_a_renamed_branch_takes_its_facts_and_their_history_along(topic: Project) -> None:
    git(topic.root, "branch", "-m", "topic", "feature/better")
    used = first_use(topic)
    assert (used.branch, used.is_new, used.copied_from) == ("feature/better", True, "topic")
    assert "topic" in used.notice
    assert (topic.node("MINE").id, topic.seq()) == ("MINE", 2)
    assert topic.apply(entities=[req("MINE")], changeset_id="mine").duplicate
    origin = branches.listing(topic.workspace())[0].origin
    assert (origin["branch"], origin["seq"]) == ("topic", 2)
    assert trashed(topic) == ["topic"]
    assert branches.collect(topic.workspace()).removed == ()


def test_a_branch_that_was_renamed_several_times_between_two_uses_is_found(topic: Project) -> None:
    for old, new in (("topic", "b"), ("b", "c/d"), ("c/d", "e")):
        git(topic.root, "branch", "-m", old, new)
    assert first_use(topic).copied_from == "topic"
    assert topic.node("MINE")


def test_a_branch_that_was_renamed_there_and_back_has_what_was_written_meanwhile(topic: Project) -> None:
    git(topic.root, "branch", "-m", "topic", "other")
    topic.apply(entities=[req("MEANWHILE")])
    git(topic.root, "branch", "-m", "other", "topic")
    assert topic.node("MEANWHILE")
    assert topic.seq() == 3


@pytest.mark.parametrize("first", ["new", "topic"])
def test_a_renamed_branch_keeps_its_store_where_git_made_its_former_name_again(topic: Project, first: str) -> None:
    git(topic.root, "branch", "-m", "topic", "new")
    git(topic.root, "branch", "topic", env=git_env({"GIT_COMMITTER_DATE": "2099-01-01 10:00:00 +0000"}))
    suspected = branches.suspicion(topic.workspace(), "topic")
    assert suspected is not None
    assert "git renamed topic to new" in suspected.message
    used = branches.open_branch(topic.workspace(), first)[2]
    assert "git renamed topic to new" in used.notice
    if first == "topic":
        assert used.notice.endswith("has that name now. topic has a new store, copied from main.")
    assert topic.view("new").nodes(["MINE"])
    assert not topic.view("topic").nodes(["MINE"])
    assert trashed(topic) == ["topic"]
    assert lost.losses(topic.workspace()) == []


def test_without_proof_a_former_name_keeps_its_store_and_the_notice_says_what_to_do(topic: Project) -> None:
    (stores_at(topic.root) / "topic" / "git-ref.json").unlink()
    git(topic.root, "branch", "-m", "topic", "new")
    git(topic.root, "branch", "topic")
    used = first_use(topic)
    assert used.copied_from == "main"
    assert "`kb branch ensure new --from topic --replace`" in used.notice
    assert topic.view("topic").nodes(["MINE"])
    assert topic.node("MINE") is None
    branches.copy_from(topic.workspace(), "new", "topic", replaces=True)
    assert topic.node("MINE")
    assert trashed(topic) == ["new"]


def test_gc_before_the_first_use_of_the_new_name_keeps_the_old_store(topic: Project) -> None:
    git(topic.root, "branch", "-m", "topic", "new")
    assert branches.collect(topic.workspace()).removed == ()
    assert first_use(topic).copied_from == "topic"


def test_a_branch_made_from_another_begins_with_the_default_branch(topic: Project) -> None:
    topic.switch("derived", create=True)
    assert first_use(topic).copied_from == "main"
    assert topic.node("MINE") is None


@pytest.mark.sliced(2)
@pytest.mark.parametrize("is_used", [True, False], ids=["used since", "not used since"])
@pytest.mark.parametrize("configured", ["main", "trunk", None])
def test_new_branches_come_from_the_default_branch_under_whatever_name_it_goes(
    project: Project, configured: str | None, is_used: bool
) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "branch", "-m", "main", "trunk")
    project.write({".kb/config.json": f'{{"defaultBranch": "{configured}"}}' if configured else "{}"})
    if is_used:
        assert project.node("A")
    project.switch("topic", create=True)
    assert first_use(project).copied_from == ("trunk" if is_used else "main")
    assert project.node("A")


def test_without_a_reflog_a_person_says_whose_store_it_is(topic: Project) -> None:
    git(topic.root, "branch", "-m", "topic", "new")
    shutil.rmtree(topic.root / ".git/logs")
    branches.copy_from(topic.workspace(), "new", "topic")
    assert topic.node("MINE")
    with pytest.raises(InvalidQuery, match="has a store already"):
        branches.copy_from(topic.workspace(), "new", "main")
    with pytest.raises(UnknownBranch) as refused:
        branches.copy_from(topic.workspace(), "new", "mian", replaces=True)
    assert "'main'" in refused.value.hint
    with pytest.raises(InvalidQuery):
        branches.copy_from(topic.workspace(), "new", "new", replaces=True)


def test_a_copy_of_a_store_in_the_trash_can_be_had_under_another_name(topic: Project) -> None:
    commit_files(topic.root, {"a.txt": "a"})
    topic.switch("main")
    git(topic.root, "branch", "-D", "topic")
    assert branches.collect(topic.workspace()).removed == ("topic",)
    git(topic.root, "branch", "again")
    branches.copy_from(topic.workspace(), "again", "topic")
    assert topic.view("again").nodes(["MINE"])


def test_a_replacement_that_fails_leaves_the_store_that_was_there(topic: Project) -> None:
    journal = next((stores_at(topic.root) / "main").glob("journal-*.jsonl"))
    journal.write_bytes(b"")
    with pytest.raises(KBError):
        branches.copy_from(topic.workspace(), "topic", "main", replaces=True)
    assert topic.node("MINE")
    assert trashed(topic) == []


def test_a_branch_without_anything_to_begin_with_names_the_stores_there_are(project: Project) -> None:
    git(project.root, "symbolic-ref", "HEAD", "refs/heads/master")
    project.apply(entities=[req("A")])
    git(project.root, "symbolic-ref", "HEAD", "refs/heads/main")
    used = first_use(project)
    assert "master" in used.notice
    assert "--from" in used.notice


def test_a_commit_under_way_while_its_branch_is_renamed_is_in_the_store_of_the_new_name(topic: Project) -> None:
    other = Project(topic.root, is_new=False)
    done: list[branches.Ensured] = []
    user = threading.Thread(target=lambda: done.append(first_use(other)))
    store = topic.workspace().store("topic")
    really = planner([PutNode(id="LATE", base=0, set={"type": "req", "title": "Late"})])

    def plan(view, stamp):
        git(topic.root, "branch", "-m", "topic", "new")
        user.start()
        user.join(0.05)
        assert not done, "the copy waits for the commit"
        return really(view, stamp)

    assert store.commit(AUTHOR, Request(), plan, branch="topic").applied
    user.join(10)
    assert done[0].copied_from == "topic"
    assert topic.node("LATE")
    other.close()


def test_a_commit_that_comes_after_the_rename_finds_the_branch_moved_and_writes_nothing(topic: Project) -> None:
    workspace = topic.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    guard = workspace.guard(choice.branch)

    def plan(view, stamp):
        git(topic.root, "branch", "-m", "topic", "new")
        return planner([PutNode(id="LATE", base=0, set={"type": "req", "title": "Late"})])(view, stamp)

    with pytest.raises(BranchMoved):
        store.commit(AUTHOR, Request(), plan, guard=guard, branch="topic")
    assert topic.node("LATE") is None
    with pytest.raises(BranchMoved):
        store.commit(AUTHOR, Request(), plan, guard=guard, branch="topic")


class Waiting(NoSyncFs):
    """Runs something once, when the lock of the repository is about to be taken."""

    act: Callable[[], object] | None = None

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == REPOSITORY_LOCK and self.act is not None:
            act, self.act = self.act, None
            act()
        return super().open(path, flags, mode)


@pytest.mark.parametrize("named", [None, "old"])
def test_a_first_use_that_waited_while_its_branch_was_renamed_makes_no_store_of_the_old_name(
    project: Project, named: str | None
) -> None:
    project.apply(entities=[req("A")])
    project.switch("old", create=True)
    fs = Waiting()
    late = Project(project.root, fs=fs, is_new=False)

    def rename() -> None:
        git(project.root, "branch", "-m", "old", "new")
        assert first_use(project).branch == "new"

    fs.act = rename
    with pytest.raises(UnknownBranch if named else BranchMoved) as refused:
        branches.open_branch(late.workspace(), named)
    assert "old" in refused.value.message
    assert [name for name, _ in branches.stores(project.workspace())] == ["main", "new"]
    late.close()


def test_a_branch_that_was_deleted_while_its_first_use_waited_gets_no_store(project: Project) -> None:
    fs = Waiting()
    late = Project(project.root, fs=fs, is_new=False)
    git(project.root, "branch", "short")
    fs.act = lambda: git(project.root, "branch", "-D", "short")
    with pytest.raises(UnknownBranch, match="any more"):
        branches.open_branch(late.workspace(), "short")
    git(project.root, "switch", "-q", "--detach")
    assert branches.open_branch(late.workspace(), None)[2].is_new
    late.close()


def test_a_store_that_a_forced_rename_left_over_is_reported_on_use_until_somebody_decides(topic: Project) -> None:
    git(topic.root, "branch", "-M", "topic", "main")
    for _ in range(2):
        notice = first_use(topic).notice
        assert "git renamed topic to main, which had a store already" in notice
        assert "`kb branch ensure main --from topic --replace`" in notice
    dry = branches.collect(topic.workspace(), dry_run=True)
    assert [(one.name, one.records, one.renamed_to) for one in dry.trash] == [("topic", 1, "main")]
    branches.copy_from(topic.workspace(), "main", "topic", replaces=True)
    assert topic.node("MINE")
    assert first_use(topic).notice == ""
    done = branches.collect(topic.workspace())
    assert [(one.name, one.records, one.renamed_to) for one in done.trash] == [("topic", 0, "")]


def test_a_former_name_that_is_in_use_again_is_no_store_left_over(topic: Project) -> None:
    git(topic.root, "branch", "-M", "topic", "main")
    git(topic.root, "branch", "topic")
    assert first_use(topic).notice == ""


def test_a_former_name_whose_store_went_along_is_no_store_left_over(topic: Project) -> None:
    git(topic.root, "branch", "-m", "topic", "new")
    first_use(topic)
    git(topic.root, "branch", "topic")
    first_use(topic, "topic")
    git(topic.root, "branch", "-D", "topic")
    assert first_use(topic).notice == ""


def test_a_branch_that_git_is_rebasing_is_listed_as_one_of_git(tmp_path: Path) -> None:
    project = Project(tmp_path / "rebase")
    start_conflicting_rebase(project.root, branch="topic")
    project.apply(entities=[req("A")])
    git(project.root, "update-ref", "-d", "refs/heads/topic")
    listed = {one.name: (one.current, one.exists_in_git) for one in branches.listing(project.workspace())}
    assert listed["topic"] == (True, True)
    assert branches.collect(project.workspace(), dry_run=True).removed == ()
    project.close()
