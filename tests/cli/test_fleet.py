"""``kb export --parquet`` and the commands that ask a fleet."""

from __future__ import annotations

import sys

import pytest

from kbcli.invocation import exits
from kbcore.errors import StorageError


def test_an_export_says_what_it_wrote(kb, synced):
    first = kb("export", "--parquet", "place", "--repo", "acme/pay", "--json").json
    assert (first["repo"], first["branch"], first["history"]) == ("acme/pay", "main", True)
    assert first["written"] == first["bytes"] > 0
    again = kb("export", "--parquet", "place", "--repo", "acme/pay", "--json").json
    assert again == first | {"written": 0}
    assert "all is in place." in kb("export", "--parquet", "place", "--repo", "acme/pay").out


def test_ci_names_the_branch(kb, synced):
    found = kb("export", "--parquet", "place", "--as", "release/1", "--no-history", "--json").json
    assert (found["repo"], found["branch"], found["history"]) == (synced.name, "release/1", False)


@pytest.mark.parametrize(
    "words",
    [
        ("--repo", "x"),
        ("--as", "x"),
        ("--no-history",),
        ("file.json", "--parquet", "place"),
        ("--parquet", "place", "--at", "1"),
        ("--parquet", "place", "--format", "json"),
    ],
)
def test_options_that_do_not_go_together_are_refused(kb, synced, words):
    ran = kb("export", *words)
    assert ran.status == exits.USAGE
    assert "--parquet" in ran.err


def test_a_place_in_a_folder_that_is_not_there_is_refused(kb, synced):
    ran = kb("export", "--parquet", "no/where")
    assert ran.status != 0
    assert "is no folder" in ran.err
    assert not (synced / "no").exists()


@pytest.fixture
def fleet(kb, synced, user):
    for name in ("acme/pay", "acme/ship"):
        assert kb("export", "--parquet", "place", "--repo", name).status == 0
    user.setenv("KB_FLEET", str(synced / "place"))
    return synced / "place"


def test_rules_find_what_those_of_the_repository_find(kb, fleet):
    found = kb("fleet", "check", "--json", "--fail-on", "never")
    assert found.json["repositories"] == 2
    assert {row["repo"] for row in found.json["rows"]} <= {"acme/pay", "acme/ship"}
    assert found.status == 0


def test_no_repository_is_needed(kb, fleet, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    rows = kb("fleet", "status", "--json", cwd=elsewhere).json["rows"]
    assert [row["repo"] for row in rows] == ["acme/pay", "acme/ship"]


@pytest.mark.parametrize("format_", ["table", "tsv", "jsonl", "csv", "markdown", "json"])
def test_every_format_has_the_rows(kb, fleet, format_):
    for words in (("query",), ("coverage", "--by", "requirement"), ("sql", "select repo, id from entity")):
        said = kb("fleet", *words, "--format", format_).out
        assert "acme/pay" in said
        assert "acme/ship" in said


def test_values_of_the_database_are_json(kb, fleet):
    statement = (
        "select date '2026-01-02' as d, created_at, {'a': [1.5::double]} as s, 2::decimal as n from entity limit 1"
    )
    [row] = kb("fleet", "sql", statement, "--json").json["rows"]
    assert (row["d"], row["s"], row["n"]) == ("2026-01-02", {"a": [1.5]}, "2.000")


def test_rows_beyond_the_limit_are_said(kb, fleet):
    ran = kb("fleet", "sql", "select 1 from range(5)", "--limit", "3", "--json")
    assert (len(ran.json["rows"]), ran.json["more"]) == (3, True)
    assert kb("fleet", "query", "--limit", "0").status != 0


def test_a_damaged_repository_is_named_and_fails_the_command(kb, fleet):
    for path in fleet.glob("kind=entity/repo=acme%2Fpay/*/*"):
        path.unlink()
    for words in (("status", "--verify"), ("check", "--fail-on", "never"), ("query",), ("sql", "select 1")):
        ran = kb("fleet", *words, "--json")
        assert ran.status == StorageError.exit_status
        assert [one["repo"] for one in ran.json["failures"]] == ["acme/pay"]
    ran = kb("fleet", "query")
    assert "acme/pay at main was not asked:" in ran.err
    assert "--force" in ran.err


def test_a_place_must_be_named_and_have_something(kb, fleet, user):
    assert "Nothing that is meant" in kb("fleet", "status", "--repo", "other/*").err
    user.delenv("KB_FLEET")
    assert "--place" in kb("fleet", "status").err


def test_a_point_must_be_a_time(kb, fleet):
    assert "is no time" in kb("fleet", "query", "--at", "12").err
    assert kb("fleet", "query", "--at", "2020-01-01", "--json").json["rows"] == []
    assert kb("fleet", "query", "--at", "now", "--json").json["rows"]


@pytest.mark.parametrize("words", [("--workers", "2"), ("--address", "x:1"), ("--shard", "5")])
def test_what_is_of_workers_is_refused_without_them(kb, fleet, words):
    ran = kb("fleet", "query", *words)
    assert ran.status == exits.USAGE
    assert "--engine ray" in ran.err


def test_a_number_that_is_out_of_bounds_is_refused(kb, fleet):
    for option in ("--workers", "--shard"):
        assert "must be from 1 to" in kb("fleet", "query", "--engine", "ray", option, "0").err


def test_without_ray_its_engine_says_how_to_get_it(kb, fleet, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as Python does for a module that cannot be imported
    for words in (("check",), ("query",), ("search", "x"), ("coverage",), ("sql", "select 1")):
        ran = kb("fleet", *words, "--engine", "ray")
        assert ran.status == exits.USAGE
        assert 'pip install "kb-memory[ray]"' in ran.err
    assert kb("fleet", "query").status == 0
