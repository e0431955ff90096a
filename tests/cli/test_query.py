"""``kb query``: every filter reaches the core."""

from __future__ import annotations

import json

import pytest

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


def test_an_edge_can_be_the_end_of_another_by_the_id_that_a_query_of_edges_shows(kb, synced):
    schema = {"entities": {"fact": {}}, "edges": {"doubts": {"from": ["fact"], "to": ["link"]}}}
    (synced / ".kb/schema/p.yaml").write_text(json.dumps(schema))
    edge = kb("query", "edge", "--json").json["edges"][0]
    assert f",{edge['id']},\n" in kb("query", "edge", "--format", "csv").out
    fact = {"id": "FACT-1", "type": "fact", "title": "F", "status": "open"}
    doubt = {"type": "doubts", "from": "FACT-1", "to": edge["id"]}
    assert kb("apply", "-", stdin=json.dumps({"entities": [fact], "edges": [doubt]})).status == 0
    assert kb("query", "--has", f"doubts:{edge['id']}", "--json").json["entities"][0]["id"] == "FACT-1"


def test_ids_are_sorted_as_people_count(kb, synced):
    apply(kb, entities=[{"id": f"REQ-{n}", "type": "req", "title": "More", "status": "open"} for n in (12, 30)])
    assert ids(kb("query", "req", "--sort", "id", "--json")) == ["REQ-1", "REQ-2", "REQ-12", "REQ-30"]


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


@pytest.mark.parametrize(("path", "is_found"), [(".", True), ("./", True), ("/", False), ("/etc", False)])
def test_the_worktree_holds_every_file_and_the_root_of_the_system_none(kb, synced, path, is_found):
    assert ("REQ-1" in ids(kb("query", "req", "--path", path, "--json"))) is is_found
