"""git is run with nothing of the repository's choosing, and its failures are explained."""

from __future__ import annotations

import os
import threading
import time

import pytest

from kbcore.errors import GitUnusable
from kbcore.git import LOCAL_ENV_VARS, find_repository, hooks_dir
from kbcore.git.commands import run_git, run_plain
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from tests.support.repository.repos import add_submodule, add_worktree, git, git_env, make_repository, set_trap

ENV = git_env()


def test_the_variables_kept_from_git_are_all_that_git_calls_local(tmp_path):
    assert set(git(tmp_path, "rev-parse", "--local-env-vars").split()) <= LOCAL_ENV_VARS


def test_a_booby_trapped_configuration_is_not_run(root, repo):
    marker = set_trap(root)
    git(root, "status", env=ENV)
    assert marker.exists(), "the trap does not work"
    marker.unlink()
    run_git(repo, ENV, ["status", "--porcelain"])
    run_git(repo, ENV, ["update-ref", "refs/heads/x", "HEAD"])
    assert not marker.exists()


def test_inherited_variables_and_configuration_are_not_passed_on(repo, tmp_path):
    other = make_repository(tmp_path / "other")
    env = ENV | {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": str(other),
    }
    answer = run_git(repo, env, ["rev-parse", "--show-toplevel"])
    assert answer.output == os.fsencode(repo.worktree) + b"\n"


def test_a_status_that_is_not_allowed_quotes_what_git_said(repo):
    assert run_git(repo, ENV, ["symbolic-ref", "-q", "refs/heads/main"], allowed=(0, 1)).status == 1
    with pytest.raises(GitUnusable, match=r"`git .*cat-file -e nothing` in .*project.*128.*nothing"):
        run_git(repo, ENV, ["cat-file", "-e", "nothing"])


def test_without_git_the_error_says_so(repo, tmp_path):
    for path in (str(tmp_path), "", "."):
        with pytest.raises(GitUnusable, match="not in any directory of PATH"):
            run_git(repo, {"PATH": path}, ["version"])


def test_a_program_called_git_inside_the_repository_is_not_run(root, repo):
    (root / "git").write_text("#!/bin/sh\ntouch was-run\n")
    (root / "git").chmod(0o755)
    run_git(repo, ENV | {"PATH": f".{os.pathsep}{os.pathsep}{ENV['PATH']}"}, ["version"])
    assert not (root / "was-run").exists()


def test_a_git_that_does_not_answer_is_given_up(repo, tmp_path):
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(GitUnusable, match=r"no answer within 0\.2 s"):
        run_git(repo, {"PATH": f"{tmp_path}:/usr/bin:/bin"}, ["version"], timeout_s=0.2)


def test_a_git_that_cannot_be_started_is_explained(repo, tmp_path):
    (tmp_path / "git").write_text("#!/nowhere/interpreter\n")
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(GitUnusable, match="could not be run"):
        run_git(repo, {"PATH": str(tmp_path)}, ["version"])


def test_hooks_are_in_the_common_git_directory(root, repo, tmp_path):
    linked = add_worktree(root, tmp_path / "linked", "feature")
    assert hooks_dir(repo, ENV) == root / ".git" / "hooks"
    assert hooks_dir(find_repository(linked), ENV) == root / ".git" / "hooks"


def test_hooks_of_a_submodule_and_of_a_bare_repository_are_their_own(root, tmp_path):
    sub = add_submodule(root, make_repository(tmp_path / "other"))
    assert hooks_dir(find_repository(sub), ENV) == root / ".git" / "modules" / "sub" / "hooks"
    git(tmp_path, "clone", "--quiet", "--bare", root, "project.git")
    assert hooks_dir(find_repository(tmp_path / "project.git"), ENV) == tmp_path / "project.git" / "hooks"


def test_a_configured_hooks_path_is_taken_from_the_worktree_wherever_kb_was_started(root, repo, tmp_path):
    linked = add_worktree(root, tmp_path / "linked", "feature")
    (root / "deep").mkdir()
    git(root, "config", "core.hooksPath", ".husky/_")
    assert hooks_dir(find_repository(root / "deep"), ENV) == root / ".husky" / "_"
    assert hooks_dir(find_repository(linked), ENV) == linked / ".husky" / "_"
    git(root, "config", "core.hooksPath", "~/shared")
    assert hooks_dir(repo, ENV | {"HOME": str(tmp_path)}) == tmp_path / "shared"


def test_hooks_paths_of_the_calling_git_do_not_count(root, repo):
    env = ENV | {"GIT_CONFIG_PARAMETERS": "'core.hooksPath=/elsewhere'", "GIT_DIR": "/elsewhere"}
    assert hooks_dir(repo, env) == root / ".git" / "hooks"


def test_git_s_refusal_of_somebody_else_s_repository_is_quoted(repo):
    with pytest.raises(GitUnusable, match=r"(?s)dubious ownership.*safe\.directory"):
        hooks_dir(repo, ENV | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})


@pytest.mark.parametrize("run", [run_git, run_plain])
def test_git_is_ended_when_the_work_is_stopped_and_not_begun_after_that(repo, tmp_path, run):
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\necho begun >> '{tmp_path}/begun'\nexec sleep 20\n")
    slow.chmod(0o755)
    env = ENV | {"PATH": f"{slow.parent}:{ENV['PATH']}"}
    work = CurrentWork()
    timer = threading.Timer(0.5, work.stop)
    begun_s = time.monotonic()
    with interrupting.done_for(work):
        timer.start()
        for _ in range(2):
            with pytest.raises(Stopped):
                run(repo, env, ["version"])
    assert time.monotonic() - begun_s < 5
    assert (tmp_path / "begun").read_text() == "begun\n"
