"""Sums of contents that git keeps spare reading them, and are never needed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kbcore.storage.fs import RealFs
from kbcore.sync.blob_hash_cache import BlobSums
from kbcore.sync.documents import RepositoryDocuments
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files, git

MANY = {f"{number:040x}": "f" * 64 for number in range(500)}


def sums(cache: Path) -> BlobSums:
    return BlobSums(RealFs(), cache)


def test_what_was_learnt_is_known_the_next_time_as_far_as_it_is_asked_for(tmp_path):
    first = sums(tmp_path)
    first.learn(MANY | {"a": "1", "b": "2"})
    first.keep(dict.fromkeys([*MANY, "a", "unknown"]))
    assert [first.known(name) for name in ("a", "b", "unknown")] == ["1", "2", None]
    assert [sums(tmp_path).known(name) for name in ("a", "b", "unknown")] == ["1", None, None]


def test_little_that_is_new_is_not_written(tmp_path):
    found = sums(tmp_path / "cache")
    found.learn({"a": "1"})
    found.keep({"a": None})
    assert (found.known("a"), list(tmp_path.iterdir())) == ("1", [])


def test_few_new_contents_of_many_bytes_are_written(tmp_path):
    found = sums(tmp_path)
    found.learn({"a": "1"}, 1 << 19)
    found.keep({"a": None})
    assert sums(tmp_path).known("a") is None
    found.learn({"b": "2"}, 1 << 19)
    found.keep({"a": None, "b": None})
    assert [sums(tmp_path).known(name) for name in ("a", "b")] == ["1", "2"]


@pytest.mark.parametrize("data", [b"{", b"\xff", b'{"format": 0, "sums": {"a": "1"}}', b'{"format": 1, "sums": []}'])
def test_a_file_that_is_damaged_or_of_another_version_counts_as_none(tmp_path, data):
    (tmp_path / "blobs.json").write_bytes(data)
    assert sums(tmp_path).known("a") is None


def test_a_document_whose_sum_is_known_is_not_read(tmp_path):
    project = Project(tmp_path / "project")
    commit_files(project.root, {"docs/requirements/1.md": req("REQ-1")})
    project.sync()
    name = git(project.root, "rev-parse", "HEAD:docs/requirements/1.md")
    workspace = project.workspace()
    tree = {"docs/requirements/1.md": _blob(workspace)}
    known = sums(workspace.folders.cache_dir)
    known.learn(MANY | {name: hashlib.sha256(req("REQ-1").encode()).hexdigest()})
    known.keep(dict.fromkeys([*MANY, name]))
    (project.root / ".git/objects" / name[:2] / name[2:]).unlink()
    assert not RepositoryDocuments(workspace, workspace.store("main").claims).differing(project.view(), tree)
    project.close()


def _blob(workspace):
    from kbcore.git import blobs

    return blobs.tree_of(workspace.repo, workspace.machine.env, "HEAD")["docs/requirements/1.md"]
