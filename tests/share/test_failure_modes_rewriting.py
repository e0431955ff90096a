"""Failure modes of sharing: history that is rewritten, and files that git takes away and brings back."""

from __future__ import annotations

import pytest

from kbcore.maintenance.redaction import redact
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.share.unshared import find_unshared
from kbcore.store import branches
from tests.support.repository.clones import Clone, hold

BACKWARDS = 'f() { tac "$1" > "$1.new" && mv "$1.new" "$1"; }; f'
"""An editor that reverses the order of the lines of a list of commits."""


@pytest.fixture
def feature(ann: Clone, bob: Clone) -> Clone:
    """The clone of ann on a branch with three commits, one change each, which main has left behind."""
    ann.begin("feature")
    ann.fact("FACT-2", "First")
    ann.commit("first")
    ann.add("FACT-2", title="Second", attributes={"k": 1})
    ann.commit("second")
    ann.add("FACT-1", title="By feature", tags=["base", "new"])
    ann.commit("third")
    bob.add("FACT-1", title="By bob")
    bob.commit("on main")
    bob.push()
    ann.git("fetch", "--quiet")
    return ann


def withdrawn(clone: Clone) -> set[str]:
    """Return the messages of the changes that a commit had and no file has."""
    store, _, _ = branches.open_branch(clone.workspace(), None)
    return {one.change.id for one in store.claims().withdrawn(store.head().seq)}


def rebase(clone: Clone, *arguments: str, editor: str = "true") -> None:
    clone.git("rebase", "--quiet", *arguments, env={"GIT_SEQUENCE_EDITOR": editor})


def test_a_rebase_keeps_all_changes_and_finds_the_conflict(feature: Clone) -> None:
    rebase(feature, "origin/main")
    hold(feature)
    assert feature.titles()["FACT-2"] == "Second"
    assert feature.conflicts() == {("FACT-1", "title")}
    assert not withdrawn(feature)


def test_commits_in_another_order_come_to_the_same(feature: Clone) -> None:
    before = feature.facts()
    rebase(feature, "--interactive", "main", editor=BACKWARDS)
    hold(feature)
    assert feature.facts() == before


def test_a_dropped_commit_takes_its_changes_back(feature: Clone) -> None:
    rebase(feature, "--interactive", "main", editor="sed -i '/ second/d'")
    hold(feature)
    assert feature.titles()["FACT-2"] == "First"
    assert len(withdrawn(feature)) == 1
    assert not feature.share().files

    rebase(feature, "--interactive", "main", editor="sed -i '/ first/d'")
    hold(feature)
    assert "FACT-2" not in feature.titles()
    assert len(withdrawn(feature)) == 2


def test_changes_follow_the_tree_while_a_rebase_stands_still_and_after_it(feature: Clone) -> None:
    rebase(feature, "--interactive", "main", editor="sed -i 's/^pick\\(.* second\\)/edit\\1/'")
    hold(feature)
    assert feature.titles() | {"FACT-2": "Second"} == feature.titles()
    assert "By feature" not in feature.titles().values()
    feature.add("FACT-2", title="Edited")
    feature.share()
    feature.git("commit", "--quiet", "--amend", "--no-edit")
    hold(feature)
    feature.git("rebase", "--continue")
    hold(feature)
    assert feature.titles()["FACT-2"] == "Edited"
    assert feature.titles()["FACT-1"] == "By feature"


def test_a_fixup_is_squashed_into_its_commit(feature: Clone) -> None:
    feature.add("FACT-2", title="Fixed")
    feature.share()
    feature.git("commit", "--quiet", "-m", "fixup! first")
    before = feature.sync() and feature.facts()
    rebase(feature, "--interactive", "--autosquash", "main")
    hold(feature)
    assert feature.facts() == before


def test_a_pull_with_rebase_has_the_changes_of_both(ann: Clone, bob: Clone) -> None:
    for clone in (ann, bob):
        clone.add("FACT-1", title=f"By {clone.actor}")
        clone.fact(f"FACT-{clone.actor}")
        clone.commit()
    ann.push()
    bob.pull("--rebase")
    hold(bob)
    bob.push()
    ann.pull("--rebase")
    hold(ann)
    assert ann.facts() == bob.facts()
    assert ann.conflicts() == {("FACT-1", "title")}


def test_an_amended_commit_takes_in_what_came_after_it(ann: Clone) -> None:
    ann.fact("FACT-2", "First")
    ann.commit()
    ann.add("FACT-2", title="Second")
    ann.share()
    ann.git("commit", "--quiet", "--amend", "-m", "amended")
    hold(ann)
    assert ann.titles()["FACT-2"] == "Second"
    assert not ann.conflicts()


def test_a_change_is_picked_without_those_before_it_twice_and_then_merged(feature: Clone) -> None:
    picked, first = feature.git("rev-parse", "HEAD~1"), feature.git("rev-parse", "HEAD~2")
    for branch in ("one", "two"):
        feature.switch("main")
        feature.begin(branch)
        feature.git("cherry-pick", picked)
        hold(feature)
        assert "FACT-2" not in feature.titles()  # its claims wait for the creation
    feature.git("cherry-pick", first)
    hold(feature)
    assert feature.titles()["FACT-2"] == "Second"
    feature.git("merge", "--quiet", "--no-edit", "one")
    feature.git("merge", "--quiet", "--no-edit", "feature")
    hold(feature)
    merged = feature.facts()
    feature.switch("feature")
    hold(feature)
    assert feature.facts() == merged


def test_a_revert_takes_back_and_its_revert_brings_back(feature: Clone) -> None:
    before = feature.facts()
    feature.git("revert", "--no-edit", "HEAD~1")
    hold(feature)
    assert feature.titles()["FACT-2"] == "First"
    feature.git("revert", "--no-edit", "HEAD")
    hold(feature)
    assert feature.facts() == before


def test_a_merge_is_reverted_and_its_revert_reverted(feature: Clone) -> None:
    feature.switch("main")
    before = feature.sync() and feature.facts()
    feature.git("merge", "--quiet", "--no-ff", "--no-edit", "feature")
    hold(feature)
    merged = feature.facts()
    feature.git("revert", "--no-edit", "-m", "1", "HEAD")
    hold(feature)
    assert feature.facts() == before
    feature.git("revert", "--no-edit", "HEAD")
    hold(feature)
    assert feature.facts() == merged


@pytest.mark.parametrize("mode", ["--hard", "--soft", "--mixed"])
def test_the_state_follows_the_files_at_a_reset(feature: Clone, mode: str) -> None:
    feature.git("reset", "--quiet", mode, "HEAD~2")
    hold(feature)
    assert feature.titles()["FACT-2"] == ("First" if mode == "--hard" else "Second")
    assert not feature.share().files
    feature.git("reset", "--quiet", "--hard", "ORIG_HEAD")
    hold(feature)
    assert feature.titles()["FACT-2"] == "Second"


def files_not_committed(clone: Clone) -> dict[str, str]:
    """Return the changes that are listed as not shared, by their ids, with the files that hold them."""
    return {one.change.id: one.file for one in find_unshared(clone.workspace(), clone.branch)}


@pytest.mark.parametrize("mode", ["--soft", "--mixed"])
@pytest.mark.parametrize("is_synced", [True, False])
def test_changes_of_files_that_a_reset_left_out_of_head_are_not_committed_and_are_shared_again(
    feature: Clone, mode: str, *, is_synced: bool
) -> None:
    before = feature.committed()
    kept = {change.id for changes in before.values() for change in changes}
    feature.git("reset", "--quiet", mode, "HEAD~2")
    feature.git("reset", "--quiet")
    if is_synced:
        hold(feature)
    lost = before.keys() - feature.committed().keys()
    assert len(lost) == 2
    assert sorted(files_not_committed(feature).values()) == sorted(lost)

    assert {one.file for one in feature.share().before} == lost
    feature.git("commit", "--quiet", "-m", "again")
    hold(feature)
    assert {change.id for changes in feature.committed().values() for change in changes} == kept
    assert not files_not_committed(feature)


def test_a_change_that_another_clone_shared_is_not_lost_at_a_reset(ann: Clone, bob: Clone) -> None:
    ann.fact("FACT-2")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    bob.git("reset", "--quiet", "HEAD~1")
    hold(bob)
    [file] = files_not_committed(bob).values()
    bob.share()
    assert file in bob.git("diff", "--cached", "--name-only").splitlines()


def test_files_of_a_merge_that_is_not_committed_are_no_changes_of_this_clone(ann: Clone, bob: Clone) -> None:
    bob.fact("FACT-2")
    bob.commit()
    bob.push()
    ann.fact("FACT-3")
    ann.commit()
    ann.git("fetch", "--quiet")
    ann.git("merge", "--quiet", "--no-commit", "origin/main")
    hold(ann)
    assert not files_not_committed(ann)


def test_a_file_that_a_killed_share_wrote_again_is_staged_by_the_next_one(feature: Clone) -> None:
    feature.git("reset", "--quiet", "--hard", "HEAD~1")
    feature.sync()
    [gone] = withdrawn(feature)
    feature.share(again=[gone])
    feature.git("reset", "--quiet")  # as if it had been killed before it staged the file
    for again in ([gone], []):
        [file] = files_not_committed(feature).values()
        found = feature.share(again=again)
        assert (found.files, [one.change.id for one in found.before]) == ({}, [gone])
        feature.sync()
    feature.git("commit", "--quiet", "-m", "again")
    assert file in feature.committed()


def test_a_file_that_holds_a_redacted_copy_of_what_head_has_is_not_committed(feature: Clone) -> None:
    redact(feature.workspace(), feature.branch, Wanted("entity", "FACT-2"), feature.author())
    feature.sync()
    new = {*feature.changes()} - feature.committed().keys()
    assert new
    assert {*files_not_committed(feature).values()} == new


def test_what_a_reset_took_back_is_shared_again_only_by_name(feature: Clone) -> None:
    before = feature.facts()
    feature.git("reset", "--quiet", "--hard", "HEAD~1")
    hold(feature)
    [gone] = withdrawn(feature)
    feature.commit("nothing of it")
    hold(feature)
    assert feature.titles()["FACT-1"] == "Title of FACT-1"
    feature.share(again=[gone])
    hold(feature)
    assert feature.facts() == before
    feature.git("commit", "--quiet", "-m", "again")
    hold(feature)
    assert feature.facts() == before
    assert not withdrawn(feature)


def test_a_stash_takes_files_away_and_brings_them_back(ann: Clone) -> None:
    ann.fact("FACT-2")
    ann.share()
    hold(ann)
    ann.git("stash", "--quiet")
    hold(ann)
    assert "FACT-2" in ann.titles()  # it was never in a commit, so the clone still has it
    ann.add("FACT-2", title="Meanwhile")
    ann.share()
    ann.git("stash", "pop", "--quiet")
    hold(ann)
    ann.commit()
    hold(ann)
    assert ann.titles()["FACT-2"] == "Meanwhile"


def test_a_file_that_is_removed_and_restored_is_gone_and_back(ann: Clone) -> None:
    ann.fact("FACT-2")
    ann.commit()
    [path] = [one for one in ann.git("show", "--name-only", "--format=", "HEAD").splitlines() if "jsonl" in one]
    ann.git("rm", "--quiet", path)
    hold(ann)
    assert "FACT-2" not in ann.titles()
    ann.git("restore", "--staged", "--worktree", path)
    hold(ann)
    assert "FACT-2" in ann.titles()


def test_a_branch_that_somebody_has_forced_back_is_followed(ann: Clone, bob: Clone) -> None:
    bob.fact("FACT-2")
    bob.commit()
    bob.push()
    ann.pull()
    hold(ann)
    ann.add("FACT-2", title="By ann")
    bob.git("reset", "--quiet", "--hard", "HEAD~1")
    bob.fact("FACT-3")
    bob.commit()
    bob.push("--force")
    ann.git("fetch", "--quiet")
    ann.git("reset", "--quiet", "--hard", "origin/main")
    hold(ann, bob)
    assert "FACT-2" not in ann.titles()
    assert "FACT-3" in ann.titles()
    ann.commit("a claim that waits")
    ann.push()
    bob.pull()
    hold(ann, bob)
    assert ann.facts() == bob.facts()
