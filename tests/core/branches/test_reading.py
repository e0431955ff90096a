"""Who only reads needs no store of its own branch: what it would be copied from answers."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcli.readonly import ReadOnlyFs
from kbcore import branches
from kbcore.errors import ReadOnlyStore, UnknownBranch
from tests.support.faultfs import NoSyncFs
from tests.support.project import Project
from tests.support.repos import git


def req(key: str) -> dict[str, str]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open"}


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


def contents(root: Path) -> set[Path]:
    return set((root / ".kb").rglob("*"))


def test_a_new_branch_that_can_get_no_store_is_answered_from_the_default_branch(stuck: Project) -> None:
    stuck.switch("topic", create=True)
    before = contents(stuck.root)
    store, choice, ensured = branches.open_to_read(stuck.workspace(), None)
    assert store.read(lambda view: view.rows("select id from node")) == [("A",)]
    assert choice == branches.Choice("main", follows_head=False)
    assert "topic has no store yet" in ensured.notice
    assert "this is main" in ensured.notice
    assert contents(stuck.root) == before


def test_a_renamed_branch_that_can_get_no_store_is_answered_from_its_former_name(
    project: Project, stuck: Project
) -> None:
    project.switch("topic", create=True)
    project.apply(entities=[req("B")])
    git(project.root, "branch", "-m", "topic", "new")
    store, choice, _ = branches.open_to_read(stuck.workspace(), None)
    assert choice.branch == "topic"
    assert store.read(lambda view: view.seq) == 2


def test_a_branch_with_a_store_is_read_without_a_word(stuck: Project) -> None:
    store, choice, ensured = branches.open_to_read(stuck.workspace(), None)
    assert (choice, ensured.notice) == (branches.Choice("main", follows_head=True), "")
    assert store.read(lambda view: view.seq) == 1


def test_where_there_is_nothing_to_read_the_refusal_stands(tmp_path: Path) -> None:
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
