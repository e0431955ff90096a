"""The reports of ``kb check``: what is shown of many violations, in every format."""

from __future__ import annotations

import json

import pytest

from kbcore.limits import MAX_PROBLEMS
from tests.cli.check.violations import COUNT, RAN, UNRESOLVED, document
from tests.support.processes.cli import write


@pytest.mark.sliced
def test_other_programs_get_the_report_on_standard_output_and_people_the_summary(kb, synced, user):
    write(synced, UNRESOLVED)
    kb("sync")
    summary = f"main at seq 2: 1 error {RAN}\n"
    place = synced.parent / "summary.md"
    user.setenv("GITHUB_STEP_SUMMARY", str(place))
    for format_ in ("sarif", "junit", "github"):
        ran = kb("check", "--format", format_)
        assert (ran.status, ran.err) == (1, summary)
        assert "REQ-77" in ran.out
    assert json.loads(kb("check", "--format", "sarif").out)["version"] == "2.1.0"
    assert kb("check", "--format", "github").out.startswith(
        "::error file=docs/tests/b.md,line=4,title=unresolved-reference::"
    )
    assert place.read_text().count("### kb check") == 2
    assert kb("check", "--format", "junit", "--fail-on", "never", "--quiet").err == ""


def test_a_summary_that_cannot_be_written_is_a_warning(kb, synced, user):
    user.setenv("GITHUB_STEP_SUMMARY", str(synced))
    ran = kb("check", "--format", "github")
    assert ran.status == 0
    assert "the summary for GITHUB_STEP_SUMMARY cannot be written" in ran.err


def test_a_line_is_only_named_while_the_file_is_what_was_judged(kb, synced):
    write(synced, UNRESOLVED)
    kb("sync")
    write(synced, {"docs/tests/b.md": "\n" + UNRESOLVED["docs/tests/b.md"]})
    assert "line=" not in kb("check", "--format", "github", "--rule", "unresolved-reference").out


def test_rules_come_with_their_counts_errors_first_and_a_line_for_those_alike(kb, crowded):
    ran = kb("check")
    heads = [line for line in ran.out.splitlines() if not line.startswith("  ")]
    assert heads[:3] == ["error unresolved-reference: 2", "error must-coverage: 2", f"warning orphans: {COUNT}"]
    orphans = ran.out.splitlines()[ran.out.splitlines().index(heads[2]) + 1 :]
    assert orphans[0].startswith("  docs/requirements/m00.md:2: M-00 (req) is linked to nothing. (")
    assert orphans[0].endswith(f" {COUNT - 1} more of this kind: M-01, M-02, M-03, …")
    assert orphans[1] == f"  each one: kb check --rule orphans --limit {COUNT}"
    assert "  docs/requirements/b1.md:5: B-1 links to GONE-1, but" in ran.out


@pytest.mark.sliced
def test_a_limit_shows_each_and_says_how_many_are_left(kb, crowded):
    lines = kb("check", "--rule", "orphans", "--limit", str(COUNT)).out.splitlines()
    assert len([line for line in lines if line.startswith("  docs/")]) == COUNT
    lines = kb("check", "--rule", "orphans", "--limit", "3").out.splitlines()
    assert lines[4] == f"  {COUNT - 3} more; each one: kb check --rule orphans --limit {COUNT}"
    answer = kb("check", "--json", "--limit", "1").json
    assert [one["rule"] for one in answer["violations"]] == ["unresolved-reference", "must-coverage", "orphans"]
    assert answer["total"] == COUNT + 4
    assert kb("check", "--limit", "0").status == 2
    assert kb("check", "--limit", "1", "--format", "sarif").status == 2


@pytest.mark.sliced
def test_the_command_for_each_one_asks_as_it_was_asked(kb, crowded):
    kb("check", "--write-baseline")
    asked = ("--no-baseline", "--severity", "warning", "--recorded", "--branch", "main")
    said = kb("check", *asked).out.splitlines()[-2].strip()
    again = "--branch main --severity warning --recorded --no-baseline --rule orphans"
    assert said == f"each one: kb check {again} --limit {COUNT}"
    assert len(kb(*said.split()[3:]).out.splitlines()) == COUNT + 2


def test_a_short_report_is_a_line_for_each_with_file_and_line(kb, crowded):
    lines = kb("check", "--format", "short").out.splitlines()
    assert len(lines) == COUNT + 4
    assert lines[0].startswith("docs/requirements/b1.md:5: error: B-1 links to GONE-1")
    assert lines[-1] == "docs/requirements/m11.md:2: warning: M-11 (req) is linked to nothing. [orphans]"
    ran = kb("check", "--format", "short", "--limit", "1")
    rules = [line.rpartition("[")[2] for line in ran.out.splitlines()]
    assert rules == ["unresolved-reference]", "must-coverage]", "orphans]"]
    assert f"3 of {COUNT + 4} shown" in ran.err
    assert kb("check", "--statistics", "--limit", "1").status == 2


def test_no_line_says_an_id_twice(kb, crowded):
    for line in kb("check", "--format", "short").out.splitlines():
        said = line.split(": ", 2)[2]
        assert said.count(said.split(" ")[0]) == 1, line


def test_only_one_severity_counts_where_one_is_asked_for(kb, crowded):
    ran = kb("check", "--severity", "warning")
    assert (ran.status, "error" in ran.out) == (0, False)
    assert "4 of another severity not shown" in ran.out + ran.err
    assert {one["severity"] for one in kb("check", "--severity", "error", "--json").json["violations"]} == {"error"}


def test_statistics_are_a_row_for_each_rule(kb, crowded):
    ran = kb("check", "--statistics")
    assert ran.out.splitlines() == [
        "RULE\tSEVERITY\tCOUNT",
        "must-coverage\terror\t2",
        "unresolved-reference\terror\t2",
        f"orphans\twarning\t{COUNT}",
    ]
    assert ran.status == 1
    answer = kb("check", "--statistics", "--json").json
    assert answer["statistics"][2] == {"rule": "orphans", "severity": "warning", "count": COUNT}
    assert "violations" not in answer


def test_a_count_of_problems_of_which_not_all_are_kept_is_said_to_be_one(kb, ready):
    symbols = "".join(f"  - title: S{number}\n" for number in range(MAX_PROBLEMS + 400))
    write(ready, {"symbols.yaml": f"symbols:\n{symbols}"})
    kb("sync")
    ran = kb("check")
    assert ran.out.startswith("error unreadable-source: at least 201\n")
    assert "400 more problems of this file, not shown here" in ran.out
    assert ran.out.splitlines()[-1].startswith("main at seq 1: at least 201 errors (")
    write(ready, {"symbols.yaml": "symbols:\n  - title: S\n"})
    assert "at least" not in kb("check").out


def test_a_report_of_many_rules_fits_a_screen_and_names_each_rule(kb, grown):
    def fill(root, kb):
        files = {}
        for at in range(10):
            files[f"docs/requirements/b{at}.md"] = document(f"B-{at}", f"links: [GONE-{at}]\npriority: must\n")
            files[f"docs/requirements/s{at}.md"] = document(f"S-{at}").replace(f"S-{at}\ns", "One title\ns")
            files[f"docs/requirements/u{at}.md"] = document(f"U-{at}", f"odd{at}: [\n")
        write(root, files)
        kb("sync")

    grown(fill)
    lines = kb("check").out.splitlines()
    heads = [line.split(":")[0] for line in lines[:-1] if not line.startswith("  ")]
    assert len(heads) >= 4
    assert len(lines) <= 24
    limited = kb("check", "--limit", "5").out.splitlines()
    assert [line.split(":")[0] for line in limited[:-1] if not line.startswith("  ")] == heads
    assert len(limited) > 24
