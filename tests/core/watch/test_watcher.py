"""The watcher: what is saved is taken in, once and soon, and nothing is written without a change."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import (
    AlreadyWatched,
    InvalidQuery,
    LockTimeout,
)
from kbcore.storage import lock
from kbcore.storage.fs import RealFs
from kbcore.watch import sync_step
from kbcore.watch.events import Checked, Resumed, Synced
from kbcore.watch.watcher import Watcher
from tests.core.watch.watching import CALM_S, ONE, REQS, waited_for
from tests.support.processes.fenced import as_somebody
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project, document, req
from tests.support.repository.repos import git
from tests.support.repository.watched import Watched


@pytest.mark.sliced
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


@pytest.mark.sliced
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


@pytest.mark.sliced
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


@pytest.mark.sliced
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


@pytest.mark.sliced
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


def test_a_file_that_moves_is_one_record_and_never_stated_twice(watched: Watched) -> None:
    watched.root.joinpath(ONE).rename(watched.root / REQS / "moved.md")
    watched.until(lambda: watched.reader.node("REQ-1").path == f"{REQS}/moved.md")
    watched.until(lambda: watched.of(Synced))
    assert [(event.answer.outcome.updated, event.answer.problems) for event in watched.of(Synced)] == [(("REQ-1",), ())]
    watched.assert_in_step()


@pytest.mark.sliced
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
    watched.until_event(lambda event: isinstance(event, Checked) and "unreadable-source" in str(event.new))
    (watched.root / ONE).chmod(0o644)
    watched.until_event(lambda event: isinstance(event, Checked) and "unreadable-source" in str(event.fixed))


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
        watched.until_event(lambda event: isinstance(event, Waiting) or getattr(event, "answer", None), count)
        place.chmod(mode)
        one.write_text(req("REQ-1", title=f"after {name}"))
        watched.until_there("REQ-1", title=f"after {name}")
    watched.assert_in_step()
    print(*(type(event.error).__name__ for event in watched.of(Waiting)))
"""


@pytest.mark.sliced
def test_nothing_that_may_not_be_read_for_a_while_ends_it(tmp_path: Path) -> None:
    assert "GitUnusable" in as_somebody(HIDDEN, tmp_path / "repo")


@pytest.mark.sliced
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
    watched.until_event(lambda event: isinstance(event, Resumed))
    other.close()
    watched.assert_in_step()
