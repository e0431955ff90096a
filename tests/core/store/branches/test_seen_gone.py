"""Without reflogs, only what KB itself saw of a branch tells that git deleted it and made it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.maintenance.doctor import diagnose
from kbcore.storage import gitref, lock
from kbcore.storage.gitref import RefSeen
from kbcore.store import branches
from kbcore.store.branches import lost
from tests.core.store.branches.making import first_use, req, trashed
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git, git_env, run_git

SAME = branches.Ensured("topic", is_new=False)


def facts(project: Project, branch: str = "topic") -> set[str]:
    return {key for (key,) in project.view(branch).rows("select id from node")}


def note(project: Project, branch: str = "topic") -> RefSeen:
    found = gitref.read(NoSyncFs(), stores_at(project.root) / branch)
    assert found
    return found


@pytest.fixture
def topic(project: Project) -> Project:
    """A project on main whose git keeps no reflogs. Branch topic has a fact of its own."""
    git(project.root, "config", "core.logAllRefUpdates", "false")
    shutil.rmtree(project.root / ".git/logs")
    project.apply(entities=[req("A")])
    git(project.root, "branch", "topic")
    project.apply(branch="topic", entities=[req("OLD")])
    return project


def look_for_gone(project: Project) -> None:
    branches.note_gone(project.workspace())


LOOKS = {
    "kb branch list": look_for_gone,
    "kb gc --dry-run": lambda project: branches.collect(project.workspace(), dry_run=True),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_branch_that_kb_saw_gone_gets_a_new_store_and_the_old_one_is_in_the_trash(
    topic: Project, look: Callable[[Project], object]
) -> None:
    git(topic.root, "branch", "-D", "topic")
    look(topic)
    assert note(topic).is_gone
    git(topic.root, "branch", "topic")
    used = first_use(topic, "topic")
    assert (used.is_new, used.copied_from, used.is_doubted, used.is_warning) == (True, "main", False, True)
    assert used.notice.startswith("git deleted topic and made it again since its store was last used")
    assert "`kb branch restore topic`" in used.notice
    assert (facts(topic), trashed(topic)) == ({"A"}, ["topic"])
    assert (first_use(topic, "topic"), note(topic).is_gone) == (SAME, False)
    assert lost.losses(topic.workspace()) == []


def test_a_request_that_only_reads_answers_from_the_origin_and_moves_nothing(topic: Project) -> None:
    git(topic.root, "branch", "-D", "topic")
    look_for_gone(topic)
    git(topic.root, "branch", "topic")
    workspace, seen = topic.workspace(), note(topic)
    _, _, used = branches.open_to_read(workspace, "topic")
    assert (workspace.answering("topic"), used.is_warning, trashed(topic)) == ("main", True, [])
    assert note(topic) == seen


def test_what_only_reads_and_the_doctor_note_nothing(topic: Project) -> None:
    git(topic.root, "branch", "-D", "topic")
    branches.listing(topic.workspace())
    diagnose(topic.workspace())
    branches.open_to_read(topic.workspace(), "topic")
    assert not note(topic).is_gone


def test_without_a_look_in_between_nothing_is_known(topic: Project) -> None:
    git(topic.root, "branch", "-D", "topic")
    git(topic.root, "branch", "topic")
    assert first_use(topic, "topic") == SAME
    assert facts(topic) == {"A", "OLD"}


def insist_doubted(project: Project) -> None:
    """Insist that the store stays, and that each use says so until a person settles it."""
    for _ in range(2):
        used = first_use(project, "topic")
        assert (used.is_new, used.is_doubted, used.is_warning) == (False, True, True)
        assert used.notice.startswith("git had no branch topic at a time after its store was last used")
        assert "`kb branch ensure topic --from main --replace`" in used.notice
        project.apply(branch="topic", entities=[req("MORE")])
        assert (facts(project), trashed(project)) == ({"A", "OLD", "MORE"}, [])
        look_for_gone(project)
    branches.keep(project.workspace(), "topic")
    assert (first_use(project, "topic"), note(project).is_gone) == (SAME, False)


@pytest.mark.parametrize("look", [look_for_gone, lambda project: first_use(project, "other")], ids=["list", "use"])
def test_a_branch_that_was_renamed_there_and_back_is_only_doubted(
    topic: Project, look: Callable[[Project], object]
) -> None:
    git(topic.root, "branch", "-m", "topic", "other")
    look(topic)
    look_for_gone(topic)
    git(topic.root, "branch", "-m", "other", "topic")
    insist_doubted(topic)


def test_a_look_after_the_other_name_got_a_store_does_not_settle_the_doubt(topic: Project) -> None:
    git(topic.root, "branch", "-m", "topic", "other")
    branches.copy_from(topic.workspace(), "other", "main")
    look_for_gone(topic)
    assert note(topic).may_be_renamed
    git(topic.root, "branch", "-m", "other", "topic")
    insist_doubted(topic)


def test_a_branch_that_was_seen_gone_and_has_no_commit_yet_keeps_what_is_written_to_its_store(topic: Project) -> None:
    git(topic.root, "branch", "-D", "topic")
    look_for_gone(topic)
    git(topic.root, "switch", "-q", "--orphan", "topic")
    assert first_use(topic).is_doubted
    topic.apply(entities=[req("MORE")])
    commit_files(topic.root, {"a.txt": "a"})
    insist_doubted(topic)


def test_a_store_of_an_earlier_release_that_was_seen_without_its_branch_is_doubted(topic: Project) -> None:
    (stores_at(topic.root) / "topic/git-ref.json").unlink()
    git(topic.root, "branch", "-D", "topic")
    look_for_gone(topic)
    git(topic.root, "branch", "topic")
    insist_doubted(topic)


def rebase_with_a_look(project: Project) -> None:
    git(project.root, "switch", "-q", "topic")
    commit_files(project.root, {"b.txt": "b"})
    assert run_git(project.root, "rebase", "-q", "-f", "--exec", "false", "main").returncode
    assert project.workspace().head().kind == "rebasing"
    look_for_gone(project)
    git(project.root, "rebase", "--continue")
    assert project.workspace().head().kind == "branch"


def pack_with_a_look(project: Project) -> None:
    git(project.root, "pack-refs", "--all", "--prune")
    assert not (project.root / ".git/refs/heads/topic").exists()


def begin_without_a_commit(project: Project) -> None:
    git(project.root, "switch", "-q", "topic")
    git(project.root, "update-ref", "-d", "refs/heads/topic")
    look_for_gone(project)
    commit_files(project.root, {"b.txt": "b"})


def look_without_refs(project: Project) -> None:
    refs = project.root / ".git/refs/heads"
    aside = refs.rename(project.root / ".git/heads-aside")
    refs.mkdir()
    look_for_gone(project)
    refs.rmdir()
    aside.rename(refs)


def restore_before_the_branch(project: Project) -> None:
    git(project.root, "branch", "-D", "topic")
    branches.collect(project.workspace())
    branches.restore(project.workspace(), "topic")
    look_for_gone(project)
    git(project.root, "branch", "topic")


def look_while_another_works(project: Project) -> None:
    git(project.root, "branch", "-D", "topic")
    machine = project.machine
    with lock.held(machine.fs, machine.clock, project.workspace().folders.repository_lock):
        look_for_gone(project)
    git(project.root, "branch", "topic")


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "act",
    [
        rebase_with_a_look,
        pack_with_a_look,
        begin_without_a_commit,
        look_without_refs,
        restore_before_the_branch,
        look_while_another_works,
        lambda project: git(project.root, "branch", "-f", "topic", "HEAD~1"),
    ],
)
def test_nothing_is_said_where_the_branch_lived_on_or_its_going_was_not_seen(
    topic: Project, act: Callable[[Project], object]
) -> None:
    commit_files(topic.root, {"a.txt": "a"})
    act(topic)
    look_for_gone(topic)
    assert not note(topic).is_gone
    assert first_use(topic, "topic") == SAME
    assert "OLD" in facts(topic)


def test_the_store_of_the_default_branch_is_not_noted(topic: Project) -> None:
    git(topic.root, "switch", "-q", "topic")
    git(topic.root, "branch", "-D", "main")
    look_for_gone(topic)
    git(topic.root, "branch", "main")
    assert first_use(topic, "main") == branches.Ensured("main", is_new=False)


def test_a_store_is_noted_once(topic: Project) -> None:
    git(topic.root, "branch", "-D", "topic")
    look_for_gone(topic)
    path = stores_at(topic.root) / "topic/git-ref.json"
    noted = path.stat().st_ino, path.stat().st_mtime_ns
    for look in LOOKS.values():
        look(topic)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == noted


def test_a_store_that_was_used_before_its_first_commit_is_noted_too(project: Project) -> None:
    git(project.root, "config", "core.logAllRefUpdates", "false")
    project.apply(entities=[req("A")])
    git(project.root, "switch", "-q", "--orphan", "topic")
    project.apply(entities=[req("OLD")])
    commit_files(project.root, {"a.txt": "a"})
    assert first_use(project) == SAME
    git(project.root, "switch", "-q", "main")
    git(project.root, "branch", "-D", "topic")
    look_for_gone(project)
    git(project.root, "branch", "topic")
    assert first_use(project, "topic").is_new


def test_the_doctor_says_that_git_keeps_no_reflogs_where_a_branch_could_get_another_store(topic: Project) -> None:
    def findings() -> set[str]:
        return {one.code for one in diagnose(topic.workspace()).findings}

    assert "no_reflogs" in findings()
    git(topic.root, "config", "--unset", "core.logAllRefUpdates")
    assert "no_reflogs" not in findings()
    git(topic.root, "config", "core.logAllRefUpdates", "always")
    assert "no_reflogs" not in findings()
    git(topic.root, "config", "core.logAllRefUpdates", "off")
    assert "no_reflogs" in findings()
    branches.collect(topic.workspace())
    shutil.rmtree(stores_at(topic.root) / "topic")
    assert "no_reflogs" not in findings()


@pytest.fixture
def logged(project: Project) -> Project:
    """A project on main whose git keeps reflogs. Branch topic has a fact of its own."""
    project.apply(entities=[req("A")])
    git(project.root, "branch", "topic")
    project.apply(branch="topic", entities=[req("OLD")])
    return project


def test_with_reflogs_a_branch_that_was_renamed_there_and_back_is_the_same(logged: Project) -> None:
    git(logged.root, "branch", "-m", "topic", "other")
    look_for_gone(logged)
    assert not note(logged).is_gone
    git(logged.root, "branch", "-m", "other", "topic")
    assert first_use(logged, "topic") == SAME


def test_the_same_first_line_of_a_reflog_proves_the_same_branch_and_the_next_writer_notes_it(logged: Project) -> None:
    store = stores_at(logged.root) / "topic"
    gitref.write(NoSyncFs(), store, RefSeen(gitref.FORMAT, note(logged).birth, had_ref=True, is_gone=True))
    branches.open_to_read(logged.workspace(), "topic")
    assert note(logged).is_gone
    assert first_use(logged, "topic") == SAME
    assert not note(logged).is_gone


def test_a_branch_that_was_seen_gone_is_another_one_also_where_its_reflog_begins_with_a_fetch(logged: Project) -> None:
    git(logged.root, "branch", "-D", "topic")
    look_for_gone(logged)
    later = git_env({"GIT_COMMITTER_DATE": "2099-01-01 10:00:00 +0000"})
    git(logged.root, "fetch", "-q", ".", "HEAD:topic", env=later)
    assert first_use(logged, "topic").is_new
    assert trashed(logged) == ["topic"]


def test_a_branch_that_was_seen_gone_and_whose_reflogs_were_removed_is_another_one(logged: Project) -> None:
    git(logged.root, "branch", "-D", "topic")
    look_for_gone(logged)
    git(logged.root, "branch", "topic")
    shutil.rmtree(logged.root / ".git/logs")
    assert first_use(logged, "topic").is_new


def test_the_list_and_gc_name_a_store_of_an_earlier_branch(topic: Project) -> None:
    def listed() -> tuple[bool, bool, bool]:
        (one,) = [one for one in branches.listing(topic.workspace()) if one.name == "topic"]
        return one.exists_in_git, one.is_made_again, one.is_doubted

    def reason() -> str:
        return branches.collect(topic.workspace(), dry_run=True).reasons["topic"]

    def codes() -> set[str]:
        return {one.code for one in diagnose(topic.workspace()).findings if one.branch == "topic"}

    assert (listed(), reason()) == ((True, False, False), "a branch of git")
    assert not codes() & {"earlier_store", "doubtful_store", "outdated_store"}
    git(topic.root, "branch", "-D", "topic")
    assert listed() == (False, False, False)
    assert "outdated_store" in codes()
    look_for_gone(topic)
    git(topic.root, "branch", "topic")
    assert listed() == (True, True, False)
    assert reason().startswith("a branch of git, which git made again since")
    assert codes() & {"earlier_store", "doubtful_store", "outdated_store"} == {"earlier_store"}
    seen = note(topic)
    doubted = RefSeen(gitref.FORMAT, seen.birth, had_ref=True, is_gone=True, may_be_renamed=True)
    gitref.write(NoSyncFs(), stores_at(topic.root) / "topic", doubted)
    assert listed() == (True, False, True)
    assert reason() == "a branch of git; the store may be that of an earlier branch of this name"
    assert codes() & {"earlier_store", "doubtful_store", "outdated_store"} == {"doubtful_store"}


def test_a_note_has_no_member_that_says_nothing_and_members_of_later_releases_are_left_out(tmp_path: Path) -> None:
    fs, path = NoSyncFs(), tmp_path / "git-ref.json"
    gitref.write(fs, tmp_path, RefSeen(gitref.FORMAT, "a", had_ref=True))
    assert path.read_bytes() == b'{"format":1,"birth":"a","had_ref":true}\n'
    for member in ('"is_doubted":false', '"later":1'):
        path.write_bytes(b'{"format":1,"birth":"a","had_ref":true,%s}' % member.encode())
        assert gitref.read(fs, tmp_path) == RefSeen(gitref.FORMAT, "a", had_ref=True)
