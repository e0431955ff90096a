"""The refusal of an edit of a document: the reason as data, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from kbcore.editing.documents import WriteTarget
from kbcore.editing.setting import set_fields
from kbcore.errors import DerivedFact, InvalidQuery, Problem
from tests.support.repository.project import AUTHOR, Project, document, req

DOCUMENT = "docs/requirements/1.md"


def target(project: Project) -> WriteTarget:
    workspace = project.workspace()
    return WriteTarget(workspace, "main", AUTHOR, workspace.store("main").read, follows_head=True)


def refusal(project: Project, stated: Mapping[str, str], word: str) -> Problem:
    """Return why a field of REQ-1 is not set in its document, which is as it was then."""
    text = req("REQ-1", **stated)
    project.sync({DOCUMENT: text, "docs/requirements/2.md": req("REQ-2")})
    with pytest.raises(DerivedFact, match="would then not state what is asked for") as refused:
        set_fields(target(project), "REQ-1", [word])
    assert (project.root / DOCUMENT).read_text() == text
    [problem] = refused.value.details
    return problem


@pytest.mark.parametrize(
    ("stated", "word", "field", "value", "said"),
    [
        (
            {"type": "adr"},
            "type=",
            "type",
            "req",
            "Without a key `type` it has 'req', as the settings of its folder say.",
        ),
        ({"text_ref": "a/b.md"}, "text_ref=", "text_ref", DOCUMENT, f"it has '{DOCUMENT}', the document itself."),
        ({}, "text_ref=", "text_ref", DOCUMENT, f"it has '{DOCUMENT}', the document itself."),
    ],
)
def test_a_field_that_a_document_has_without_a_key_is_not_removed_and_the_reason_is_said(
    project: Project, stated: dict[str, str], word: str, field: str, value: str, said: str
) -> None:
    problem = refusal(project, stated, word)
    assert (problem.subject, problem.field, problem.values) == ("REQ-1", field, (value,))
    assert said in problem.message
    assert problem.hint == f"`kb set REQ-1 {word}…` sets another value."


def test_the_type_of_the_folder_is_set_where_the_removal_of_another_one_is_refused(project: Project) -> None:
    problem = refusal(project, {"type": "adr"}, "type=")
    [command] = re.findall("`kb set REQ-1 (type=)…`", problem.hint)
    assert set_fields(target(project), "REQ-1", [command + problem.values[0]]).outcome.updated == ("REQ-1",)


@pytest.mark.parametrize(
    ("links", "word"),
    [
        ("[REQ-2]", "links+=https://a.example/x"),
        ('[REQ-2, "https://a.example/"]', "links+=https://a.example/x"),
        ('[REQ-2, "https://a.example/"]', "links-=https://a.example/"),
        ('[REQ-2, "https://a.example/"]', "links="),
    ],
)
def test_a_list_that_holds_edges_as_well_is_not_changed_and_the_edges_are_named(
    project: Project, links: str, word: str
) -> None:
    problem = refusal(project, {"links": links}, word)
    line = next(at for at, text in enumerate(req("REQ-1", links=links).splitlines(), 1) if text.startswith("links"))
    assert (problem.subject, problem.field, problem.values, problem.line) == ("REQ-1", "links", ("REQ-2",), line)
    assert "Its key `links` states edges as well, which would be lost: to REQ-2." in problem.message
    assert problem.hint == f"Change the URLs in '{DOCUMENT}', leave the other items there, and run `kb sync`."


def test_an_empty_list_removes_the_key(project: Project) -> None:
    project.sync({DOCUMENT: req("REQ-1", tags="[a, b]")})
    assert set_fields(target(project), "REQ-1", ["tags:=[]"]).outcome.updated == ("REQ-1",)
    assert (project.root / DOCUMENT).read_text() == req("REQ-1")
    assert not set_fields(target(project), "REQ-1", ["tags:=[]"]).outcome.applied


@pytest.mark.parametrize(
    ("stated", "word", "written"),
    [
        ("title: Fix bug #33", "title=Fix bug #33", 'title: "Fix bug #33"'),
        ("title: Fix bug #33", "title=Fix bug 33 (#33)", "title: Fix bug 33 (#33)"),
        ("status: open #12", "status=a: b", 'status: "a: b"'),
        ("status: retired (PR #12)", "status=draft", "status: draft"),
        ("status: open # since May", "status=done", "status: done # since May"),
        ("owner: ann #1", "owner=bob #2", 'owner: "bob #2"'),
        ("owner: #1", "owner=#1", 'owner: "#1"'),
        ("owner: ann #1", "owner=", ""),
        ("owner: 'ann' #1", "owner=bob", "owner: 'bob' #1"),
    ],
)
def test_what_looks_like_a_comment_is_replaced_where_it_is_taken_for_text(
    project: Project, stated: str, word: str, written: str
) -> None:
    base = {"title": "T", "status": "open"}
    name, _, value = stated.partition(": ")
    text = document("REQ-1", **(base | {name: value}))
    project.sync({DOCUMENT: text})
    assert set_fields(target(project), "REQ-1", [word]).outcome.updated == ("REQ-1",)
    assert (project.root / DOCUMENT).read_text() == text.replace(f"{stated}\n", f"{written}\n" if written else "")
    node = project.node("REQ-1")
    assert node
    assert node.fields.get(name) == (word.partition("=")[2] or None)


def test_spaces_around_a_text_are_refused_and_the_text_without_them_is_named(project: Project) -> None:
    problem = refusal(project, {}, "title= New ")
    assert (problem.subject, problem.field, problem.values) == ("REQ-1", "title", ("New",))
    assert problem.hint == "`kb set REQ-1 title=New` sets it: a file states text without spaces around it."


@pytest.mark.parametrize("word", ["test_verdict=passed", "attributes.test_verdict=passed", "test_run:={}"])
def test_a_verdict_is_written_into_no_document(project: Project, word: str) -> None:
    project.sync({DOCUMENT: req("REQ-1")})
    with pytest.raises(InvalidQuery, match=r"is set by .*results"):
        set_fields(target(project), "REQ-1", [word])
    assert (project.root / DOCUMENT).read_text() == req("REQ-1")


def test_a_verdict_that_a_document_states_can_be_removed_from_it(project: Project) -> None:
    project.sync({DOCUMENT: req("REQ-1", test_verdict="passed")})
    set_fields(target(project), "REQ-1", ["test_verdict="])
    assert (project.root / DOCUMENT).read_text() == req("REQ-1")
