"""``kb init`` lays out `.kb`, once; a second run repairs and changes nothing of the project's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.repository.hooks import EVENTS
from tests.support.repository.places import stores_at
from tests.support.repository.repos import add_worktree, commit_files, git, make_repository


def tree_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / ".kb").rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def test_init_lays_out_settings_schema_and_store_and_says_what_comes_next(kb, root):
    ran = kb("init")
    assert ran.status == 0
    assert "created .kb/config.json" in ran.out
    assert "kb sync" in ran.out
    assert {path.name for path in (root / ".kb").iterdir()} == {
        ".gitignore", "branches", "config.json", "config.schema.json", "rules", "schema",
    }  # fmt: skip
    assert (stores_at(root) / "main/head.json").is_file()
    assert (root / ".kb/branches").samefile(stores_at(root))
    assert (root / ".git/hooks/post-checkout").is_file()
    assert git(root, "status", "--porcelain", "--untracked-files=all").splitlines() == [
        "?? .kb/.gitignore", "?? .kb/config.json", "?? .kb/config.schema.json", "?? .kb/schema/core.yaml",
    ]  # fmt: skip


def test_a_second_init_changes_nothing(kb, root):
    kb("init")
    before = tree_of(root)
    answer = kb("init", "--json").json
    assert (answer["created"], answer["updated"]) == ([], [])
    assert answer["branch"] == {"name": "main", "is_new": False, "seq": 0}
    assert [hook["action"] for hook in answer["hooks"]] == ["kept"] * 5
    assert tree_of(root) == before
    assert "Already set up" in kb("init").out


def test_the_first_line_says_whether_it_was_set_up_repaired_or_updated(kb, root):
    assert kb("init").out.startswith("Set up KB in")
    (root / ".kb/rules").rmdir()
    repaired = kb("init").out
    assert repaired.startswith("Repaired KB in")
    assert "Next:" not in repaired
    git(root, "branch", "develop")
    assert kb("init", "--default-branch", "develop").out.startswith("Updated KB in")


def test_what_is_missing_is_made_again_and_what_the_project_wrote_stays(kb, root):
    kb("init", "--no-hooks")
    kb_dir = root / ".kb"
    (kb_dir / "config.json").write_text('{"lockWaitSeconds": 3}\n')
    (kb_dir / ".gitignore").write_text("mine\nbranches/")
    (kb_dir / "schema/core.yaml").write_text("entities: {}\n")
    (kb_dir / "schema/project.yaml").write_text("entities:\n  fact: {}\n")
    (kb_dir / "rules").rmdir()
    answer = kb("init", "--no-hooks", "--json").json
    assert answer["created"] == [".kb/rules/"]
    assert answer["updated"] == [".kb/schema/core.yaml", ".kb/.gitignore"]
    assert (kb_dir / "config.json").read_text() == '{"lockWaitSeconds": 3}\n'
    assert (kb_dir / ".gitignore").read_text() == "mine\nbranches/\n/branches\n/cache/\n"
    assert "fact" in kb("schema", "--json").json["entities"]


def test_hooks_are_left_alone_or_put_where_asked(kb, root, tmp_path):
    kb("init", "--no-hooks")
    assert not (root / ".git/hooks/post-merge").exists()
    answer = kb("init", "--hooks-path", "my hooks", "--json").json
    assert {hook["path"] for hook in answer["hooks"]} == {str(root / "my hooks" / event) for event in EVENTS}


def test_the_default_branch_is_the_one_that_is_there(kb, tmp_path):
    other = make_repository(tmp_path / "other", branch="trunk")
    assert kb("init", "--json", cwd=other).json["default_branch"] == "trunk"
    assert json.loads((other / ".kb/config.json").read_text())["defaultBranch"] == "trunk"
    old = make_repository(tmp_path / "old", branch="master")
    git(old, "switch", "-q", "-c", "feature")
    assert kb("init", "--json", cwd=old).json["default_branch"] == "master"


def test_on_main_nothing_is_written_down(kb, root):
    kb("init")
    assert json.loads((root / ".kb/config.json").read_text())["defaultBranch"] is None


def test_the_default_branch_can_be_named_and_later_changed_unless_the_file_is_the_users_own(kb, root):
    git(root, "branch", "develop")
    assert kb("init", "--default-branch", "develop", "--json").json["branch"]["name"] == "develop"
    assert kb("init", "--default-branch", "main", "--json").json["updated"] == [".kb/config.json"]
    config = root / ".kb/config.json"
    config.write_text('{"defaultBranch": "main", "rules": {}}')
    assert kb("init", "--default-branch", "main").status == 0
    ran = kb("init", "--default-branch", "develop")
    assert ran.status == 2
    assert "defaultBranch" in ran.err
    assert config.read_text() == '{"defaultBranch": "main", "rules": {}}'


@pytest.mark.parametrize("name", ["a..b", "", "a b", "x.lock"])
def test_a_name_that_cannot_be_a_branch_is_refused_before_anything_is_written(kb, root, name):
    assert kb("init", f"--default-branch={name}").status == 2
    assert not (root / ".kb").exists()


def test_init_in_a_folder_below_or_in_a_linked_worktree_sets_up_the_main_one(kb, root, tmp_path):
    below = root / "src"
    below.mkdir()
    assert f"`git -C {root} add .kb` keeps" in kb("init", cwd=below).out
    assert (root / ".kb/config.json").is_file()
    assert not (below / ".kb").exists()
    linked = add_worktree(root, tmp_path / "linked", "feature")
    assert kb("init", "--json", cwd=linked).json["kb"] == str(root / ".kb")
    assert not (linked / ".kb").exists()


def test_a_linked_worktree_with_settings_of_its_own_keeps_them_up_to_date(kb, root, tmp_path):
    kb("init", "--no-hooks")
    commit_files(root, {".kb/schema/core.yaml": "old", ".kb/config.json": "{}"})
    linked = add_worktree(root, tmp_path / "linked", "feature")
    assert str(linked / ".kb/schema/core.yaml") in kb("init", "--json", cwd=linked).json["updated"]
    assert kb("query", cwd=linked).status == 0


def test_a_broken_configuration_is_reported_and_not_replaced(kb, root):
    kb("init")
    (root / ".kb/config.json").write_text("{")
    ran = kb("init")
    assert ran.status == 63
    assert ".kb/config.json:1" in ran.err
    assert (root / ".kb/config.json").read_text() == "{"


def test_a_link_in_place_of_the_folder_is_not_followed(kb, root, tmp_path):
    (root / ".kb").symlink_to(tmp_path)
    assert kb("init").status == 24
    assert not (tmp_path / "config.json").exists()


def test_a_bare_repository_gets_a_kb_and_no_hooks(kb, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", "--initial-branch=main", bare)
    answer = kb("init", "--json", cwd=bare).json
    assert (answer["kb"], answer["hooks"]) == (str(bare / ".kb"), [])


def test_a_configuration_without_a_default_branch_is_not_said_to_name_one(kb, root):
    kb("init", "--no-hooks")
    (root / ".kb" / "config.json").write_text("{}")
    ran = kb("init", "--no-hooks", "--default-branch", "other")
    assert ran.status == 2
    assert ".kb/config.json is your own and sets no `defaultBranch`." in ran.err


def test_hooks_that_the_system_refuses_are_a_failure_and_all_else_is_kept(kb, root):
    hooks = root / ".git/hooks"
    for path in hooks.iterdir():
        path.unlink()
    hooks.rmdir()
    hooks.write_text("")
    ran = kb("init", "-q")
    assert (ran.status, ran.out) == (24, "")
    assert ran.err.count("warning: Hook p") == 5
    assert (stores_at(root) / "main/head.json").is_file()
    shown = kb("init", "--json")
    assert (shown.status, {hook["state"] for hook in shown.json["hooks"]}) == (24, {"failed"})
    assert kb("hooks", "install").status == 24
    assert kb("init", "--no-hooks").status == 0


def test_a_store_that_is_damaged_or_was_taken_away_is_reported(kb, synced):
    kb("query")
    (stores_at(synced) / "main/head.json").unlink()
    assert kb("init", "--no-hooks").status == 42
    shutil.rmtree(stores_at(synced) / "main")
    ran = kb("init", "--no-hooks", "-q")
    assert (ran.status, "The store of main is missing. seen: 1, now: no store" in ran.err) == (45, True)


def test_a_folder_of_hooks_that_git_would_not_run_is_refused_and_nothing_is_written(kb, root):
    git(root, "config", "core.hooksPath", "elsewhere")
    (root / "elsewhere").mkdir()
    ran = kb("init", "--hooks-path", "mine", cwd=root)
    assert (ran.status != 0, "core.hooksPath is 'elsewhere'" in ran.err) == (True, True), ran
    assert not (root / "mine").exists()
    assert not (root / ".kb").exists()
