"""Revisions: what names a commit, times, and the commits that changed or added a file."""

from __future__ import annotations

import os

import pytest

from kbcore.git import find_repository, revisions
from tests.support.repository.repos import commit_files, git, git_env

ENV = git_env()


@pytest.mark.parametrize("rev", ["nowhere", "HEAD:x", "--output=x", "", "HEAD^{tree}", ":/nothing", "a..b"])
def test_what_means_no_commit_is_none(root, rev):
    assert revisions.commit_of(find_repository(root), ENV, rev) is None


def test_a_tag_and_a_branch_mean_their_commit(root):
    git(root, "tag", "-a", "-m", "v1", "v1")
    head = git(root, "rev-parse", "HEAD")
    assert {revisions.commit_of(find_repository(root), ENV, rev) for rev in ("v1", "main", "HEAD", head[:8])} == {head}


def test_a_branch_has_its_last_commit_whatever_bytes_its_name_has(root):
    head = git(root, "rev-parse", "HEAD")
    git(root, "tag", "v1")
    git(root, "branch", os.fsdecode(b"caf\xe9"))
    repo = find_repository(root)
    assert [revisions.tip_of(repo, ENV, name) for name in ("main", r"caf\xe9", "v1")] == [head, head, None]


def test_the_time_of_a_commit_sorts_as_times_of_records_do(root):
    head = git(root, "rev-parse", "HEAD")
    assert revisions.commit_time(find_repository(root), ENV, head) == "2026-11-20T09:30:00.999999Z"


def test_the_commits_that_changed_a_file_are_those_of_all_refs_and_reflogs(root):
    first = commit_files(root, {"a": "one"})
    git(root, "switch", "--quiet", "-c", "other")
    second = commit_files(root, {"a": "two"})
    git(root, "commit", "--quiet", "--amend", "-m", "amended")
    git(root, "switch", "--quiet", "main")
    commit_files(root, {"b": "one"})
    found = revisions.commits_changing(find_repository(root), ENV, "a")
    assert found is not None
    assert {*found} == {first, second, git(root, "rev-parse", "other")}


def test_files_have_the_author_of_the_last_commit_that_added_them(root):
    repo, env = find_repository(root), git_env()
    names = {"a.txt": "Ann", "b ü\n.txt": "Bob", "c.txt": "Ann"}
    for name, author in names.items():
        commit_files(root, {name: name})
        git(root, "commit", "-q", "--amend", "--no-edit", "--author", f"{author} <a@example.org>")
    commit_files(root, {"c.txt": "changed"})
    git(root, "rm", "-q", "a.txt")
    git(root, "commit", "-q", "-m", "gone")
    commit_files(root, {"a.txt": "back"})
    git(root, "commit", "-q", "--amend", "--no-edit", "--author", "Eve <e@example.org>")
    found = revisions.authors_of_addition(repo, env, [*names, "absent.txt"])
    assert found == {**names, "a.txt": "Eve"}
    assert revisions.authors_of_addition(repo, env, []) == {}
