"""``kb query``: every filter reaches the core, every format says the same, and nothing acts on a terminal."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from kbcli.views.query import ways_on
from tests.support.processes.cli import LOGIN, write

SHAPE = {"branch", "seq", "total", "entities", "edges", "next_cursor", "freshness", "pending_files"}


def ids(ran) -> list[str]:
    assert set(ran.json) - {"search", "freshness_reason"} == SHAPE
    return [entity["id"] for entity in ran.json["entities"]]


def apply(kb, **request) -> None:
    done = kb("apply", "-", stdin=json.dumps(request))
    assert done.status == 0, done


@pytest.mark.sliced(6)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["REQ-1", "REQ-2", "TEST-1"]),
        (["req"], ["REQ-1", "REQ-2"]),
        (["--id", "REQ-2", "--id", "REQ-1"], ["REQ-1", "REQ-2"]),
        (["--tag", "auth"], ["REQ-1", "REQ-2"]),
        (["--tag", "auth", "--tag", "web"], ["REQ-1"]),
        (["--status", "done"], ["REQ-2"]),
        (["--where", "kind=e2e"], ["TEST-1"]),
        (["--where", "title=Log in", "--where", "status=done"], []),
        (["req", "--has", "verified_by"], ["REQ-1"]),
        (["req", "--lacks", "verified_by"], ["REQ-2"]),
        (["--has", "^verified_by:REQ-1"], ["TEST-1"]),
        (["--where", "id=REQ-1 OR status=done"], ["REQ-1", "REQ-2"]),
        (["--where", "title~OUT"], ["REQ-2"]),
        (["req", "--where", "title!=Log in"], ["REQ-2"]),
        (["--where", "id>REQ-1", "--where", "id<=REQ-2"], ["REQ-2"]),
        (["--text", "log out"], ["REQ-2"]),
        (["--from", "REQ-2"], ["REQ-1"]),
        (["--from", "REQ-2", "--depth", "2"], ["REQ-1", "TEST-1"]),
        (["--from", "REQ-2", "--depth", "2", "--follow", "verified_by,relates_to"], []),
        (["--from", "TEST-1", "--reverse"], ["REQ-1"]),
        (["--sort", "-id"], ["TEST-1", "REQ-2", "REQ-1"]),
        (["--limit", "1"], ["REQ-1"]),
        (["--at", "0"], []),
        (["--at", "1"], ["REQ-1", "REQ-2", "TEST-1"]),
    ],
)
def test_each_filter_finds_what_it_names(kb, synced, words, found):
    assert ids(kb("query", *words, "--json")) == found


def test_the_answer_has_the_fixed_shape_and_edges_only_when_asked(kb, synced):
    answer = kb("query", "--id", "REQ-1", "--json").json
    assert set(answer) == SHAPE
    assert (answer["branch"], answer["seq"], answer["total"], answer["next_cursor"]) == ("main", 1, 1, None)
    assert "edges" not in answer["entities"][0]
    assert answer["edges"] == []
    answer = kb("query", "--id", "REQ-1", "--edges", "--json").json
    ends = {(edge["type"], edge["from"], edge["to"]) for edge in answer["edges"]}
    assert ends == {("verified_by", "REQ-1", "TEST-1"), ("depends_on", "REQ-2", "REQ-1")}
    assert answer["entities"][0]["edges"] == answer["edges"]


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


def test_edges_themselves_can_be_asked_for(kb, synced):
    answer = kb("query", "edge", "--where", "type=verified_by", "--json").json
    assert answer["entities"] == []
    assert [(edge["from"], edge["to"]) for edge in answer["edges"]] == [("REQ-1", "TEST-1")]
    row = kb("query", "edge", "--where", "from=REQ-2").out.splitlines()[1]
    assert row.split()[:3] == ["REQ-2", "depends_on", "REQ-1"]


def test_a_cursor_leads_through_all_pages_of_one_state(kb, synced):
    first = kb("query", "--limit", "2", "--json").json
    write(synced, {"docs/requirements/a.md": LOGIN.replace("REQ-1", "REQ-1a")})
    kb("sync")
    second = kb("query", "--limit", "2", "--cursor", first["next_cursor"], "--json").json
    assert [entity["id"] for entity in first["entities"] + second["entities"]] == ["REQ-1", "REQ-2", "TEST-1"]
    assert (second["seq"], second["total"], second["next_cursor"]) == (1, 3, None)
    assert (second["freshness"], second["freshness_reason"]) == ("unknown", "The answer is as of seq 1.")


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
def test_all_faults_of_a_query_are_reported_at_once_with_the_nearest_names(kb, synced):
    error = kb("query", "rec", "--sort", "tags", "--lacks", "verified_bye", "--json").error
    assert error["code"] == "invalid_query"
    assert [problem["path"] for problem in error["details"]] == ["$.type", "$.lacks[0]", "$.sort"]
    words = ["--where", "title", "--has", ":x", "--at", "someday", "--status", "", "--limit", "0", "--sort", "statu"]
    error = kb("query", *words, "--json").error
    paths = ["$.at", "$.has[0]", "$.limit", "$.sort", "$.status", "$.where[0]"]
    assert sorted(problem["path"] for problem in error["details"]) == paths
    assert kb("query", "--has", ":x").status == 2
    assert kb("query", "--where", "title").status == 2
    assert kb("query", "--at", "someday").status == 2
    assert kb("query", "conflict").err.endswith("hint: `kb resolve` lists what changes state differently.\n")
    assert kb("query", "rec").err == ("error: There is no entity type 'rec'.\nhint: Did you mean 'req'?\n")


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "words", [[""], ["--status", ""], ["--id", ""], ["--from", ""], ["--at", ""], ["--cursor", ""]]
)
def test_an_empty_argument_is_refused_instead_of_filtering_nothing(kb, synced, words):
    ran = kb("query", *words)
    assert ran.status == 2
    assert "is empty" in ran.err


def test_names_that_nothing_has_are_refused_with_the_nearest(kb, synced):
    for words in (["--where", "titel=x"], ["--sort", "-titel"]):
        ran = kb("query", *words)
        assert ran.status == 2
        assert "Did you mean 'title'?" in ran.err
    assert kb("query", "--where", "line=3").status == 0


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
def test_an_empty_answer_is_reported_on_standard_error(kb, synced, root):
    head = "FROM\tEDGE\tTO\tCONFIDENCE\tSOURCE\n"
    assert kb("query", "edge", "--where", "kind=x") == (
        0,
        head,
        "No edge matches.\n  Nothing has the 'kind' 'x'.\n",
    )
    assert kb("query", "edge", "--where", "to=TEST-01").err == (
        "No edge matches.\n  There is no 'TEST-01'. Did you mean 'TEST-1'?\n"
    )
    alone = kb("query", "edge", "--where", "from=TEST-1").err
    assert alone == "No edge matches.\n  Without `--where from=TEST-1`: 2.\n"
    assert kb("query", "--status", "dnoe", "--format", "table") == (
        *(0, ""),
        "No entity matches.\n  Nothing has the status 'dnoe'. Did you mean 'done'?\n",
    )
    assert kb("query", "adr").err == "No entity matches.\n  There is no adr yet; of all other types there are 3.\n"
    assert kb("query", "req", "--tag", "web", "--status", "done").err == (
        "No entity matches.\n  Without `--status done`: 1.\n  Without `--tag web`: 1.\n"
    )
    assert "There is no 'TEST-01'. Did you mean 'TEST-1'?" in kb("query", "--has", "verified_by:TEST-01").err
    assert kb("query", "--text", "log", "--status", "dnoe").err.endswith(
        "\nNothing has the status 'dnoe'. Did you mean 'done'?\n"
    )
    assert "  Against the direction of the edges: 1. Add `--reverse`" in kb("query", "--from", "TEST-1").err
    back = kb("query", "--from", "REQ-1", "--follow", "verified_by", "--reverse").err
    assert "  Against the direction of the edges: 1. Leave out `--reverse`." in back
    back = kb("query", "--from", "REQ-1", "--follow", "^verified_by").err
    assert "  Against the direction of the edges: 1. Leave out `^`." in back


@pytest.mark.sliced
def test_entities_of_a_type_that_the_schema_has_no_more_are_found(kb, synced):
    write(synced, {".kb/schema/p.yaml": "entities: {risk: {description: A risk.}}\n"})
    assert (
        kb("apply", "-", stdin='{"entities": [{"id": "R-1", "type": "risk", "title": "T", "status": "open"}]}').status
        == 0
    )
    (synced / ".kb/schema/p.yaml").unlink()
    assert [one["id"] for one in kb("query", "risk", "--json").json["entities"]] == ["R-1"]
    assert kb("query", "rsik").status == 2
    assert "Nothing has the 'path' 'docs/nowhere.md'." in kb("query", "--where", "path=./docs/nowhere.md").err
    assert kb("query", "--from", "REQ-1", "--follow", "guards").err.endswith(
        "\n  No edge of those to follow leads from or to 'REQ-1': `kb show REQ-1` shows all it has.\n"
    )


def test_an_empty_store_says_what_to_do(kb, ready):
    assert "kb sync" in kb("query").err


@pytest.mark.sliced
def test_stored_text_never_acts_on_a_terminal(kb, synced):
    title = "\x1b]0;owned\x07 \u202egnp.exe\nnew line"
    apply(kb, entities=[{"id": "X\u202e1", "type": "req", "title": title, "status": "open", "tags": ["\x1b[2J"]}])
    for format_ in ("table", "tsv", "markdown", "csv", "jsonl", "json"):
        out = kb("query", "--status", "open", "--format", format_).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\x07" not in out
    assert kb("query", "--id", "X\u202e1", "--json").json["entities"][0]["title"] == title


@pytest.mark.sliced
def test_a_search_shows_below_each_row_why_it_was_found_and_on_stderr_how_it_was_read(kb, synced):
    ran = kb("query", "--text", "lgo out", "--format", "table")
    assert (ran.out.splitlines()[2], ran.status) == ("    title: Log «out»", 0)
    assert ran.err == "No entity contains 'lgo'; this is what the other words find.\n"
    write(
        synced, {"docs/requirements/key.md": "---\nid: KEY\ntitle: Keys\nstatus: open\n---\nA passkey \x1b[2J opens.\n"}
    )
    kb("sync")
    ran = kb("query", "--text", "paskey", "--format", "table")
    assert ran.out.splitlines()[2] == r"    body: A «passkey» \x1b[2J opens."
    assert ran.err == "No entity contains 'paskey'; looked for 'passkey' instead.\n"
    assert kb("query", "--text", "paskey", "--format", "jsonl").out.count('"snippet"') == 1
    found = kb("query", "--text", "paskey", "--json").json
    assert found["search"]["corrected"] == {"paskey": ["passkey"]}
    assert found["entities"][0]["snippet"]["text"] == "A «passkey» \x1b[2J opens."
    assert kb("query", "--text", "nowhere").err == "Nothing relevant: no entity contains 'nowhere'.\n"
    assert kb("query", "--text", "—").err.startswith("error: The text contains no word.")


def test_ids_that_begin_with_a_dash_come_after_two_dashes_or_with_their_option(kb, synced):
    apply(kb, entities=[{"id": "-x", "type": "req", "title": "T", "status": "open"}])
    assert ids(kb("query", "--id", "-x", "--json")) == ["-x"]
    assert kb("delete", "--json", "--", "-x").json["deleted"] == ["-x"]


def test_a_query_below_the_top_makes_no_store_there(kb, synced):
    below = synced / "docs" / "requirements"
    assert ids(kb("query", "--json", cwd=below)) == ["REQ-1", "REQ-2", "TEST-1"]
    assert not (below / ".kb").exists()
    assert not (synced / "docs" / ".kb").exists()


def test_a_refused_query_names_the_options_and_in_json_the_arguments(kb, synced):
    ran = kb("query", "--depth", "3", "--has", "nope")
    assert "--has: There is no edge type 'nope'." in ran.err
    assert "--depth: `--depth` needs a place to start. (Name an entity with `--from`.)" in ran.err
    refused = kb("query", "--depth", "3", "--has", "nope", "--json").error["details"]
    assert [one["path"] for one in refused] == ["$.has[0]", "$.depth"]
    assert (refused[1]["message"], refused[1]["hint"]) == (
        "`depth` needs a place to start.",
        "Name an entity with `from`.",
    )
    assert kb("query", "--status", "").err.startswith("error: `--status` is empty.")
    assert kb("query", "--status", "", "--format", "json").error["message"] == "`status` is empty."
    # What was typed stays as it is, also where it looks like the name of an argument.
    assert "no field '`from`'" in kb("query", "--fields", "`from`").err


@pytest.mark.parametrize(
    ("total", "ways"),
    [(2, "--limit 2, or --cursor C"), (20_000, "--limit 10000, or --cursor C")],
)
def test_the_command_for_more_results_works(total, ways):
    assert ways_on(1, total, "C") == ways
    assert ways_on(10_000, 20_000, "C") == "--cursor C"


def test_an_edge_can_be_the_end_of_another_by_the_id_that_a_query_of_edges_shows(kb, synced):
    schema = {"entities": {"fact": {}}, "edges": {"doubts": {"from": ["fact"], "to": ["link"]}}}
    (synced / ".kb/schema/p.yaml").write_text(json.dumps(schema))
    edge = kb("query", "edge", "--json").json["edges"][0]
    assert f",{edge['id']},\n" in kb("query", "edge", "--format", "csv").out
    fact = {"id": "FACT-1", "type": "fact", "title": "F", "status": "open"}
    doubt = {"type": "doubts", "from": "FACT-1", "to": edge["id"]}
    assert kb("apply", "-", stdin=json.dumps({"entities": [fact], "edges": [doubt]})).status == 0
    assert kb("query", "--has", f"doubts:{edge['id']}", "--json").json["entities"][0]["id"] == "FACT-1"


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


@pytest.mark.parametrize("key", ["tag", "tags", "links", "nosuch"])
def test_a_refused_sort_names_no_list_to_sort_by(kb, synced, key):
    hint = kb("query", "--sort", key, "--json").error["hint"]
    assert {"tag", "tags", "links"}.isdisjoint(re.findall(r"\w+", hint))
    assert "title" in hint


def test_ids_are_sorted_as_people_count(kb, synced):
    apply(kb, entities=[{"id": f"REQ-{n}", "type": "req", "title": "More", "status": "open"} for n in (12, 30)])
    assert ids(kb("query", "req", "--sort", "id", "--json")) == ["REQ-1", "REQ-2", "REQ-12", "REQ-30"]


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


def test_a_former_id_in_the_place_of_a_type_is_an_id(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    for key in ("REQ-1", "REQ-7"):
        assert f"'{key}' is an id, and no entity type.\nhint: `kb show {key}` shows it." in kb("query", key).err


def test_fields_of_an_edge_leave_its_type(kb, synced):
    (edge, *_) = kb("query", "edge", "--fields", "confidence", "--json").json["edges"]
    assert {"type", "from", "to"} <= set(edge)
    assert "created_by" not in edge


def test_a_field_that_there_is_not_is_refused_with_the_nearest(kb, synced):
    refused = kb("query", "--fields", "id,titel")
    assert (refused.status != 0, "--fields" in refused.err, "'title'" in refused.err) == (True, True, True)
    assert "There is no operator '=='" in kb("query", "--where", "title==x").err


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--where", "estimate>abc"], "Without `--where 'estimate>abc'`: 4."),
        (["--id", "docs/requirements/login.md"], "Did you mean 'REQ-1'?"),
        (["--from", "docs/requirements/login.md"], "Did you mean 'REQ-1'?"),
        (["REQ-1"], "`kb show REQ-1` shows it."),
    ],
)
def test_an_answer_without_a_row_names_what_may_be_meant(kb, synced, words, said):
    entity = {"id": "REQ-9", "type": "req", "title": "T", "status": "open", "attributes": {"estimate": 3}}
    kb("apply", "-", stdin=json.dumps({"entities": [entity]}))
    assert said in kb("query", *words).err


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("start", "where"),
    [
        (".", "source=./docs/requirements/login.md"),
        ("docs", "source=requirements/login.md"),
        ("docs", "source=./requirements/login.md"),
        ("docs", "path=docs/requirements/login.md"),
        ("docs/requirements", "source=login.md"),
        ("docs/requirements", "source=../requirements/login.md"),
        ("docs/requirements", "source=gone.md OR source=login.md"),
        ("src", "file=a.py"),
        ("src", "file=src/a.py"),
    ],
)
def test_the_path_of_a_file_is_one_however_and_wherever_it_is_written(kb, synced, start, where):
    req = {"id": "REQ-9", "type": "req", "title": "T", "status": "open", "attributes": {"file": "src/a.py"}}
    kb("apply", "-", stdin=json.dumps({"entities": [req]}))
    (synced / start).mkdir(exist_ok=True)
    found = kb("-C", start, "query", "--where", where)
    assert ("REQ-9" if start == "src" else "REQ-1") in found.out, found.err


def test_the_name_that_a_manifest_may_write_is_answered_with_the_one_that_kb_has(kb, synced):
    req = {"id": "REQ-9", "type": "req", "title": "T", "status": "open", "attributes": {"file": "src/a.py"}}
    kb("apply", "-", stdin=json.dumps({"entities": [req]}))
    for name, near in (("sourceFile", "file"), ("source_file", "file"), ("attributes.sourceFile", "attributes.file")):
        assert f"Did you mean '{near}'?" in kb("query", "--where", f"{name}=src/a.py").err


def test_each_id_that_nothing_has_is_named_where_another_one_matches(kb, synced):
    ran = kb("query", "--id", "REQ-1", "--id", "REQ-77", "--id", "TST-1")
    assert (ran.status, [line.split()[0] for line in ran.out.splitlines()[1:]]) == (0, ["REQ-1"])
    assert "There is no 'REQ-77'." in ran.err
    assert "There is no 'TST-1'. Did you mean 'TEST-1'?" in ran.err
    many = [word for number in range(50, 60) for word in ("--id", f"REQ-{number}")]
    ran = kb("query", "--id", "REQ-1", *many)
    assert (ran.err.count("There is no"), "Nothing has 10 of the 11 ids." in ran.err) == (5, True)
    assert "There is no" not in kb("query", "--id", "REQ-1", "--id", "REQ-2").err


def test_an_unknown_id_that_everything_lacks_an_edge_to_is_named(kb, synced):
    ran = kb("query", "req", "--lacks", "verified_by:REQ-77")
    assert ran.out.count("REQ-") >= 2
    assert "note: There is no 'REQ-77'." in ran.err
    assert "There is no" not in kb("query", "req", "--lacks", "verified_by:REQ-1").err


def test_what_is_only_shown_of_an_entity_is_said_where_it_is_compared_or_sorted_by(kb, synced):
    for asked in (["--where", "stale=true"], ["--sort", "stale"]):
        ran = kb("query", "req", *asked)
        assert ran.status == 2
        assert "It is only shown. Run `kb check --rule unreadable-source`, which lists those files." in ran.err


def test_an_entity_that_is_in_no_record_yet_has_no_times_and_no_history(kb, synced):
    text = "---\nid: NEW-1\ntitle: New\nstatus: open\n{}---\n"
    write(synced, {"docs/requirements/new.md": text.format("")})
    page, shown = kb("show", "NEW-1").out, kb("show", "NEW-1", "--json").json
    assert "none: no record has it yet" in page
    assert "created_at" not in page
    assert {"created_at", "updated_at"}.isdisjoint(shown["entity"])
    assert shown["entity"]["source"] == "docs/requirements/new.md"
    write(synced, {"docs/requirements/new.md": text.format("created_at: 2020-02-03\n")})
    assert kb("show", "NEW-1", "--json").json["entity"]["created_at"].startswith("2020-02-03")
    kb("sync")
    assert "updated_at" in kb("show", "NEW-1", "--json").json["entity"]
