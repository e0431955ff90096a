"""Two clones decide what is proposed at once: both come to the same state, whatever each of them decides."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from kbcore.model.graph import is_proposed, proposed_values
from kbcore.store.review import deciding_changeset, find_proposals
from tests.support.repository.clones import Clone, hold

DECISIONS = ("accept", "reject", "")


def decide(clone: Clone, what: str) -> None:
    """Accept or reject all that is proposed, as the person whose clone it is."""
    found = find_proposals(clone.view())
    accepted, rejected = (found, []) if what == "accept" else ([], found)
    clone._carry_out(deciding_changeset(accepted, rejected, seq=clone.seq()), None, clone.author())


def said_of(clone: Clone) -> dict[str, Any]:
    """Return what became of each of the five proposals."""
    nodes = {one.id: one for one in clone.view().nodes(["NEW", "FACT-1", "FACT-2", "REQ-1"])}
    links = {(one.from_id, one.to_id): one for key in ("FACT-1", "FACT-3") for one in clone.view().touching([key])}
    new = nodes.get("NEW")
    edge, old = links.get(("FACT-3", "REQ-1")), links.get(("FACT-1", "REQ-1"))
    return {
        "entity": new is not None and ("proposed" if is_proposed(new) else "accepted"),
        "edge": edge is not None and ("proposed" if is_proposed(edge) else "accepted"),
        "field": (nodes["FACT-1"].fields["title"], bool(proposed_values(nodes["FACT-1"]))),
        "entity deleted": "FACT-2" not in nodes,
        "edge deleted": old is None,
    }


@pytest.mark.parametrize(("of_ann", "of_bob"), [*product(DECISIONS, repeat=2)])
def test_two_clones_that_decide_at_once_come_to_one_state(ann: Clone, bob: Clone, of_ann: str, of_bob: str) -> None:
    ann.write({".kb/config.json": json.dumps({"review": {"actors": ["bot"]}})})
    ann.fact("FACT-2")
    ann.fact("FACT-3")
    ann.link("FACT-1", "REQ-1")  # it is suspect, and a proposal would confirm it
    ann.actor = "bot"
    ann.apply(
        entities=[
            {"id": "NEW", "type": "symbol", "title": "New", "status": "active"},
            {"id": "FACT-1", "title": "Proposed"},
        ],
        edges=[{"type": "relates_to", "kind": "see", "from": "FACT-3", "to": "REQ-1"}],
    )
    ann.delete(edges=[key_of(ann, "FACT-1", "REQ-1")])
    ann.delete(entities=[{"id": "FACT-2"}], cascade=True)
    ann.actor = "ann"
    assert len(find_proposals(ann.view())) == 5
    ann.commit("what is proposed")
    ann.push()
    bob.pull()
    bob.sync()
    assert said_of(ann) == said_of(bob)
    for clone, what in ((ann, of_ann), (bob, of_bob)):
        if what:
            decide(clone, what)
        clone.commit("decided")
    ann.push()
    bob.pull()
    bob.sync()
    hold(bob)
    bob.push()
    ann.pull()
    ann.sync()
    hold(ann)
    assert said_of(ann) == said_of(bob)
    assert ann.conflicts() == bob.conflicts()
    assert (said_of(ann), ann.conflicts()) == expected({of_ann, of_bob})


def key_of(clone: Clone, from_id: str, to_id: str) -> dict[str, str]:
    [link] = [one for one in clone.view().touching([from_id]) if one.to_id == to_id]
    return {"type": link.type, "kind": link.kind, "from": from_id, "to": to_id}


def expected(decided: set[str]) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """Return what both come to, and what is contested then."""
    found: dict[str, Any] = {
        "entity": "proposed",
        "edge": "proposed",
        "field": ("Title of FACT-1", True),
        "entity deleted": False,
        "edge deleted": False,
    }
    contested: set[tuple[str, str]] = set()
    if "reject" in decided:
        found |= {"entity": False, "edge": False, "field": ("Title of FACT-1", False)}
    if "accept" in decided:
        found |= {"entity": "accepted", "edge": "accepted", "field": ("Proposed", False)}
        found |= {"entity deleted": True, "edge deleted": True}
    if {"accept", "reject"} <= decided:
        found |= {"edge": False, "entity deleted": False}
        contested = {("NEW", "deleted"), ("FACT-2", "deleted")}
    return found, contested
