"""A branch that git deleted and made again does not get the facts of the earlier branch of its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.storage import gitref, layout
from kbcore.store import branches
from kbcore.store.branches import lost
from tests.core.store.branches.making import first_use, req, trashed
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git, git_env


def facts(project: Project, branch: str | None = None) -> set[str]:
    return {key for (key,) in project.view(branch).rows("select id from node")}


def at(day: int) -> dict[str, str]:
    """Return the environment of a git that believes that it is this day: a reflog has whole seconds only."""
    return git_env({"GIT_COMMITTER_DATE": f"2026-01-{day:02} 10:00:00 +0000"})


def run_at(day: int, project: Project, *words: str) -> None:
    git(project.root, *words, env=at(day))


@pytest.fixture
def topic(project: Project) -> Project:
    """A project on main. Branch topic was made on the first of the month and has a fact of its own."""
    project.apply(entities=[req("A")])
    run_at(1, project, "branch", "topic")
    project.apply(branch="topic", entities=[req("OLD")])
    return project


def make_again(project: Project) -> None:
    run_at(2, project, "branch", "-D", "topic")
    run_at(3, project, "branch", "topic")


def test_a_branch_made_again_gets_a_new_store_and_the_old_one_is_in_the_trash(topic: Project) -> None:
    make_again(topic)
    used = first_use(topic, "topic")
    assert (used.is_new, used.copied_from, used.is_doubted) == (True, "main", False)
    assert used.notice.startswith("git deleted topic and made it again since its store was last used")
    assert "`kb branch restore topic`" in used.notice
    assert (facts(topic, "topic"), trashed(topic)) == ({"A"}, ["topic"])
    assert first_use(topic, "topic") == branches.Ensured("topic", is_new=False)
    assert lost.losses(topic.workspace()) == []


def test_a_request_that_only_reads_answers_from_the_origin_and_moves_nothing(topic: Project) -> None:
    make_again(topic)
    for _ in range(2):
        workspace = topic.workspace()
        store, choice, used = branches.open_to_read(workspace, "topic")
        assert (choice.branch, workspace.answering("topic"), trashed(topic)) == ("topic", "main", [])
        assert (used.is_new, used.is_warning) == (False, True)
        assert {key for (key,) in store.read(lambda view: view.rows("select id from node"))} == {"A"}
        assert used.notice.startswith("git deleted topic and made it again since its store was last used: this is main")
    assert first_use(topic, "topic").is_new
    assert branches.open_to_read(topic.workspace(), "topic")[1:] == (
        branches.Choice("topic", follows_head=False),
        branches.Ensured("topic", is_new=False),
    )


def test_where_there_is_no_origin_a_request_that_only_reads_answers_from_the_earlier_store(project: Project) -> None:
    run_at(1, project, "branch", "topic")
    project.apply(branch="topic", entities=[req("OLD")])
    make_again(project)
    store, choice, used = branches.open_to_read(project.workspace(), "topic")
    assert (choice.branch, used.is_warning, trashed(project)) == ("topic", True, [])
    assert store.read(lambda view: view.rows("select id from node")) == [("OLD",)]
    assert "this is the store of the earlier branch" in used.notice


def test_the_restored_store_of_the_earlier_branch_stays(topic: Project) -> None:
    make_again(topic)
    first_use(topic, "topic")
    branches.restore(topic.workspace(), "topic")
    assert first_use(topic, "topic") == branches.Ensured("topic", is_new=False)
    assert facts(topic, "topic") == {"A", "OLD"}
    topic.apply(branch="topic", entities=[req("MORE")])
    assert lost.losses(topic.workspace()) == []


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "act",
    [
        lambda project: run_at(2, project, "branch", "-f", "topic", "HEAD~1"),
        lambda project: run_at(2, project, "update-ref", "refs/heads/topic", "HEAD~1"),
        lambda project: run_at(2, project, "checkout", "-q", "-B", "topic", "HEAD~1"),
        lambda project: run_at(2, project, "fetch", "-q", ".", "+main:topic"),
        lambda project: run_at(2, project, "pack-refs", "--all", "--prune"),
        lambda project: run_at(2, project, "reflog", "expire", "--expire=all", "--all"),
        lambda project: (
            run_at(2, project, "branch", "-m", "topic", "x"),
            run_at(2, project, "branch", "-m", "x", "topic"),
        ),
        lambda project: (stores_at(project.root) / "topic" / "git-ref.json").write_bytes(b'{"format":1,"birth":"'),
    ],
)
def test_nothing_is_said_where_the_branch_lived_on(topic: Project, act: Callable[[Project], object]) -> None:
    for number in range(2):
        commit_files(topic.root, {"a.txt": str(number)})
    act(topic)
    assert first_use(topic, "topic") == branches.Ensured("topic", is_new=False)
    assert "OLD" in facts(topic, "topic")


@pytest.mark.parametrize("logs", ["logs/refs/heads/topic", "logs"])
def test_a_branch_without_the_reflog_that_its_store_has_seen_is_in_doubt(topic: Project, logs: str) -> None:
    place = topic.root / ".git" / logs
    place.unlink() if place.is_file() else shutil.rmtree(place)
    assert first_use(topic, "topic").is_doubted
    assert facts(topic, "topic") == {"A", "OLD"}


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "act",
    [
        # The reflog ends with its branch, and begins with another line than that of `git branch`.
        lambda project: run_at(3, project, "update-ref", "refs/heads/topic", "HEAD"),
        lambda project: run_at(3, project, "fetch", "-q", ".", "HEAD:topic"),
        lambda project: (run_at(3, project, "branch", "other"), run_at(4, project, "branch", "-c", "other", "topic")),
        lambda project: (run_at(3, project, "branch", "other"), run_at(4, project, "branch", "-m", "other", "topic")),
    ],
)
def test_without_proof_it_is_said_until_a_person_settles_it(topic: Project, act: Callable[[Project], object]) -> None:
    run_at(2, topic, "branch", "-D", "topic")
    act(topic)
    for _ in range(2):
        used = first_use(topic, "topic")
        assert (used.is_new, used.is_doubted, used.is_warning) == (False, True, True)
        assert "`kb branch ensure topic --keep`" in used.notice
        assert facts(topic, "topic") == {"A", "OLD"}
    branches.keep(topic.workspace(), "topic")
    assert first_use(topic, "topic") == branches.Ensured("topic", is_new=False)


def test_a_store_of_an_earlier_release_that_is_older_than_its_branch_is_doubted_until_it_is_settled(
    topic: Project,
) -> None:
    (stores_at(topic.root) / "topic" / "git-ref.json").unlink()
    git(topic.root, "branch", "-D", "topic")
    git(topic.root, "branch", "topic", env=git_env({"GIT_COMMITTER_DATE": "2099-01-01 10:00:00 +0000"}))
    # A record that is written meanwhile does not settle it.
    topic.apply(branch="topic", entities=[req("MORE")])
    used = first_use(topic, "topic")
    assert used.is_doubted
    assert "`kb branch ensure topic --from main --replace`" in used.notice
    branches.copy_from(topic.workspace(), "topic", "main", replaces=True)
    assert first_use(topic, "topic") == branches.Ensured("topic", is_new=False)
    assert (facts(topic, "topic"), trashed(topic)) == ({"A"}, ["topic"])


def test_a_store_of_an_earlier_release_that_was_used_after_its_branch_was_made_is_not_doubted(topic: Project) -> None:
    note = stores_at(topic.root) / "topic" / "git-ref.json"
    note.unlink()
    assert first_use(topic, "topic") == branches.Ensured("topic", is_new=False)
    assert gitref.read(topic.machine.fs, note.parent)


def test_a_branch_that_had_a_store_before_its_first_commit_keeps_it(project: Project) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "switch", "-q", "--orphan", "fresh")
    project.apply(entities=[req("MINE")])
    commit_files(project.root, {"a.txt": "a"})
    assert first_use(project) == branches.Ensured("fresh", is_new=False)
    assert "MINE" in facts(project)


def test_the_store_of_the_default_branch_stays_whatever_git_did(topic: Project) -> None:
    git(topic.root, "switch", "-q", "topic")
    run_at(4, topic, "branch", "-D", "main")
    run_at(5, topic, "branch", "main")
    assert first_use(topic, "main") == branches.Ensured("main", is_new=False)
    assert facts(topic, "main") == {"A"}


def test_where_the_default_branch_has_no_store_the_new_one_begins_empty(project: Project) -> None:
    run_at(1, project, "branch", "topic")
    project.apply(branch="topic", entities=[req("OLD")])
    make_again(project)
    used = first_use(project, "topic")
    assert (used.is_new, used.copied_from, trashed(project)) == (True, "", ["topic"])
    assert facts(project, "topic") == set()
    assert lost.losses(project.workspace()) == []


def test_a_store_that_vanishes_after_its_branch_was_made_again_is_missed(topic: Project) -> None:
    make_again(topic)
    topic.apply(branch="topic", entities=[req("NEW")])
    topic.close()
    shutil.rmtree(stores_at(topic.root) / "topic")
    (loss,) = lost.losses(Project(topic.root, is_new=False).workspace())
    assert (loss.branch, loss.kind) == ("topic", "gone")


def test_a_store_with_missing_records_is_not_put_away(topic: Project) -> None:
    topic.close()
    store = stores_at(topic.root) / "topic"
    saved = Path(shutil.copytree(store, topic.root.parent / "saved"))
    topic.apply(branch="topic", entities=[req("LATER")])
    topic.close()
    shutil.rmtree(store)
    shutil.copytree(saved, store)
    make_again(topic)
    other = Project(topic.root, is_new=False)
    with pytest.raises(Exception, match="went back to an earlier state"):
        first_use(other, "topic")
    assert trashed(other) == []


class Overtaken(NoSyncFs):
    """Lets another writer note something else in the middle of the first note that is written."""

    def __init__(self, directory: Path, other: gitref.RefSeen) -> None:
        super().__init__()
        self.directory, self.other = directory, [other]

    def write(self, fd: int, data: bytes | memoryview) -> int:
        done = super().write(fd, data[:40])
        if self.other:
            gitref.write(self, self.directory, self.other.pop())
        return done


def test_two_that_note_at_once_leave_one_whole_note(tmp_path: Path) -> None:
    first, other = (gitref.RefSeen(gitref.FORMAT, mark * 64, had_ref=True) for mark in "ab")
    fs = Overtaken(tmp_path, other)
    gitref.write(fs, tmp_path, first)
    assert gitref.read(fs, tmp_path) == first
    assert [path.name for path in tmp_path.iterdir()] == ["git-ref.json"]
    assert layout.kind_of(layout.own_tmp_path(tmp_path / layout.GIT_REF).name) == "unfinished"
