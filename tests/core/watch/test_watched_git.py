"""The watcher beside git: switches, merges, rebases and worktrees."""

from __future__ import annotations

import time

import pytest

from kbcore.errors import (
    NotARepository,
)
from kbcore.watch.events import Checked, Synced, Waiting
from tests.core.watch.watching import ONE, REQS
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, document, req
from tests.support.repository.repos import add_worktree, commit_files, git, run_git
from tests.support.repository.watched import Watched


@pytest.mark.sliced
def test_switches_are_followed_also_to_new_branches(watched: Watched) -> None:
    root = watched.root
    git(root, "switch", "--quiet", "-c", "feature")
    reported = watched.until_follows("feature")
    assert reported.answer.outcome.seq == 1
    (root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    commit_files(root, {f"{REQS}/two.md": req("REQ-2"), f"{REQS}/three.md": req("REQ-3")})
    watched.until_there("REQ-2", "REQ-3")
    count = len(watched.events)
    git(root, "switch", "--quiet", "main")
    watched.until_follows("main", since=count)
    assert watched.reader.node("REQ-2") is None
    (root / ONE).write_text(req("REQ-1", title="On main"))
    watched.until_there("REQ-1", title="On main")
    git(root, "stash", "--quiet")
    watched.until_there("REQ-1", title="Title of REQ-1")
    git(root, "stash", "pop", "--quiet")
    watched.until_there("REQ-1", title="On main")
    git(root, "checkout", "--quiet", "--", ".")
    watched.until_there("REQ-1", title="Title of REQ-1")
    count = len(watched.events)
    git(root, "checkout", "--quiet", "--detach", "feature")
    detached = watched.reader.workspace().head().branch
    watched.until_follows(detached, since=count)
    watched.until_there("REQ-3")
    watched.assert_in_step()


@pytest.mark.sliced
def test_merges_and_rebases_are_followed_through_conflicts(watched: Watched) -> None:
    root = watched.root
    git(root, "switch", "--quiet", "-c", "feature")
    watched.until_follows("feature")
    commit_files(root, {ONE: req("REQ-1", title="Theirs"), f"{REQS}/two.md": req("REQ-2")})
    watched.until_there("REQ-2")
    git(root, "switch", "--quiet", "main")
    watched.until(lambda: watched.reader.workspace().head().branch == "main")
    commit_files(root, {f"{REQS}/three.md": req("REQ-3")})
    watched.until_there("REQ-3")
    git(root, "merge", "--quiet", "--no-edit", "feature")
    watched.until_there("REQ-1", title="Theirs")
    watched.until_there("REQ-2")
    git(root, "reset", "--quiet", "--hard", "HEAD^")
    watched.until_gone("REQ-2")
    commit_files(root, {ONE: req("REQ-1", title="Ours")})
    count = len(watched.events)
    git(root, "switch", "--quiet", "feature")
    watched.until_follows("feature", since=count)
    assert run_git(root, "rebase", "main").returncode != 0
    watched.until_there("REQ-3")
    (root / ONE).write_text(req("REQ-1", title="Both"))
    git(root, "add", ONE)
    git(root, "rebase", "--continue")
    watched.until_there("REQ-1", title="Both")
    watched.until_there("REQ-2", "REQ-3")
    assert watched.reader.workspace().head().branch == "feature"
    watched.assert_in_step()


@pytest.mark.sliced
def test_the_steps_of_a_rebase_are_one_record_and_take_nothing_away(watched: Watched) -> None:
    root = watched.root
    git(root, "switch", "--quiet", "-c", "feature")
    watched.until_follows("feature")
    for number in (2, 3, 4):
        commit_files(root, {f"{REQS}/{number}.md": req(f"REQ-{number}")})
    watched.until_there("REQ-2", "REQ-3", "REQ-4")
    count = len(watched.events)
    git(root, "switch", "--quiet", "main")
    watched.until_follows("main", since=count)
    commit_files(root, {f"{REQS}/9.md": req("REQ-9")})
    watched.until_there("REQ-9")
    count = len(watched.events)
    git(root, "switch", "--quiet", "feature")
    watched.until_follows("feature", since=count)
    count = len(watched.of(Synced))
    git(root, "rebase", "--quiet", "--exec", "sleep 0.4", "main")
    watched.until_there("REQ-9")
    watched.assert_in_step()
    assert [(one.answer.outcome.created, one.answer.outcome.deleted) for one in watched.of(Synced)[count:]] == [
        (("REQ-9",), ())
    ]


@pytest.mark.sliced
def test_two_worktrees_have_each_its_watcher_and_its_branch(project: Project) -> None:
    commit_files(project.root, {ONE: req("REQ-1")})
    linked = add_worktree(project.root, project.root.parent / "linked", "feature")
    with Watched(project.root) as main, Watched(linked) as feature:
        (project.root / REQS / "main.md").write_text(req("REQ-MAIN"))
        (linked / REQS / "feature.md").write_text(req("REQ-FEATURE"))
        main.until_there("REQ-MAIN")
        feature.until_there("REQ-FEATURE")
        assert main.reader.node("REQ-FEATURE") is feature.reader.node("REQ-MAIN") is None
        count = len(feature.events)
        git(linked, "switch", "--quiet", "-c", "other")
        feature.until_follows("other", since=count)
        assert {event.branch for event in main.of(Checked)} == {"main"}
        main.assert_in_step()
        feature.assert_in_step()


@pytest.mark.sliced
def test_git_in_the_middle_of_something_is_waited_for(watched: Watched) -> None:
    lock = watched.root / ".git/index.lock"
    lock.write_text("")
    (watched.root / ONE).write_text(req("REQ-1", title="Later"))
    end_s = time.monotonic() + 0.5
    while time.monotonic() < end_s:
        assert watched.reader.node("REQ-1").fields["title"] != "Later"
        time.sleep(0.05)
    lock.unlink()
    watched.until_there("REQ-1", title="Later")
    assert watched.of(Waiting) == []


@pytest.mark.sliced
def test_settings_of_a_linked_worktree_may_come_later(project: Project) -> None:
    commit_files(project.root, {ONE: req("REQ-1")})
    linked = add_worktree(project.root, project.root.parent / "linked", "feature")
    with Watched(linked) as watched:
        assert (stores_at(project.root) / "feature/head.json").exists()
        assert not (linked / ".kb").exists()
        (linked / "specs").mkdir()
        (linked / "specs/s.md").write_text(document("S-1", title="S", status="open"))
        (linked / ".kb").mkdir()
        (linked / ".kb/config.json").write_text('{"extractors": {"markdown": {"paths": {"req": ["specs/*.md"]}}}}')
        watched.until_there("S-1")
        watched.until_gone("REQ-1")
        watched.assert_in_step()


def test_a_worktree_that_is_removed_ends_its_watcher(project: Project) -> None:
    commit_files(project.root, {ONE: req("REQ-1")})
    linked = add_worktree(project.root, project.root.parent / "linked", "feature")
    with Watched(linked) as watched:
        git(project.root, "worktree", "remove", "--force", linked)
        with pytest.raises(NotARepository, match="This worktree was removed"):
            watched.until(lambda: False)
        watched.error = None


def test_a_worktree_that_is_moved_ends_its_watcher_and_none_of_its_files_is_taken_for_deleted(project: Project) -> None:
    commit_files(project.root, {ONE: req("REQ-1")})
    linked = add_worktree(project.root, project.root.parent / "linked", "feature")
    with Watched(linked) as watched:
        git(project.root, "worktree", "move", linked, project.root.parent / "elsewhere")
        with pytest.raises(NotARepository, match=f"removed or moved: {linked}"):
            watched.until(lambda: False)
        watched.error = None
        assert watched.deleted() == []
