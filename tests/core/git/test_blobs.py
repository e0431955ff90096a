"""The content of files in git, read without a checkout."""

from __future__ import annotations

import os

import pytest

from kbcore import limits
from kbcore.errors import GitUnusable
from kbcore.git import blobs, find_repository
from tests.support.repository.repos import commit_files, git, git_env

ENV = git_env()


def test_a_commit_has_its_files_by_path_whatever_they_are_called(root):
    names = ["a\nb.md", 'quo"te.md', "ünïcode/ä.md", "-dash.md"]
    commit = commit_files(root, dict.fromkeys(names, "x"))
    (root / os.fsdecode(b"\xff.md")).write_text("x")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "bytes")
    repo = find_repository(root)
    assert set(blobs.tree_of(repo, ENV, commit)) == set(names)
    assert set(blobs.tree_of(repo, ENV, git(root, "rev-parse", "HEAD"))) == {*names, r"\udcff.md"}


def test_contents_come_once_for_each_name_and_not_beyond_the_limit(root):
    commit_files(root, {"a": "same\n", "b": "same\n", "empty": "", "c": "x" * (limits.MAX_CHANGE_FILE_BYTES + 1)})
    repo = find_repository(root)
    tree = blobs.tree_of(repo, ENV, git(root, "rev-parse", "HEAD"))
    found = list(blobs.contents(repo, ENV, [blob.id for blob in tree.values()]))
    assert len(found) == 3
    by_name = dict(found)
    assert [by_name[tree[name].id] for name in ("a", "empty", "c")] == [b"same\n", b"", None]


def test_a_content_that_is_not_there_is_refused(root):
    with pytest.raises(GitUnusable, match="is not in this clone"):
        list(blobs.contents(find_repository(root), ENV, ["0" * 39 + "1"]))


def test_a_file_at_commits_is_read_in_one_process_and_left_out_where_there_is_none(root):
    before = git(root, "rev-parse", "HEAD")
    commits = [commit_files(root, {".kb/config.json": text}) for text in ("one\n", "two\nlines\n", "")]
    gone = "0" * len(before)
    found = blobs.content_at(find_repository(root), ENV, [before, gone, *commits], ".kb/config.json")
    assert found == dict(zip(commits, (b"one\n", b"two\nlines\n", b""), strict=True))
    assert blobs.content_at(find_repository(root), ENV, [], "a") == {}


def test_a_file_at_commits_is_none_where_git_has_left_it_with_a_remote_and_the_others_are_read(root, tmp_path):
    commits = [commit_files(root, {"a": text}) for text in ("one", "two", "three", "four")]
    git(root, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", root.as_uri(), partial)
    git(partial, "cat-file", "blob", f"{commits[1]}:a")
    git(partial, "config", "remote.origin.url", tmp_path / "nowhere")
    found = blobs.content_at(find_repository(partial), ENV, commits, "a")
    assert found == dict(zip(commits, (None, b"two", None, b"four"), strict=True))


def test_a_file_at_a_commit_is_none_where_its_content_is_missing(root):
    commits = [commit_files(root, {".kb/config.json": text}) for text in ("one", "two")]
    blob = git(root, "rev-parse", f"{commits[0]}:.kb/config.json")
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = blobs.content_at(find_repository(root), ENV, commits, ".kb/config.json")
    assert found == dict(zip(commits, (None, b"two"), strict=True))
