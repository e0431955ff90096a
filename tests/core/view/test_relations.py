"""The relations that rules read have the columns that docs/rules.md lists, and hold what is resolved."""

from __future__ import annotations

import pytest

from kbcore.model.graph import SyncedFile
from kbcore.view.relations import INSTEAD, RELATIONS
from tests.support.views.graph import graph_of, link, node

GRAPH = graph_of(
    [node("A", path="docs/a.md", tags=["x"]), node("B", "test")],
    [link("A", "verified_by", "B", files=["docs/a.md"]), link("A", "", "GONE", is_resolved=False)],
    [SyncedFile("docs/a.md", "f" * 64, "markdown/2+abc", is_ok=True, problems=(), version=1)],
    old_nodes=[(node("A", title="Old"), 3)],
    old_links=[(link("A", "depends_on", "B"), 4), (link("A", "depends_on", "C", is_resolved=False), 4)],
)


def rows(name, columns="*"):
    return GRAPH.rows(f"select {columns} from ({RELATIONS[name].select})")


@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_has_the_columns_and_types_that_are_documented(name):
    found = GRAPH.rows(f"describe {RELATIONS[name].select}")
    kinds = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}
    assert [(row[0], kinds.get(row[1], row[1])) for row in found] == [
        (one.name, one.type) for one in RELATIONS[name].columns
    ]
    assert all(one.meaning for one in RELATIONS[name].columns)


def test_the_relations_hold_what_their_names_say():
    assert rows("entity", "id, file, tags, files") == [("A", "docs/a.md", ["x"], ["docs/a.md"]), ("B", None, [], [])]
    assert rows("edge", "type, kind, from_id, to_id, files") == [("verified_by", None, "A", "B", ["docs/a.md"])]
    assert rows("unresolved", "type, from_id, to_id") == [(None, "A", "GONE")]
    assert rows("file", "path, extractor, is_whole") == [("docs/a.md", "markdown", True)]
    assert rows("entity_history", "id, title, ended") == [("A", "Old", 3)]
    assert rows("edge_history", "type, ended") == [("depends_on", 4)]
    assert rows("record") == []


def test_names_that_come_to_mind_lead_to_relations():
    assert set(INSTEAD.values()) <= RELATIONS.keys()
    assert not INSTEAD.keys() & RELATIONS.keys()
