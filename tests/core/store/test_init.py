"""Laying out `.kb`: idempotent, refused as a whole where nothing can be written, and the same bytes everywhere."""

from __future__ import annotations

import shutil

import pytest

from kbcli.invocation.read_only import ReadOnlyFs
from kbcore.clock import SystemClock
from kbcore.config.template import default_config_text
from kbcore.errors import InvalidConfig, InvalidQuery, ReadOnlyStore, StorageError
from kbcore.git import find_repository
from kbcore.model.schema_text import core_schema_text
from kbcore.storage.fs import RealFs
from kbcore.store.init import lay_out
from kbcore.store.pool import Machine, StorePool
from kbcore.store.workspace import open_workspace
from tests.support.repository.repos import git, git_env, make_repository


@pytest.fixture
def root(tmp_path):
    return make_repository(tmp_path / "repo")


def laid(root, fs=None, **options):
    machine = Machine(fs or RealFs(), SystemClock(), git_env())
    return lay_out(find_repository(root), machine, StorePool(), **options)


def test_the_layout_is_the_same_every_time_and_can_be_opened(root):
    first = laid(root)
    assert (first.ensured.branch, first.ensured.is_new, first.updated, first.kept) == ("main", True, (), ())
    assert (root / ".kb/config.json").read_text() == default_config_text()
    assert (root / ".kb/schema/core.yaml").read_text() == core_schema_text()
    second = laid(root)
    assert (second.created, second.updated, set(second.kept)) == ((), (), set(first.created))
    assert not second.ensured.is_new
    workspace = open_workspace(root, Machine(RealFs(), SystemClock(), git_env()), StorePool())
    assert workspace.store("main").head().seq == 0


def test_where_nothing_can_be_written_it_says_so_and_leaves_nothing(root):
    with pytest.raises(ReadOnlyStore) as caught:
        laid(root, ReadOnlyFs(RealFs()))
    assert str(root) in caught.value.hint
    assert "queries" not in caught.value.hint
    assert not (root / ".kb").exists()


def test_what_is_in_the_place_of_the_folder_is_named_with_the_remedy(root):
    (root / ".kb").write_text("a file")
    with pytest.raises(StorageError, match="not a directory") as caught:
        laid(root)
    assert "move away" in caught.value.hint


@pytest.mark.parametrize("name", ["-x", "HEAD", "a..b"])
def test_a_default_branch_that_git_would_not_make_is_refused_before_anything_is_made(root, name):
    with pytest.raises(InvalidQuery, match="cannot be the default branch"):
        laid(root, default_branch=name)
    assert not (root / ".kb").exists()


def test_a_layout_that_is_complete_is_reported_without_writing(root):
    laid(root)
    again = laid(root, ReadOnlyFs(RealFs()))
    assert (again.created, again.updated) == ((), ())


def test_a_branch_that_is_named_is_written_down(root):
    assert laid(root, default_branch="trunk").workspace.default_branch == "trunk"
    assert '"defaultBranch": "trunk"' in (root / ".kb/config.json").read_text()


def test_an_ignore_file_that_is_no_text_is_refused(root):
    laid(root)
    (root / ".kb/.gitignore").write_bytes(b"\xff")
    with pytest.raises(InvalidConfig, match="not UTF-8"):
        laid(root)


@pytest.mark.parametrize("default_branch", [None, "trunk"])
def test_a_configuration_that_only_the_index_of_git_has_is_written_and_named_as_created(root, default_branch):
    laid(root)
    git(root, "add", ".kb")
    (root / ".kb/config.json").unlink()
    again = laid(root, default_branch=default_branch)
    assert (root / ".kb/config.json").read_text() == default_config_text(default_branch)
    assert again.created == (".kb/config.json",)
    assert ".kb/config.json" not in again.kept


def test_settings_and_change_files_that_git_has_come_back_where_the_worktree_lost_the_configuration(root):
    laid(root)
    own = {
        ".kb/config.json": '{"defaultBranch": "main", "lockWaitSeconds": 7}\n',
        ".kb/.gitignore": "/branches\n/cache/\n/notes\n",
        ".kb/baseline.json": "{}\n",
        ".kb/schema/own.yaml": "entities: {widget: {description: a widget}}\n",
        ".kb/rules/deep/own.pl": "% mine\n",
        ".kb/changes/ann/01.json": "{}\n",
    }
    for path, text in own.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    git(root, "add", ".kb")
    (root / ".kb/cache").mkdir(exist_ok=True)
    (root / ".kb/cache/tracked").write_text("never read\n")
    git(root, "add", "-f", ".kb/cache/tracked")
    git(root, "commit", "-qm", "settings")
    shutil.rmtree(root / ".kb")
    found = laid(root)
    assert not (root / ".kb/cache/tracked").exists()
    assert {path: (root / path).read_text() for path in own} == own
    assert {*own} <= {*found.created}
    assert (len({*found.created}), found.kept) == (len(found.created), (".git/kb/",))
    assert git(root, "status", "--porcelain").split() == ["D", ".kb/cache/tracked"]


def test_a_schema_that_was_deleted_stays_deleted_where_the_configuration_is_there(root):
    laid(root)
    (root / ".kb/schema/own.yaml").write_text("entities: {widget: {description: a widget}}\n")
    git(root, "add", ".kb")
    git(root, "commit", "-qm", "settings")
    (root / ".kb/schema/own.yaml").unlink()
    assert ".kb/schema/own.yaml" not in laid(root).created
    assert not (root / ".kb/schema/own.yaml").exists()
