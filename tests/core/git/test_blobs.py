"""The content of files in git, read without a checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbcore import limits
from kbcore.errors import GitUnusable
from kbcore.git import blobs, find_repository
from tests.support.repository.repos import commit_files, git, git_env, make_repository

ENV = git_env()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


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


@pytest.mark.parametrize("rev", ["nowhere", "HEAD:x", "--output=x", "", "HEAD^{tree}", ":/nothing", "a..b"])
def test_what_means_no_commit_is_none(root, rev):
    assert blobs.commit_of(find_repository(root), ENV, rev) is None


def test_a_tag_and_a_branch_mean_their_commit(root):
    git(root, "tag", "-a", "-m", "v1", "v1")
    head = git(root, "rev-parse", "HEAD")
    assert {blobs.commit_of(find_repository(root), ENV, rev) for rev in ("v1", "main", "HEAD", head[:8])} == {head}


def test_a_branch_has_its_last_commit_whatever_bytes_its_name_has(root):
    head = git(root, "rev-parse", "HEAD")
    git(root, "tag", "v1")
    git(root, "branch", os.fsdecode(b"caf\xe9"))
    repo = find_repository(root)
    assert [blobs.tip_of(repo, ENV, name) for name in ("main", r"caf\xe9", "v1")] == [head, head, None]


def test_the_time_of_a_commit_sorts_as_times_of_records_do(root):
    head = git(root, "rev-parse", "HEAD")
    assert blobs.commit_time(find_repository(root), ENV, head) == "2026-11-20T09:30:00.999999Z"


def test_what_git_ignores_is_what_it_does_not_keep(root):
    commit_files(root, {".gitignore": "docs/\n"})
    (root / "docs").mkdir()
    (root / "docs/kept.md").write_text("x")
    git(root, "add", "--force", "docs/kept.md")
    repo = find_repository(root)
    assert blobs.ignored(repo, ENV, ["docs/kept.md", "docs/other.md", "src/x"]) == {"docs/other.md"}
    assert blobs.ignored(repo, ENV, []) == set()


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


def test_the_commits_that_changed_a_file_are_those_of_all_refs_and_reflogs(root):
    first = commit_files(root, {"a": "one"})
    git(root, "switch", "--quiet", "-c", "other")
    second = commit_files(root, {"a": "two"})
    git(root, "commit", "--quiet", "--amend", "-m", "amended")
    git(root, "switch", "--quiet", "main")
    commit_files(root, {"b": "one"})
    found = blobs.commits_changing(find_repository(root), ENV, "a")
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
    found = blobs.authors_of_addition(repo, env, [*names, "absent.txt"])
    assert found == {**names, "a.txt": "Eve"}
    assert blobs.authors_of_addition(repo, env, []) == {}
