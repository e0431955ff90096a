"""Completions of what is being typed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore.query import completion
from kbcore.store.write_request import Author
from tests.support.effort.scale import tries
from tests.support.repository.project import Project

ENTITIES = [
    {"id": "REQ-1", "type": "req", "title": "Log in with a passkey", "status": "open", "tags": ["auth", "ui"]},
    {"id": "REQ-10", "type": "req", "title": "Log out (everywhere)", "status": "open", "tags": ["auth"]},
    {"id": "REQ-2", "type": "req", "title": "100% off, the cart's sign-off", "status": "open"},
    {"id": "login/form", "type": "symbol", "title": "", "status": "active"},
    {"id": "TEST-1", "type": "test", "title": "Passkey works", "status": "active", "attributes": {"kind": "e2e"}},
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("completing") / "project")
    made.apply(entities=[one | {"title": one["title"] or one["id"]} for one in ENTITIES])
    made.apply(
        entities=[{"id": "REQ-3", "type": "req", "title": "x", "status": "open"}], author=Author("Bob", "c", "k")
    )
    yield made
    made.close()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["REQ-1", "REQ-10", "REQ-2", "REQ-3", "TEST-1", "login/form"]),
        ("req-1", ["REQ-1", "REQ-10", "REQ-2"]),
        ("REQ-3", ["REQ-3"]),
        ("log", ["login/form", "REQ-1", "REQ-10"]),
        ("passkey", ["REQ-1", "TEST-1"]),
        ("out log", ["REQ-10"]),
        ("everywhere", ["REQ-10"]),
        ("(every", ["REQ-10"]),
        ("off", ["REQ-2"]),
        ("form", ["login/form"]),
        ("asskey", []),
        ("100%", ["REQ-2"]),
        ("_", []),
        ("%", []),
        ("'; drop table node", []),
    ],
)
def test_ids_are_found_by_their_beginning_and_by_words_of_titles(project, typed, found):
    likely = completion.entity_ids(project.view(), typed, most=100)
    assert (list(likely.values), likely.total) == (found, len(found))


def test_only_so_many_are_given_and_all_are_counted(project):
    assert completion.entity_ids(project.view(), "", most=2) == completion.Likely(("REQ-1", "REQ-10"), 6)
    assert completion.entity_ids(project.view(), "", type="req", most=1).total == 4


def test_tags_actors_and_seqs_come_the_likeliest_first(project):
    view = project.view()
    assert completion.tags(view, "", most=9) == completion.Likely(("auth", "ui"), 2)
    assert completion.tags(view, "U", most=9).values == ("ui",)
    assert completion.actors(view, "", most=9).values == ("Bob", "tester")
    assert completion.actors(view, "EST", most=9).values == ("tester",)
    assert completion.seqs(view, "", most=9).values == ("2", "1")
    assert completion.seqs(view, "", actor="tester", most=9).values == ("1",)
    assert completion.seqs(view, "3", most=9) == completion.Likely((), 0)


@given(st.text(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(9, 25))
def test_whatever_is_typed_is_text(project, typed):
    view = project.view()
    for likely in (completion.tags, completion.actors, completion.seqs, completion.entity_ids):
        found = likely(view, typed, most=3)
        assert len(found.values) <= min(3, found.total)
