"""Failure modes of sharing: merges of every kind, by any git, lead to what the set of the changes says."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tests.support.effort.scale import spread, tries
from tests.support.repository.clones import Clone, hold
from tests.support.repository.repos import git

BRANCHES = ("one", "two", "three")
ORDERS = [*permutations(BRANCHES)]


def diverge(clone: Clone) -> None:
    """Make three branches of which each changes what the others change, too."""
    start = clone.branch
    clone.begin("one")
    clone.add("FACT-1", title="By one", tags=["base", "one"])
    clone.fact("FACT-2")
    clone.link("FACT-2", "FACT-1")
    clone.commit("one")
    clone.switch(start)
    clone.begin("two")
    clone.add("FACT-1", title="By two", attributes={"k": 2})
    clone.rename("FACT-1", "FACT-9")
    clone.commit("two")
    clone.switch(start)
    clone.begin("three")
    clone.add("FACT-1", tags=[])
    clone.add("REQ-1", attributes={"note": "otherwise"})
    clone.remove("FACT-1")
    clone.commit("three")
    clone.switch(start)


@pytest.mark.parametrize("how", ["--no-ff", "--ff"])
def test_merges_in_every_order_come_to_the_same(ann: Clone, how: str) -> None:
    diverge(ann)
    found = []
    for order in spread(ORDERS, tries(2, len(ORDERS))):
        ann.switch("main")
        ann.begin("-".join(order))
        for branch in order:
            ann.git("merge", "--quiet", "--no-edit", how, branch)
            if order == ORDERS[0]:
                hold(ann)
        hold(ann)
        found.append(ann.facts())
    assert found == [found[0]] * len(found)
    assert ann.conflicts() == {("FACT-9", "title"), ("FACT-9", "deleted")}


def test_an_octopus_comes_to_the_same_as_merges_one_by_one(ann: Clone, bob: Clone) -> None:
    diverge(ann)
    ann.git("merge", "--quiet", "--no-edit", *BRANCHES)
    hold(ann)
    bob.git("fetch", "--quiet", "../ann", *BRANCHES)
    for branch in reversed(BRANCHES):
        bob.git("pull", "--quiet", "--no-rebase", "--no-edit", "../ann", branch)
    hold(bob)
    assert bob.facts() == ann.facts()


def test_clones_that_pull_from_each_other_agree_and_a_decision_reaches_both(ann: Clone, bob: Clone) -> None:
    for clone, title in ((ann, "By ann"), (bob, "By bob")):
        clone.add("FACT-1", title=title)
        clone.add("FACT-1", tags=["base", clone.actor])
        clone.commit()
    ann.push()
    bob.pull()
    hold(ann, bob)
    assert bob.conflicts() == {("FACT-1", "title")}

    bob.resolve("FACT-1", "title", 2)
    bob.commit("decide")
    bob.push()
    ann.pull()
    hold(ann, bob)
    assert not ann.conflicts()
    assert ann.facts() == bob.facts()


def test_what_only_a_forge_has_merged_is_taken_in_by_a_pull(ann: Clone, bob: Clone, up: Path) -> None:
    """No hook and no driver runs there; "update branch" merges main into the branch, a merge queue both into main."""
    for clone in (ann, bob):
        clone.begin(clone.actor)
        clone.add("FACT-1", title=f"By {clone.actor}")
        clone.fact(f"FACT-{clone.actor}")
        clone.commit()
        clone.push()
    first = merged_on_forge(up, "main", "ann")
    git(up, "update-ref", "refs/heads/main", first)
    updated = merged_on_forge(up, "bob", "main")
    git(up, "update-ref", "refs/heads/bob", updated)
    git(up, "update-ref", "refs/heads/main", merged_on_forge(up, "main", "bob"))

    for clone in (ann, bob):
        clone.git("fetch", "--quiet")
        clone.switch("main")
        clone.pull()
    hold(ann, bob)
    assert ann.conflicts() == {("FACT-1", "title")}
    assert ann.facts() == bob.facts()
    bob.switch("bob")
    bob.pull()
    hold(bob)
    assert bob.facts() == ann.facts()


def merged_on_forge(up: Path, ours: str, theirs: str) -> str:
    """Return the commit of a merge that is made from objects alone, without a worktree."""
    tree = git(up, "merge-tree", "--write-tree", ours, theirs)
    return git(up, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", f"Merge {theirs}")


def test_a_branch_that_is_squashed_and_goes_on_doubles_nothing(ann: Clone, bob: Clone) -> None:
    bob.begin("feature")
    bob.fact("FACT-2")
    bob.commit("first")
    bob.add("FACT-2", title="Second")
    bob.commit("second")
    bob.push()
    ann.git("fetch", "--quiet")
    ann.git("merge", "--quiet", "--squash", "origin/feature")
    ann.git("commit", "--quiet", "-m", "squashed")
    hold(ann)
    assert ann.titles()["FACT-2"] == "Second"

    bob.add("FACT-2", title="Third")
    bob.commit("third")
    bob.push()
    hold(bob)
    ann.pull("--no-rebase", "origin", "feature")
    hold(ann)
    assert not ann.conflicts()
    assert ann.facts() == bob.facts()

    ann.push()
    bob.switch("main")
    bob.pull()
    bob.git("branch", "--quiet", "-D", "feature")
    hold(bob)
    assert bob.facts() == ann.facts()
    assert bob.titles()["FACT-2"] == "Third"


def test_an_edge_that_another_clone_removes_goes(ann: Clone, bob: Clone) -> None:
    [link] = bob.view().touching(["FACT-1"])
    bob.delete(edges=[{"type": link.type, "kind": link.kind, "from": link.from_id, "to": link.to_id}])
    bob.commit("without the edge")
    bob.push()
    ann.pull()
    hold(ann)
    assert ann.view().touching(["FACT-1"]) == []
