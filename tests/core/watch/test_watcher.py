"""A watcher in a thread on a real repository: whatever happens to the files and to git, the store follows."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import (
    AlreadyWatched,
    InvalidConfig,
    InvalidQuery,
    LockTimeout,
    NotARepository,
    NotInitialised,
    StoreWentBack,
)
from kbcore.maintenance import epochs
from kbcore.storage import lock
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from kbcore.store.history import undo
from kbcore.watch import pauses, sync_step
from kbcore.watch.backlog import DOUBT_S
from kbcore.watch.events import Checked, Event, Listening, Polling, Resumed, Synced, Waiting
from kbcore.watch.notices import Notices
from kbcore.watch.watcher import Watcher
from tests.support.processes.fenced import as_somebody
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project, document, req
from tests.support.repository.repos import add_worktree, commit_files, git, run_git
from tests.support.repository.watched import WAIT_S, Watched

REQS = "docs/requirements"
ONE = f"{REQS}/one.md"
CALM_S = 0.2
_SAVING_S = 0.05
"""So long a file is away while it is saved; from ``DOUBT_S`` on it counts as gone."""
_ROUNDS = 5


class Deaf(Notices):
    """What a system gives that has no watches left: it can only be asked to look itself."""

    @property
    def refusal(self) -> str:
        return "" if self._is_polling else "no watches are left"


class Sudden(Notices):
    """Notices of which one comes in the middle of a check: when it is asked the third time whether there is any."""

    news: ClassVar[list[Callable[[], object]]] = []

    def take(self, wait_s: float) -> set[str]:
        if wait_s or not self.news:
            return super().take(wait_s)
        self.news.pop()()
        return super().take(wait_s if self.news else WAIT_S)


@pytest.fixture
def watched(project: Project):
    """A watcher on a repository with one document and nothing else."""
    commit_files(project.root, {ONE: req("REQ-1")})
    with Watched(project.root) as made:
        yield made


def test_what_is_created_edited_and_deleted_is_taken_in(watched: Watched) -> None:
    two = watched.root / REQS / "two.md"
    two.write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    two.write_text(req("REQ-2", title="Another"))
    watched.until_there("REQ-2", title="Another")
    two.unlink()
    watched.until_gone("REQ-2")
    watched.until(lambda: watched.deleted() == ["REQ-2"])
    assert len(watched.of(Synced)) == 3
    assert all(0 <= event.took_ms < 5000 for event in watched.of(Synced))
    watched.assert_in_step()


def test_no_way_of_saving_looks_like_a_deletion(watched: Watched) -> None:
    one, other = watched.root / ONE, watched.root / REQS / "one.md~"
    other.write_text(req("REQ-1", title="by replacing"))
    other.replace(one)
    watched.until_there("REQ-1", title="by replacing")
    one.rename(other)
    time.sleep(0.03)
    one.write_text(req("REQ-1", title="by renaming away"))
    watched.until_there("REQ-1", title="by renaming away")
    other.unlink()
    with one.open("w") as file:
        time.sleep(0.03)
        file.write(req("REQ-1", title="by emptying"))
    watched.until_there("REQ-1", title="by emptying")
    text = req("REQ-1", title="in two steps", body="x" * 50)
    with one.open("w") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        time.sleep(0.03)
        file.write(text[len(text) // 2 :])
    watched.until_there("REQ-1", title="in two steps")
    assert watched.deleted() == []
    watched.assert_in_step()


def test_folders_that_go_come_again_move_and_nest_are_followed(watched: Watched) -> None:
    folder = watched.root / REQS
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    watched.until_gone("REQ-1")
    (folder / "a/b/c").mkdir(parents=True)
    (folder / "a/b/c/three.md").write_text(req("REQ-3"))
    watched.until_there("REQ-3")
    (folder / "a").rename(folder / "z")
    watched.until(lambda: watched.reader.node("REQ-3").path == f"{REQS}/z/b/c/three.md")
    (folder / "z/b/c/three.md").write_text(req("REQ-3", title="watched where it is now"))
    watched.until_there("REQ-3", title="watched where it is now")
    outside = watched.root / "elsewhere"
    outside.mkdir()
    (outside / "four.md").write_text(req("REQ-4"))
    outside.rename(folder / "from outside")
    watched.until_there("REQ-4")
    (folder / "from outside").rename(outside)
    watched.until_gone("REQ-4")
    folder.rename(watched.root / "away")
    watched.until_gone("REQ-2", "REQ-3")
    (watched.root / "away").rename(folder)
    watched.until_there("REQ-2", "REQ-3")
    watched.assert_in_step()


def test_folders_and_manifests_that_were_not_there_are_watched_once_they_come(project: Project) -> None:
    with Watched(project.root) as watched:
        (project.root / "docs/tests/deep").mkdir(parents=True)
        (project.root / "docs/tests/deep/one.md").write_text(document("TEST-1", title="T", status="active"))
        watched.until_there("TEST-1")
        (project.root / "docs/symbols.yaml").write_text("symbols:\n- {id: SYM-1, title: S}\n")
        watched.until_there("SYM-1")
        (project.root / "docs/tests/deep/two.md").write_text(document("TEST-2", title="T", status="active"))
        watched.until_there("TEST-2")
        watched.assert_in_step()


def test_a_burst_is_one_record_and_a_flood_is_few(watched: Watched) -> None:
    for number in range(40):
        (watched.root / REQS / f"{number}.md").write_text(req(f"B-{number}"))
    watched.until_there(*(f"B-{number}" for number in range(40)))
    assert len(watched.of(Synced)) <= 3
    before = len(watched.of(Synced))
    folder = watched.root / REQS / "flood"
    folder.mkdir()
    for number in range(600):
        (folder / f"{number}.md").write_text(req(f"F-{number}"))
    watched.until_there(*(f"F-{number}" for number in range(600)))
    assert len(watched.of(Synced)) - before <= 5
    watched.assert_in_step()


def test_nothing_is_written_unless_something_changed(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs, sync = [], sync_step.sync
    monkeypatch.setattr(sync_step, "sync", lambda *given: syncs.append(given) or sync(*given))
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    watched.until(lambda: watched.is_quiet(CALM_S))
    counted, seq = len(syncs), watched.reader.seq()
    end_s = time.monotonic() + 1.0
    watched.until(lambda: time.monotonic() > end_s)
    assert (len(syncs), watched.reader.seq()) == (counted, seq)
    (watched.root / ONE).write_text(req("REQ-1"))
    (watched.root / REQS / "notes.txt").write_text("no document")
    watched.until(lambda: len(syncs) > counted)
    assert watched.is_quiet(CALM_S)
    assert watched.reader.seq() == seq
    watched.assert_in_step()


def test_an_idle_watcher_ends_at_once(watched: Watched) -> None:
    assert watched.is_quiet(CALM_S)
    assert watched.end() < 1.0


def test_switches_are_followed_also_to_new_branches(watched: Watched) -> None:
    root = watched.root
    git(root, "switch", "--quiet", "-c", "feature")
    told = watched.until_follows("feature")
    assert told.answer.outcome.seq == 1
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


def test_one_worktree_has_one_watcher(watched: Watched) -> None:
    second = Watcher(watched.reader.workspace(), AUTHOR, watched.events.append)
    with pytest.raises(AlreadyWatched, match=rf"watched already, by kb watch \(process {os.getpid()} "):
        second.run()
    shutil.rmtree(caches_at(watched.root))
    with pytest.raises(AlreadyWatched):
        second.run()
    watched.end()
    with Watched(watched.root):
        pass


def test_a_bare_repository_has_nothing_to_watch(project: Project) -> None:
    bare = project.root.parent / "bare.git"
    git(project.root.parent, "clone", "--quiet", "--bare", project.root, bare)
    stores_at(bare).mkdir(parents=True)
    made = Project(bare, is_new=False)
    with pytest.raises(InvalidQuery, match="bare"):
        Watcher(made.workspace(), AUTHOR, lambda _: None).run()


def test_settings_may_change_break_and_be_mended_meanwhile(watched: Watched) -> None:
    config, root = watched.root / ".kb/config.json", watched.root
    root.joinpath("specs").mkdir()
    root.joinpath("specs/s.md").write_text(document("S-1", title="S", status="open"))
    config.write_text('{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}')
    watched.until_there("S-1")
    root.joinpath("specs/t.md").write_text(document("S-2", title="S", status="open"))
    watched.until_there("S-2")
    config.write_text("{")
    told = watched.until_told(lambda event: isinstance(event, Waiting))
    assert isinstance(told.error, InvalidConfig)
    root.joinpath("specs/u.md").write_text(document("S-3", title="S", status="open"))
    time.sleep(CALM_S)
    assert len(watched.of(Waiting)) == 1
    config.write_text('{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}')
    watched.until_there("S-3")
    schema = root / ".kb/schema"
    schema.mkdir()
    (schema / "own.yaml").write_text("entities: {fact: {description: A fact.}}\n")
    root.joinpath("specs/f.md").write_text(document("F-1", type="fact", title="F", status="open"))
    watched.until_there("F-1")
    watched.assert_in_step()


def deleted_in(events: Sequence[object]) -> set[str]:
    return {key for event in events if isinstance(event, Synced) for key in event.answer.outcome.deleted}


def test_settings_that_are_being_saved_are_not_taken_for_none(watched: Watched) -> None:
    root = watched.root
    config, schema, aside = root / ".kb/config.json", root / ".kb/schema/own.yaml", root / "aside"
    root.joinpath("specs").mkdir()
    root.joinpath("specs/f.md").write_text(document("F-1", type="fact", title="F", status="open"))
    schema.parent.mkdir()
    schema.write_text("entities: {fact: {description: A fact.}}\n")
    text = '{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}'
    config.write_text(text)
    watched.until_there("F-1")
    watched.until(lambda: "REQ-1" in deleted_in(watched.events))
    for number in range(_ROUNDS):
        watched.until_there("F-1")
        watched.until_gone("REQ-1")
        count = len(watched.events)
        is_as_quick = []
        for path in (config, schema):
            title = f"{path.name} {number}"
            began_s = time.monotonic()
            path.rename(aside)
            root.joinpath("specs/f.md").write_text(document("F-1", type="fact", title=title, status="open"))
            time.sleep(_SAVING_S)
            aside.rename(path)
            is_as_quick.append(time.monotonic() - began_s < DOUBT_S)
            watched.until_there("F-1", title=title)
        began_s = time.monotonic()
        config.write_text("")
        time.sleep(_SAVING_S)
        config.write_text(text)
        is_as_quick.append(time.monotonic() - began_s < DOUBT_S)
        root.joinpath("specs/g.md").write_text(document("S-1", title=f"S {number}", status="open"))
        watched.until_there("S-1", title=f"S {number}")
        if all(is_as_quick):  # else this machine was too busy for a save, and they may well have been taken for none
            break
    told = watched.events[count:]
    assert [event.error for event in told if isinstance(event, Waiting)] == []
    assert deleted_in(told) == set()
    config.unlink()
    watched.until_there("REQ-1")
    watched.until_gone("F-1")
    watched.assert_in_step()


def test_a_file_that_moves_is_one_record_and_never_stated_twice(watched: Watched) -> None:
    watched.root.joinpath(ONE).rename(watched.root / REQS / "moved.md")
    watched.until(lambda: watched.reader.node("REQ-1").path == f"{REQS}/moved.md")
    watched.until(lambda: watched.of(Synced))
    assert [(event.answer.outcome.updated, event.answer.problems) for event in watched.of(Synced)] == [(("REQ-1",), ())]
    watched.assert_in_step()


def test_rules_and_levels_that_change_are_checked_by_at_once(watched: Watched) -> None:
    config, rules = watched.root / ".kb/config.json", watched.root / ".kb/rules"
    rules.mkdir()
    rule = "rules: [{id: own, severity: error, description: d, sql: \"select id, 'is here' as message from entity\"}]"
    (rules / "own.yaml").write_text(rule)
    watched.until_told(lambda event: isinstance(event, Checked) and "own" in {one.rule for one in event.new})
    config.write_text('{"rules": {"own": "off"}}')
    watched.until_told(lambda event: isinstance(event, Checked) and "own" in {one.rule for one in event.mended})
    config.write_text("{}")
    (rules / "own.yaml").write_text("rules: [")
    watched.until_told(lambda event: isinstance(event, Waiting))
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    (rules / "own.yaml").write_text(rule)
    watched.until_told(
        lambda event: (
            isinstance(event, Checked) and {one.id for one in event.standing if one.rule == "own"} == {"REQ-1", "REQ-2"}
        )
    )
    (rules / "own.yaml").write_text(rule.replace("from entity", "from nowhere"))
    told = watched.until_told(lambda event: isinstance(event, Checked) and event.not_run)
    assert [run.id for run in told.not_run] == ["own"]
    assert {one.id for one in told.standing if one.rule == "own"} == {"REQ-1", "REQ-2"}
    (rules / "own.yaml").write_text(rule)
    again = watched.until_told(lambda event: isinstance(event, Checked) and event.run_again)
    assert (again.run_again, again.not_run) == (("own",), ())


def test_violations_come_and_go_with_what_is_saved(watched: Watched) -> None:
    one = watched.root / ONE
    one.write_text(req("REQ-1", links="[NOBODY]"))
    found = watched.until_told(lambda event: isinstance(event, Checked) and "NOBODY" in str(event.new))
    assert "REQ-1" in str(found.new)
    one.write_text(req("REQ-1"))
    mended = watched.until_told(lambda event: isinstance(event, Checked) and "NOBODY" in str(event.mended))
    assert "NOBODY" not in str(mended.standing)
    one.write_text("---\nid: [\n---\n")
    watched.until_told(lambda event: isinstance(event, Checked) and "unreadable-source" in str(event.new))


def test_a_change_that_comes_during_a_check_is_committed_first_and_both_are_checked(project: Project) -> None:
    commit_files(project.root, {ONE: req("REQ-1")})
    two = project.root / REQS / "two.md"
    with Watched(project.root, listen=Sudden) as watched:
        watched.until(lambda: watched.is_quiet(CALM_S))
        count = len(watched.events)
        Sudden.news += [lambda: two.write_text(req("REQ-2", priority="must")), *[lambda: None] * 2]
        (project.root / ONE).write_text(req("REQ-1", priority="must"))
        watched.until_told(lambda event: isinstance(event, Checked), since=count)
        told = watched.events[count:]
        assert [type(event) for event in told[:3]] == [Synced, Synced, Checked]
        assert {one.id for one in told[2].new if one.rule == "must-coverage"} == {"REQ-1", "REQ-2"}
        watched.assert_in_step()


def test_what_somebody_else_commits_is_checked_and_files_that_waited_for_it_are_taken_in(watched: Watched) -> None:
    other = Project(watched.root, fs=RealFs(), is_new=False)
    other.apply(entities=[{"id": "T-1", "type": "adr", "title": "T", "status": "open"}])
    (watched.root / ONE).write_text(req("REQ-1", links="[{type: verified_by, target: T-1}]"))
    watched.until(lambda: watched.reader.view().rows("select 1 from source where not is_ok"))
    other.apply(entities=[{"id": "T-1", "type": "test"}])
    watched.until(lambda: ("REQ-1", "verified_by", "T-1", True) in watched.reader.edges("REQ-1"))
    count = len(watched.events)
    other.apply(entities=[{"id": "T-2", "type": "test", "title": "T", "status": "open", "owner": "a\u202eb"}])
    watched.until_told(lambda event: isinstance(event, Checked) and "T-2" in str(event.new), since=count)
    other.close()
    watched.assert_in_step()


def test_what_somebody_takes_back_of_a_file_counts_again_at_once_and_is_said_why(watched: Watched) -> None:
    two = watched.root / REQS / "two.md"
    two.write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    two.write_text(req("REQ-2", title="Better"))
    watched.until_there("REQ-2", title="Better")
    other = Project(watched.root, fs=RealFs(), is_new=False)
    for seq in (3, 2):
        count = len(watched.events)
        undo.rollback(other.workspace(), "main", AUTHOR, seq - 1, follows_head=True)
        told = watched.until_told(
            lambda event: isinstance(event, Synced) and event.answer.outcome.warnings, since=count
        )
        why = f"(rollback to {seq - 1}, by tester) changed what {REQS}/two.md states"
        assert why in told.answer.outcome.warnings[0]
        watched.until_there("REQ-2", title="Better")
    other.close()
    watched.assert_in_step()


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


def test_names_that_are_no_text_and_files_that_nobody_may_read_stop_nothing(watched: Watched) -> None:
    folder = watched.root / REQS
    (folder / os.fsdecode(b"\xff.md")).write_text(req("REQ-X"))
    watched.until(lambda: watched.reader.view().rows("select 1 from source where path like '%ff.md'"))
    (folder / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "linked").symlink_to(folder)
    (folder / "three.md").write_text(req("REQ-3"))
    watched.until_there("REQ-3")
    watched.assert_in_step()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said_and_stops_nothing(watched: Watched) -> None:
    (watched.root / ONE).chmod(0)
    watched.until_told(lambda event: isinstance(event, Checked) and "unreadable-source" in str(event.new))
    (watched.root / ONE).chmod(0o644)
    watched.until_told(lambda event: isinstance(event, Checked) and "unreadable-source" in str(event.mended))


HIDDEN = """
import sys; from pathlib import Path
from kbcore.watch.events import Waiting
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files
from tests.support.repository.watched import WAIT_S, Watched
root = Path(sys.argv[1])
Project(root)
one = root / "docs/requirements/one.md"
commit_files(root, {"docs/requirements/one.md": req("REQ-1"), ".kb/schema/own.yaml": "", ".kb/config.json": "{}"})
with Watched(root) as watched:
    for name in (".git", ".kb/schema", "docs", "."):
        place, count = root / name, len(watched.events)
        mode = place.stat().st_mode
        one.write_text(req("REQ-1", title=f"before {name}"))
        place.chmod(0)
        watched.until_told(lambda event: isinstance(event, Waiting) or getattr(event, "answer", None), count)
        place.chmod(mode)
        one.write_text(req("REQ-1", title=f"after {name}"))
        watched.until_there("REQ-1", title=f"after {name}")
    watched.assert_in_step()
    print(*(type(event.error).__name__ for event in watched.of(Waiting)))
"""


def test_nothing_that_may_not_be_read_for_a_while_ends_it(tmp_path: Path) -> None:
    assert "GitUnusable" in as_somebody(HIDDEN, tmp_path / "repo")


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


def test_where_the_system_tells_nothing_files_are_looked_at_and_that_is_said(project: Project) -> None:
    (project.root / REQS).mkdir(parents=True)
    with Watched(project.root, listen=Deaf) as watched:
        assert [event.reason for event in watched.of(Polling)] == ["no watches are left"]
        (project.root / ONE).write_text(req("REQ-1"))
        watched.until_there("REQ-1")


def test_where_the_system_tells_nothing_it_is_asked_again_after_a_while_of_quiet(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "QUIET_SCAN_S", 0.1)
    asked: list[bool] = []

    class Short(Deaf):
        @property
        def refusal(self) -> str:
            return "" if len(asked) > 3 else super().refusal

        def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
            super().__init__(deep, flat, is_polling=is_polling)
            asked.append(is_polling)

    (project.root / REQS).mkdir(parents=True)
    with Watched(project.root, listen=Short) as watched:
        watched.until_told(lambda event: isinstance(event, Listening))
        assert (asked[0], asked[-1]) == (False, False)
        assert any(asked)
        assert len(watched.of(Polling)) == 1


def waited_for(watched: Watched, kind: type[Exception]) -> None:
    """Wait until it is told that this stands in the way."""
    watched.until_told(lambda event: isinstance(event, Waiting) and isinstance(event.error, kind))


def test_a_kb_that_is_removed_is_waited_for_and_not_made_anew(watched: Watched) -> None:
    folders = [watched.root / ".kb", stores_at(watched.root).parent]
    for number, folder in enumerate(folders):
        shutil.copytree(folder, watched.root.parent / f"aside{number}")
        shutil.rmtree(folder)
    waited_for(watched, NotInitialised)
    (watched.root / ONE).write_text(req("REQ-1", title="Meanwhile"))
    time.sleep(CALM_S)
    assert not any(folder.exists() for folder in folders)
    assert watched.of(Resumed) == []
    for number, folder in enumerate(folders):
        (watched.root.parent / f"aside{number}").rename(folder)
    watched.until_there("REQ-1", title="Meanwhile")
    watched.until_told(lambda event: isinstance(event, Resumed))
    watched.assert_in_step()


@pytest.mark.parametrize("what", ["main", "."])
def test_a_store_that_is_lost_is_said_and_not_written_until_it_is_back(watched: Watched, what: str) -> None:
    store, aside = stores_at(watched.root) / what, watched.root.parent / "aside"
    (watched.root / ".kb/config.json").write_text("{}")
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    shutil.copytree(store, aside)
    shutil.rmtree(store)
    waited_for(watched, StoreWentBack)
    (watched.root / ONE).write_text(req("REQ-1", title="Meanwhile"))
    time.sleep(CALM_S)
    assert not store.exists()
    aside.rename(store)
    watched.until_there("REQ-1", title="Meanwhile")
    watched.assert_in_step()


def test_a_store_that_was_put_back_to_an_earlier_state_is_said_and_not_written(watched: Watched) -> None:
    store, older = stores_at(watched.root) / "main", watched.root.parent / "older"
    shutil.copytree(store, older)
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    watched.until(lambda: watched.of(Synced))
    shutil.rmtree(store)
    older.rename(store)
    waited_for(watched, StoreWentBack)
    (watched.root / ONE).write_text(req("REQ-1", title="Meanwhile"))
    time.sleep(CALM_S)
    assert watched.reader.seq() == 1
    told = watched.of(Waiting)[-1].error
    assert "seen: 2, now: 1; record 2 is missing" in told.message
    other = Project(watched.root, fs=RealFs(), is_new=False)
    epochs.accept(other.workspace(), "main", AUTHOR)
    other.close()
    watched.until_there("REQ-1", title="Meanwhile")
    watched.until_told(lambda event: isinstance(event, Resumed))
    watched.assert_in_step()


def test_a_store_that_was_replaced_on_purpose_is_followed(watched: Watched) -> None:
    other = Project(watched.root, fs=RealFs(), is_new=False)
    git(watched.root, "branch", "spare")
    branches.ensure(other.workspace(), "spare")
    branches.copy_from(other.workspace(), "main", "spare", replaces=True)
    (watched.root / ONE).write_text(req("REQ-1", title="After"))
    watched.until_there("REQ-1", title="After")
    assert watched.of(Waiting) == []
    other.close()
    watched.assert_in_step()


def test_a_sync_for_what_others_wrote_is_tried_again_when_the_branch_was_locked(watched: Watched) -> None:
    (watched.root / ".kb/config.json").write_text('{"lockWaitSeconds": 0.05}')
    other = Project(watched.root, fs=RealFs(), is_new=False)
    other.apply(entities=[{"id": "T-1", "type": "adr", "title": "T", "status": "open"}])
    (watched.root / ONE).write_text(req("REQ-1", links="[{type: verified_by, target: T-1}]"))
    watched.until(lambda: watched.reader.view().rows("select 1 from source where not is_ok"))
    watched.until_quiet(2 * CALM_S)
    place = stores_at(watched.root) / "main/lock"
    other.apply(entities=[{"id": "T-1", "type": "test"}])
    with lock.held(RealFs(), SystemClock(), place, wait_s=1.0, command="somebody"):
        waited_for(watched, LockTimeout)
    watched.until(lambda: ("REQ-1", "verified_by", "T-1", True) in watched.reader.edges("REQ-1"))
    watched.until_told(lambda event: isinstance(event, Resumed))
    other.close()
    watched.assert_in_step()


def test_where_files_are_looked_at_a_listener_that_ends_is_replaced(project: Project) -> None:
    made: list[Notices] = []

    class Dying(Deaf):
        def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
            super().__init__(deep, flat, is_polling=is_polling)
            made.append(self)

        @property
        def is_deaf(self) -> bool:
            return super().is_deaf or (len(made) < 4 and self._is_polling)

    (project.root / REQS).mkdir(parents=True)
    with Watched(project.root, listen=Dying) as watched:
        watched.until(lambda: len(made) >= 4)
        (project.root / ONE).write_text(req("REQ-1"))
        watched.until_there("REQ-1")


def test_what_nobody_tells_of_is_found_after_a_while_of_quiet_again_and_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "QUIET_SCAN_S", 0.1)
    monkeypatch.setattr(pauses, "LONGEST_QUIET_SCAN_S", 0.4)
    commit_files(project.root, {"real.txt": req("REQ-1")})
    (project.root / REQS).mkdir(parents=True)
    (project.root / ONE).symlink_to("../../real.txt")
    with Watched(project.root) as watched:
        for title in ("Two", "Three"):
            (project.root / "real.txt").write_text(req("REQ-1", title=title))
            watched.until_there("REQ-1", title=title)
        watched.assert_in_step()


def test_a_file_that_only_a_rule_asks_for_is_missed_after_a_while_of_quiet(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "QUIET_SCAN_S", 0.1)
    monkeypatch.setattr(pauses, "LONGEST_QUIET_SCAN_S", 0.4)
    source = project.root / "src/login.py"
    linked = {f"{REQS}/linked.md": req("REQ-8", links="[REQ-9]"), f"{REQS}/end.md": req("REQ-9")}
    commit_files(project.root, {"src/login.py": "", ONE: req("REQ-1", text_ref="src/login.py"), **linked})
    with Watched(project.root) as watched:
        first = waited_for_check(watched, "new", "orphans")
        assert "missing-file" not in {one.rule for one in first.new}
        source.unlink()
        waited_for_check(watched, "new", "missing-file")
        source.write_text("")
        waited_for_check(watched, "mended", "missing-file")


def waited_for_check(watched: Watched, which: Literal["new", "mended"], rule: str) -> Checked:
    """Wait until a violation of a rule came or went, and return what was told of that."""

    def is_it(event: Event) -> bool:
        return isinstance(event, Checked) and rule in {one.rule for one in getattr(event, which)}

    checked = watched.until_told(is_it)
    assert isinstance(checked, Checked)
    return checked
