"""The hooks folder that KB writes to, and those that it leaves to others."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from kbcli import hooks
from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import Command, parts_of
from tests.support.repository.hooks import (
    EVENTS,
    calls,
    env_with,
    hook,
    install,
    make_husky,
    make_program,
    outcome,
    status,
    uninstall,
)
from tests.support.repository.repos import add_submodule, add_worktree, git, make_repository, run_git


def test_hooks_go_where_core_hooks_path_says_and_name_no_path_of_this_machine(root, program):
    git(root, "config", "core.hooksPath", ".githooks")
    assert outcome(install(root, fallback=program)) == [(event, "active", "created") for event in EVENTS]
    assert not hook(root).exists()
    assert os.fsencode(program.parent) not in (root / ".githooks" / "post-checkout").read_bytes()
    assert {result.state for result in status(root, fallback=program)} == {"active"}
    git(root, "switch", "--quiet", "-c", "feature", env=env_with(program.parent))
    assert len(calls(program)) == 1


def test_hooks_that_a_later_hooks_path_shadows_are_reported_and_uninstalled(root):
    install(root)
    git(root, "config", "core.hooksPath", ".githooks")
    found = status(root)
    assert [result.state for result in found] == ["ignored"] * 5
    assert found[0].path == str(hook(root))
    assert str(root / ".githooks") in found[0].hint
    install(root)
    results = uninstall(root)
    assert [result.action for result in results] == ["deleted"] * 10
    assert not hook(root).exists()


def test_a_remedy_holds_the_command_with_the_folder_as_data_and_shows_it_quoted(root, tmp_path):
    shared = tmp_path / "it's shared"
    shared.mkdir()
    git(root, "config", "core.hooksPath", shared)
    result = install(root)[0]
    command = Command("hooks", ("install", "--hooks-path", str(shared)), "run")
    assert command in parts_of(result.remedy)
    assert f"run `kb hooks install --hooks-path {shlex.quote(str(shared))}`" in result.hint
    assert result.as_json()["remedy"] == result.hint


def test_hooks_shadowed_by_a_folder_shared_with_other_repositories_are_uninstalled(root, tmp_path):
    install(root)
    git(root, "config", "core.hooksPath", tmp_path)
    assert status(root)[0].state == "ignored"
    assert [result.action for result in uninstall(root)] == ["deleted"] * 5
    assert not hook(root).exists()


def test_a_hooks_folder_shared_with_other_repositories_is_not_written_unasked(root, tmp_path):
    shared = tmp_path / "shared hooks"
    shared.mkdir()
    git(root, "config", "core.hooksPath", shared)
    result = install(root)[0]
    assert (result.state, result.action) == ("outside", "none")
    assert f"--hooks-path '{shared}'" in result.hint
    assert list(shared.iterdir()) == []
    assert install(root, hooks_path=shared)[0].state == "active"
    assert status(root)[0].state == "active"
    assert uninstall(root)[0].action == "none"
    assert uninstall(root, hooks_path=shared)[0].action == "deleted"


def test_a_git_hooks_folder_that_links_out_of_the_repository_is_not_written(root, tmp_path):
    (root / ".git" / "hooks").rename(tmp_path / "elsewhere")
    (root / ".git" / "hooks").symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").iterdir())
    assert outcome(install(root))[0] == ("post-checkout", "outside", "none")
    assert sorted((tmp_path / "elsewhere").iterdir()) == before


def test_hooks_that_were_switched_off_are_said_to_be_off(root):
    git(root, "config", "core.hooksPath", os.devnull)
    result = install(root)[0]
    assert (result.state, result.action) == ("outside", "none")
    assert "git runs no hooks" in result.hint


def test_an_empty_hooks_path_does_not_put_hooks_where_git_does_not_look(root):
    before = sorted(root.iterdir())
    git(root, "config", "core.hooksPath", "")
    result = install(root)[0]
    assert (result.path, result.state, result.action) == ("/post-checkout", "outside", "none")
    assert "core.hooksPath is empty" in result.hint
    assert sorted(root.iterdir()) == before


def test_a_missing_hooks_folder_is_reported_once(root, tmp_path):
    install(root)
    git(root, "config", "core.hooksPath", tmp_path / "gone")
    remedy = status(root)[0].hint
    assert remedy.startswith(f"core.hooksPath is {tmp_path / 'gone'}, which is not there, so git runs no hooks here;")
    assert remedy.count("gone") == 1


def test_a_folder_that_is_named_is_run_by_git_until_uninstall(root):
    install(root)
    before = (root / ".git/config").read_text()
    folder = root / "tools" / "hooks"
    found = install(root, hooks_path=folder)
    assert outcome(found) == [
        *((event, "active", "created") for event in EVENTS),
        *((event, "absent", "deleted") for event in EVENTS),
    ]
    assert found[0].note.startswith("Set core.hooksPath to tools/hooks: ")
    assert [one.path for one in status(root)] == [str(folder / event) for event in EVENTS]
    again = install(root, hooks_path=folder)
    assert outcome(again) == [(event, "active", "kept") for event in EVENTS]
    assert {one.note for one in again} == {""}
    gone = uninstall(root)
    assert outcome(gone) == [(event, "absent", "deleted") for event in EVENTS]
    assert gone[0].note == "Unset core.hooksPath, which `kb` had set to tools/hooks."
    assert (root / ".git/config").read_text().replace("[kb]\n", "") == before.replace("[kb]\n", "")


def test_a_folder_outside_of_the_worktree_is_named_as_it_is(root, tmp_path):
    assert install(root, hooks_path=tmp_path / "hooks")[0].state == "active"
    assert git(root, "config", "core.hooksPath") == str(tmp_path / "hooks")


def test_a_link_to_a_hook_is_a_hook_that_would_be_lost(root):
    (root / "lint.sh").write_text("#!/bin/sh\n")
    (root / "lint.sh").chmod(0o755)
    hook(root, "pre-commit").symlink_to(root / "lint.sh")
    assert install(root, hooks_path=root / "hooks")[0].state == "ignored"


@pytest.mark.parametrize("content", [b"#!/bin/sh\necho mine\n", b"\x7fELF"])
def test_a_named_folder_is_not_run_where_other_hooks_would_be_lost(root, content):
    hook(root, "pre-commit", content)
    folder = root / "tools" / "hooks"
    result = install(root, hooks_path=folder)[0]
    assert (result.path, result.state, result.action) == (str(folder / "post-checkout"), "ignored", "created")
    assert "move pre-commit here" in result.hint
    assert f"git config core.hooksPath {folder}`" in result.hint
    assert run_git(root, "config", "core.hooksPath").returncode == 1
    hook(root, "pre-commit").chmod(0o644)  # git ignores it from then on
    assert outcome(install(root, hooks_path=folder))[0] == ("post-checkout", "active", "kept")


def test_a_hooks_path_of_the_user_s_own_is_neither_replaced_nor_unset(root):
    (root / "other").mkdir()
    git(root, "config", "core.hooksPath", "other")
    folder = root / "tools" / "hooks"
    with pytest.raises(InvalidQuery) as refused:
        install(root, hooks_path=folder)
    assert "core.hooksPath is 'other'" in refused.value.message
    assert str(root / "other") in refused.value.hint
    assert not folder.exists()
    git(root, "config", "core.hooksPath", "tools/hooks")
    assert outcome(install(root, hooks_path=folder))[0] == ("post-checkout", "active", "created")
    assert uninstall(root, hooks_path=folder)[0].action == "deleted"
    assert git(root, "config", "core.hooksPath") == "tools/hooks"


def test_a_folder_that_has_hooks_of_others_stays_the_one_that_git_runs(root):
    folder = root / "tools" / "hooks"
    install(root, hooks_path=folder)
    (folder / "pre-commit").write_text("#!/bin/sh\n")
    assert uninstall(root)[0].note == ""
    assert git(root, "config", "core.hooksPath") == "tools/hooks"


def test_husky_s_own_scripts_are_edited_and_not_what_husky_generates(root, program):
    make_husky(root)
    (root / ".husky" / "post-merge").write_text("echo mine\n")
    assert outcome(install(root, fallback=program)) == [
        ("post-checkout", "active", "created"),
        ("post-merge", "active", "added"),
        ("post-rewrite", "active", "created"),
        ("post-commit", "active", "created"),
        ("pre-commit", "active", "created"),
    ]
    assert b"kb hook" not in (root / ".husky" / "_" / "post-checkout").read_bytes()
    assert os.fsencode(program.parent) not in (root / ".husky" / "post-checkout").read_bytes()
    assert run_git(root, "switch", "--quiet", "-c", "feature", env=env_with(program.parent)).returncode == 0
    assert len(calls(program)) == 1
    uninstall(root)
    assert (root / ".husky" / "post-merge").read_text() == "echo mine\n"
    assert not (root / ".husky" / "post-checkout").exists()


def test_husky_that_was_not_run_in_a_linked_worktree_is_reported(root, tmp_path):
    make_husky(root)
    linked = add_worktree(root, tmp_path / "linked", "feature")
    assert outcome(install(linked))[0] == ("post-checkout", "ignored", "created")
    assert "husky" in status(linked)[0].hint


def test_a_submodule_gets_hooks_of_its_own(root, tmp_path):
    sub = add_submodule(root, make_repository(tmp_path / "other"))
    assert install(sub)[0].path == str(root / ".git" / "modules" / "sub" / "hooks" / "post-checkout")
    assert status(root)[0].state == "absent"


def test_the_kb_next_to_the_running_python_is_the_fallback_if_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python3"))
    assert hooks.own_program() is None
    program = make_program(tmp_path / "bin", "")
    assert hooks.own_program() == program
