"""The facts that are exported, and an empty store that holds the same after it applies them."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore import limits
from kbcore.store import facts_export
from kbcore.store.facts_export import Export, export, parts
from tests.core.kip.test_run import asked
from tests.support.effort.scale import tries
from tests.support.repository.project import Project


def text_of(project):
    return json.dumps(list(parts(export(project.view()))), sort_keys=True)


def copied(project, root):
    other = Project(root)
    for part in parts(export(project.view())):
        other.import_(**part)
    found = text_of(other)
    other.close()
    return found


def test_an_empty_store_comes_to_hold_the_same(project, tmp_path):
    project.sync({
        "docs/requirements/1.md": "---\nid: REQ-1\ntitle: One\nstatus: open\ntags: [a, b]\nlinks: [T-1]\n---\nBody\n",
        "docs/tests/1.md": "---\nid: T-1\ntitle: Test\nstatus: ok\n---\n",
    })  # fmt: skip
    project.apply(
        entities=[{"id": "REQ-1", "type": "req", "owner": "ines", "metadata": {"confidence": 0.5}}],
        edges=[{"type": "relates_to", "kind": "see", "from": "T-1", "to": "REQ-1", "confidence": 0.3}],
    )
    remember = """UPSERT {
      CONCEPT { {type: "$ConceptType", name: "Thing"} SET ATTRIBUTES {description: "A thing."} }
      CONCEPT { {type: "$PropositionType", name: "doubts"} SET ATTRIBUTES {description: "Doubts it."} }
      CONCEPT ?t { {type: "Thing", name: "x\\u202e"} SET ATTRIBUTES {n: null, deep: {a: [1, "b", 2.5]}} }
      CONCEPT ?e { {type: "Event", name: "e"} SET ATTRIBUTES {priority: 3} }
      PROPOSITION ?l { (?e, "mentions", ?t) }
      PROPOSITION ?m { (?t, "doubts", ?l) }
      PROPOSITION { (?e, "doubts", ?m) SET ATTRIBUTES {why: "because"} }
    } WITH METADATA {source: "test", confidence: 0.9}"""
    answer = asked(project, remember)
    assert not answer.is_error, answer.response
    assert copied(project, tmp_path / "other") == text_of(project)


@settings(max_examples=tries(3, 8))
@given(st.data())
def test_any_graph_comes_to_stand_again(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("law")
    project = Project(root / "one")
    ids = data.draw(st.lists(st.text("ab12-é", min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
    values = st.none() | st.integers(-5, 5) | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=3)
    fields = st.fixed_dictionaries({"title": st.text("xy ", min_size=1, max_size=4).filter(str.strip)}, optional={
        "tags": st.lists(st.sampled_from("abc"), max_size=3, unique=True),
        "attributes": st.dictionaries(st.sampled_from("pqr"), values, max_size=3),
    })  # fmt: skip
    entities = [{"id": key, "type": "req", "status": "open", **data.draw(fields)} for key in ids]
    ends = data.draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=6, unique=True))
    edges = [{"type": "relates_to", "kind": "k", "from": one, "to": other} for one, other in ends if one != other]
    project.apply(entities=[{**one, "replace": True} for one in entities], edges=edges)
    assert copied(project, root / "two") == text_of(project)
    project.close()


def test_an_edge_that_waits_for_its_end_is_counted_and_left_out(project):
    project.sync({"docs/requirements/1.md": "---\nid: REQ-1\ntitle: One\nstatus: open\nlinks: [NOWHERE]\n---\n"})
    found = export(project.view())
    assert (len(found.entities), found.edges, found.waiting) == (1, [], 1)


def test_a_branch_of_nothing_is_one_part_of_nothing(project):
    assert list(parts(export(project.view()))) == [{"entities": [], "edges": []}]


def test_parts_hold_what_one_changeset_takes_and_edges_come_last(monkeypatch):
    monkeypatch.setattr(limits, "MAX_CHANGESET_ITEMS", 4)
    whole = Export([{"id": str(n)} for n in range(5)], [{"from": str(n)} for n in range(5)], 0)
    found = list(parts(whole))
    assert [(len(one["entities"]), len(one["edges"])) for one in found] == [(4, 0), (1, 3), (0, 2)]
    monkeypatch.setattr(facts_export, "_PART_BYTES", 2 * len(msgspec.json.encode({"id": "0"})) + 2)
    assert [len(one["entities"]) for one in parts(Export(whole.entities, [], 0))] == [2, 2, 1]
