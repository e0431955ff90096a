"""An attribute under a name that is nearly that of a field is stored, and warned of."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.checks.introduced import written
from kbcore.model import changeset
from tests.support.repository.project import AUTHOR, Project


def req(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def warnings(project: Project, *entities: dict[str, Any], dry_run: bool = False) -> list[str]:
    parsed = changeset.parse({"entities": [*entities], "dry_run": dry_run})
    outcome = written.apply_changeset(project.workspace(), "main", AUTHOR, parsed, follows_head=True)
    return [one for one in outcome.warnings if "attribute" in one]


@pytest.fixture
def started(project: Project) -> Project:
    project.apply(entities=[req("A"), req("B")])
    return project


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("name", "field"), [("statu", "status"), ("Status", "status"), ("prio", "priority"), ("ownr", "owner")]
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_attribute_that_is_nearly_a_field_is_named_with_the_field(started, name, field, dry_run):
    [warning] = warnings(started, {"id": "A", "attributes": {name: "x"}}, dry_run=dry_run)
    assert warning == (
        f"'{name}' of 'A' is stored as an attribute: a req has no field of that name. Did you mean '{field}'?"
    )
    assert started.node("A").fields.get(f"attributes.{name}") == (None if dry_run else "x")


@pytest.mark.parametrize("name", ["status_reason", "colour", "former", "x", "title2 of the other"])
def test_an_attribute_of_another_name_is_not_warned_of(started, name):
    assert warnings(started, {"id": "A", "attributes": {name: "x"}}) == []


def test_an_attribute_that_exists_already_is_not_warned_of_again(started):
    assert len(warnings(started, {"id": "A", "attributes": {"statu": "x"}})) == 1
    assert warnings(started, {"id": "A", "attributes": {"statu": "y"}}) == []
    assert warnings(started, {"id": "B", "attributes": {"statu": "x"}}) == []  # another entity of the type has it
    assert warnings(started, req("C", attributes={"statu": "x"})) == []


def test_what_the_schema_declares_is_a_name_of_its_own(started):
    path = started.root / ".kb" / "schema" / "own.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("entities: {req: {attributes: {statu: {type: text}}}}\n")
    assert warnings(started, {"id": "A", "attributes": {"statu": "x"}}) == []
    [warning] = warnings(started, {"id": "A", "attributes": {"statuu": "x"}})
    assert warning.endswith("Did you mean 'statu'?")


def test_many_of_them_are_counted_and_each_name_is_named_once(started):
    names = ["statu", "titel", "ownr", "severty", "prioritty", "tagss", "nam"]
    found = warnings(started, *({"id": key, "attributes": dict.fromkeys(names, "x")} for key in ("A", "B")))
    assert [one.split("'")[1] for one in found[:-1]] == names[:5]
    assert found[-1] == "2 more attributes may be misspelled."


def test_attributes_of_a_concept_of_kip_are_free(started):
    assert warnings(started, {"id": "P", "type": "Person", "title": "P", "attributes": {"statu": "x"}}) == []
