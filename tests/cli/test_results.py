"""``kb results``: what it says of reports and of mistakes, and what other commands then say."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from types import ModuleType

import pytest

from tests.core.results.reporting import junit
from tests.support.processes.cli import environment, program, write
from tests.support.repository.places import caches_at

WAIT_S = 60.0
FAILING = junit(("Login works", "failure", "no &#x202E;entry"), ("somewhere else", "error", "x"))
PASSING = junit(("Login works", "", ""))
WITH_REPORTS = '{"results": ["build/*.xml"]}'


@pytest.fixture
def reported(synced):
    """A repository with documents, and a report of a failing run."""
    write(synced, {"build/r.xml": FAILING})
    return synced


def test_what_changed_is_said_and_what_is_recorded_nowhere(kb, reported):
    ran = kb("results", "build/r.xml")
    assert ran.status == 0
    assert re.sub(r"\bseq \d+", "seq N", ran.out).splitlines() == [
        "main at seq N: 1 verdict changed, from 1 report with 2 tests (1 failed, 1 error).",
        r"  fails now: TEST-1: no \u202eentry",
    ]
    assert "1 reported test matches no test of the branch, 1 of them failing: somewhere else (build/r.xml:1)" in ran.err
    assert "`automated_by`" in ran.err
    again = kb("results", "build/r.xml")
    assert "0 verdicts changed, 1 as before" in again.out
    write(reported, {"build/r.xml": FAILING.replace("no &#x202E;entry", "no way")})
    assert kb("results", "build/r.xml").out.splitlines()[1:] == ["  fails otherwise: TEST-1: no way"]
    write(reported, {"build/r.xml": PASSING})
    assert re.search(r"passed again: TEST-1, which failed since [0-9a-f]{12} of ", kb("results", "build/r.xml").out)


def test_a_reported_test_without_a_name_is_named_by_its_place(kb, synced):
    write(synced, {"r.tap": "1..1\nnot ok\n"})
    assert "one without a name (r.tap:2)" in kb("results", "r.tap").err


def test_json_has_the_outcome_of_every_test_that_changed(kb, reported):
    found = kb("results", "build/r.xml", "--json").json
    assert (found["applied"], found["matched"], found["changed_count"]) == (True, 1, 1)
    assert found["tests"] == {"passed": 0, "failed": 1, "error": 1, "skipped": 0}
    [changed] = found["changed"]
    assert (changed["id"], changed["before"], changed["outcome"]) == ("TEST-1", None, "failed")
    assert changed["since_commit"] == found["commit"]
    assert found["unmatched"]["first"][0]["name"] == "somewhere else"


def test_other_commands_say_that_the_requirement_is_verified_but_failing(kb, reported):
    kb("results", "build/r.xml")
    assert "TEST-1 (1 failing)" in kb("coverage", "--format", "table").out
    assert kb("coverage", "--json").json["total"]["failing"] == 1
    assert "1 failing" in kb("coverage", "--by", "tag", "--format", "markdown").out
    assert "REQ-1 is verified, but failing: TEST-1 since" in kb("impact", "REQ-1", "--format", "table").out
    assert "| failed since" in kb("impact", "REQ-1", "--format", "markdown").out
    checked = kb("check", "--rule", "failing-test")
    assert (checked.status, "REQ-1 is verified by TEST-1, but that test fails since" in checked.out) == (1, True)
    assert kb("query", "--where", "test_verdict=failed", "--json").json["entities"][0]["id"] == "TEST-1"
    assert "through results" in kb("log", "--limit", "1").out
    assert "test_verdict" in kb("show", "TEST-1").out


def test_the_settings_name_reports_where_none_is_named(kb, reported):
    ran = kb("results")
    assert (ran.status, "No report is named" in ran.err, '"results" in .kb/config.json' in ran.err) == (34, True, True)
    write(reported, {".kb/config.json": WITH_REPORTS})
    assert "1 report with 2 tests" in kb("results").out
    (reported / "build/r.xml").unlink()
    ran = kb("results")
    assert (ran.status, "build/*.xml" in ran.err) == (34, True)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["build/none.xml"], 34, "There is no file 'build/none.xml'."),
        (["build/r.xml", "--commit", "nowhere"], 34, "'nowhere' is no commit of this clone."),
        (["build/r.xml", "--watch", "--dry-run"], 2, "--watch and --dry-run exclude each other."),
        (["docs/tests/login.md"], 34, "'docs/tests/login.md:1' cannot be used: it is no report that KB reads"),
        (["build"], 34, "'build' cannot be read: Is a directory."),
    ],
)
def test_a_mistake_is_named_with_a_remedy_and_nothing_is_written(kb, reported, words, status, said):
    before = kb("status", "--json").json["seq"]
    ran = kb("results", *words)
    assert (ran.status, said in ran.err) == (status, True), ran.err
    assert "hint:" in ran.err
    assert kb("status", "--json").json["seq"] == before


def test_a_dry_run_writes_nothing(kb, reported):
    before = kb("status", "--json").json["seq"]
    assert "1 verdict would change" in kb("results", "build/r.xml", "--dry-run").out
    assert kb("status", "--json").json["seq"] == before


def test_setting_up_says_which_reports_there_are_and_how_they_are_taken_in(kb, reported):
    write(reported, {"build/c.info": "TN:\nSF:a.py\nend_of_record\n", "build/pom.xml": "<project/>"})
    said = "A report of a test run: `kb results build/c.info` records the verdicts of its tests. 1 more report is there"
    assert said in kb("sources", "detect").out
    assert said in kb("init", "--no-hooks").out
    assert kb("sources", "detect", "--format", "json").json["reports"] == ["build/c.info", "build/r.xml"]
    write(reported, {".kb/config.json": '{"results": "build/*"}'})
    assert kb("sources", "detect", "--format", "json").json["reports"] == []


def test_a_report_without_tests_and_coverage_without_symbols_are_said_so(kb, reported):
    write(reported, {"build/r.xml": "<testsuites/>", "build/c.lcov": "SF:a.py\nDA:1,1\nend_of_record\n"})
    ran = kb("results", "build/r.xml", "build/c.lcov")
    assert "build/r.xml: complete, and without any test." in ran.err
    assert "Coverage suggests no edge" in ran.err


def test_requirements_that_a_report_names_are_proposed_and_those_that_are_not_there_are_named(kb, synced):
    named = '<properties><property name="requirement" value="REQ-2 REQ-99"/></properties>'
    write(synced, {"r.xml": f'<testsuite><testcase name="Login works">{named}</testcase></testsuite>'})
    ran = kb("results", "r.xml")
    assert "1 edge may hold, as the reports show; none was stated:" in ran.out
    assert "  kb link REQ-2 verified_by TEST-1  # a property in the report names it" in ran.out
    assert "The reports name requirements that there are not: REQ-99." in ran.err
    assert kb("link", "REQ-2", "verified_by", "TEST-1").status == 0
    assert kb("results", "r.xml", "--json").json["suggestions"]["count"] == 0


def test_coverage_without_the_parsers_of_source_code_names_the_extra_to_install(kb, synced, monkeypatch):
    absent = ModuleType("tree_sitter_go")
    absent.__spec__ = None
    monkeypatch.setitem(sys.modules, "tree_sitter_go", absent)
    write(synced, {"c.lcov": "SF:a.py\nDA:1,1\nend_of_record\n"})
    assert 'pip install "kb-memory[code]"' in kb("results", "c.lcov").err
    assert kb("results", "c.lcov", "--json").json["suggestions"]["fault"]["code"] == "missing_package"


def test_watching_takes_in_each_report_until_a_signal_comes(kb, reported):
    write(reported, {".kb/config.json": WITH_REPORTS})
    process = subprocess.Popen(
        [*program(), "results", "--watch", "--json"],
        cwd=reported,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "following"
        assert json.loads(process.stdout.readline())["changed"][0]["outcome"] == "failed"
        write(reported, {"build/r.xml": "<testsuite>"})
        assert json.loads(process.stdout.readline())["error"]["code"] == "invalid_report"
        write(reported, {"build/r.xml": PASSING})
        assert json.loads(process.stdout.readline())["changed"][0]["outcome"] == "passed"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WAIT_S)
        assert (process.returncode, err) == (0, "")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert kb("query", "--where", "test_verdict=passed", "--json").json["entities"][0]["id"] == "TEST-1"


def test_status_says_once_that_git_was_too_slow_for_the_dates_of_documents(kb, synced):
    (caches_at(synced) / "file-dates-slow.json").write_text('{"format":2,"folders":[],"at_s":1700000000}')
    said = kb("status").err
    assert said.count("for the history of the documents at 2023-11-14T22:13:20Z") == 1
    assert "file-dates-slow.json" in said
