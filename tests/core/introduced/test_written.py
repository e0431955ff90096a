"""What a changeset introduces is said with its answer, whether it is written or only tried."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore import branches, changeset
from kbcore.answers import Outcome
from kbcore.introduced import written
from tests.support.project import AUTHOR, Project

CYCLE = "acyclic (error): depends_on goes in a circle: A → B → A."


def req(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def depends(from_id: str, to_id: str) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id}


def carried_out(project: Project, request: dict[str, Any], *, deletes: bool = False) -> Outcome:
    workspace = project.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    parsed = changeset.parse_deletion(request) if deletes else changeset.parse(request)
    return written.carry_out(workspace, choice.branch, AUTHOR, parsed, follows_head=choice.follows_head)


@pytest.fixture
def linked(project: Project) -> Project:
    project.apply(
        entities=[req("A"), req("B"), req("M", priority="must")], edges=[depends("A", "B"), depends("M", "A")]
    )
    return project


def test_a_dry_run_and_a_write_say_which_rules_they_break(linked: Project) -> None:
    request = {"edges": [depends("B", "A")]}
    before = linked.seq()
    assert carried_out(linked, request | {"dry_run": True}).warnings == (CYCLE,)
    assert linked.seq() == before
    assert carried_out(linked, request).warnings == (CYCLE,)
    assert carried_out(linked, request).warnings == (), "nothing is written"


def test_what_was_broken_before_is_not_said_again(linked: Project) -> None:
    linked.apply(edges=[depends("B", "A")])
    [warning] = carried_out(linked, {"entities": [{"id": "M", "owner": "ann"}, {"id": "A", "tags": ["x"]}]}).warnings
    assert warning.startswith("suspect-edge (warning): B depends_on A, but A has changed at seq 3")


def test_a_removal_says_what_lacks_the_removed(linked: Project) -> None:
    cover = {"type": "verified_by", "from": "M", "to": "T"}
    test = {"id": "T", "type": "test", "title": "t", "status": "active"}
    linked.apply(entities=[test], edges=[cover])
    for dry_run in (True, False):
        request = {"entities": [{"id": "T"}], "cascade": True, "dry_run": dry_run}
        [warning] = carried_out(linked, request, deletes=True).warnings
        assert warning.startswith("must-coverage (error): M has priority must, but no test")


def test_a_rule_that_is_off_is_not_run_and_many_entities_are_left_to_a_check(linked: Project) -> None:
    linked.write({".kb/config.json": '{"rules": {"acyclic": "off"}}'})
    assert carried_out(linked, {"edges": [depends("B", "A")]}).warnings == ()
    [warning] = carried_out(linked, {"entities": [req(f"R-{number}") for number in range(501)]}).warnings
    assert (
        warning == "The rules were not run on what this touches: it has 501 items, more than 500. `kb check` runs them."
    )
