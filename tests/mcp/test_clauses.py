"""Tools on clauses of the Prolog workspace: ``kb_query`` finds them where their type is named."""

from __future__ import annotations

import pytest

from kbcore.logic.clauses import ClauseChange
from tests.support.repository.clauses import clause_store, new
from tests.support.repository.project import Project


@pytest.fixture(scope="module", autouse=True)
def clause(shared: Project) -> str:
    shared.apply(entities=[{"id": "REQ-1", "type": "req", "title": "Wine list", "status": "open"}])
    added = [new("likes(ann, wine).", file="rules/a.pl", line=4)]
    return clause_store(shared).change(lambda _: ClauseChange(added), message="import rules/a.pl").ids[0]


def test_a_query_that_names_no_type_finds_no_clause(each_era):
    assert [one["id"] for one in each_era.call("kb_query")["entities"]] == ["REQ-1"]
    assert [one["id"] for one in each_era.call("kb_query", text="wine")["entities"]] == ["REQ-1"]


def test_a_query_that_names_type_or_id_finds_it(each_era, clause):
    for asked in ({"type": "clause"}, {"ids": [clause]}, {"where": ["type=clause"]}):
        found = each_era.call("kb_query", **asked)["entities"]
        assert [(one["id"], one["attributes"]["text"]) for one in found] == [(clause, "likes(ann, wine).")]
