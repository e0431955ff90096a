"""One way at a time: git's configuration where git has hooks there, files elsewhere."""

from __future__ import annotations

import pytest

from kbcli import hooks
from kbcore.git import find_repository
from tests.support.repository.gits import newer_git
from tests.support.repository.hooks import ENV, EVENTS, calls, hook, make_husky, make_program, outcome
from tests.support.repository.hooks import install as install_in_files
from tests.support.repository.hooks import status as status_in_files
from tests.support.repository.hooks import uninstall as uninstall_with_old_git
from tests.support.repository.repos import add_worktree, git, make_repository, run_git


@pytest.fixture(scope="module")
def newer():
    """The environment of a git that has hooks by configuration."""
    return newer_git("configured hooks")


def install(root, env, **options):
    return hooks.install(find_repository(root), env, **options)


def status(root, env, **options):
    return hooks.status(find_repository(root), env, **options)


def config_of(root) -> str:
    return (root / ".git/config").read_text()


def test_git_s_configuration_is_used_where_git_has_hooks_there_and_leaves_without_a_trace(root, newer):
    before = config_of(root)
    found = install(root, newer)
    assert outcome(found) == [(event, "active", "created") for event in EVENTS]
    assert {(one.way, one.path) for one in found} == {("config", str(root / ".git/config"))}
    assert "hookspath" not in config_of(root).lower()
    assert not hook(root).exists()
    assert outcome(install(root, newer)) == [(event, "active", "kept") for event in EVENTS]
    assert outcome(status(root, newer)) == [(event, "active", "none") for event in EVENTS]
    gone = hooks.uninstall(find_repository(root), newer)
    assert outcome(gone) == [(event, "absent", "removed") for event in EVENTS]
    assert config_of(root) == before
    assert outcome(status(root, newer)) == [(event, "absent", "none") for event in EVENTS]


def test_git_fires_the_configured_hooks_with_its_arguments_in_every_worktree(root, newer, program, tmp_path):
    install(root, newer, fallback=program)
    env = newer | {"PATH": newer["PATH"].partition(":")[0] + ":/usr/bin:/bin"}
    first = git(root, "rev-parse", "HEAD")
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "--quiet", "-b", "side", linked, env=env)
    git(linked, "commit", "--quiet", "--allow-empty", "-m", "one", env=env)
    done = run_git(root, "merge", "--ff-only", "side", env=env)
    assert "to-stdout" not in done.stdout
    git(linked, "commit", "--quiet", "--amend", "--allow-empty", "-m", "other", env=env)
    committed = [f"{linked}: hook pre-commit", f"{linked}: hook post-commit"]
    assert calls(program) == [
        f"{linked}: hook post-checkout {'0' * 40} {first} 1",
        *committed,
        f"{root}: hook post-merge 0",
        *committed,
        f"{linked}: hook post-rewrite amend",
    ]


@pytest.mark.parametrize("body", ["exit 3", "cat; exit 1", "exec /nowhere/python"])
def test_a_configured_kb_that_fails_does_not_make_git_fail(root, newer, tmp_path, body):
    install(root, newer, fallback=make_program(tmp_path / "it's broken", body))
    assert run_git(root, "switch", "-c", "feature", env=newer).returncode == 0


def test_files_give_way_to_the_configuration_and_come_back_with_an_older_git(root, newer):
    hook(root, "post-merge", b"#!/bin/sh\necho mine\n")
    install_in_files(root)
    hook(root, "post-rewrite").rename(hook(root, "post-rewrite.legacy"))
    found = install(root, newer)
    assert [one.action for one in found if one.way == "config"] == ["created"] * len(EVENTS)
    assert [one.action for one in found if one.way == "file"] == ["deleted", "removed", *["deleted"] * 3]
    assert [path.name for path in hook(root).parent.iterdir()] == ["post-merge"]
    stranded = status_in_files(root)
    assert [(one.state, one.way) for one in stranded] == [("ignored", "config")] * len(EVENTS)
    assert "`kb hooks install`" in stranded[0].hint
    back = install_in_files(root)
    assert [one.action for one in back if one.way == "file"] == ["created", "added", *["created"] * 3]
    assert "kb-post" not in config_of(root)


def test_hooks_in_both_places_are_reported_and_corrected(root, newer):
    install(root, newer)
    lines = (root / ".git/config").read_bytes()
    install_in_files(root)
    (root / ".git/config").write_bytes(lines)
    found = status(root, newer)
    assert [one.state for one in found] == ["outdated"] * len(EVENTS)
    assert str(hook(root)) in found[0].hint
    install(root, newer)
    assert [one.state for one in status(root, newer)] == ["active"] * len(EVENTS)
    assert not hook(root).exists()


def test_an_entry_that_names_another_program_is_outdated_and_one_switched_off_stays_off(root, newer, program):
    install(root, newer, fallback=program)
    assert [one.state for one in status(root, newer)] == ["outdated"] * len(EVENTS)
    assert [one.action for one in install(root, newer)] == ["updated"] * len(EVENTS)
    git(root, "config", "hook.kb-post-merge.enabled", "false")
    git(root, "config", "hook.post-rewrite.enabled", "false")
    switched_off = {"post-merge", "post-rewrite"}
    states = ["ignored" if event in switched_off else "active" for event in EVENTS]
    assert [one.state for one in install(root, newer)] == states
    assert "hook.post-rewrite.enabled" in status(root, newer)[2].hint


def test_a_tracked_hook_that_runs_kb_already_stays_the_way(root, newer):
    make_husky(root)
    install_in_files(root)
    found = install(root, newer)
    assert outcome(found) == [(event, "active", "kept") for event in EVENTS]
    assert {one.way for one in found} == {"file"}
    assert [one.state for one in status(root, newer)] == ["active"] * len(EVENTS)


def test_no_folder_of_hooks_shadows_the_configuration(root, newer, tmp_path):
    git(root, "config", "core.hooksPath", tmp_path)
    assert status(root, newer)[0].hint == "Run `kb hooks install`."
    assert [one.state for one in install(root, newer)] == ["active"] * len(EVENTS)
    assert "hook.kb-" not in config_of(make_repository(tmp_path / "other"))


def test_a_named_folder_gets_files_all_the_same(root, newer):
    install(root, newer)
    folder = root / ".git/hooks"
    found = install(root, newer, hooks_path=folder)
    assert [(one.way, one.action) for one in found] == [("file", "created"), ("config", "removed")] * len(EVENTS)
    assert [one.state for one in status(root, newer, hooks_path=folder)] == ["active"] * len(EVENTS)


def test_a_configuration_that_cannot_be_written_is_a_result(root, newer):
    (root / ".git/config.lock").touch()
    found = install(root, newer)
    assert [one.state for one in found] == ["failed"] * len(EVENTS)
    assert "could not lock config file" in found[0].hint


def test_an_older_git_takes_entries_out_as_well(root, newer):
    install(root, newer)
    assert [one.action for one in uninstall_with_old_git(root)] == ["removed"] * len(EVENTS)
    assert "hook" not in config_of(root)


def test_worktrees_of_a_bare_repository_share_its_hooks(tmp_path, newer):
    git(tmp_path, "clone", "--quiet", "--bare", make_repository(tmp_path / "source"), "project.git")
    linked = add_worktree(tmp_path / "project.git", tmp_path / "linked", "feature")
    other = add_worktree(tmp_path / "project.git", tmp_path / "other", "second")
    for env in (newer, ENV):
        assert [one.action for one in hooks.install(find_repository(linked), env) if one.state == "active"] == [
            "created"
        ] * len(EVENTS)
        assert [one.state for one in hooks.status(find_repository(other), env)] == ["active"] * len(EVENTS)
