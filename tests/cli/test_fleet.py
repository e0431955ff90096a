"""``kb export --parquet`` and the commands that ask a fleet."""

from __future__ import annotations

import json
import shutil
import sys
from xml.etree import ElementTree as ET

import pytest

from kbcli.invocation import exits
from kbcore.errors import StorageError
from tests.support.processes.cli import write
from tests.support.repository.project import document, req


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


def exported_twice(_, kb):
    for name in ("acme/pay", "acme/ship"):
        kb("export", "--parquet", "place", "--repo", name)


@pytest.fixture
def fleet(kb, grown, user):
    place = grown(exported_twice) / "place"
    user.setenv("KB_FLEET", str(place))
    return place


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


@pytest.mark.slow
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
    assert "Leave it out for 1000." in kb("fleet", "query", "--limit", "0").err
    assert "Leave it out for 50." in kb("fleet", "search", "x", "--limit", "0").err


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
    ran = kb("fleet", "query", "--repo", "acme/pay")
    assert "0 branches asked, 1 failed." in ran.err
    assert "Nothing matches" not in ran.err


def test_a_place_with_damaged_heads_alone_is_not_empty(kb, fleet):
    for path in fleet.glob("heads/*/*.json"):
        path.write_text("{")
    ran = kb("fleet", "query", "--repo", "acme/x")
    assert ran.status == 64
    assert "Nothing of the repository 'acme/x' is in" in ran.err


def test_a_place_must_be_named_and_have_something(kb, fleet, user):
    ran = kb("fleet", "status", "--repo", "acme/pya")
    assert "Nothing of the repository 'acme/pya' is in" in ran.err
    assert "Did you mean 'acme/pay'?" in ran.err
    ran = kb("fleet", "query", "--repo", "acme/pay", "--repo", "acme/pya")
    assert (ran.status, ran.out) == (64, "")
    assert "Nothing of the repository 'acme/pya' is in" in ran.err
    ran = kb("--branch", "dev", "fleet", "status")
    assert "the branch 'dev'" in ran.err
    ran = kb("--branch", "dev", "fleet", "status", "--repo", "acme/pay")
    assert "the repository 'acme/pay' and the branch 'dev'" in ran.err
    assert "'acme/pay'?" not in ran.err
    assert "Nothing was exported to elsewhere." in kb("fleet", "status", "--place", "elsewhere").err
    assert "Nothing was exported to '.'." in kb("fleet", "status", "--place", ".").err
    assert "kb export --parquet 'my place'" in kb("fleet", "status", "--place", "my place").err
    user.delenv("KB_FLEET")
    assert "--place" in kb("fleet", "status").err


def test_what_can_be_no_place_is_refused(kb, fleet, root):
    write(root, {"README.md": "Hello"})
    for place, status, said in (
        ("", exits.USAGE, "is no folder and no URL"),
        (" x", exits.USAGE, "begins or ends with a space"),
        ("a\nb", exits.USAGE, "has a character that cannot be printed"),
        ("README.md", StorageError.exit_status, "is not a directory"),
        ("ftp://127.0.0.1:1/x", StorageError.exit_status, "ftp://127.0.0.1:1/x is not reached"),
    ):
        ran = kb("fleet", "status", "--place", place)
        assert ran.status == status
        assert said in ran.err


def test_a_link_to_a_place_leads_there(kb, fleet, root):
    (root.parent / "link").symlink_to(root)
    assert kb("export", "--parquet", "../link/place", "--repo", "acme/new").status == 0
    assert "acme/new" in kb("fleet", "status").out


def test_any_printable_name_is_found_by_itself(kb, synced, tmp_path):
    place = tmp_path / "a \"b\" 'c' = %41 ü\nd" / 'e = "f" %'
    place.parent.mkdir()
    repo, branch = 'acme/ü "x" %2F=[a]*?\'`', "feat/a b=c %41 [x]"
    found = kb("export", "--parquet", f"../{place.name}", "--repo", "x", cwd=synced)
    assert found.status == 0
    shutil.move(synced.parent / place.name, place)
    (synced.parent / "link").symlink_to(place)
    assert kb("export", "--parquet", "../link", "--repo", repo, "--as", branch).status == 0

    def repos(*words):
        rows = kb(*words, "--place", place.name, "--json", cwd=place.parent).json["rows"]
        return {(row["repo"], row["branch"]) for row in rows}

    assert repos("fleet", "query", "--repo", repo) == {(repo, branch)}
    assert repos("fleet", "status", "--repo", "acme/ü*", "--verify") == {(repo, branch)}
    assert repos("--branch", branch, "fleet", "query") == {(repo, branch)}
    words = ("fleet", "impact", f"{repo}:REQ-1", "--repo", repo, "--place", place.name, "--json")
    assert kb(*words, cwd=place.parent).json["entity"]["repo"] == repo


def test_an_export_warns_of_what_it_replaces_and_of_what_is_private_now(kb, synced):
    kb("apply", "-", stdin='{"entities": [{"id": "ADR-1", "type": "adr", "title": "A", "status": "accepted"}]}')
    kb("export", "--parquet", "place", "--repo", "acme/pay")
    kb("config", "set", "share.actors", '["nobody"]')
    ran = kb("export", "--parquet", "place", "--repo", "acme/pay")
    assert "Earlier parts are still in place" in ran.err
    assert "repo=acme%2Fpay" in ran.err
    path = synced / "place/heads/repo=acme%2Fpay/branch=main.json"
    head = json.loads(path.read_text()) | {"store": "another", "hash": "0" * 32, "at": "2999-01-01T00:00:00.000000Z"}
    path.write_text(json.dumps(head))
    ran = kb("export", "--parquet", "place", "--repo", "acme/pay")
    assert "was of another clone or repository" in ran.err


def test_a_usage_error_names_the_command_below(kb, fleet):
    assert "`kb fleet query --help`" in kb("fleet", "query", "--where").err


def test_a_point_must_be_a_time(kb, fleet):
    assert "is no time" in kb("fleet", "query", "--at", "12").err
    assert kb("fleet", "query", "--at", "2020-01-01", "--json").json["rows"] == []
    assert kb("fleet", "query", "--at", "now", "--json").json["rows"]


def exported_with_links(root, kb):
    kb("export", "--parquet", "place", "--repo", "acme/api")
    write(
        root,
        {
            "docs/requirements/web.md": req("REQ-WEB", depends_on="[acme/api:REQ-1, acme/api:REQ-999]"),
            "docs/tests/web.md": document("T-WEB", title="Web", status="active", links="[acme/api:REQ-1]"),
        },
    )
    kb("sync")
    kb("export", "--parquet", "place", "--repo", "acme/web")


@pytest.fixture
def linked(kb, grown, user):
    """Two repositories: the second one names requirements of the first, one of which is not there."""
    place = grown(exported_with_links) / "place"
    user.setenv("KB_FLEET", str(place))
    return place


def test_impact_names_what_depends_on_an_entity_in_other_repositories(kb, linked):
    for format_ in ("table", "tsv", "jsonl", "csv", "markdown", "json"):
        said = kb("fleet", "impact", "acme/api:REQ-1", "--elsewhere", "--format", format_).out
        assert "REQ-WEB" in said
        assert "T-WEB" in said
        assert "acme/web" in said


def test_impact_is_narrowed_and_bounded(kb, linked):
    whole = kb("fleet", "impact", "acme/api:REQ-1", "--json").json
    assert whole["entity"]["repo"] == "acme/api"
    assert {row["repo"] for row in whole["rows"]} == {"acme/api", "acme/web"}
    some = kb("fleet", "impact", "acme/api:REQ-1", "--repo", "*/web", "--limit", "1", "--json").json
    assert [row["repo"] for row in some["rows"]] == ["acme/web"]
    assert some["total"] == 2
    assert "affects nothing" in kb("fleet", "impact", "acme/web:T-WEB", "--elsewhere", "--repo", "x").err


def test_what_impact_cannot_answer_is_said(kb, linked):
    for words, status, said in (
        (("acme/api:REQ-01",), 64, "Did you mean 'REQ-1'"),
        (("acme/apy:REQ-1",), 64, "Did you mean 'acme/api'"),
        (("acme/api:REQ-1", "--at", "2020-01-01"), 64, "had no entity at that time"),
        (("acme/api:REQ-01", "--at", "now"), 64, "was no 'REQ-01' in acme/api at that time"),
        (("REQ-1",), 2, "is no REPO:ID"),
        (("acme/api:",), 2, "is no REPO:ID"),
        (("acme/api:REQ-1", "--depth", "0"), 2, "--depth"),
        (("acme/api:REQ-1", "--at", "12"), 2, "is no time"),
        (("acme/api:REQ-1", "--format", "xml"), 2, "is none of"),
    ):
        ran = kb("fleet", "impact", *words)
        assert ran.status == status
        assert said in ran.err


def test_a_check_has_the_formats_of_other_programs(kb, linked):
    only = ("fleet", "check", "--rule", "unresolved-reference")
    ran = kb(*only, "--format", "sarif")
    assert ran.status == exits.VIOLATIONS
    runs = json.loads(ran.out)["runs"]
    assert [one["automationDetails"]["id"] for one in runs] == ["acme/api@main", "acme/web@main"]
    own = [one["message"]["text"] for one in runs[1]["results"] if "REQ-WEB" in one["message"]["text"]]
    assert len(own) == 1
    assert own[0].startswith("REQ-WEB depends_on acme/api:REQ-999, but there is no acme/api:REQ-999. Correct it")
    suites = ET.fromstring(kb(*only, "--format", "junit").out)
    assert any("REQ-999" in one.get("name") for one in suites.iter("testcase"))
    assert "acme/web@main unresolved-reference" in {one.get("name") for one in suites}
    rows = kb(*only, "--json").json["rows"]
    assert ("acme/web", "REQ-WEB") in {(row["repo"], row["id"]) for row in rows}
    assert not [row for row in rows if "acme/api:REQ-1" in row["message"]]


def test_coverage_counts_what_another_repository_tests(kb, linked):
    found = kb("fleet", "coverage", "--repo", "acme/api", "--by", "requirement", "--json").json["rows"]
    assert "acme/web:T-WEB" in next(row for row in found if row["id"] == "REQ-1")["verified"]


SUBCOMMANDS = (
    ("status",),
    ("check", "--fail-on", "never"),
    ("query",),
    ("search", "log"),
    ("coverage",),
    ("impact", "acme/api:REQ-1"),
    ("sql", "select repo from entity"),
)


@pytest.mark.slow
def test_every_command_takes_a_place_repositories_and_a_branch(kb, linked, user):
    user.delenv("KB_FLEET")
    user.setenv("KB_BRANCH", "elsewhere")  # of one repository: no branch of a fleet
    for words in SUBCOMMANDS:
        found = kb("fleet", *words, "--place", "place", "--repo", "*/web", "--json")
        assert found.status == 0
        assert "acme/web" in found.out
        if words[0] != "impact":
            assert '"acme/api"' not in found.out
            ran = kb("fleet", *words, "--place", "place", "--repo", "acme/wep")
            assert "Did you mean 'acme/web'" in ran.err
        ran = kb("--branch", "mian", "fleet", *words, "--place", "place")
        assert ran.status == 64
        assert "Did you mean 'main'" in ran.err
        assert kb("--branch", "m*", "fleet", *words, "--place", "place").status == 0


@pytest.mark.slow
def test_every_command_asks_the_others_where_a_repository_is_damaged(kb, linked):
    (linked / "heads" / "repo=acme%2Fweb" / "branch=main.json").write_bytes(b"{")
    for words in SUBCOMMANDS:
        ran = kb("fleet", *words, "--json")
        assert ran.status == StorageError.exit_status
        assert [one["repo"] for one in ran.json["failures"]] == ["acme/web"]
        assert "acme/api" in ran.out or words[0] == "check"


@pytest.mark.slow
def test_every_question_about_the_past_takes_a_time(kb, linked):
    for words in SUBCOMMANDS[2:]:
        assert "is no time" in kb("fleet", *words, "--at", "REQ-1").err
        assert kb("fleet", *words, "--at", "now").status == 0


def test_coverage_shows_what_lacks_an_aspect(kb, linked):
    for by, count in (("requirement", 2), ("repo", 2)):
        found = kb("fleet", "coverage", "--by", by, "--lacks", "verified", "--json").json
        assert len(found["rows"]) <= found["total"]["requirements"]
        assert len(found["rows"]) >= count
        assert "REQ-1" not in {row["id"] for row in found["rows"] if by == "requirement" and row["repo"] == "acme/api"}
    assert "verified" in kb("fleet", "coverage", "--lacks", "tested").err


@pytest.mark.slow
def test_a_question_that_every_repository_refuses_is_refused_once(kb, linked):
    for words, status, said in (
        (("query", "reqq"), 2, "There is no entity type 'reqq'. Did you mean 'req'?"),
        (("query", "--where", "nope=1"), 2, "Entities have no 'nope'"),
        (("query", "--has", "verifed_by"), 2, "Did you mean 'verified_by'?"),
        (("check", "--rule", "orphan"), 64, "There is no rule 'orphan'. Did you mean 'orphans'?"),
        (("coverage", "--where", "nope=1"), 2, "Entities have no 'nope'"),
    ):
        ran = kb("fleet", *words)
        assert ran.status == status
        assert said in " ".join(ran.err.replace("hint: ", "").split())
        assert ran.err.count("nope") + ran.err.count("acme") <= 1


def test_a_statement_that_is_refused_names_the_relations(kb, fleet):
    assert "The relations are entity, edge, unresolved," in kb("fleet", "sql", "select * from entities").err


def test_a_search_for_nothing_is_refused(kb, fleet):
    ran = kb("fleet", "search", " ")
    assert (ran.status, ran.out) == (exits.USAGE, "")
    assert "WORDS is empty." in ran.err


def test_a_reason_and_its_remedy_are_two_sentences(kb, fleet):
    part = next(fleet.glob("kind=entity/repo=acme%2Fpay/*/*"))
    part.unlink()
    part.mkdir()
    assert "it is not a file. Look" in kb("fleet", "query").err


def test_nothing_that_matches_is_said(kb, linked):
    assert "Nothing matches. 2 branches asked." in kb("fleet", "query", "--tag", "nope").err


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
