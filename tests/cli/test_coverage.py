"""``kb coverage``: every format says the same, and CI can hold it to a percentage."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.support.processes.cli import refresh_view, write

BOUGHT = "---\nid: REQ-3\ntitle: Bought\nnot_applicable: {verified: by the vendor, implemented: bought}\n---\n"


@pytest.fixture
def waived(grown):
    """Requirements of which one says what does not apply to it."""
    return grown(one_bought)


def one_bought(root, kb):
    write(root, {"docs/requirements/bought.md": BOUGHT})
    kb("sync")
    refresh_view(root, kb)


def test_each_requirement_is_a_row_with_what_shows_it_and_the_last_row_sums_up(kb, waived):
    head, *rows = kb("coverage", "--format", "table").out.splitlines()
    assert head.split() == ["ID", "SPECIFIED", "VERIFIED", "IMPLEMENTED", "PRIORITY", "TITLE"]
    assert rows[0].split() == ["REQ-1", "no", "TEST-1", "no", "Log", "in"]
    assert "n/a: by the vendor" in rows[2]
    assert rows[3].split("  ")[0] == "TOTAL"
    assert "1/2 50%, 1 n/a" in rows[3]


def test_every_format_says_the_same(kb, waived):
    whole = kb("coverage", "--json").json
    shape = {"branch", "seq", "freshness", "pending_files", "by", "total", "retired", "requirements"}
    assert set(whole) == shape
    assert whole["total"]["verified"] == {"yes": 1, "no": 1, "not_applicable": 1, "percent": 50.0}
    assert whole["requirements"][2]["not_applicable"] == {"verified": "by the vendor", "implemented": "bought"}
    assert kb("coverage", "--format", "json").json == whole
    rows = list(csv.DictReader(io.StringIO(kb("coverage", "--format", "csv").out)))
    assert [row["id"] for row in rows] == [one["id"] for one in whole["requirements"]]
    assert [row["verified"] for row in rows] == ["yes", "no", "not_applicable"]
    assert json.loads(rows[0]["verified_by"]) == ["TEST-1"]
    assert "| REQ-3 | no | n/a: by the vendor | n/a: bought |  | Bought |" in kb("coverage", "--format", "markdown").out


@pytest.mark.sliced(1)
@pytest.mark.parametrize(("by", "names"), [("tag", ["auth", "web", None]), ("priority", [None]), ("component", [None])])
def test_requirements_come_in_groups(kb, waived, by, names):
    whole = kb("coverage", "--by", by, "--json").json
    assert [one["name"] for one in whole["groups"]] == names
    assert "TOTAL" in kb("coverage", "--by", by, "--format", "table").out
    names_in_a_pipe = [line.split("\t")[0] or None for line in kb("coverage", "--by", by).out.splitlines()[1:]]
    assert names_in_a_pipe == names
    rows = list(csv.DictReader(io.StringIO(kb("coverage", "--by", by, "--format", "csv").out)))
    assert [row[by] or None for row in rows] == names
    assert rows[-1]["specified_no"] == str(whole["groups"][-1]["specified"]["no"])


def test_rows_can_be_those_that_lack_something_and_the_totals_stay(kb, waived):
    lacking = kb("coverage", "--lacks", "verified", "--json").json
    assert [one["id"] for one in lacking["requirements"]] == ["REQ-2"]
    assert lacking["total"] == kb("coverage", "--json").json["total"]
    assert [one["name"] for one in kb("coverage", "--by", "tag", "--lacks", "verified", "--json").json["groups"]] == [
        "auth"
    ]


@pytest.mark.parametrize(
    ("words", "status", "reported"),
    [
        (["--fail-under", "50"], 1, "specified: 0 % is below 50 %."),
        (["--fail-under", "verified=50"], 0, ""),
        (["--fail-under", "verified=50.1"], 1, "verified: 50 % is below 50.1 %."),
        (["--fail-under", "60", "--fail-under", "specified=0", "--fail-under", "implemented=0"], 1, "verified: 50 %"),
    ],
)
def test_a_percentage_can_be_asked_for(kb, waived, words, status, reported):
    ran = kb("coverage", *words)
    assert (ran.status, reported in ran.err) == (status, True)
    assert ("is below" in ran.err) == bool(status)


def test_a_percentage_of_nothing_that_matches_is_not_reached(kb, waived):
    ran = kb("coverage", "--tag", "nobody", "--fail-under", "0")
    assert ran.status == 1
    assert "--fail-under has nothing to compare: no requirement matches." in ran.err


def test_a_filter_that_no_requirement_knows_is_reported_with_the_nearest(kb, waived):
    ran = kb("coverage", "--tag", "auht", "--status", "opne")
    assert ran.err.splitlines() == [
        "No requirement matches.",
        "  No requirement has the tag 'auht'. Did you mean 'auth'?",
        "  No requirement has the status 'opne'. Did you mean 'open' or 'done'?",
    ]


def test_before_the_first_record_nothing_is_said_of_now(kb, waived):
    for command in ("coverage", "graph"):
        assert sorted(kb(command, "--at", "0").err.splitlines()) == [
            "Seq 0 is before the first record; there was nothing.",
            "note: The answer is of the records of main as of seq 0, not of the files.",
        ]


def test_a_test_counts_whatever_its_status(kb, waived):
    before = kb("coverage", "--json").json["total"]["verified"]
    request = {"entities": [{"id": "TEST-9", "type": "test", "title": "t", "status": "deprecated"}]}
    request["edges"] = [{"type": "verified_by", "from": "REQ-2", "to": "TEST-9"}]
    assert kb("apply", "-", stdin=json.dumps(request)).status == 0
    assert kb("coverage", "--json").json["total"]["verified"]["yes"] == before["yes"] + 1


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--lacks", "verifed"], "Did you mean 'verified'?"),
        (["--lacks", "foo"], "none of specified, verified, implemented.\nhint: Correct"),
        (["--fail-under", "101"], "no percentage"),
        (["--fail-under", "tested=5"], "none of specified"),
        (["--json", "--format", "csv"], "contradict"),
        (["--at", "someday"], "neither a seq nor a time"),
        (["--status", ""], "is empty"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_what_can(kb, waived, words, reported):
    ran = kb("coverage", *words)
    assert ran.status == 2
    assert reported in ran.out + ran.err


def test_an_empty_answer_says_why(kb, ready):
    assert "kb sync" in kb("coverage").err
    write(ready, {"docs/tests/t.md": "---\nid: TEST-1\ntitle: T\n---\n"})
    kb("sync")
    assert "docs/requirements/" in kb("coverage").err
    assert kb("coverage", "--tag", "x").err == "No requirement matches.\n  No requirement has the tag 'x'.\n"
    write(ready, {"docs/requirements/r.md": "---\nid: REQ-1\ntitle: R\nstatus: rejected\n---\n"})
    kb("sync")
    assert kb("coverage").err == "Every requirement that matches is retired.\n1 retired requirement left out.\n"
    assert kb("coverage", "--at", "1", "--json").json["total"]["requirements"] == 0


def test_a_file_without_a_reason_is_reported_as_such(kb, synced):
    write(synced, {"docs/requirements/bought.md": BOUGHT.replace("by the vendor", "''")})
    assert "must say something at 'verified'" in kb("sync").err
    answer = {"id": "REQ-1", "attributes": {"not_applicable": {"tested": "x"}}}
    refused = kb("apply", "-", stdin=json.dumps({"entities": [answer]}))
    assert refused.status == 10
    assert "there may be specified, verified, implemented" in refused.err


def test_a_tag_that_is_named_like_the_rest_is_distinguished(kb, waived):
    write(waived, {"docs/requirements/odd.md": '---\nid: REQ-8\ntitle: Odd\ntags: ["(none)"]\n---\n'})
    kb("sync")
    rows = [line.split()[0] for line in kb("coverage", "--by", "tag", "--format", "table").out.splitlines()]
    assert (rows.count("(none)"), rows.count("'(none)'")) == (1, 1)


def of_two_services(root, kb):
    paths = {"req": ["docs/requirements/*.md", "services/*/*.md"], "test": "docs/tests/*.md"}
    write(
        root,
        {
            ".kb/config.json": json.dumps({"extractors": {"markdown": {"paths": paths}}}),
            "services/pay/a.md": "---\nid: REQ-11\ntitle: A\nstatus: accepted\n---\n",
            "services/shop/b.md": "---\nid: REQ-12\ntitle: B\nstatus: accepted\n---\n",
            "docs/tests/pay.md": "---\nid: TEST-11\ntitle: T\nstatus: active\nlinks: [REQ-11]\n---\n",
        },
    )
    kb("sync")
    refresh_view(root, kb)


@pytest.fixture
def services(grown):
    """Requirements of two services, one of them with a test in a folder of its own."""
    return grown(of_two_services)


def test_coverage_of_a_part_counts_its_requirements_and_what_covers_them_from_outside(kb, services):
    pay = kb("coverage", "--path", "services/pay", "--json").json
    assert [(one["id"], one["verified"]) for one in pay["requirements"]] == [("REQ-11", ["TEST-11"])]
    assert pay["total"]["verified"]["percent"] == 100.0
    both = kb("coverage", "--path", "services/*/*.md", "--json").json
    assert both["total"]["verified"]["percent"] == 50.0
    here = kb("coverage", "--path", ".", "--json", cwd=services / "services/shop").json
    assert [one["id"] for one in here["requirements"]] == ["REQ-12"]


def test_a_least_percentage_is_that_of_the_part(kb, services):
    assert kb("coverage", "--path", "services/pay", "--fail-under", "verified=100").status == 0
    assert kb("coverage", "--path", "services/shop", "--fail-under", "verified=100").status == 1
    empty = kb("coverage", "--path", "services/pya", "--fail-under", "verified=1")
    assert empty.status == 1
    assert "No file from which facts come is at 'services/pya' or like it." in empty.err


def test_a_glob_that_cannot_be_used_is_refused(kb, services):
    ran = kb("coverage", "--path", "a\\b")
    assert (ran.status, "--path" in ran.err) == (2, True)


def test_requirements_come_in_groups_of_their_owners(kb, services):
    write(services, {"CODEOWNERS": "/services/ @dev\n/services/pay/ @pay @sec\n"})
    write(services, {"services/shop/b.md": "---\nid: REQ-12\ntitle: B\nstatus: accepted\nowner: ann\n---\n"})
    groups = kb("coverage", "--by", "owner", "--json").json["groups"]
    found = [(one["name"], one["requirements"], one["verified"]["percent"]) for one in groups]
    assert found == [("@pay", 1, 100.0), ("@sec", 1, 100.0), ("ann", 1, 0.0), (None, 2, 50.0)]
    assert kb("coverage", "--by", "owner").out.startswith("OWNER\tREQUIREMENTS\t")
    for group in groups[:3]:
        asked = kb("query", "req", "--where", f"owner={group['name']}", "--json").json
        assert len(asked["entities"]) == group["requirements"]
        holes = kb("matrix", "req", "verified_by", "--where", f"owner={group['name']}", "--json").json
        assert len(holes["rows"]) == group["requirements"]
    for owner, ids in (("@pay", ["REQ-11"]), ("@dev", [])):
        found = kb("query", "--text", "REQ-11", "--where", f"owner={owner}", "--json").json["entities"]
        assert [one["id"] for one in found] == ids
