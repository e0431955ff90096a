"""CODEOWNERS is read where a branch has it: from the worktree, or from its last commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore import limits
from kbcore.sync.code_owners import PLACES, code_owners, fault_lines
from tests.support.repository.project import Project
from tests.support.repository.repos import git


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "repo")
    yield made
    made.close()


def commit_all(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "change")


def owner(project: Project, branch: str = "main") -> tuple[str, ...] | None:
    found = code_owners(project.workspace(), branch).of("x.md")
    return found.owners if found else None


def test_the_first_place_with_such_a_file_counts(project):
    assert owner(project) is None
    for path in reversed(PLACES):
        project.write({path: f"* @of/{path}\n"})
        assert owner(project) == (f"@of/{path}",)


def test_a_branch_that_is_not_checked_out_has_the_file_of_its_last_commit(project):
    project.write({"docs/CODEOWNERS": "* @then\n"})
    commit_all(project.root)
    git(project.root, "branch", "other")
    project.write({"docs/CODEOWNERS": "* @now\n"})
    assert owner(project) == ("@now",)
    assert owner(project, "other") == ("@then",)
    assert owner(project, "no-such-branch") is None


def test_the_settings_turn_it_off(project):
    project.write({"CODEOWNERS": "* @all\n", ".kb/config.json": '{"codeowners": false}'})
    assert owner(project) is None


def test_a_file_that_must_not_be_read_gives_nothing_and_is_named(project, tmp_path):
    (tmp_path / "outside").write_text("* @all\n")
    (project.root / "CODEOWNERS").symlink_to(tmp_path / "outside")
    found = code_owners(project.workspace(), "main")
    assert (found.of("x.md"), [one.line for one in found.problems]) == (None, [0])
    (project.root / "CODEOWNERS").unlink()
    project.write({"CODEOWNERS": b"#" * (limits.MAX_CODE_OWNERS_BYTES + 1)})
    commit_all(project.root)
    git(project.root, "branch", "other")
    for branch in ("main", "other"):
        [line] = fault_lines(code_owners(project.workspace(), branch))
        assert line.startswith("CODEOWNERS: no owner of a file is known: it ")


def test_only_the_first_lines_that_give_nothing_are_said(project):
    project.write({"CODEOWNERS": "!x @a\n" * 8})
    lines = fault_lines(code_owners(project.workspace(), "main"))
    assert lines[0].startswith("CODEOWNERS:1: the line gives no owner: ")
    assert lines[-1] == "CODEOWNERS has 3 more problems."
