"""A reader needs no store of its branch: the one that it would be copied from answers."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcli.invocation.read_only import ReadOnlyFs
from kbcore.errors import GitUnusable, ReadOnlyStore, StoreWentBack, UnknownBranch
from kbcore.model import changeset
from kbcore.store import apply, branches
from kbcore.sync.overlay import WorktreeFiles
from tests.core.store.branches.making import req
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


class FullFs(NoSyncFs):
    """A disk on which no directory can be made any more."""

    def mkdir(self, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=[ReadOnlyFs(NoSyncFs()), FullFs()], ids=["read-only", "full"])
def stuck(project: Project, request: pytest.FixtureRequest) -> Iterator[Project]:
    """A project with facts, as a process sees it that can make nothing new."""
    project.apply(entities=[req("A")])
    made = Project(project.root, fs=request.param, is_new=False)
    yield made
    made.close()


def contents(root: Path) -> dict[Path, bytes]:
    """Return every file of the settings and of git's directory with what it holds; cached views do not count."""
    found = [path for folder in (".kb", ".git") for path in (root / folder).rglob("*")]
    kept = [path for path in found if not path.is_relative_to(root / ".git/kb/cache")]
    return {path: path.read_bytes() if path.is_file() else b"" for path in kept}


def test_a_new_branch_that_can_get_no_store_is_answered_from_the_default_branch(stuck: Project) -> None:
    stuck.switch("topic", create=True)
    before = contents(stuck.root)
    store, choice, ensured = branches.open_to_read(stuck.workspace(), None)
    assert store.read(lambda view: view.rows("select id from node")) == [("A",)]
    assert choice == branches.Choice("topic", follows_head=True)
    assert "topic has no store yet" in ensured.notice
    assert "this is main" in ensured.notice
    assert contents(stuck.root) == before


def test_reading_a_new_branch_writes_nothing_even_where_it_could(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.switch("topic", create=True)
    git(project.root, "branch", "other")
    before = contents(project.root)
    for named in (None, "other"):
        workspace = project.workspace()
        store, choice, ensured = branches.open_to_read(workspace, named)
        assert store.read(lambda view: view.rows("select id from node")) == [("A",)]
        assert choice == branches.Choice(named or "topic", follows_head=named is None)
        assert workspace.answering(choice.branch) == "main"
        assert f"{named or 'topic'} has no store yet: this is main" in ensured.notice
    assert contents(project.root) == before
    store, choice, ensured = branches.open_branch(project.workspace(), None)
    assert (choice.branch, ensured.is_new, ensured.copied_from) == ("topic", True, "main")


def test_a_dry_run_in_a_new_branch_is_planned_on_what_its_store_will_be_copied_from(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.switch("topic", create=True)
    before = contents(project.root)
    workspace = project.workspace()
    store, choice, ensured = branches.open_to_try(workspace, None)
    assert store.read(lambda view: view.rows("select id from node")) == [("A",)]
    assert choice == branches.Choice("topic", follows_head=True)
    assert "topic has no store yet: this is main" in ensured.notice
    items = [req("B"), req("A") | {"title": "New"}]
    for is_dry in (True, False):
        wanted = changeset.parse({"entities": items, "dry_run": is_dry})
        if is_dry:
            outcome = apply.apply_changeset(workspace, "topic", AUTHOR, wanted, follows_head=True)
            assert (outcome.branch, outcome.created, outcome.updated) == ("topic", ("B",), ("A",))
        else:
            with pytest.raises(ReadOnlyStore, match="only plans"):
                apply.apply_changeset(workspace, "topic", AUTHOR, wanted, follows_head=True)
    assert contents(project.root) == before


def test_reading_where_nothing_is_stored_writes_nothing(project: Project) -> None:
    before = contents(project.root)
    store, choice, _ = branches.open_to_read(project.workspace(), None)
    assert (choice.branch, store.read(lambda view: view.seq)) == ("main", 0)
    assert contents(project.root) == before


def test_the_files_of_a_branch_without_a_store_count_only_where_it_is_checked_out(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.switch("topic", create=True)
    project.write({"docs/requirements/B.md": "---\nid: REQ-B\ntitle: B\n---\n"})

    def read(named: str | None) -> tuple[str, list[str]]:
        workspace = project.workspace()
        _, choice, _ = branches.open_to_read(workspace, named)
        return WorktreeFiles().read(
            workspace,
            choice.branch,
            lambda view, files: (files.freshness, [row[0] for row in view.rows("select id from node order by id")]),
            time_s=10.0,
        )

    assert read(None) == ("overlay", ["A", "REQ-B"])
    assert read("main") == ("unknown", ["A"])
    project.switch("main")
    assert read("topic") == ("unknown", ["A"])
    assert read(None) == ("overlay", ["A", "REQ-B"])


def test_a_renamed_branch_that_can_get_no_store_is_answered_from_its_former_name(
    project: Project, stuck: Project
) -> None:
    project.switch("topic", create=True)
    project.apply(entities=[req("B")])
    git(project.root, "branch", "-m", "topic", "new")
    workspace = stuck.workspace()
    store, choice, _ = branches.open_to_read(workspace, None)
    assert (choice.branch, workspace.answering(choice.branch)) == ("new", "topic")
    assert store.read(lambda view: view.seq) == 2


def test_a_branch_with_a_store_is_read_without_a_word(stuck: Project) -> None:
    store, choice, ensured = branches.open_to_read(stuck.workspace(), None)
    assert (choice, ensured.notice) == (branches.Choice("main", follows_head=True), "")
    assert store.read(lambda view: view.seq) == 1


class ShutFs(NoSyncFs):
    """A git directory in which nothing can be made, and no mode that says so."""

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        if ".git" in path.parts:
            raise OSError(errno.EROFS, "Read-only file system")
        super().mkdir(path, mode)


def test_where_nothing_is_stored_and_nothing_can_be_an_empty_store_answers(tmp_path: Path) -> None:
    project = Project(tmp_path / "empty")
    stuck = Project(project.root, fs=ShutFs(), is_new=False)
    for _ in range(2):
        store, choice, ensured = branches.open_to_read(stuck.workspace(), None)
        assert store.read(lambda view: (view.seq, view.rows("select id from node"))) == (0, [])
        assert (choice.branch, ensured.is_new) == ("main", False)
        assert not ensured.notice
    with pytest.raises(ReadOnlyStore) as refused:
        stuck.apply(entities=[req("A")])
    hint = refused.value.hint
    assert "the tools of `kb mcp`" in hint
    assert f"{project.root}/.git/kb as a writable root of the sandbox" in hint
    assert '{"store": "worktree"} in ' in hint
    assert not (stores_at(project.root) / "main").exists()
    # As soon as somebody can make a store, that one answers.
    project.apply(entities=[req("A")])
    assert branches.open_to_read(stuck.workspace(), None)[0].read(lambda view: view.seq) == 1
    stuck.close()
    project.close()


def test_a_store_that_is_lost_is_no_empty_one_where_nothing_can_be_written(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.close()
    shutil.rmtree(stores_at(project.root) / "main")
    stuck = Project(project.root, fs=ShutFs(), is_new=False)
    with pytest.raises(StoreWentBack):
        branches.open_to_read(stuck.workspace(), None)


def test_where_not_even_an_empty_store_can_be_made_the_refusal_is_raised(tmp_path: Path) -> None:
    project = Project(tmp_path / "empty")
    stuck = Project(project.root, fs=ReadOnlyFs(NoSyncFs()), is_new=False)
    with pytest.raises(ReadOnlyStore):
        branches.open_to_read(stuck.workspace(), None)


@pytest.mark.parametrize(
    ("name", "near"),
    [("mian", "main"), ("Feature/Login", "feature/login"), ("", ""), ("../main", "main"), ("-x", ""), ("a..b", "")],
)
def test_a_wrong_name_is_refused_with_the_nearest_that_there_is(project: Project, name: str, near: str) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "branch", "feature/login")
    with pytest.raises(UnknownBranch) as refused:
        branches.choose(project.workspace(), name)
    assert "\n" not in refused.value.message + refused.value.hint
    assert (f"Did you mean {near!r}?" in refused.value.hint) == bool(near)


def test_a_name_of_any_length_makes_a_line_that_can_be_read(project: Project) -> None:
    with pytest.raises(UnknownBranch) as refused:
        branches.choose(project.workspace(), "x" * 10_000)
    assert len(refused.value.message) < 200


def test_a_loss_is_reported_also_where_git_cannot_say_what_else_to_read(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.close()
    shutil.rmtree(stores_at(project.root) / "main")
    stuck = Project(project.root, fs=ShutFs(), is_new=False)
    workspace = stuck.workspace()
    # Something to ask git about, and an index that it cannot read.
    shutil.rmtree(project.root / ".kb/branches")
    (project.root / ".kb/branches/main").mkdir(parents=True)
    (project.root / ".git/index").write_bytes(b"no index")
    with pytest.raises(StoreWentBack, match="The store of main is missing"):
        branches.open_to_read(workspace, None)
    stuck.close()


def test_who_reads_a_branch_without_a_store_is_refused_where_the_reflog_cannot_be_read(project: Project) -> None:
    workspace = project.workspace()
    reflog = project.root / ".git/logs/refs/heads/main"
    reflog.unlink()
    reflog.symlink_to(reflog.name)
    with pytest.raises(GitUnusable):
        branches.open_to_read(workspace, None)
