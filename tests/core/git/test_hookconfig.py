"""Hooks by configuration: found out by asking, and written to the repository's own file alone."""

from __future__ import annotations

import pytest

from kbcore.errors import GitUnusable
from kbcore.git import find_repository
from kbcore.git.hookconfig import (
    ConfiguredHook,
    configured_hooks,
    remove_configured_hook,
    runs_at,
    write_configured_hook,
)
from tests.support.repository.gits import newer_git
from tests.support.repository.repos import git, git_env

EVENT = "post-merge"


def test_a_git_without_such_hooks_is_recognized_by_asking_it(root):
    write_configured_hook(find_repository(root), git_env(), "kb-x", "true", EVENT)
    assert runs_at(find_repository(root), git_env(), EVENT) is None


def test_a_git_with_such_hooks_says_which_it_runs(root):
    repo, env = find_repository(root), newer_git("configured hooks")
    assert runs_at(repo, env, EVENT) == {}
    write_configured_hook(repo, env, "kb-x", "true", EVENT)
    write_configured_hook(repo, env, "kb-y", "true", EVENT)
    git(root, "config", "hook.kb-y.enabled", "false")
    assert runs_at(repo, env, EVENT) == {"kb-x": True, "kb-y": False}
    git(root, "config", f"hook.{EVENT}.enabled", "false")
    assert runs_at(repo, env, EVENT) == {"kb-x": False, "kb-y": False}


def test_an_entry_is_read_as_it_was_written_and_others_are_left_alone(root):
    repo, env = find_repository(root), git_env()
    git(root, "config", "hook.linter.command", "lint")
    before = (root / ".git/config").read_text()
    command = """(kb='/it'\\''s "here"; x) </dev/null >&2 || :"""
    assert configured_hooks(repo, env, "kb-") == {}
    for _ in range(2):
        write_configured_hook(repo, env, "kb-a", command, EVENT)
        assert configured_hooks(repo, env, "kb-") == {"kb-a": ConfiguredHook(command, (EVENT,))}
    git(root, "config", "--add", "hook.kb-a.event", "post-checkout")
    assert configured_hooks(repo, env, "kb-")["kb-a"].events == (EVENT, "post-checkout")
    remove_configured_hook(repo, env, "kb-a")
    assert (root / ".git/config").read_text() == before
    with pytest.raises(GitUnusable, match=r"hook\.kb-a"):
        remove_configured_hook(repo, env, "kb-a")


def test_a_user_s_own_configuration_is_not_read(root, tmp_path):
    own = tmp_path / "own"
    own.write_text('[hook "kb-x"]\n\tcommand = x\n')
    assert configured_hooks(find_repository(root), git_env({"GIT_CONFIG_GLOBAL": str(own)}), "kb-") == {}
