"""Whether git tracks what is in ``.kb``."""

from __future__ import annotations

import shutil
from pathlib import Path

from kbcore.clock import SystemClock
from kbcore.git import find_repository
from kbcore.store.kb_folder import count_tracked
from kbcore.store.pool import Machine
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.repos import commit_files, git, git_env, make_repository


def test_one_call_of_git_counts_the_files_of_the_index_and_of_head(tmp_path: Path) -> None:
    root, calls, stand_in = make_repository(tmp_path / "repo", commits=0), tmp_path / "calls", tmp_path / "bin/git"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\necho >> "{calls}"\nexec {shutil.which("git")} "$@"\n', encoding="utf-8")
    stand_in.chmod(0o755)
    machine = Machine(NoSyncFs(), SystemClock(), git_env({"PATH": str(stand_in.parent)}))

    def tracked() -> int:
        return count_tracked(machine, find_repository(root), root / ".kb", "branches")

    assert tracked() == 0
    (root / ".kb/branches").mkdir(parents=True)
    for name in "abc":
        (root / ".kb/branches" / name).write_text(name, encoding="utf-8")
    git(root, "add", ".kb/branches/a")
    assert tracked() == 1  # no commit yet
    commit_files(root, {".kb/branches/b": "b", ".kb/branches/x/a": "a", "branches/a": "a"})
    git(root, "rm", "--quiet", "--cached", ".kb/branches/a", ".kb/branches/x/a")
    git(root, "add", ".kb/branches/c")
    calls.unlink()
    assert tracked() == 4
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 1
