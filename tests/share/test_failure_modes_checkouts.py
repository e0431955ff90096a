"""Failure modes of sharing: clones and checkouts that lack files, and several worktrees of one repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.checks import run_checks
from kbcore.errors import InvalidQuery
from kbcore.maintenance.share_diagnosis import sharing_findings
from kbcore.share.sharing import share
from kbcore.sync.overlay import WorktreeFiles
from tests.support.repository.clones import Clone, hold
from tests.support.repository.repos import git

LACKING = "git has change files here and leaves them out of the worktree"


def test_a_clone_of_depth_1_has_the_full_answer(ann: Clone, clone: Callable[..., Clone]) -> None:
    ann.add("FACT-1", title="Later")
    ann.commit()
    ann.push()
    bob = clone("bob", "--depth=1")
    hold(bob)
    assert bob.facts() == ann.facts()
    bob.add("FACT-1", title="By bob")
    bob.commit()
    bob.push()
    ann.pull()
    hold(ann, bob)
    assert bob.facts() == ann.facts()


def test_a_clone_without_blobs_has_the_full_answer(ann: Clone, up: Path, clone: Callable[..., Clone]) -> None:
    git(up, "config", "uploadpack.allowFilter", "true")
    bob = clone("bob", "--filter=blob:none")
    hold(bob)
    assert bob.facts() == ann.facts()


def without_files(clone: Clone, how: str) -> None:
    """Take the change files out of the worktree, but not out of the commits."""
    if how == "sparse checkout":
        clone.git("sparse-checkout", "set", "docs")
    else:
        clone.git("update-index", "--skip-worktree", *clone.changes())
        for path in clone.changes():
            (clone.root / path).unlink()
    clone.is_sparse = True
    assert not clone.changes()


@pytest.mark.parametrize("how", ["sparse checkout", "skip-worktree"])
def test_files_that_are_not_checked_out_take_nothing_back_and_are_named(bob: Clone, how: str) -> None:
    before = bob.facts()
    without_files(bob, how)
    hold(bob, is_damaged=True)
    assert bob.facts() == before
    answer = bob.sync()
    assert {one.code for _, one in answer.problems} == {"not_checked_out"}
    bob.git("sparse-checkout", "disable")
    bob.git("update-index", "--no-skip-worktree", *bob.committed())
    bob.git("checkout", "--quiet", "--", ".kb")
    bob.is_sparse = False
    hold(bob)
    assert bob.facts() == before


def test_in_a_sparse_checkout_the_attributes_of_the_project_stay_as_they_are(bob: Clone) -> None:
    attributes = "schema/** text\nchanges/** -text -filter -merge\n"
    (bob.root / ".kb/.gitattributes").write_text(attributes)
    bob.git("commit", "--quiet", "--all", "--no-verify", "-m", "attributes")
    bob.git("sparse-checkout", "set", "docs")
    assert not (bob.root / ".kb/.gitattributes").exists()
    bob.sync()
    bob.add("FACT-1", title="By bob")
    share(bob.workspace(), bob.branch)
    assert f"{bob.git('show', ':.kb/.gitattributes')}\n" == attributes
    staged = bob.git("diff", "--cached", "--name-only").splitlines()
    assert [path.endswith(".jsonl") for path in staged] == [True]
    assert not [one for one in sharing_findings(bob.workspace(), bob.branch) if "attributes" in one.code]


def test_readers_before_the_sync_do_not_miss_what_is_not_checked_out(bob: Clone) -> None:
    without_files(bob, "sparse checkout")
    found = WorktreeFiles().read(
        bob.workspace(), "main", lambda view, one: (view.nodes(["FACT-1"]), one.reason), time_s=30
    )
    assert ([node.id for node in found[0]], found[1]) == (["FACT-1"], "")


def test_a_fresh_sparse_clone_says_that_it_lacks_the_changes(ann: Clone, up: Path) -> None:
    bob = Clone(up.parent / "bob", "bob", ann.machine)
    git(up.parent, "clone", "--quiet", "--no-checkout", up.as_uri(), bob.root)
    bob.git("sparse-checkout", "set", "--no-cone", "/*", "!/.kb/changes")
    bob.git("checkout", "--quiet", "main")
    answer = bob.sync()
    assert "FACT-1" not in bob.titles()
    assert {(path, one.code) for path, one in answer.problems} == {(".kb/changes", "not_checked_out")}
    assert answer.bad
    state = WorktreeFiles().read(bob.workspace(), "main", lambda _, found: found, time_s=30)
    assert (state.freshness, state.reason.split(",")[0]) == ("current", LACKING)
    violations = run_checks(bob.workspace(), bob.view(), branch="main").violations
    assert all(one.message.startswith(LACKING) for one in violations if one.rule == "unreadable-source")
    assert "unreadable-source" in {one.rule for one in violations}
    ann.fact("FACT-2")
    ann.commit()
    ann.push()
    bob.pull()
    assert bob.sync().bad
    bob.git("sparse-checkout", "disable")
    assert not WorktreeFiles().read(bob.workspace(), "main", lambda _, found: found.reason, time_s=30)
    hold(bob)
    assert bob.facts() == ann.facts()
    bob.close()


def test_worktrees_on_other_branches_share_into_their_own_tree(ann: Clone) -> None:
    other = Clone(ann.root.parent / "other", "eve", ann.machine)
    ann.git("worktree", "add", "--quiet", "-b", "feature", other.root)
    other.sync()
    other.own["feature"], other.once_committed["feature"] = dict(ann.own["main"]), set(ann.once_committed["main"])
    ann.add("FACT-1", title="On main")
    other.add("FACT-1", title="On feature")
    there = ann.changes()
    other.commit()
    assert ann.changes() == there
    ann.commit()
    hold(ann, other)
    assert (ann.titles()["FACT-1"], other.titles()["FACT-1"]) == ("On main", "On feature")
    ann.git("merge", "--quiet", "--no-edit", "feature")
    hold(ann, other)
    assert ann.conflicts() == {("FACT-1", "title")}
    other.close()


def test_a_detached_head_has_what_its_commit_has_and_shares_into_it(bob: Clone) -> None:
    bob.git("switch", "--quiet", "--detach")
    bob.follow("main")
    hold(bob)
    bob.fact("FACT-2")
    bob.commit("detached")
    bob.follow(bob.branch)
    hold(bob)
    commit = bob.git("rev-parse", "HEAD")
    bob.switch("main")
    hold(bob)
    assert "FACT-2" not in bob.titles()
    bob.git("merge", "--quiet", commit)
    hold(bob)
    assert "FACT-2" in bob.titles()


def test_a_bare_repository_is_refused_and_its_worktrees_share(ann: Clone, up: Path) -> None:
    tree = Clone(up.parent / "tree", "eve", ann.machine)
    git(up, "worktree", "add", "--quiet", "-b", "feature", tree.root)
    tree.sync()
    tree.fact("FACT-2")
    tree.commit()
    hold(tree)
    assert "FACT-2" in tree.titles()
    bare = Clone(up, "eve", ann.machine)
    with pytest.raises(InvalidQuery):
        bare.share()
    for one in (bare, tree):
        one.close()


def test_a_submodule_and_a_nested_repository_share_into_themselves(ann: Clone, up: Path) -> None:
    outer = Clone(up.parent / "outer", "eve", ann.machine)
    git(up.parent, "clone", "--quiet", up.as_uri(), outer.root)
    outer.git("submodule", "--quiet", "add", up.as_uri(), "docs/sub")
    outer.git("clone", "--quiet", up.as_uri(), "docs/nested")
    outer.sync()
    (outer.root / ".git/info/exclude").write_text("docs/nested\n")
    before = outer.changes()
    for name in ("sub", "nested"):
        inner = Clone(outer.root / "docs" / name, name, ann.machine)
        inner.sync()
        inner.fact(f"FACT-{name}")
        inner.commit()
        hold(inner)
        assert len(inner.changes()) == 2
        inner.close()
    outer.git("add", "docs/sub")
    outer.fact("FACT-outer")
    outer.commit()
    assert len({*outer.changes()} - {*before}) == 1
    assert {"FACT-1", "FACT-outer"} <= outer.titles().keys()
    assert not {"FACT-sub", "FACT-nested"} & outer.titles().keys()
    outer.close()
