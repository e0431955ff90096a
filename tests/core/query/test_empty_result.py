"""The reason that nothing matches, and the ids that are near to a mistyped one."""

from __future__ import annotations

import pytest

from kbcore import query
from kbcore.model.schema import CORE
from kbcore.query import Condition, Query
from kbcore.query.data_names import near_ids
from kbcore.query.empty_result import Filter, filters_of, unknown_ids
from kbcore.query.request import Pattern
from tests.support.repository.project import Project, req
from tests.support.views.graph import Texts


@pytest.fixture
def filled(project: Project) -> Project:
    project.apply(
        entities=[
            {"id": "REQ-001", "type": "req", "title": "Log in", "status": "open", "tags": ["auth"], "owner": "ana"},
            {"id": "REQ-002", "type": "req", "title": "Log out", "status": "done", "tags": ["web"]},
            {"id": "TEST-1", "type": "test", "title": "Login works", "status": "active"},
        ],
        edges=[{"type": "verified_by", "from": "REQ-001", "to": "TEST-1"}],
    )
    return project


def filters(project: Project, **asked) -> list[Filter]:
    view = project.view()
    checked = query.check(Query(**asked), CORE)
    assert query.page(checked, view.rows, view.seq, texts=Texts(view)).total == 0
    return filters_of(view, checked)


def test_unresolved_edges_that_would_match_are_counted_with_the_condition_that_finds_them(project):
    name = "docs/requirements/one.md"
    project.sync({name: req("REQ-1"), "docs/requirements/two.md": req("REQ-2")})
    project.apply(edges=[{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}])
    project.sync({name: None})
    [alone] = filters(project, type="edge")
    said = "1 edge that would match is unresolved: the condition `resolved=false` finds it."
    assert (alone.unresolved, alone.lacking()) == (1, said)
    typed = ((Condition("type", "depends_on"),),)
    of_type, unresolved = filters(project, type="edge", where=typed)
    assert (of_type.lacking(), unresolved.lacking()) == ("", said)
    [other] = filters(project, type="edge", where=((Condition("type", "relates_to"),),))
    assert other.lacking() == "Nothing has the 'type' 'relates_to'."
    view = project.view()
    found = query.check(Query(type="edge", where=(*typed, (Condition("resolved", "false"),))), CORE)
    assert query.page(found, view.rows, view.seq).total == 1
    assert filters(project, type="edge", where=((Condition("resolved", "true"),),)) == [
        Filter("where", "resolved=true", 0)
    ]


def test_each_filter_says_how_many_match_without_it(filled):
    assert filters(filled, type="req", tags=("auth",), status="done") == [
        Filter("type", "req", 0),
        Filter("status", "done", 1),
        Filter("tags", "auth", 1),
    ]
    assert filters(filled, where=((Condition("owner", "ana"),),), type="test") == [
        Filter("type", "test", 1),
        Filter("where", "owner=ana", 1),
    ]


def test_a_value_that_nothing_has_gets_those_that_are_near(filled):
    assert filters(filled, status="opn") == [Filter("status", "opn", 3, "opn", ("open",))]
    assert filters(filled, tags=("auht",)) == [Filter("tags", "auht", 3, "auht", ("auth",))]
    assert filters(filled, ids=("TEST-01",)) == [Filter("ids", "TEST-01", 3, "TEST-01", ("TEST-1",))]
    (has,) = filters(filled, has=(query.parse_pattern("verified_by:TEST-01"),))
    assert has == Filter("has", "verified_by:TEST-01", 3, "TEST-01", ("TEST-1",))


def test_an_id_that_was_deleted_is_said_to_be_gone_with_the_seq_and_not_mistaken_for_another(filled):
    filled.apply(entities=[{"id": "TEST-2", "type": "test", "title": "More", "status": "active"}])
    filled.delete(entities=[{"id": "TEST-2"}])
    [gone] = filters(filled, ids=("TEST-2",))
    assert (gone.near, gone.gone, gone.lacking()) == ((), 3, "'TEST-2' is gone since seq 3.")
    [has] = filters(filled, has=(query.parse_pattern("verified_by:TEST-2"),))
    assert has.gone == 3
    [early] = filters(filled, ids=("TEST-2",), at=1)
    assert (early.near, early.gone) == (("TEST-1",), 0)


@pytest.fixture
def valued(project: Project) -> Project:
    project.sync({"docs/requirements/pay.md": req("REQ-1", priority="must", teams="[web, app]", rank="3")})
    project.sync({"docs/requirements/log.md": req("REQ-2", priority="should", links="[REQ-1]")})
    return project


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("where", "unknown", "near"),
    [
        ("priority=must,should", "must,should", ("must", "should")),
        ("priority=must|should", "must|should", ("must", "should")),
        ("priority=mut", "mut", ("must",)),
        ("priority=purple", "purple", ()),
        ("teams=wbe", "wbe", ("web",)),
        ("path=docs/requirements/pai.md", "docs/requirements/pai.md", ("docs/requirements/pay.md",)),
        ("path=src/log.md", "src/log.md", ("docs/requirements/log.md",)),
    ],
)
def test_a_value_that_no_entity_has_in_a_field_gets_those_that_are_near(valued, where, unknown, near):
    (found,) = filters(valued, where=(query.parse_where(where),))
    assert (found.unknown, found.near) == (unknown, near)
    assert found.lacking().startswith(f"Nothing has the '{where.partition('=')[0]}' '{unknown}'.")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"where": "priority=must,should"},
            "the 'priority' 'must,should'. Did you mean the condition `priority=must OR",
        ),
        ({"where": "priority=must, may"}, "Did you mean the condition `priority=must OR priority=may`?"),
        ({"where": "priority=must,"}, "the 'priority' 'must,'. Did you mean 'must'?"),
        ({"status": "open|met"}, "the status 'open|met'. Did you mean the condition `status=open OR status=met`?"),
        ({"where": "file=docs/requirements/pay.md"}, "Did you mean the condition `path=docs/requirements/pay.md`?"),
        (
            {"where": "file~requirements/p"},
            "the 'file' 'requirements/p'. Did you mean the condition `path~requirements/p`?",
        ),
        ({"where": "file=docs/other.md"}, "Nothing has the field 'file'."),
        ({"where": "priority=could,may"}, "the 'priority' 'could,may'."),
    ],
)
def test_a_condition_that_was_meant_is_named_as_it_is_written(valued, asked, said):
    if "where" in asked:
        asked = {"where": (query.parse_where(asked["where"]),)}
    (found,) = filters(valued, **asked)
    assert said in found.lacking()
    assert bool(found.lacking()) == bool(said)
    if found.instead:
        meant, view = query.check(Query(where=(query.parse_where(found.instead),)), CORE), valued.view()
        assert query.page(meant, view.rows, view.seq).total


def test_a_value_that_some_other_entity_has_is_not_unknown(valued):
    (first, second) = filters(
        valued, where=(query.parse_where("priority=must"), query.parse_where("path=docs/requirements/log.md"))
    )
    assert (first.unknown, second.unknown) == ("", "")
    assert [one.unknown for one in filters(valued, type="test", where=(query.parse_where("rank=3"),))] == ["", ""]


def test_an_edge_is_asked_for_by_a_path_that_states_none(valued):
    (found,) = filters(valued, type="edge", where=(query.parse_where("source=docs/requirements/lg.md"),))
    assert (found.unknown, found.near) == ("docs/requirements/lg.md", ("docs/requirements/log.md",))


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "path",
    [
        "./docs/requirements/pay.md",
        "docs//requirements/./pay.md",
        "docs/x/../requirements/pay.md",
        "{root}/docs/requirements/pay.md",
    ],
)
def test_a_path_is_meant_however_it_is_written(valued, path):
    view, root = valued.view(), str(valued.root)
    asked = Query(where=(query.parse_where(f"path={path.format(root=root)}"),))
    checked = query.check(asked, CORE, root=root)
    assert [row.id for row in query.page(checked, view.rows, view.seq).entities] == ["REQ-1"]


def test_only_keys_of_paths_are_taken_for_paths(valued):
    asked = Query(where=(query.parse_where("owner=./ann/../bob"),))
    assert query.check(asked, CORE, root="/").where == asked.where


def test_what_stood_at_an_earlier_seq_is_explained_by_that(filled):
    new = {"type": "req", "title": "New", "status": "fresh", "tags": ["now"]}
    filled.apply(entities=[{"id": "REQ-0009", **new}])
    assert filters(filled, status="fresh", at=1) == [Filter("status", "fresh", 3, "fresh", ())]
    assert filters(filled, status="opn", at=1) == [Filter("status", "opn", 3, "opn", ("open",))]
    assert filters(filled, tags=("now",), at=1) == [Filter("tags", "now", 3, "now", ())]
    assert filters(filled, ids=("REQ-0009",), at=1)[0].unknown == "REQ-0009"
    assert "REQ-0009" not in filters(filled, ids=("REQ-9",), at=1)[0].near
    assert filters(filled, type="edge", ids=("link:" + "0" * 32,), at=1)[0].near == ()


def test_what_leads_nowhere_is_a_filter_too(filled):
    assert filters(filled, from_id="TEST-1") == [Filter("from", "TEST-1", 3, against=1)]
    assert filters(filled, from_id="REQ-001", follow=("^verified_by",)) == [Filter("from", "REQ-001", 3, against=1)]


def test_an_id_that_nothing_has_is_named_where_an_edge_to_it_is_to_be_lacking(filled):
    view, asked = filled.view(), Query(lacks=(Pattern("verified_by", "TEST-01"), Pattern("verified_by")))
    assert unknown_ids(view, asked) == ["There is no 'TEST-01'. Did you mean 'TEST-1'?"]


def test_beside_a_text_only_what_nothing_has_is_named(filled):
    assert filters(filled, text="log", tags=("auht",), status="open") == [Filter("tags", "auht", 0, "auht", ("auth",))]
    assert (
        filters(filled, text="log", tags=("auht",))[0].lacking() == "Nothing has the tag 'auht'. Did you mean 'auth'?"
    )
    assert filters(filled, text="zebra", tags=("auth",)) == []


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("REQ-1", ("REQ-001",)),
        ("req-0002", ("REQ-002",)),
        ("TEST-01", ("TEST-1",)),
        ("REQ-009", ("REQ-001", "REQ-002")),
        ("something else", ()),
        ("'; drop table node", ()),
    ],
)
def test_near_ids_are_those_that_differ_least_and_zeros_do_not_count(filled, word, near):
    assert near_ids(filled.view().rows, word) == near


def test_a_condition_on_tags_or_on_the_id_names_what_is_near(filled):
    [tagged] = filters(filled, where=((Condition("tags", "auht"),),))
    assert (tagged.lacking(), tagged.near) == ("Nothing has the 'tags' 'auht'. Did you mean 'auth'?", ("auth",))
    [named] = filters(filled, where=((Condition("id", "REQ-01"),),))
    assert named.lacking() == "There is no 'REQ-01'. Did you mean 'REQ-001'?"


def test_several_ids_in_one_name_the_condition_that_was_meant(filled):
    [several] = filters(filled, ids=("REQ-001,REQ-002",))
    assert several.instead == "id=REQ-001 OR id=REQ-002"
    view = filled.view()
    [said, _] = unknown_ids(view, query.check(Query(ids=("REQ-001,REQ-002", "TEST-1", "X")), CORE))
    assert "`id=REQ-001 OR id=REQ-002`" in said


def test_a_field_that_nothing_has_is_said_with_those_like_it(filled):
    filled.apply(entities=[{"id": "TEST-1", "attributes": {"severitty": "high"}}])
    [alone] = filters(filled, where=((Condition("severity", "high"),),))
    assert alone.lacking() == "Nothing has the field 'severity'. Did you mean 'severitty'?"


@pytest.mark.parametrize("text", ['title~"OR"', 'title="this OR that"', 'title="=x"', 'title=" x"'])
def test_a_condition_is_quoted_as_it_was_typed(text):
    [asked] = query.parse_where(text)
    assert asked.as_text() == text
