"""The record that a commit has the change files written for it: the one that a sync makes, without DuckDB, or none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from kbcore.share.committed_files import note_committed
from kbcore.share.sharing import share
from tests.support.processes.cli import DOCUMENTS, environment
from tests.support.repository.places import stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

WITHOUT_DUCKDB = """
import os, sys
from pathlib import Path
from kbcore.clock import SystemClock
from kbcore.share.committed_files import note_committed
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine, StorePool
from kbcore.store.workspace import open_workspace
from kbcore.store.write_request import Author
root, commit, *paths = sys.argv[1:]
workspace = open_workspace(Path(root), Machine(RealFs(), SystemClock(), os.environ), StorePool())
author = Author("tester", "cli", "kb")
done = note_committed(workspace, "main", commit, paths, author, is_same=lambda: True, done=lambda: None)
print(done, {"duckdb", "kbcore.sync.scan"} & {*sys.modules})
"""


@pytest.fixture
def committed(tmp_path):
    """A project of which the last commit has a change file, with the path of the file; no record knows of that.

    It is not the first one, of which more follows.
    """
    project = Project(tmp_path / "project")
    project.sync(DOCUMENTS)
    project.apply(entities=[{"id": "S-0", "type": "symbol", "title": "Zero", "status": "active"}])
    share(project.workspace(), "main")
    git(project.root, "commit", "-q", "-m", "share the first one")
    project.sync()
    project.apply(entities=[{"id": "S-1", "type": "symbol", "title": "One", "status": "active"}])
    [path] = share(project.workspace(), "main").files
    git(project.root, "commit", "-q", "-m", "share")
    return project, path


def recorded(root):
    [journal] = (stores_at(root) / "main").glob("journal-*.jsonl")
    return [json.loads(line)["rec"] for line in journal.read_text(encoding="utf-8").splitlines()]


def head_of(project):
    return git(project.root, "rev-parse", "HEAD").strip()


def noted(project, *paths, is_same=True):
    done = []
    is_recorded = note_committed(
        project.workspace(),
        "main",
        head_of(project),
        paths,
        AUTHOR,
        is_same=lambda: is_same,
        done=lambda: done.append(1),
    )
    assert is_recorded == bool(done)
    return is_recorded


def test_the_record_is_the_one_that_a_sync_makes(committed, tmp_path):
    project, path = committed
    other = Project(shutil.copytree(project.root, tmp_path / "other", symlinks=True), is_new=False)
    number = len(recorded(project.root))
    assert noted(project, path)
    other.sync()
    mine, others = recorded(project.root), recorded(other.root)
    assert len(mine) == len(others) == number + 1
    assert {key: mine[-1][key] for key in ("schema", "digest", "source", "ops", "message", "commit")} == {
        key: others[-1][key] for key in ("schema", "digest", "source", "ops", "message", "commit")
    }
    assert project.sync().is_idle
    assert len(recorded(project.root)) == number + 1


def test_it_needs_no_duckdb_and_nothing_that_reads_documents(committed):
    project, path = committed
    words = [sys.executable, "-c", WITHOUT_DUCKDB, str(project.root), head_of(project), path]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "True set()\n"


def test_nothing_is_recorded_twice(committed):
    project, path = committed
    assert noted(project, path)
    number = len(recorded(project.root))
    assert not noted(project, path)
    assert len(recorded(project.root)) == number


def test_nothing_is_recorded_where_the_store_has_other_records_by_now(committed):
    project, path = committed
    assert not noted(project, path, is_same=False)


@pytest.mark.parametrize("happens", ["gone", "edited", "of another store"])
def test_nothing_is_recorded_of_a_file_that_a_sync_has_to_read(committed, tmp_path, happens):
    project, path = committed
    place = project.root / path
    if happens == "gone":
        git(project.root, "rm", "-q", path)
    elif happens == "edited":
        place.write_bytes(place.read_bytes().replace(b'"now":"One"', b'"now":"Two"'))
        git(project.root, "add", path)
    else:
        other = Project(tmp_path / "other")
        other.apply(entities=[{"id": "S-2", "type": "symbol", "title": "Two", "status": "active"}])
        git(project.root, "rm", "-q", path)
        [path] = share(other.workspace(), "main").files
        shutil.copytree(other.root / ".kb/changes", project.root / ".kb/changes", dirs_exist_ok=True)
        git(project.root, "add", "-f", path)
    git(project.root, "commit", "-q", "-m", "other")
    number = len(recorded(project.root))
    assert not noted(project, path)
    assert len(recorded(project.root)) == number
