"""Why nothing matches, and the ids that are near to a mistyped one."""

from __future__ import annotations

import pytest

from kbcore import query
from kbcore.query import Query
from kbcore.query.emptied import Filter, filters_of
from kbcore.query.known import near_ids
from kbcore.schema import CORE
from tests.support.graph import Texts
from tests.support.project import Project


@pytest.fixture
def told(project: Project) -> Project:
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


def test_each_filter_says_how_many_match_without_it(told):
    assert filters(told, type="req", tags=("auth",), status="done") == [
        Filter("type", "req", 0),
        Filter("status", "done", 1),
        Filter("tags", "auth", 1),
    ]
    assert filters(told, where=(("owner", "ana"),), type="test") == [
        Filter("type", "test", 1),
        Filter("where", "owner=ana", 1),
    ]


def test_a_value_that_nothing_has_gets_those_that_are_near(told):
    assert filters(told, status="opn") == [Filter("status", "opn", 3, "opn", ("open",))]
    assert filters(told, tags=("auht",)) == [Filter("tags", "auht", 3, "auht", ("auth",))]
    assert filters(told, ids=("TEST-01",)) == [Filter("ids", "TEST-01", 3, "TEST-01", ("TEST-1",))]
    (has,) = filters(told, has=(query.parse_pattern("verified_by:TEST-01"),))
    assert has == Filter("has", "verified_by:TEST-01", 3, "TEST-01", ("TEST-1",))


def test_what_stood_at_an_earlier_seq_is_explained_by_that(told):
    new = {"type": "req", "title": "New", "status": "fresh", "tags": ["now"]}
    told.apply(entities=[{"id": "REQ-0009", **new}])
    assert filters(told, status="fresh", at=1) == [Filter("status", "fresh", 3, "fresh", ())]
    assert filters(told, status="opn", at=1) == [Filter("status", "opn", 3, "opn", ("open",))]
    assert filters(told, tags=("now",), at=1) == [Filter("tags", "now", 3, "now", ())]
    assert filters(told, ids=("REQ-0009",), at=1)[0].unknown == "REQ-0009"
    assert "REQ-0009" not in filters(told, ids=("REQ-9",), at=1)[0].near
    assert filters(told, type="edge", ids=("link:" + "0" * 32,), at=1)[0].near == ()


def test_what_leads_nowhere_is_a_filter_too(told):
    assert filters(told, from_id="TEST-1") == [Filter("from", "TEST-1", 3, against=1)]
    assert filters(told, from_id="REQ-001", follow=("^verified_by",)) == [Filter("from", "REQ-001", 3, against=1)]


def test_beside_a_text_only_what_nothing_has_is_named(told):
    assert filters(told, text="log", tags=("auht",), status="open") == [Filter("tags", "auht", 0, "auht", ("auth",))]
    assert filters(told, text="log", tags=("auht",))[0].lacking() == "Nothing has the tag 'auht'. Did you mean 'auth'?"
    assert filters(told, text="zebra", tags=("auth",)) == []


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
def test_near_ids_are_those_that_differ_least_and_zeros_do_not_count(told, word, near):
    assert near_ids(told.view().rows, word) == near
