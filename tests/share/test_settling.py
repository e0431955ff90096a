"""A conflict between two clones that one of them settles, in whatever language, is settled in both by its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbcore.kip import kml
from kbcore.kip.binding import read
from kbcore.kip.elements import CONTESTED_KEY, element_json
from kbcore.kip.names import type_names
from kbcore.model.claims.change import Rename
from kbcore.store import branches
from tests.support.processes.cli import environment, run_kb
from tests.support.repository.clones import Clone, hold

SYMBOL = '{type: "Symbol", name: "FACT-1"}'


def kip(clone: Clone, text: str) -> None:
    """Carry out a command of KIP in a clone, by its actor."""
    workspace = clone.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    command: Any = read(text)
    kml.execute(workspace, choice.branch, clone.author(), command, follows_head=choice.follows_head)
    clone.note_own()


def metadata(clone: Clone, key: str) -> dict[str, Any]:
    view = clone.view()
    [found] = [*view.nodes([key]), *view.links([key])]
    shown: dict[str, Any] = element_json(found, type_names(clone.workspace().schema))["metadata"]
    return shown


@pytest.fixture
def contested(ann: Clone, bob: Clone) -> Clone:
    """The clone of bob, who has pulled what ann states otherwise than he does."""
    for clone, number in ((ann, 0.3), (bob, 0.7)):
        clone.add("FACT-1", title=f"By {clone.actor}", owner=clone.actor, attributes={"k": clone.actor})
        clone.link("FACT-1", "REQ-1", confidence=number)
        clone.commit("otherwise")
    ann.push()
    bob.pull()
    hold(bob)
    return bob


def test_what_kip_settles_in_one_clone_is_settled_in_the_other_one(ann: Clone, contested: Clone) -> None:
    bob = contested
    [edge] = [link.id for link in bob.state().links.values() if link.type == "relates_to"]
    fields = {("FACT-1", name) for name in ("title", "owner", "attributes.k")}
    assert bob.conflicts() == fields | {(edge, "confidence")}
    entity = metadata(bob, "FACT-1")
    owner = [one["value"] for one in entity[CONTESTED_KEY]["owner"]]

    version = f"EXPECT VERSION {entity['_version']}"
    kip(
        bob,
        f'UPSERT {{ CONCEPT {{ {SYMBOL} {version} SET ATTRIBUTES {{ title: "Both", k: "both" }} }} '
        f"WITH METADATA {{ _resolve: {{ owner: {owner.index('ann') + 1} }} }} }}",
    )
    kip(
        bob,
        f'UPSERT {{ PROPOSITION {{ (id: "{edge}") EXPECT VERSION {metadata(bob, edge)["_version"]} }} '
        "WITH METADATA { confidence: 0.5 } }",
    )
    assert bob.conflicts() == set()
    hold(bob)
    bob.commit("settled")
    bob.push()
    ann.pull()

    hold(ann, bob)
    for clone in (ann, bob):
        node, link = clone.state().nodes["FACT-1"], clone.state().links[edge]
        assert clone.conflicts() == set()
        assert (node.fields["title"], node.fields["owner"], node.fields["attributes.k"]) == ("Both", "ann", "both")
        assert link.fields["confidence"] == 0.5


def test_two_clones_that_settle_apart_and_differ_have_a_conflict_of_their_decisions(
    ann: Clone, contested: Clone
) -> None:
    bob = contested
    bob.push()
    ann.pull()
    hold(ann)
    for clone in (ann, bob):
        version = metadata(clone, "FACT-1")["_version"]
        title = f"{clone.actor} decides"
        kip(
            clone, f'UPSERT {{ CONCEPT {{ {SYMBOL} EXPECT VERSION {version} SET ATTRIBUTES {{ title: "{title}" }} }} }}'
        )
        assert ("FACT-1", "title") not in clone.conflicts()
        clone.commit("settled")
    ann.push()
    bob.pull()

    hold(bob)

    values = [one["value"] for one in metadata(bob, "FACT-1")[CONTESTED_KEY]["title"]]
    assert sorted(values) == ["ann decides", "bob decides"]


def rename_in_both(ann: Clone, bob: Clone) -> None:
    """Have two clones that have not seen each other rename one entity, and bob pull what ann did."""
    for clone, new in ((ann, "FACT-A"), (bob, "FACT-B")):
        clone.rename("FACT-1", new)
        clone.commit("rename")
    ann.push()
    bob.pull()
    hold(bob)


@pytest.mark.parametrize("has_other_conflict", [False, True])
def test_a_rename_of_an_entity_whose_id_is_contested_settles_it_in_every_clone(
    ann: Clone, bob: Clone, clone: Callable[..., Clone], has_other_conflict: bool
) -> None:
    if has_other_conflict:
        for one in (ann, bob):
            one.add("FACT-1", title=f"By {one.actor}")
    rename_in_both(ann, bob)
    [shown] = {"FACT-A", "FACT-B"} & bob.state().nodes.keys()
    [other] = {"FACT-A", "FACT-B"} - {shown}
    titles = {(other, "title")} if has_other_conflict else set()
    assert (shown, "id") in bob.conflicts()

    bob.rename(shown, other)

    assert bob.conflicts() == titles
    hold(bob)
    bob.commit("settled")
    bob.push()
    ann.pull()
    hold(ann, bob, cy := clone("cy"))
    assert ann.conflicts() == bob.conflicts() == cy.conflicts() == titles
    renames = [
        [claim for claim in change.claims if isinstance(claim, Rename)]
        for changes in bob.committed().values()
        for change in changes
    ]
    assert max(map(len, renames)) == 1


@pytest.mark.parametrize("choice", ["shown", "other"])
@pytest.mark.parametrize("by", ["number", "id", "id of another name"])
def test_the_command_settles_a_contested_id_by_its_number_and_by_the_id(
    ann: Clone, bob: Clone, choice: str, by: str
) -> None:
    rename_in_both(ann, bob)
    [shown] = {"FACT-A", "FACT-B"} & bob.state().nodes.keys()
    [other] = {"FACT-A", "FACT-B"} - {shown}
    wanted, number = (shown, "1") if choice == "shown" else (other, "2")
    assert f"  kb resolve {shown} id --take N (keeps this id, or renames to it)" in run_kb(bob.root, "resolve").out
    for wrong in ("0", "3"):
        assert "There is no id" in run_kb(bob.root, "resolve", shown, "id", "--take", wrong).err
    named, take = other if by == "id of another name" else shown, number if by == "number" else wanted

    ran = run_kb(bob.root, "resolve", named, "id", "--take", take, env=environment({"KB_ACTOR": "bob"}))

    assert ran.status == 0, ran
    assert bob.conflicts() == set()
    assert wanted in bob.state().nodes
    bob.note_own()
    bob.commit("settled")
    bob.push()
    ann.pull()
    hold(ann, bob)
    assert ann.conflicts() == set()
    assert wanted in ann.state().nodes
