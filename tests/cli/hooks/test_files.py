"""Hooks fired by real git: harmless to it, kind to what was there, and gone without a trace."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from kbcli.hooks import script
from tests.support.repository.hooks import (
    EVENTS,
    NO_KB,
    calls,
    env_with,
    hook,
    install,
    make_program,
    mode_of,
    outcome,
    status,
    uninstall,
)
from tests.support.repository.repos import add_worktree, commit_files, git, run_git


def test_a_fresh_install_creates_both_hooks_and_a_second_one_changes_nothing(root):
    assert outcome(install(root)) == [(event, "active", "created") for event in EVENTS]
    assert {mode_of(hook(root, event)) for event in EVENTS} == {0o755}
    assert all(hook(root, event).read_bytes().startswith(b"#!/bin/sh\n") for event in EVENTS)
    before = [hook(root, event).stat() for event in EVENTS]
    assert outcome(install(root)) == [(event, "active", "kept") for event in EVENTS]
    assert [hook(root, event).stat() for event in EVENTS] == before
    assert {result.hint for result in status(root)} == {""}


def test_switch_and_merge_fire_the_hooks_with_git_s_arguments(root, program):
    install(root)
    first = git(root, "rev-parse", "HEAD")
    env = env_with(program.parent)
    done = run_git(root, "switch", "-c", "feature", env=env)
    assert (done.returncode, "to-stdout" in done.stdout, "to-stdout" in done.stderr) == (0, False, True)
    commit_files(root, {"a": "1"})
    git(root, "switch", "main", env=env)
    git(root, "merge", "feature", env=env)
    last = git(root, "rev-parse", "HEAD")
    assert calls(program) == [
        f"{root}: hook post-checkout {first} {first} 1",
        f"{root}: hook post-checkout {last} {first} 1",
        f"{root}: hook post-merge 0",
    ]


def test_a_linked_worktree_fires_the_same_hooks_in_its_own_folder(root, program, tmp_path):
    linked = add_worktree(root, tmp_path / "linked", "feature")
    assert outcome(install(linked)) == [(event, "active", "created") for event in EVENTS]
    git(linked, "switch", "--quiet", "-c", "other", env=env_with(program.parent))
    assert [call.partition(":")[0] for call in calls(program)] == [str(linked)]


def test_without_kb_in_path_the_installing_program_is_used(root, program):
    install(root, fallback=program)
    assert git(root, "switch", "--quiet", "-c", "feature", env=NO_KB) == ""
    assert len(calls(program)) == 1


def test_the_kb_of_path_is_preferred_to_the_installing_program(root, program, tmp_path):
    newer = make_program(tmp_path / "newer", 'echo used >> "$(dirname "$0")/calls"')
    install(root, fallback=program)
    git(root, "switch", "--quiet", "-c", "feature", env=env_with(newer.parent))
    assert (calls(newer), calls(program)) == (["used"], [])


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$", "cat; exit 1", "exec /nowhere/python -m kb"])
def test_a_kb_that_crashes_does_not_make_git_fail(root, tmp_path, body):
    broken = make_program(tmp_path / "broken", body)
    install(root)
    assert run_git(root, "switch", "-c", "feature", env=env_with(broken.parent)).returncode == 0
    commit_files(root, {"a": "1"})
    run_git(root, "switch", "main")
    assert run_git(root, "merge", "feature", env=env_with(broken.parent)).returncode == 0


def test_a_deleted_kb_costs_nothing_and_gives_no_message(root, program):
    install(root, fallback=program)
    program.unlink()
    done = run_git(root, "switch", "--quiet", "-c", "feature", env=NO_KB)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_fallback_without_its_interpreter_does_not_make_git_fail(root, program):
    program.write_text("#!/nowhere/python\n")
    install(root, fallback=program)
    assert run_git(root, "switch", "--quiet", "-c", "feature", env=NO_KB).returncode == 0


EXISTING = [
    b"#!/bin/sh\necho mine\nexit 0\n",
    b"#!/bin/sh -e\nset -eu\necho mine\nexit 7\n",
    b"#!/usr/bin/env bash\nexec sh -c 'echo mine; exit 5'\n",
    b"#! /bin/bash\necho mine",
    b"echo mine\n",
    b"#!/bin/dash\n\n# \xe9\xff not utf-8\necho mine\nfalse\n",
]


@pytest.mark.parametrize("content", EXISTING)
def test_an_existing_script_still_runs_ends_as_before_and_is_given_back(root, program, content):
    path = hook(root, content=content, mode=0o750)
    before = run_git(root, "switch", "--quiet", "-c", "one", env=NO_KB)
    assert install(root, fallback=program)[0].action == "added"
    after = run_git(root, "switch", "--quiet", "-c", "two", env=NO_KB)
    assert "mine" in before.stdout + before.stderr
    assert (after.returncode, after.stdout) == (before.returncode, before.stdout)
    assert len(calls(program)) == 1
    assert mode_of(path) == 0o750
    assert uninstall(root)[0].action == "removed"
    assert (path.read_bytes(), mode_of(path)) == (content, 0o750)


def test_uninstall_deletes_files_that_hold_nothing_else_and_is_idempotent(root):
    install(root)
    assert outcome(uninstall(root)) == [(event, "absent", "deleted") for event in EVENTS]
    assert not hook(root).exists()
    assert outcome(uninstall(root)) == [(event, "absent", "none") for event in EVENTS]


def test_lines_of_another_version_or_program_are_outdated_and_replaced_in_place(root, program):
    old = script.block("post-checkout", None).replace(b"exec ", b"old-exec ")
    hook(root, content=b"#!/bin/sh\necho before\n" + old + b"echo after\n")
    assert (status(root)[0].state, status(root)[0].hint) == ("outdated", "Run `kb hooks install`.")
    assert outcome(install(root, fallback=program))[0] == ("post-checkout", "active", "updated")
    lines = script.block("post-checkout", program)
    assert hook(root).read_bytes() == b"#!/bin/sh\necho before\n" + lines + b"echo after\n"
    assert status(root, fallback=program)[0].state == "active"
    assert status(root)[0].state == "outdated"


@pytest.mark.parametrize(
    "content",
    [b"#!/usr/bin/env python3\nprint('mine')\n", b"\x7fELF\x00\x01", b"#!/usr/bin/fish\n", b"#!/bin/csh\n"],
)
def test_a_hook_that_is_no_shell_script_is_left_alone_with_the_line_to_add(root, content):
    path = hook(root, content=content)
    result = install(root)[0]
    assert (result.state, result.action) == ("foreign", "none")
    assert "kb hook post-checkout" in result.hint
    assert path.read_bytes() == content
    assert outcome(uninstall(root))[0][2] == "none"
    assert path.read_bytes() == content


def test_a_symlinked_hook_is_not_followed(root, tmp_path):
    outside = tmp_path / "shared-hook"
    outside.write_bytes(b"#!/bin/sh\n" + script.block("post-checkout", None))
    before = outside.read_bytes()
    hook(root).symlink_to(outside)
    assert outcome(install(root))[0] == ("post-checkout", "foreign", "none")
    assert "symbolic link" in install(root)[0].hint
    uninstall(root)
    assert hook(root).is_symlink()
    assert outside.read_bytes() == before


def test_a_script_that_is_not_executable_is_reported_and_not_brought_to_life(root, program):
    path = hook(root, content=b"#!/bin/sh\necho dormant\n", mode=0o644)
    result = install(root)[0]
    assert (result.state, result.action) == ("foreign", "none")
    assert "chmod +x" in result.hint
    assert (path.read_bytes(), mode_of(path)) == (b"#!/bin/sh\necho dormant\n", 0o644)


def test_a_hook_of_kb_alone_that_lost_its_mode_gets_it_back(root):
    install(root)
    hook(root).chmod(0o644)
    assert (status(root)[0].state, "chmod" in status(root)[0].hint) == ("ignored", True)
    assert outcome(install(root))[0] == ("post-checkout", "active", "updated")
    assert mode_of(hook(root)) == 0o755


def test_lines_in_a_script_that_lost_its_mode_are_reported_and_the_mode_is_left(root):
    hook(root, content=b"#!/bin/sh\necho mine\n")
    install(root)
    hook(root).chmod(0o644)
    assert outcome(install(root))[0] == ("post-checkout", "ignored", "kept")
    assert mode_of(hook(root)) == 0o644


def test_half_of_kb_s_lines_is_never_guessed_at(root):
    half = b"#!/bin/sh\n# >>> kb hook >>> x\necho mine\n"
    for content in (half, half + script.block("post-checkout", None)):
        path = hook(root, content=content)
        assert outcome(install(root))[0] == ("post-checkout", "foreign", "none")
        assert "by hand" in uninstall(root)[0].hint
        assert path.read_bytes() == content


def test_what_the_system_refuses_is_a_result_and_not_a_crash(root):
    for path in (root / ".git" / "hooks").iterdir():
        path.unlink()
    (root / ".git" / "hooks").rmdir()
    (root / ".git" / "hooks").write_text("")
    result = install(root)[0]
    assert (result.state, result.action) == ("failed", "none")
    assert "hooks" in result.hint
    assert uninstall(root)[0].state == "absent"


def test_a_refused_write_leaves_the_old_hook_and_no_other_file(root, monkeypatch):
    path = hook(root, content=b"#!/bin/sh\necho mine\n")
    before = sorted(path.parent.iterdir())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(os, "fsync", full)
    assert install(root)[0].state == "failed"
    assert path.read_bytes() == b"#!/bin/sh\necho mine\n"
    assert sorted(path.parent.iterdir()) == before


def test_the_module_loads_nothing_heavy():
    code = (
        "import sys, kbcli.hooks;"
        "print([m for m in ('typer', 'duckdb', 'mcp', 'pydantic', 'yaml', 'asyncio') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
