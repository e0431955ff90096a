"""The repository that a folder belongs to, and the place of its ``.kb``."""

from __future__ import annotations

import os

import pytest

from kbcore.errors import GitUnusable, NotARepository
from kbcore.git import find_repository
from tests.support.repository.repos import add_submodule, add_worktree, commit_files, git, make_repository


def test_the_nearest_repository_upwards_is_found(root):
    (root / "a" / "b").mkdir(parents=True)
    found = find_repository(root / "a" / "b")
    assert found.worktree == root
    assert found.git_dir == found.common_dir == root / ".git"
    assert found.kb_root == root
    assert found.has_worktree


def test_outside_of_any_repository_the_error_names_the_folder(tmp_path):
    with pytest.raises(NotARepository, match=tmp_path.name):
        find_repository(tmp_path)


def test_a_folder_that_does_not_exist_is_not_taken_for_one_inside(root):
    with pytest.raises(NotARepository, match="does not exist"):
        find_repository(root / "nowhere")


def test_a_dot_git_folder_that_is_no_repository_is_passed_over_as_git_does(root):
    (root / "a" / ".git").mkdir(parents=True)
    assert git(root / "a", "rev-parse", "--show-toplevel") == str(root)
    assert find_repository(root / "a").worktree == root


def test_a_symlinked_start_gives_the_real_worktree(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    assert find_repository(tmp_path / "link").worktree == root


@pytest.mark.parametrize("relative", [False, True])
def test_linked_worktrees_share_the_kb_of_the_main_one(root, tmp_path, relative):
    linked = add_worktree(root, tmp_path / "linked", "feature")
    admin = root / ".git" / "worktrees" / "linked"
    if relative:
        (linked / ".git").write_text(f"gitdir: {os.path.relpath(admin, linked)}\n")
        (admin / "gitdir").write_text(os.path.relpath(linked / ".git", admin) + "\n")
    assert git(linked, "branch", "--show-current") == "feature"
    found = find_repository(linked)
    assert (found.worktree, found.git_dir) == (linked, admin)
    assert (found.common_dir, found.kb_root) == (root / ".git", root)
    assert found.has_worktree


def test_a_submodule_is_a_repository_of_its_own(root, tmp_path):
    other = make_repository(tmp_path / "other")
    sub = add_submodule(root, other, "deep/süb")
    found = find_repository(sub)
    assert found.git_dir == root / ".git" / "modules" / "deep" / "süb"
    assert found.worktree == found.kb_root == sub
    assert found.has_worktree


def test_worktrees_of_a_submodule_share_the_submodule_s_kb(root, tmp_path):
    sub = add_submodule(root, make_repository(tmp_path / "other"))
    linked = add_worktree(sub, tmp_path / "linked", "feature")
    assert find_repository(linked).kb_root == find_repository(sub).kb_root == sub


def test_sparse_checkout_which_moves_settings_does_not_move_the_kb_of_a_submodule(root, tmp_path):
    other = make_repository(tmp_path / "other")
    commit_files(other, {"a/x": "1", "b/y": "1"})
    sub = add_submodule(root, other)
    git(sub, "sparse-checkout", "set", "a")
    config = (root / ".git" / "modules" / "sub" / "config").read_text().lower()
    if "worktree" in config.replace("worktreeconfig", ""):
        pytest.skip("this git leaves core.worktree where it was")
    assert find_repository(sub).kb_root == sub


def test_a_submodule_inside_a_linked_worktree_keeps_its_own_kb(root, tmp_path):
    add_submodule(root, make_repository(tmp_path / "other"))
    linked = add_worktree(root, tmp_path / "linked", "feature")
    git(linked, "submodule", "--quiet", "update", "--init")
    assert find_repository(linked / "sub").kb_root == linked / "sub"


def test_a_bare_repository_keeps_the_kb_inside_and_shares_it_with_its_worktrees(tmp_path):
    git(tmp_path, "clone", "--quiet", "--bare", make_repository(tmp_path / "source"), "project.git")
    bare = tmp_path / "project.git"
    linked = add_worktree(bare, tmp_path / "linked", "feature")
    assert find_repository(linked).kb_root == bare
    assert find_repository(linked).has_worktree
    found = find_repository(bare)
    assert (found.worktree, found.git_dir, found.kb_root) == (bare, bare, bare)
    assert not found.has_worktree


def test_a_bare_repository_that_a_dot_git_file_names_is_still_bare(tmp_path):
    source = make_repository(tmp_path / "source")
    (tmp_path / "project").mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", source, "project/.bare")
    (tmp_path / "project" / ".git").write_text("gitdir: ./.bare\n")
    linked = add_worktree(tmp_path / "project", tmp_path / "project" / "linked", "feature")
    assert not find_repository(tmp_path / "project").has_worktree
    assert find_repository(tmp_path / "project").kb_root == find_repository(linked).kb_root


def test_inside_the_git_directory_the_repository_is_the_one_around_it(root, tmp_path):
    linked = add_worktree(root, tmp_path / "linked", "feature")
    assert find_repository(root / ".git" / "refs").worktree == root
    assert find_repository(root / ".git" / "worktrees" / "linked").worktree == linked


def test_a_git_directory_kept_elsewhere_is_named_by_core_worktree(tmp_path):
    git(tmp_path, "init", "--quiet", "--separate-git-dir=elsewhere.git", "project")
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere.git"
    assert find_repository(project).worktree == project
    assert find_repository(project).kb_root == elsewhere
    git(project, "config", "core.worktree", "../project")
    assert find_repository(project).kb_root == project


def test_core_worktree_cannot_make_kb_write_into_a_folder_that_does_not_lead_back(tmp_path):
    victim = make_repository(tmp_path / "victim")
    git(tmp_path, "init", "--quiet", "--separate-git-dir=evil.git", "project")
    for target in (victim, tmp_path):
        git(tmp_path / "evil.git", "config", "core.worktree", target)
        assert find_repository(tmp_path / "project").kb_root == tmp_path / "evil.git"


@pytest.mark.parametrize(
    "line",
    ['worktree = "../../../a;b" ; the tree', 'WorkTree="../../../a;b"', 'worktree = ../../../"a;"b # x'],
)
def test_core_worktree_is_read_as_git_reads_it(root, tmp_path, line):
    sub = add_submodule(root, make_repository(tmp_path / "other"), "a;b")
    config = root / ".git" / "modules" / "a;b" / "config"
    config.write_text(f'[core "x"]\n\tworktree = /\n[core] bare = false\n\t{line}\n[branch "main"]\n\tremote\n')
    assert git(sub, "rev-parse", "--show-toplevel") == str(sub)
    assert find_repository(sub).kb_root == sub


def test_git_dir_and_work_tree_set_by_the_user_are_followed(root, tmp_path):
    linked = add_worktree(root, tmp_path / "linked", "feature")
    found = find_repository(tmp_path, git_dir=root / ".git")
    assert (found.worktree, found.kb_root) == (root, root)
    found = find_repository(linked, git_dir=root / ".git" / "worktrees" / "linked")
    assert (found.worktree, found.kb_root) == (linked, root)
    found = find_repository(tmp_path, git_dir=linked / ".git", work_tree=tmp_path)
    assert (found.worktree, found.git_dir) == (tmp_path, root / ".git" / "worktrees" / "linked")
    with pytest.raises(NotARepository, match="is not a git directory") as caught:
        find_repository(root, git_dir=tmp_path)
    assert "GIT_DIR" in caught.value.hint


def test_a_home_directory_kept_in_a_bare_repository_works_with_both_variables(tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "dotfiles")
    found = find_repository(tmp_path, git_dir=tmp_path / "dotfiles", work_tree=tmp_path)
    assert (found.worktree, found.kb_root, found.has_worktree) == (tmp_path, tmp_path / "dotfiles", True)
    assert not find_repository(tmp_path, git_dir=tmp_path / "dotfiles").has_worktree


@pytest.mark.parametrize("content", ["", "nonsense\n", "gitdir: /nowhere/at/all\n"])
def test_a_dot_git_file_that_leads_nowhere_is_named_with_a_remedy(tmp_path, content):
    (tmp_path / ".git").write_text(content)
    with pytest.raises(NotARepository, match=r"\.git") as caught:
        find_repository(tmp_path)
    assert "git worktree repair" in caught.value.hint


def test_a_huge_pointer_file_is_refused_rather_than_read(tmp_path):
    (tmp_path / ".git").write_text("gitdir: " + "x" * 200_000)
    with pytest.raises(GitUnusable, match="larger"):
        find_repository(tmp_path)


def test_a_place_that_cannot_be_looked_at_is_refused_in_words(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for start in (tmp_path / ("x" * 300), tmp_path / "loop" / "x", tmp_path / "none"):
        with pytest.raises(NotARepository, match=r"cannot be looked at|does not exist"):
            find_repository(start)
