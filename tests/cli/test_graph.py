"""``kb graph``: the drawing goes to standard output, what was left out of it is reported."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.support.processes.cli import write


def test_a_neighbourhood_is_drawn_in_two_languages_and_answered_as_data(kb, synced):
    drawn = kb("graph", "REQ-2")
    assert drawn.out.splitlines()[:2] == ["flowchart LR", "  %% main at seq 1"]
    assert '  n_REQ_2d_2 -->|"depends_on"| n_REQ_2d_1\n' in drawn.out
    assert drawn.err == ""
    assert kb("graph", "REQ-2", "--format", "mermaid").out == drawn.out
    assert '  n_REQ_2d_2 -> n_REQ_2d_1 [label="depends_on"];\n' in kb("graph", "REQ-2", "--format", "dot").out
    data = kb("graph", "REQ-2", "--json").json
    assert [node["id"] for node in data["nodes"]] == ["REQ-2", "REQ-1"]
    assert data["edges"] == [{"type": "depends_on", "from": "REQ-2", "to": "REQ-1"}]
    assert (data["total"], data["cut"]) == ({"entities": 2, "edges": 1}, False)
    assert len(kb("graph", "REQ-2", "--depth", "2", "--json").json["nodes"]) == 3


def test_the_whole_graph_is_cut_with_a_word(kb, synced):
    drawn = kb("graph", "--limit", "2")
    assert "  %% 2 of 3 entities, those with the most edges\n" in drawn.out
    assert drawn.err.startswith("2 of 3 entities, those with the most edges; --limit")
    assert kb("graph", "--limit", "2", "--json").json["cut"] is True
    assert len(kb("graph", "--type", "req", "--follow", "verified_by", "--json").json["edges"]) == 0


def test_more_edges_than_mermaid_draws_are_reported(kb, synced):
    tests = [{"id": f"T-{number}", "type": "test", "title": "t", "status": "active"} for number in range(600)]
    edges = [{"type": "verified_by", "from": "REQ-1", "to": one["id"]} for one in tests]
    assert kb("apply", "-", stdin=json.dumps({"entities": tests, "edges": edges})).status == 0
    assert "no more than 500 edges" in kb("graph", "--limit", "1000").err
    assert kb("graph", "--limit", "1000", "--format", "dot").err == ""


@pytest.mark.parametrize(
    ("words", "status", "reported"),
    [
        (["REQ-11"], 64, "Did you mean 'REQ-1'?"),
        (["--depth", "2"], 2, "--depth needs an entity"),
        (["REQ-1", "--depth", "0"], 2, "--depth must be from 1 to 50"),
        (["--limit", "0"], 2, "--limit must be"),
        (["--type", "rec"], 2, "Did you mean 'req'?"),
        (["--follow", "depends"], 2, "Did you mean 'depends_on'?"),
        (["--json", "--format", "dot"], 2, "contradict"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_remedy(kb, synced, words, status, reported):
    ran = kb("graph", *words)
    assert ran.status == status
    assert reported in ran.out + ran.err


def test_an_empty_store_says_what_to_do(kb, ready):
    ran = kb("graph")
    assert ran.out.startswith("flowchart LR\n")
    assert "kb sync" in ran.err


def test_a_picture_has_the_entities_and_edges_of_the_drawing(kb, synced):
    root = ET.fromstring(kb("graph", "REQ-1", "--format", "svg").out)
    found = kb("graph", "REQ-1", "--json").json
    place = "{http://www.w3.org/2000/svg}"
    nodes = root.find(f"{place}g[@class='nodes']")
    assert nodes is not None
    assert [one.findtext(f"{place}text") for one in nodes] == [one["id"] for one in found["nodes"]]
    assert len(root.findall(f"{place}g[@class='edges']/{place}path")) == len(found["edges"])


def test_a_picture_that_nobody_can_read_is_refused_with_how_to_narrow_it(kb, synced):
    entities = [{"id": f"N-{at}", "type": "req", "title": "x", "status": "draft"} for at in range(301)]
    write(synced, {"c.json": json.dumps({"message": "many", "entities": entities})})
    assert kb("apply", "c.json").status == 0
    ran = kb("graph", "--limit", "1000", "--format", "svg")
    assert (ran.status, ran.out) == (2, "")
    assert "300 are the most" in ran.err
    assert "--limit" in ran.err
