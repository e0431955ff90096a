"""Whose view it is: what was published of another store is a saving, and never a sign of loss."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.store import branches
from kbcore.store.pool import MAX_WARM_VIEWS
from kbcore.view.cache_files import AHEAD, VIEW, CacheFiles
from tests.core.store.branches.making import req
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git
from tests.support.repository.stores import Stored


def cache_of(project: Project, branch: str) -> Path:
    return caches_at(project.root) / branch


def published(project: Project, branch: str) -> None:
    """Have the cache hold a view of this branch's head, as a new process would leave it."""
    project.pool.close()
    (cache_of(project, branch) / VIEW).unlink(missing_ok=True)
    project.view(branch)
    project.pool.close()


def put_in_place(kept: Path, cache: Path) -> None:
    """Have a cache hold other files, without writing into those that it shares with another branch."""
    shutil.rmtree(cache)
    shutil.copytree(kept, cache)


def is_quiet(project: Project, branch: str) -> bool:
    store = branches.open_branch(project.workspace(), branch)[0]
    store.read(lambda view: view.seq)
    return not store.notices and not list(cache_of(project, branch).glob(f"{AHEAD}*"))


@pytest.mark.sliced
def test_what_is_left_of_an_earlier_store_of_the_same_name_raises_no_alarm(project: Project) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "branch", "topic")
    for key in ("B", "C"):
        project.apply(branch="topic", entities=[req(key)])
    published(project, "topic")
    kept = shutil.copytree(cache_of(project, "topic"), project.root.parent / "kept")
    git(project.root, "branch", "-D", "topic")
    branches.collect(project.workspace())
    git(project.root, "branch", "topic")
    branches.ensure(project.workspace(), "topic")
    put_in_place(kept, cache_of(project, "topic"))
    assert is_quiet(project, "topic")
    project.apply(branch="topic", entities=[req("D")])
    project.apply(branch="topic", entities=[req("E")])
    assert is_quiet(project, "topic")
    assert {node.id for node in project.view("topic").nodes(["A", "B", "C", "D", "E"])} == {"A", "D", "E"}


def test_the_view_of_another_branch_that_went_its_own_way_is_distinguished(project: Project) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "branch", "sibling")
    project.apply(branch="sibling", entities=[req("OTHER")])
    published(project, "sibling")
    for key in ("B", "C"):
        project.apply(entities=[req(key)])
    git(project.root, "branch", "topic")
    branches.ensure(project.workspace(), "topic")
    put_in_place(cache_of(project, "sibling"), cache_of(project, "topic"))
    assert is_quiet(project, "topic")
    assert {node.id for node in project.view("topic").nodes(["A", "B", "C", "OTHER"])} == {"A", "B", "C"}


def test_a_new_branch_begins_with_its_sources_view_and_none_that_is_ahead_of_it(project: Project) -> None:
    project.apply(entities=[req("A")])
    store = stores_at(project.root) / "main"
    kept = {path: path.read_bytes() for path in store.iterdir() if path.is_file()}
    project.apply(entities=[req("B")])
    published(project, "main")
    git(project.root, "branch", "good")
    project.view("good")
    assert (cache_of(project, "good") / VIEW).samefile(cache_of(project, "main") / VIEW)
    for path, content in kept.items():
        path.write_bytes(content)
    git(project.root, "branch", "topic")
    assert is_quiet(project, "topic")
    assert not is_quiet(project, "main"), "the true alarm stays"


def test_a_cache_that_cannot_be_written_keeps_no_branch_from_its_store(project: Project) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "branch", "topic")
    cache_of(project, "topic").write_text("a file where a folder should be")
    assert project.view("topic").nodes(["A"])


class Overtaken(NoSyncFs):
    """Runs something once, when a reader that has read the head looks for the published view."""

    act: Callable[[], object] | None = None

    def lstat(self, path: Path) -> os.stat_result:
        if path.name == VIEW and self.act is not None:
            act, self.act = self.act, None
            act()
        return super().lstat(path)


def test_a_view_of_a_writer_who_was_faster_than_the_reader_raises_no_alarm(tmp_path: Path) -> None:
    fs = Overtaken()
    reader = Stored(tmp_path, fs=fs)
    writer = Stored(tmp_path)
    writer.put("A")
    writer.cache_dir.mkdir(parents=True, exist_ok=True)  # a view is looked for only in a folder that is there

    def overtake() -> None:
        writer.put("B")
        writer.store.close()
        (writer.cache_dir / VIEW).unlink(missing_ok=True)
        writer.store.read(lambda view: view.seq)

    fs.act = overtake
    assert reader.store.read(lambda view: [row[0] for row in view.rows("select id from node")]) == ["A", "B"]
    assert reader.store.notices == []
    reader.close()
    writer.close()


def test_a_view_taken_over_twice_is_one_file_under_two_names(tmp_path: Path) -> None:
    made = Stored(tmp_path)
    made.put("A")
    made.reopen().read(lambda view: view.seq)
    source = CacheFiles(made.fs, made.cache_dir)
    target = CacheFiles(made.fs, tmp_path / "cache" / "other")
    for _ in range(2):
        target.begin_with(source)
    assert source.path.samefile(target.path)
    assert list(target.directory.iterdir()) == [target.path]
    made.close()


def open_views() -> int:
    """Return how many published views this process has open."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found += VIEW in str(descriptor.readlink())
        except OSError:
            continue
    return found


@pytest.mark.sliced
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_process_keeps_few_views_open_and_none_is_taken_from_a_request(project: Project) -> None:
    project.apply(entities=[req("A")])
    names = [f"b{number}" for number in range(MAX_WARM_VIEWS + 2)]
    for name in names:
        git(project.root, "branch", name)
        project.view(name)
    published(project, "main")
    before = open_views()
    first = branches.open_branch(project.workspace(), names[0])[0]

    def use(view):
        for name in names[1:]:
            branches.open_branch(project.workspace(), name)[0].read(lambda other: other.seq)
        return view.rows("select id from node")

    assert first.read(use) == [("A",)]
    assert open_views() - before <= MAX_WARM_VIEWS + 1
    branches.open_branch(project.workspace(), names[-1])
    assert open_views() - before <= MAX_WARM_VIEWS
    assert first.read(lambda view: view.rows("select id from node")) == [("A",)]
