"""Questions that ``kb query`` refuses or does not find, and what it names instead."""

from __future__ import annotations

import json
import re

import pytest


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


def test_an_empty_store_says_what_to_do(kb, ready):
    assert "kb sync" in kb("query").err


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


@pytest.mark.parametrize("key", ["tag", "tags", "links", "nosuch"])
def test_a_refused_sort_names_no_list_to_sort_by(kb, synced, key):
    hint = kb("query", "--sort", key, "--json").error["hint"]
    assert {"tag", "tags", "links"}.isdisjoint(re.findall(r"\w+", hint))
    assert "title" in hint


def test_a_former_id_in_the_place_of_a_type_is_an_id(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    for key in ("REQ-1", "REQ-7"):
        assert f"'{key}' is an id, and no entity type.\nhint: `kb show {key}` shows it." in kb("query", key).err


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
