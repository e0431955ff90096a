"""Types and predicates that a branch defines by records of its own, as every front end uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.checks import run_checks
from kbcore.errors import IntegrityViolation, InvalidChangeset, InvalidQuery, RevertConflict
from kbcore.model.concepts import VOCABULARY
from kbcore.model.schema import CORE
from kbcore.query import DataNames, Query, check
from kbcore.store.apply import schema_after
from kbcore.store.history.undo import UndoOptions, revert
from kbcore.sync.active_extractors import as_defined, extractors_of
from kbcore.view.branch_definitions import schema_at
from tests.support.repository.project import AUTHOR, Project, document, req

TASTE = {"id": "$ConceptType:Taste", "type": "$ConceptType", "name": "Taste", "title": "Taste"}
PREFERS = {"id": "$PropositionType:enjoys", "type": "$PropositionType", "name": "enjoys", "title": "enjoys"}
DARK = {"id": "T-1", "type": "Taste", "title": "dark"}
ALICE = {"id": "Person:Alice", "type": "Person", "title": "Alice"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "repo").mkdir()
    made = Project(tmp_path / "repo")
    yield made
    made.close()


def test_a_changeset_may_use_what_it_defines(project: Project) -> None:
    project.apply(
        entities=[TASTE, PREFERS, DARK, ALICE], edges=[{"type": "enjoys", "from": "Person:Alice", "to": "T-1"}]
    )
    assert project.edges("T-1") == {("Person:Alice", "enjoys", "T-1", True)}


def test_what_is_not_defined_is_refused_with_the_nearest_name(project: Project) -> None:
    project.apply(entities=[TASTE])
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[{**DARK, "type": "Tast"}])
    assert "Did you mean 'Taste'?" in refused.value.hint


@pytest.mark.parametrize(
    ("entity", "code", "words"),
    [
        ({**TASTE, "name": "taste"}, "bad_type_name", "'taste' is no name of a type: it is not in UpperCamelCase."),
        (
            {**PREFERS, "name": "Prefers"},
            "bad_type_name",
            "'Prefers' is no name of a predicate: it is not in snake_case.",
        ),
        (
            {**PREFERS, "name": "depends_on"},
            "defined_already",
            "The predicate 'depends_on' is defined by KB itself already.",
        ),
    ],
)
def test_a_definition_that_could_not_be_used_is_refused(project: Project, entity, code: str, words: str) -> None:
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[entity])
    assert [(one.code, one.message) for one in refused.value.details] == [(code, words)]


def test_a_definition_counts_as_soon_as_it_is_written_and_until_it_is_gone(project: Project) -> None:
    known = {name for kind, name in VOCABULARY if kind == "$ConceptType"} | set(CORE.entities)
    seen = []
    project.apply(entities=[TASTE])
    seen.append(project.view().schema(CORE).entities.keys() - known)
    project.close()  # the next view finds it in its base
    seen.append(project.view().schema(CORE).entities.keys() - known)
    project.delete(entities=[{"id": TASTE["id"]}])
    seen.append(project.view().schema(CORE).entities.keys() - known)
    assert seen == [{"Taste"}, {"Taste"}, set()]
    then = schema_at(project.view().rows, CORE, 1)
    assert then.entities.keys() - known == {"Taste"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"entities": [{"id": TASTE["id"], "name": "Other"}]}, "The type 'Taste' is used by T-1."),
        ({"entities": [{"id": TASTE["id"], "type": "Person"}]}, "The type 'Taste' is used by T-1."),
        ({"entities": [{"id": PREFERS["id"], "name": "likes"}]}, "'enjoys' is used by Person:Alice enjoys T-1."),
    ],
)
def test_a_definition_in_use_is_not_taken_away_by_writing(project: Project, asked, words: str) -> None:
    project.apply(
        entities=[TASTE, PREFERS, DARK, ALICE], edges=[{"type": "enjoys", "from": "Person:Alice", "to": "T-1"}]
    )
    with pytest.raises(IntegrityViolation) as refused:
        project.apply(**asked)
    [problem] = refused.value.details
    assert problem.code == "in_use"
    assert problem.message.endswith(words)


def test_a_definition_is_deleted_with_or_after_all_that_uses_it(project: Project) -> None:
    project.apply(
        entities=[TASTE, PREFERS, DARK, ALICE], edges=[{"type": "enjoys", "from": "Person:Alice", "to": "T-1"}]
    )
    for key in (TASTE["id"], PREFERS["id"]):
        with pytest.raises(IntegrityViolation, match="is used by"):
            project.delete(entities=[{"id": key}], cascade=True)
    project.delete(entities=[{"id": key} for key in (TASTE["id"], "T-1")], cascade=True)
    project.delete(entities=[{"id": PREFERS["id"]}])
    assert project.node("T-1") is None


def test_the_schema_of_a_branch_is_made_once(project: Project) -> None:
    project.apply(entities=[TASTE])
    view, schema = project.view(), project.workspace().schema
    assert view.schema(schema) is view.schema(schema)
    project.apply(entities=[ALICE])
    first = project.view().schema(schema)
    assert project.view().schema(schema) is first
    assert schema_after(project.view(), schema, project_changeset()) is first


def project_changeset():
    from kbcore.model.changeset import parse

    return parse({"entities": [ALICE]})


def test_definitions_are_of_one_branch(project: Project) -> None:
    project.apply(entities=[{"id": "R", "type": "req", "title": "R", "status": "open"}])
    project.switch("feature", create=True)
    project.apply(entities=[TASTE])
    project.apply(entities=[DARK])
    project.switch("main")
    with pytest.raises(InvalidChangeset):
        project.apply(entities=[DARK])


def test_queries_and_rules_know_them(project: Project) -> None:
    project.apply(
        entities=[TASTE, PREFERS, DARK, ALICE], edges=[{"type": "enjoys", "from": "Person:Alice", "to": "T-1"}]
    )
    workspace, view = project.workspace(), project.view()
    query = Query(type="Taste")
    assert check(query, view.schema(workspace.schema), DataNames(view.rows, is_edge=False)) == query
    with pytest.raises(InvalidQuery):
        check(query, workspace.schema, None)
    found = run_checks(workspace, view, branch="main", only=["unknown-type", "endpoint-types", "required-fields"])
    assert found.violations == []


def test_documents_may_be_of_a_defined_type_and_are_read_again_when_it_comes(project: Project) -> None:
    files = {
        "docs/requirements/a.md": document("T-1", type="Taste", title="dark"),
        "docs/requirements/b.md": req("REQ-1", links="[{enjoys: T-1}]"),
    }
    first = project.sync(files)
    assert any("There is no entity type 'Taste'" in problem.message for _, problem in first.problems)
    project.apply(entities=[TASTE, PREFERS])
    second = project.sync()
    assert [problem for _, problem in second.problems if problem.severity == "error"] == []
    node = project.node("T-1")
    assert node is not None
    assert node.type == "Taste"
    assert project.edges("T-1") == {("REQ-1", "enjoys", "T-1", True)}
    assert project.sync().is_idle


def test_how_files_are_read_only_changes_with_definitions_of_the_branch_s_own(project: Project) -> None:
    wants = extractors_of(project.workspace())
    project.apply(entities=[{"id": "$ConceptType:Person", "type": "$ConceptType", "name": "Person", "title": "Person"}])
    assert as_defined(wants, project.view()) == wants
    project.apply(entities=[TASTE])
    assert [one.mark for one in as_defined(wants, project.view())] != [one.mark for one in wants]


def test_a_definition_can_be_reverted(project: Project) -> None:
    project.apply(entities=[TASTE])
    revert(project.workspace(), "main", AUTHOR, [1], follows_head=True)
    with pytest.raises(InvalidChangeset):
        project.apply(entities=[DARK])
    revert(project.workspace(), "main", AUTHOR, [2], follows_head=True)
    project.apply(entities=[DARK])


def test_a_definition_in_use_is_not_taken_away_by_a_revert(project: Project) -> None:
    project.apply(entities=[TASTE, PREFERS])
    project.apply(entities=[DARK, ALICE], edges=[{"type": "enjoys", "from": "Person:Alice", "to": "T-1"}])
    with pytest.raises(RevertConflict) as refused:
        revert(project.workspace(), "main", AUTHOR, [1], follows_head=True)
    assert [one.message for one in refused.value.details] == [
        "The type 'Taste' is used by T-1.",
        "The predicate 'enjoys' is used by Person:Alice enjoys T-1.",
    ]
    assert refused.value.hint == "Remove what uses it first, or use --force to leave it as it is."
    revert(project.workspace(), "main", AUTHOR, [2, 1], follows_head=True)
    revert(project.workspace(), "main", AUTHOR, [3], follows_head=True)
    revert(project.workspace(), "main", AUTHOR, [1], UndoOptions(force=True), follows_head=True)
    assert project.node(TASTE["id"]) is None
    assert project.node("T-1") is not None


def test_a_revert_that_brings_a_definition_another_name_is_refused_while_it_is_used(project: Project) -> None:
    project.apply(entities=[TASTE])
    project.apply(entities=[{"id": TASTE["id"], "name": "Flavour"}])
    project.apply(entities=[{**DARK, "type": "Flavour"}])
    with pytest.raises(RevertConflict, match="The type 'Flavour' is used by T-1"):
        revert(project.workspace(), "main", AUTHOR, [2], follows_head=True)


def node(key: str) -> dict[str, str]:
    return {"id": key, "type": "req", "title": key, "status": "open"}


def test_an_unknown_type_and_an_unknown_edge_say_how_to_add_one_and_that_works(project: Project) -> None:
    request = {
        "entities": [node("A"), node("B"), {"id": "T-1", "type": "Taste", "title": "t"}],
        "edges": [{"type": "likes", "from": "A", "to": "B"}],
    }
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(**request)
    hints = [problem.hint for problem in refused.value.details]
    assert ["entities: {Taste:" in hints[0], "edges: {likes:" in hints[1]] == [True, True]
    said = [re.search(r"of the type `(.+?)` with the id `(.+?)` and the title `(.+?)`", hint) for hint in hints]
    examples = [dict(zip(("type", "id", "title"), one.groups(), strict=True)) for one in said if one]
    project.apply(**request | {"entities": examples + request["entities"]})
    assert project.edges("A") == {("A", "likes", "B", True)}


def test_a_name_that_no_record_can_define_is_not_in_the_example(project: Project) -> None:
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[{"id": "X", "type": "my taste: {", "title": "x"}])
    hint = refused.value.details[0].hint
    assert "entities: {NAME: {" in hint
    assert "`$ConceptType:NAME`" in hint
    assert "UpperCamelCase" in hint


@pytest.mark.parametrize("line", ["type: Taste", "type: req\nlinks: [{type: likes, to: A}]"])
def test_a_document_with_an_unknown_type_or_edge_says_how_to_add_one(project: Project, line: str) -> None:
    project.apply(entities=[node("A")])
    text = f"---\nid: D\ntitle: d\nstatus: open\n{line}\n---\n"
    found = project.sync({"docs/requirements/d.md": text})
    assert any("goes into a file of .kb/schema/: `" in problem.hint for _, problem in found.problems)
