"""A value of a file for an attribute of a declared kind is kept as that, or refused with its line and a remedy."""

from __future__ import annotations

import pytest

from kbcore.errors import InvalidChangeset
from kbcore.extract.facts import StatedEntity
from kbcore.model.schema import Attribute, EntityType
from kbcore.sync.fields import stated_fields
from tests.support.repository.project import Project, document, req

FACT = EntityType("fact", attributes={"score": Attribute("number")})


def typed(text: str) -> tuple[object, str]:
    wanted, faults = stated_fields(StatedEntity("F", "fact", {"attributes.score": text}, 1, {}), FACT)
    return wanted.get("attributes.score"), faults.get("attributes.score", "")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("1.10", 1.1),
        (".5", 0.5),
        ("3.", 3.0),
        ("6e3", 6000.0),
        (" 5 ", 5),
        (str(2**63 - 1), 2**63 - 1),
        ("1e30", 1e30),
    ],
)
def test_a_number_that_is_written_out_is_kept_as_that_number(text: str, number: float) -> None:
    value, fault = typed(text)
    assert (value, type(value), fault) == (number, type(number), "")


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_000", "1_0.5", "²", "٣", "--1", "1e", ".", "", "0x10"])
def test_what_only_python_takes_for_a_number_is_refused(text: str) -> None:
    assert typed(text) == (None, "must be a number")


@pytest.mark.parametrize("text", ["1e999", "-1e999", "9" * 26, "9" * 5000])
def test_a_number_that_no_client_may_write_is_refused_of_a_file_too(text: str) -> None:
    value, fault = typed(text)
    assert value is None
    assert "number" in fault


def test_a_file_with_such_a_number_is_reported_by_its_line_and_its_last_one_is_kept(project: Project) -> None:
    schema = "entities:\n  fact: {description: A fact., attributes: {score: {type: number, required: false}}}\n"
    project.sync({".kb/schema/own.yaml": schema, "docs/requirements/1.md": req("F-1", type="fact", score="4")})
    answer = project.sync({"docs/requirements/1.md": req("F-1", type="fact", score="1e999")})
    [(path, problem)] = answer.problems
    assert (path, problem.code, problem.severity) == ("docs/requirements/1.md", "bad_value", "error")
    assert problem.line == 6
    assert problem.hint
    assert project.node("F-1").fields["attributes.score"] == 4


@pytest.mark.parametrize(
    ("statuses", "text", "status"),
    [
        ((), "retired (PR #12)", "retired"),
        ((), "open (see https://x.org/y)", "open"),
        ((), "retired (wontfix)", "retired (wontfix)"),
        (("open", "retired"), "retired (wontfix)", "retired"),
        (("retired (v2)",), "retired (v2)", "retired (v2)"),
        (("open",), "odd (why)", "odd (why)"),
        ((), "(2024)", "(2024)"),
    ],
)
def test_a_remark_in_parentheses_is_no_part_of_a_status(statuses: tuple[str, ...], text: str, status: str) -> None:
    definition = EntityType("fact", statuses=statuses)
    wanted, faults = stated_fields(StatedEntity("F", "fact", {"status": text}, 1, {}), definition)
    assert (wanted["status"], faults) == (status, {})


@pytest.mark.parametrize("more", ["", "owner: [broken\n"])
def test_a_number_with_a_hash_in_parentheses_is_kept_in_a_document(project: Project, more: str) -> None:
    front = f"id: F-1\ntitle: Flag (see #3)\nstatus: retired (PR #12)\n{more}"
    project.sync({"docs/flags/f.md": f"---\n{front}---\n"})
    node = project.node("F-1")
    assert (node.fields["title"], node.fields["status"]) == ("Flag (see #3)", "retired")


def test_a_value_that_is_not_in_the_list_says_where_to_add_it_and_is_taken_then(project: Project) -> None:
    test = {"id": "T-1", "type": "test", "title": "T", "status": "active", "attributes": {"kind": "load"}}
    files = {"docs/tests/2.md": document("T-2", title="T", status="active", kind="load")}
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[test])
    [(_, problem)] = project.sync(files).problems
    line = "entities: {test: {attributes: {kind: {values: [load]}}}}"
    for hint in (refused.value.details[0].hint, problem.hint):
        assert f"A new value goes into a file of .kb/schema/: `{line}`." in hint
    project.write({".kb/schema/own.yaml": f"{line}\n"})
    project.apply(entities=[test])
    assert project.sync().problems == ()
    assert {project.node(one).fields["attributes.kind"] for one in ("T-1", "T-2")} == {"load"}


def test_a_value_that_is_not_in_a_list_of_the_project_says_where_that_is(project: Project) -> None:
    project.write({".kb/schema/own.yaml": "entities: {fact: {attributes: {method: {values: [read, told]}}}}\n"})
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(
            entities=[{"id": "F", "type": "fact", "title": "T", "status": "s", "attributes": {"method": "guessed"}}]
        )
    assert refused.value.details[0].hint == "A new value goes into the `values` of 'method' in .kb/schema/own.yaml."
