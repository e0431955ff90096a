"""Uncommitted changes: which files and which lines of them, with every kind of name and change."""

from __future__ import annotations

import os

import pytest

from kbcore.git import find_repository
from kbcore.git.uncommitted import FileChange, uncommitted
from tests.support.repository.repos import commit_files, git, git_env, make_repository

LINES = "".join(f"line {at}\n" for at in range(1, 9))
ODD = 'ü "quoted"\t.txt'


@pytest.fixture
def root(tmp_path):
    make_repository(tmp_path)
    commit_files(tmp_path, {"a.txt": LINES, "b.txt": LINES.upper(), ODD: LINES, "gone.txt": "1\n", "kind.txt": "2\n"})
    return tmp_path


def found(root):
    return uncommitted(find_repository(root), git_env())


def test_a_clean_worktree_has_no_change(root):
    assert found(root) == ()


def test_each_change_has_its_way_and_its_lines_staged_or_not(root):
    (root / "a.txt").write_text(LINES.replace("line 2\n", "").replace("line 5\n", "five\nsix\n"))
    git(root, "add", "a.txt")
    git(root, "mv", "b.txt", "moved.txt")
    (root / ODD).write_text(LINES + "more\n")
    (root / "gone.txt").unlink()
    (root / "new.txt").write_text("new\n")
    (root / "kind.txt").unlink()
    (root / "kind.txt").symlink_to("a.txt")
    assert found(root) == (
        FileChange("a.txt", "modified", lines=((1, 1), (4, 5))),
        FileChange("gone.txt", "deleted"),
        FileChange("kind.txt", "modified"),
        FileChange("moved.txt", "renamed", was="b.txt"),
        FileChange("new.txt", "new"),
        FileChange(ODD, "modified", lines=((9, 9),)),
    )


def test_content_that_looks_like_a_patch_moves_no_line(root):
    (root / "a.txt").write_text(LINES + "diff --git a/x b/x\n@@ -1 +1 @@\n")
    (root / "b.txt").write_text(LINES.upper().replace("LINE 3\n", "changed\n"))
    assert found(root) == (
        FileChange("a.txt", "modified", lines=((9, 10),)),
        FileChange("b.txt", "modified", lines=((3, 3),)),
    )


def test_a_conflict_names_its_file_once_and_moves_no_other(root):
    git(root, "checkout", "-q", "-b", "other")
    commit_files(root, {"a.txt": LINES.replace("line 1\n", "ours\n")})
    git(root, "checkout", "-q", "main")
    commit_files(root, {"a.txt": LINES.replace("line 1\n", "theirs\n")})
    with pytest.raises(AssertionError, match="CONFLICT"):
        git(root, "merge", "-q", "other")
    (root / "b.txt").write_text(LINES.upper().replace("LINE 3\n", "changed\n"))
    changes = {one.path: one for one in found(root)}
    assert changes.keys() == {"a.txt", "b.txt"}
    assert changes["b.txt"].lines == ((3, 3),)


def test_before_the_first_commit_every_file_that_git_does_not_ignore_is_new(tmp_path):
    make_repository(tmp_path, commits=0)
    for name in ("a.txt", "b.txt", "c.log"):
        (tmp_path / name).write_text("1\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    git(tmp_path, "add", "a.txt")
    assert [(one.path, one.way) for one in found(tmp_path)] == [
        (".gitignore", "new"),
        ("a.txt", "new"),
        ("b.txt", "new"),
    ]


def test_no_program_of_the_repository_is_run(root):
    mark = root / "ran"
    (root / ".git/info/attributes").write_text("*.txt diff=evil\n")
    git(root, "config", "diff.evil.command", f"touch {os.fspath(mark)}")
    git(root, "config", "diff.evil.textconv", f"touch {os.fspath(mark)}; cat")
    (root / "a.txt").write_text(LINES + "more\n")
    assert [one.path for one in found(root)] == ["a.txt"]
    assert not mark.exists()
