"""The meaning of HEAD, in every state that git can leave it in."""

from __future__ import annotations

import os
import statistics
import time

import pytest

from kbcore.errors import GitUnusable, NotARepository
from kbcore.git import HeadCache, HeadState, find_repository, read_branch, read_head
from tests.support.repository.repos import (
    add_submodule,
    add_worktree,
    commit_files,
    git,
    git_env,
    make_repository,
    run_git,
    set_trap,
    start_conflicting_rebase,
)

NO_GIT = {"PATH": "/nonexistent"}
"""Reading HEAD of ordinary repositories spawns nothing, so it needs no git."""


def head(folder, env=NO_GIT, cache=None) -> HeadState:
    repo = find_repository(folder)
    found = read_head(repo, env, cache=cache)
    if env is NO_GIT:
        assert read_branch(repo, env, cache=cache) == found.branch
    return found


@pytest.mark.parametrize("branch", ["main", "feature/login", "größe/é", "CON", "--output=pwn", "@", "a%2fb"])
def test_a_branch_is_read_with_its_commit(root, branch):
    git(root, "update-ref", f"refs/heads/{branch}", "HEAD")
    git(root, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    assert head(root) == HeadState(branch=branch, kind="branch", commit=git(root, "rev-parse", "HEAD"))


def test_a_packed_branch_has_its_commit_too(root):
    for name in ("mai", "main2", "x/main"):
        git(root, "branch", name)
    git(root, "tag", "-a", "-m", "annotated", "main")
    commit = commit_files(root, {"a": "1"})
    git(root, "pack-refs", "--all")
    assert not (root / ".git" / "refs" / "heads" / "main").exists()
    assert head(root) == HeadState(branch="main", kind="branch", commit=commit)


def test_a_loose_ref_wins_over_an_older_packed_one(root):
    git(root, "pack-refs", "--all")
    commit = commit_files(root, {"a": "1"})
    assert head(root).commit == commit


def test_a_branch_without_commits_is_unborn(tmp_path):
    root = make_repository(tmp_path / "project", branch="trunk", commits=0)
    assert head(root) == HeadState(branch="trunk", kind="unborn", commit=None)
    (root / ".git" / "refs" / "heads" / "trunk").mkdir()
    assert head(root).kind == "unborn"


def test_a_switch_is_seen_by_the_next_read(root):
    repo = find_repository(root)
    assert read_head(repo, NO_GIT).branch == "main"
    git(root, "switch", "--quiet", "-c", "other")
    assert read_head(repo, NO_GIT).branch == "other"
    git(root, "branch", "-m", "renamed")
    assert read_head(repo, NO_GIT).branch == "renamed"


def test_a_detached_head_is_named_after_its_commit(root):
    git(root, "switch", "--quiet", "--detach")
    commit = git(root, "rev-parse", "HEAD")
    assert head(root) == HeadState(branch=f"detached:{commit}", kind="detached", commit=commit)


def test_a_sha256_repository_works_too(tmp_path):
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "-b", "main", "project")
    commit = commit_files(tmp_path / "project", {"a": "1"})
    assert len(commit) == 64
    assert head(tmp_path / "project").commit == commit
    git(tmp_path / "project", "switch", "--quiet", "--detach")
    assert head(tmp_path / "project").branch == f"detached:{commit}"


@pytest.mark.parametrize("apply", [False, True])
def test_during_a_rebase_the_branch_is_the_one_being_rebased(root, apply):
    start_conflicting_rebase(root, "feature/a", apply=apply)
    found = head(root)
    assert (found.branch, found.kind) == ("feature/a", "rebasing")
    assert found.commit == git(root, "rev-parse", "HEAD")
    git(root, "rebase", "--abort")
    assert head(root).kind == "branch"


def test_rebasing_a_detached_head_is_just_detached(root):
    start_conflicting_rebase(root)
    git(root, "rebase", "--abort")
    git(root, "switch", "--quiet", "--detach", "feature")
    assert run_git(root, "rebase", "main").returncode != 0
    assert (root / ".git" / "rebase-merge" / "head-name").read_text() == "detached HEAD\n"
    assert head(root).kind == "detached"


def test_a_bisect_is_detached_and_says_where_it_began(root):
    commits = [commit_files(root, {"a": str(number)}) for number in range(4)]
    git(root, "bisect", "start", commits[3], commits[0])
    found = head(root)
    assert found.kind == "detached"
    assert found.branch == f"detached:{found.commit}"
    assert found.bisect_from == "main"


def test_each_worktree_and_submodule_has_its_own_head(root, tmp_path):
    linked = add_worktree(root, tmp_path / "linked", "feature/x")
    sub = add_submodule(root, make_repository(tmp_path / "other", branch="theirs"))
    assert head(linked).branch == "feature/x"
    assert head(linked).commit == git(linked, "rev-parse", "HEAD")
    assert head(sub).branch == "theirs"
    git(root, "clone", "--quiet", "--recurse-submodules", root, tmp_path / "clone")
    assert head(tmp_path / "clone" / "sub").kind in {"branch", "detached"}
    git(sub, "switch", "--quiet", "--detach")
    assert head(sub).kind == "detached"
    assert head(root).branch == "main"


def test_a_head_that_is_a_symlink_of_old_is_read(root):
    commit = git(root, "rev-parse", "HEAD")
    (root / ".git" / "HEAD").unlink()
    (root / ".git" / "HEAD").symlink_to("refs/heads/main")
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert head(root) == HeadState(branch="main", kind="branch", commit=commit)


def test_a_branch_that_is_an_alias_of_another_has_that_one_s_commit(root):
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    (root / ".git" / "HEAD").write_text("ref: refs/heads/alias\n")
    assert head(root).commit == git(root, "rev-parse", "main")
    git(root, "symbolic-ref", "refs/heads/main", "refs/heads/alias")
    assert head(root).kind == "unborn"


def test_a_name_that_is_not_utf8_becomes_text_that_no_other_branch_can_have(root):
    raw = os.fsdecode(b"caf\xe9")
    git(root, "switch", "--quiet", "-c", raw)
    assert head(root).branch == r"caf\xe9"
    assert head(root).kind == "branch"


@pytest.mark.parametrize(
    "content",
    [
        b"ref: refs/heads/../../x\n",
        b"ref: refs/heads/..\n",
        b"ref: refs/heads//etc/passwd\n",
        b"ref: refs/heads/a\x00b\n",
        b"ref: refs/heads/a\nb\n",
        b"ref: refs/heads/x\\xe9\n",
        b"ref: refs/heads/\n",
        b"ref: refs/tags/v1\n",
        b"ref: ../../etc/passwd\n",
        b"",
        b"nonsense\n",
        b"0123456789\n",
        b"a" * 100_000,
    ],
)
def test_what_git_would_never_write_is_refused_and_the_file_named(root, content):
    (root / ".git" / "HEAD").write_bytes(content)
    with pytest.raises(GitUnusable, match="HEAD") as caught:
        head(root)
    assert caught.value.message.isprintable()


def test_what_is_said_of_a_head_that_holds_nothing_of_use_restores_it(root):
    path = root / ".git/HEAD"
    path.write_text("")
    with pytest.raises(GitUnusable) as caught:
        head(root)
    path.write_text(caught.value.hint.split("`")[1].replace("NAME", "main"))
    assert git(root, "symbolic-ref", "--short", "HEAD") == head(root).branch == "main"


def test_a_pipe_in_place_of_head_does_not_hang(root):
    repo = find_repository(root)
    (root / ".git" / "HEAD").unlink()
    os.mkfifo(root / ".git" / "HEAD")
    with pytest.raises(GitUnusable, match="not a regular file"):
        read_head(repo, NO_GIT)


def test_a_missing_head_is_no_repository(root):
    repo = find_repository(root)
    (root / ".git" / "HEAD").unlink()
    with pytest.raises(NotARepository, match="HEAD is missing"):
        read_head(repo, NO_GIT)


def test_reading_head_runs_nothing_that_the_repository_configures(root):
    marker = set_trap(root)
    assert head(root, git_env()).branch == "main"
    assert not marker.exists()


def test_reading_head_takes_microseconds(root, tmp_path, capsys):
    linked = add_worktree(root, tmp_path / "linked", "feature/x")
    for name, folder in (("main", root), ("linked", linked)):
        repo, took_us = find_repository(folder), []
        for _ in range(500):
            began = time.perf_counter()
            read_head(repo, NO_GIT)
            took_us.append((time.perf_counter() - began) * 1e6)
        with capsys.disabled():
            print(f"\nread_head, {name} worktree: median {statistics.median(took_us):.0f} us")  # noqa: T201  the figure is for the reader
        assert len(took_us) == 500


def make_reftable(root, tmp_path, branch="feature/x"):
    """Turn a repository into what a reftable one looks like, with a stand-in for a git that can read it.

    The stand-in answers from two files and counts its calls: the git that runs the tests may be too old.
    """
    (root / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (root / ".git" / "reftable").mkdir()
    (root / ".git" / "reftable" / "tables.list").write_text("one\n")
    state = tmp_path / "state"
    state.mkdir()
    (state / "target").write_text(f"refs/heads/{branch}\n")
    (state / "commit").write_text("a" * 40 + "\n")
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    stand_in.write_text(
        f"#!/bin/sh\ncd '{state}'\necho \"$@\" >> calls\n"
        'case "$*" in *symbolic-ref*) answer=target;; *) answer=commit;; esac\n'
        'cat "$answer" 2>/dev/null || exit 1\n'
    )
    stand_in.chmod(0o755)
    return state, {"PATH": f"{stand_in.parent}:/usr/bin:/bin"}


def test_a_reftable_head_is_asked_of_git_and_remembered_until_its_tables_change(root, tmp_path):
    state, env = make_reftable(root, tmp_path)
    cache = HeadCache()
    expected = HeadState(branch="feature/x", kind="branch", commit="a" * 40)
    assert [head(root, env, cache) for _ in range(3)] == [expected] * 3
    assert len((state / "calls").read_text().splitlines()) == 2
    (state / "target").write_text("refs/heads/other\n")
    tables = root / ".git" / "reftable" / "tables.list"
    tables.with_suffix(".lock").write_text("two\n")
    tables.with_suffix(".lock").rename(tables)
    assert head(root, env, cache).branch == "other"


def test_a_reftable_head_without_a_cache_is_asked_each_time(root, tmp_path):
    state, env = make_reftable(root, tmp_path)
    assert head(root, env) == head(root, env)
    assert len((state / "calls").read_text().splitlines()) == 4


def test_a_reftable_head_can_be_unborn_detached_or_rebasing(root, tmp_path):
    state, env = make_reftable(root, tmp_path)
    (state / "commit").unlink()
    assert head(root, env) == HeadState(branch="feature/x", kind="unborn", commit=None)
    (state / "commit").write_text("b" * 40 + "\n")
    (state / "target").unlink()
    assert head(root, env).branch == "detached:" + "b" * 40
    (root / ".git" / "rebase-merge").mkdir()
    (root / ".git" / "rebase-merge" / "head-name").write_text("refs/heads/mine\n")
    assert head(root, env).branch == "mine"


def test_a_pipe_in_the_place_of_packed_refs_is_refused_and_not_waited_for(tmp_path):
    root = make_repository(tmp_path / "r")
    git(root, "pack-refs", "--all")
    (root / ".git/packed-refs").unlink()
    os.mkfifo(root / ".git/packed-refs")
    with pytest.raises(GitUnusable, match="not a regular file"):
        read_head(find_repository(root), git_env())
