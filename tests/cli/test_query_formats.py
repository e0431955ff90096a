"""The formats of ``kb query``: every one says the same, a list in a pipe is whole, and nothing acts on a terminal."""

from __future__ import annotations

import csv
import io
import json

import pytest

from kbcli.views.query import ways_on
from tests.support.processes.cli import LOGIN, write


@pytest.mark.sliced
def test_a_walk_shows_depth_and_path_in_every_format(kb, synced):
    words = ["query", "--from", "REQ-2", "--depth", "2", "--follow", "depends_on,verified_by"]
    entities = kb(*words, "--json").json["entities"]
    assert [(entity["id"], entity["depth"]) for entity in entities] == [("REQ-1", 1), ("TEST-1", 2)]
    first = {"from": "REQ-2", "type": "depends_on", "to": "REQ-1"}
    assert entities[1]["path"] == [first, {"from": "REQ-1", "type": "verified_by", "to": "TEST-1"}]
    assert "REQ-2 → depends_on → REQ-1 → verified_by → TEST-1" in kb(*words).out
    rows = list(csv.DictReader(io.StringIO(kb(*words, "--format", "csv").out)))
    assert (rows[0]["depth"], json.loads(rows[0]["path"])) == ("1", [first])
    back = kb("query", "--from", "REQ-1", "--follow", "^depends_on,verified_by")
    assert "REQ-1 ← depends_on ← REQ-2" in back.out
    assert "PATH" not in kb("query").out


def test_the_text_says_how_to_get_the_rest(kb, synced):
    ran = kb("query", "--limit", "1")
    assert ran.out.splitlines()[1].split()[0] == "REQ-1"
    cursor = ran.err.split()[-1]
    assert ran.err.startswith("1 of 3; ")
    assert "REQ-2" in kb("query", "--limit", "1", "--cursor", cursor).out


@pytest.mark.sliced
def test_every_format_says_the_same(kb, synced):
    whole = kb("query", "--format", "json").json
    lines = kb("query", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == whole["entities"]
    rows = list(csv.DictReader(io.StringIO(kb("query", "--format", "csv").out)))
    assert [row["id"] for row in rows] == [entity["id"] for entity in whole["entities"]]
    assert json.loads(rows[0]["tags"]) == ["auth", "web"]
    assert json.loads(rows[2]["attributes"]) == {"kind": "e2e"}
    assert "| REQ-1 | req | open | Log in | auth, web |" in kb("query", "--format", "markdown").out
    assert kb("query", "--format", "table").out.splitlines()[1] == "REQ-1   req   open    Log in       auth, web"
    assert kb("query", "--format", "tsv").out == kb("query").out


def test_what_a_text_found_has_every_format_too(kb, synced):
    words = ["query", "--text", "log in"]
    [entity] = kb(*words, "--json").json["entities"]
    [row] = csv.DictReader(io.StringIO(kb(*words, "--format", "csv").out))
    assert (float(row["score"]), json.loads(row["snippet"])) == (entity["score"], entity["snippet"])
    head, _, line = kb(*words, "--format", "markdown").out.splitlines()
    assert head == "| ID | TYPE | STATUS | TITLE | TAGS | SNIPPET |"
    assert line == "| REQ-1 | req | open | Log in | auth, web | # «Log» «in» |"
    assert "score" not in kb("query", "--format", "csv").out


def test_edges_have_every_format_too(kb, synced):
    whole = kb("query", "edge", "--json").json["edges"]
    assert [json.loads(line) for line in kb("query", "edge", "--format", "jsonl").out.splitlines()] == whole
    rows = list(csv.DictReader(io.StringIO(kb("query", "edge", "--format", "csv").out)))
    assert [(row["from"], row["to"]) for row in rows] == [(edge["from"], edge["to"]) for edge in whole]
    jsonl = kb("query", "--id", "REQ-1", "--edges", "--format", "jsonl").out
    assert len(json.loads(jsonl)["edges"]) == 2


@pytest.mark.parametrize(
    "words", [["--json", "--format", "csv"], ["--edges", "--format", "csv"], ["--edges", "--format", "markdown"]]
)
def test_contradictions_are_refused(kb, synced, words):
    assert kb("query", *words).status == 2


@pytest.mark.sliced
def test_what_a_file_stated_that_cannot_be_read_any_more_is_marked(kb, synced):
    write(synced, {"docs/requirements/login.md": LOGIN.replace("title: ", "title: [")})
    assert kb("sync").status == 0
    stale = {entity["id"]: entity.get("stale") for entity in kb("query", "req", "--json").json["entities"]}
    assert stale == {"REQ-1": True, "REQ-2": None}
    assert "REQ-1  req   open (stale)  Log in" in kb("query", "req", "--format", "table").out
    assert "| REQ-1 | req | open (stale) | Log in |" in kb("query", "req", "--format", "markdown").out
    rows = list(csv.DictReader(io.StringIO(kb("query", "req", "--format", "csv").out)))
    assert [row["stale"] for row in rows] == ["true", ""]


@pytest.mark.sliced
def test_stored_text_never_acts_on_a_terminal(kb, synced):
    title = "\x1b]0;owned\x07 \u202egnp.exe\nnew line"
    entity = {"id": "X\u202e1", "type": "req", "title": title, "status": "open", "tags": ["\x1b[2J"]}
    assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    for format_ in ("table", "tsv", "markdown", "csv", "jsonl", "json"):
        out = kb("query", "--status", "open", "--format", format_).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\x07" not in out
    assert kb("query", "--id", "X\u202e1", "--json").json["entities"][0]["title"] == title


@pytest.mark.parametrize(
    ("total", "ways"),
    [(2, "--limit 2, or --cursor C"), (20_000, "--limit 10000, or --cursor C")],
)
def test_the_command_for_more_results_works(total, ways):
    assert ways_on(1, total, "C") == ways
    assert ways_on(10_000, 20_000, "C") == "--cursor C"


MANY = 60
"""More than a page, and less than what a list reads at once."""


@pytest.fixture
def many(kb, synced):
    nodes = [
        {"id": f"M-{at:03}", "type": "req", "title": "tab\t, line\n and \\", "status": "open"} for at in range(MANY)
    ]
    edges = [{"type": "depends_on", "from": node["id"], "to": "REQ-1"} for node in nodes]
    assert kb("apply", "-", stdin=json.dumps({"entities": nodes, "edges": edges})).status == 0
    return synced


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["query", "--tag", "none-has-it"], 1),
        (["query", "req", "--status", "open"], 1 + MANY + 1),
        (["query", "req", "--status", "open", "--format", "csv", "-q"], 1 + 2 * MANY + 1),
        (["query", "req", "--status", "open", "--format", "jsonl", "-q"], MANY + 1),
        (["query", "req", "--status", "open", "--format", "table"], 1 + MANY + 1),
        (["query", "req", "--status", "open", "--format", "markdown"], 2 + MANY + 1),
        (["query", "req", "--text", "tab"], 1 + MANY),
        (["query", "edge", "--where", "to=REQ-1"], 1 + MANY + 1),
        (["query", "req", "--status", "open", "--limit", "7"], 1 + 7),
        (["query", "req", "--status", "open", "--limit", "7", "--format", "jsonl"], 7),
        (["log", "--oneline"], 1 + 2),
        (["impact", "REQ-1"], 1 + 2 + MANY),
    ],
)
def test_a_list_in_a_pipe_is_whole_unless_a_limit_is_given(kb, many, words, count):
    ran = kb(*words)
    assert ran.status == 0
    assert len(ran.out.splitlines()) == count


def test_a_list_in_a_pipe_reads_more_than_one_page_and_shows_every_entity_once(kb, many, monkeypatch):
    monkeypatch.setattr("kbcli.views.listing.PAGE_ROWS", 7)
    ids = [line.split("\t")[0] for line in kb("query").out.splitlines()[1:]]
    assert ids == [*(f"M-{at:03}" for at in range(MANY)), "REQ-1", "REQ-2", "TEST-1"]
    whole = kb("query", "req", "--edges", "--json").json
    assert (len(whole["entities"]), whole["next_cursor"]) == (MANY + 2, None)
    assert len({edge["from"] for edge in whole["edges"]}) == len(whole["edges"]) == MANY + 2 - 1 + 1
    seqs = [line.split("\t")[0] for line in kb("log", "--oneline").out.splitlines()[1:]]
    assert seqs == ["2", "1"]


def test_cells_in_a_pipe_are_separated_by_tabs_and_hold_neither_tab_nor_line_break(kb, many):
    head, first, *_ = kb("query").out.splitlines()
    assert head.split("\t") == ["ID", "TYPE", "STATUS", "TITLE", "TAGS", "STALE", "PROPOSED"]
    assert first == r"M-000	req	open	tab\t, line\n and \\			"
    assert kb("query", "--format", "table").out.splitlines()[1].startswith("M-000   req   open")


def test_a_count_is_one_number_in_every_format(kb, synced):
    for words in ([], ["--format", "csv"], ["--format", "jsonl"], ["--format", "markdown"]):
        assert kb("query", "req", "--limit", "1", "--count", *words).out == "2\n"
    counted = kb("query", "req", "--count", "--json").json
    assert counted["total"] == 2
    assert not {"entities", "edges", "next_cursor"} & set(counted)
    none = kb("query", "req", "--where", "owner=nobody", "--count")
    assert none.out == "0\n"
    assert "No entity matches." in none.err
    assert (
        "Without `--where 'version>9 OR owner=x'`" in kb("query", "--where", "version>9 OR owner=x", "--tag", "web").err
    )


def test_fields_are_shown_alone_and_in_the_order_asked_for(kb, synced):
    words = ("query", "test", "--fields", "kind,id", "--fields", "title")
    head, row = kb(*words).out.splitlines()
    assert head.split() == ["KIND", "ID", "TITLE"]
    assert row.split()[:2] == ["e2e", "TEST-1"]
    assert next(csv.reader(io.StringIO(kb(*words, "--format", "csv").out))) == ["attributes.kind", "id", "title"]
    assert set(kb(*words, "--json").json["entities"][0]) == {"id", "title", "attributes"}
    assert kb(*words, "--format", "markdown").out.startswith("| KIND | ID | TITLE |")


def test_the_path_of_an_entity_is_a_field_as_it_is_a_condition(kb, synced):
    kb("apply", "-", stdin='{"entities": [{"id": "C-1", "type": "req", "title": "T", "status": "open"}]}')
    words = ("query", "req", "--fields", "id,path", "--where", "id~1")
    rows = [line.split("\t") for line in kb(*words).out.splitlines()]
    assert rows == [["ID", "PATH"], ["C-1", ""], ["REQ-1", "docs/requirements/login.md"]]
    assert "path" not in kb("query", "--id", "REQ-1", "--json").json["entities"][0]


def test_fields_of_an_edge_leave_its_type(kb, synced):
    (edge, *_) = kb("query", "edge", "--fields", "confidence", "--json").json["edges"]
    assert {"type", "from", "to"} <= set(edge)
    assert "created_by" not in edge
