"""An edge that somebody confirms in one clone is confirmed in each clone where its target says the same."""

from __future__ import annotations

import pytest

from kbcore.model.claims.change import CONFIRMED, AddMember
from kbcore.rules.edge_confirmation import suspect_edges
from tests.support.repository.clones import Clone, hold
from tests.support.repository.project import req

REQ_1 = "docs/requirements/REQ-1.md"
REQ_2 = "docs/requirements/REQ-2.md"


def suspect(clone: Clone) -> list[tuple[str, str]]:
    """Return the ends of the suspect edges."""
    return sorted((one.from_id, one.to_id) for one in suspect_edges(clone.view().rows))


@pytest.fixture
def doubted(ann: Clone, bob: Clone) -> Clone:
    """The clone of bob, who has pulled a document that ann has changed, and to which an edge leads."""
    ann.sync({REQ_1: f"{req('REQ-1')}\nAnother text.\n"})
    ann.commit("another text")
    ann.push()
    bob.pull()
    hold(ann, bob)
    for clone in (ann, bob):
        assert suspect(clone) == [("FACT-1", "REQ-1")]
    return bob


def send(one: Clone, other: Clone) -> None:
    """Share, commit, push and pull."""
    one.commit("send")
    one.push()
    other.pull()
    hold(one, other)


def test_a_confirmation_holds_in_the_clone_that_pulls_it(ann: Clone, doubted: Clone) -> None:
    ann.link("FACT-1", "REQ-1")
    assert suspect(ann) == []

    send(ann, doubted)

    assert suspect(doubted) == []


def test_a_confirmation_says_nothing_of_a_target_that_says_something_else(ann: Clone, doubted: Clone) -> None:
    ann.link("FACT-1", "REQ-1")
    doubted.sync({REQ_1: f"{req('REQ-1')}\nA third text.\n"})
    ann.commit("confirmed")
    ann.push()
    doubted.git("stash", "--quiet")
    doubted.pull()
    doubted.git("stash", "pop", "--quiet")

    hold(doubted)

    assert suspect(doubted) == [("FACT-1", "REQ-1")]


def test_a_confirmation_of_what_the_same_commit_changes_holds_with_it(ann: Clone, bob: Clone) -> None:
    ann.sync({REQ_1: f"{req('REQ-1')}\nAnother text.\n"})
    ann.add("REQ-1", tags=["b", "a"], attributes={"note": "agreed again"})
    ann.link("FACT-1", "REQ-1")

    send(ann, bob)

    assert suspect(ann) == suspect(bob) == []


def test_a_confirmation_sees_what_its_own_changeset_writes_of_the_target(ann: Clone, bob: Clone) -> None:
    edge = {"type": "relates_to", "kind": "see_also", "from": "FACT-1", "to": "REQ-1"}
    ann.apply(entities=[{"id": "REQ-1", "attributes": {"note": "agreed again"}}], edges=[edge])

    send(ann, bob)

    assert suspect(ann) == suspect(bob) == []


def test_an_edge_that_a_document_states_is_confirmed_in_both_clones(ann: Clone, bob: Clone) -> None:
    ann.sync({REQ_2: req("REQ-2").replace("---\n", "---\ndepends_on: [REQ-1]\n", 1)})
    send(ann, bob)
    ann.sync({REQ_1: f"{req('REQ-1')}\nAnother text.\n"})
    send(ann, bob)
    assert suspect(bob) == [("FACT-1", "REQ-1"), ("REQ-2", "REQ-1")]
    ann.apply(edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-1"}])

    send(ann, bob)

    assert suspect(bob) == [("FACT-1", "REQ-1")]


def test_a_confirmation_goes_with_an_edge_whose_end_gets_another_id(ann: Clone, doubted: Clone) -> None:
    doubted.rename("FACT-1", "FACT-2")
    ann.link("FACT-1", "REQ-1")
    doubted.commit("renamed")
    ann.commit("confirmed")
    ann.push()
    doubted.pull()

    hold(doubted)

    assert doubted.state().nodes.keys() >= {"FACT-2"}
    assert suspect(doubted) == []


def test_the_change_file_has_a_digest_and_nothing_of_the_target(ann: Clone, doubted: Clone) -> None:
    ann.link("FACT-1", "REQ-1")
    ann.commit("confirmed")

    [claim] = [
        claim
        for changes in ann.committed().values()
        for change in changes
        for claim in change.claims
        if isinstance(claim, AddMember) and claim.field == CONFIRMED
    ]

    assert len(claim.now) == 64
    assert suspect(doubted) == [("FACT-1", "REQ-1")]
