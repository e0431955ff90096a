"""``kb export`` in the formats of other tools."""

from __future__ import annotations

import csv
import json

import pytest

from kbcore.query.exchange.formats import FOLDERS, FORMATS

FACTS = {
    "entities": [
        {
            "id": "REQ-12",
            "type": "req",
            "title": "Log in",
            "status": "draft",
            "attributes": {"risk": "high", "cost": 3},
        },
        {"id": "a b", "type": "test", "title": "Try it", "status": "active", "metadata": {"from": "x"}},
    ],
    "edges": [{"type": "verified_by", "from": "REQ-12", "to": "a b"}],
}


@pytest.fixture
def facts(kb, ready):
    assert kb("apply", "-", stdin=json.dumps(FACTS)).status == 0
    return ready


@pytest.mark.parametrize(
    ("format_", "left_out"),
    [
        ("csv", "2 values"),
        ("xlsx", "2 values"),
        ("reqif", "2 values"),
        ("needs", "2 values"),
        ("doorstop", "1 entity, 1 edge, 1 value"),
    ],
)
def test_what_a_format_does_not_hold_is_counted_and_named(kb, facts, format_, left_out):
    ran = kb("export", "out", "--format", format_)
    first, *named = ran.err.strip().splitlines()
    assert (ran.status, first) == (0, f"warning: {format_} does not hold everything: {left_out} left out.")
    assert [one.strip() for one in named] == (
        ["entities: a b", "edges: REQ-12 verified_by a b", "attributes.cost of REQ-12"]
        if format_ == "doorstop"
        else ["attributes.cost of REQ-12", "metadata.from of a b"]
    )
    held = (1, 0) if format_ == "doorstop" else (2, 1)
    assert ran.out.startswith(
        f"{'1 entity' if held[0] == 1 else '2 entities'} and {'1 edge' if held[1] else '0 edges'}"
    )
    assert (facts / "out").is_dir() == (format_ in FOLDERS)
    again = kb("export", "out", "--format", format_)
    assert (again.status, "--force" in again.err) == (2, True)
    assert kb("export", "out", "--format", format_, "--force").status == 0


def test_the_ending_names_the_format_and_text_goes_to_standard_output(kb, facts):
    assert kb("export", "x.csv").status == 0
    assert (facts / "x.csv").read_text() == kb("export", "-", "--format", "csv").out
    assert (facts / "x.csv").read_text().splitlines()[1].startswith("REQ-12,req,Log in,draft")
    assert kb("export", "x.reqif").status == 0
    assert (facts / "x.reqif").read_text().startswith("<?xml")


@pytest.mark.parametrize("format_", ["xlsx", "doorstop"])
def test_what_is_no_text_is_not_written_to_standard_output(kb, facts, format_):
    ran = kb("export", "-", "--format", format_)
    assert (ran.status, ran.out) == (2, "")


def test_an_export_in_a_format_is_read_again_by_sync(kb, facts):
    (facts / "tables").mkdir()
    assert kb("export", "tables/all.csv").status == 0
    assert kb("delete", "REQ-12", "a b", "--yes", "--cascade").status == 0
    config = facts / ".kb" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "sources": [{"profile": "table"}]}))
    assert kb("sync").status == 0
    shown = json.loads(kb("show", "REQ-12", "--json").out)
    assert shown["entity"]["attributes"] == {"risk": "high"}
    assert [(one["type"], one["to"]) for one in shown["edges"]] == [("verified_by", "a b")]


def test_every_format_is_an_option(kb, facts):
    assert all(one in kb("export", "--help").out for one in FORMATS)


def test_what_is_left_out_is_in_the_json_of_the_answer(kb, facts):
    answer = json.loads(kb("export", "x.csv", "--json").out)
    assert (answer["entities"], answer["edges"]) == (2, 1)
    assert answer["left_out"] == {
        "entities": [],
        "edges": [],
        "values": [{"of": "REQ-12", "field": "attributes.cost"}, {"of": "a b", "field": "metadata.from"}],
        "totals": {"entities": 0, "edges": 0, "values": 2},
    }
    assert "left_out" not in json.loads(kb("export", "x.json", "--json").out)


HOSTILE = ["=1+1", "+49 1", "-x", "@a", "'=1", "''@", "-5", "\uff1dA1"]


def test_no_cell_of_a_table_is_a_formula_and_each_is_read_again_as_it_was(kb, ready):
    items = [{"id": f"REQ-{n}", "type": "req", "title": one, "status": "draft"} for n, one in enumerate(HOSTILE)]
    assert kb("apply", "-", stdin=json.dumps({"entities": items})).status == 0
    (ready / "tables").mkdir()
    ran = kb("export", "tables/all.csv")
    assert (ran.status, ran.err) == (0, "")
    with (ready / "tables/all.csv").open() as file:
        titles = [row["title"] for row in csv.DictReader(file)]
    assert sorted(titles) == sorted("-5" if one == "-5" else f"'{one}" for one in HOSTILE)
    assert f"REQ-0,draft,'{HOSTILE[0]}" in kb("query", "req", "--format", "csv", "--fields", "id,status,title").out
    assert kb("delete", *(one["id"] for one in items), "--yes").status == 0
    config = ready / ".kb" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "sources": [{"profile": "table"}]}))
    assert kb("sync").status == 0
    found = json.loads(kb("query", "req", "--json").out)["entities"]
    assert {one["id"]: one["title"] for one in found} == {one["id"]: one["title"] for one in items}


def test_a_file_that_an_earlier_export_left_in_its_folder_is_named(kb, facts):
    assert kb("export", "out", "--format", "doorstop").status == 0
    (facts / "out" / "REQ" / "REQ-99.yml").write_text("active: true\n")
    ran = kb("export", "out", "--format", "doorstop", "--force")
    assert (ran.status, "REQ-99.yml" in ran.err, "REQ-12.yml" in ran.err) == (0, True, False)
