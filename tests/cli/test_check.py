"""``kb check``: violations as lines and as JSON, and a status to build on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from kbcore.rules import RULES
from tests.mcp.agents import direct
from tests.support.processes.cli import LOGIN, environment, path_with_kb, write
from tests.support.repository.repos import add_worktree, git, run_git

RAN = f"({len(RULES)} rules ran)"
UNRESOLVED = {"docs/tests/b.md": "---\nid: T-2\nstatus: active\nlinks: [REQ-77]\n---\n# B\n"}
ONLY_WARNINGS = {
    ".kb/rules/own.yaml": "rules:\n- id: no-web\n  severity: warning\n  description: Nothing is for the web.\n"
    "  sql: select id, 'is for the web' as message from entity where list_contains(tags, 'web')\n"
}


def test_check_answers_in_the_fixed_shape(kb, synced):
    ran = kb("check", "--json")
    assert ran.status == 0
    answer = ran.json
    keys = {"branch", "seq", "freshness", "pending_files", "ok", "violations", "rules", "idle_suppressions"}
    assert set(answer) == keys
    assert (answer["branch"], answer["seq"], answer["ok"]) == ("main", 1, True)
    assert set(answer["rules"][0]) == {"id", "severity", "status", "reason", "seconds"}
    assert {rule["status"] for rule in answer["rules"]} == {"ran"}


def test_violations_end_with_status_1_and_name_file_and_remedy(kb, synced):
    write(synced, UNRESOLVED)
    kb("sync")
    ran = kb("check")
    assert ran.status == 1
    head, first, *_ = ran.out.splitlines()
    assert head == "error unresolved-reference: 1"
    assert first.startswith("  docs/tests/b.md:4: T-2 links to REQ-77")
    assert ran.out.splitlines()[-1].startswith("main at seq 2: 1 error")
    answer = kb("check", "--json").json
    assert answer["ok"] is False
    assert set(answer["violations"][0]) == {"rule", "severity", "id", "message", "hint", "source", "values", "line"}
    assert answer["violations"][0]["source"] == "docs/tests/b.md"


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "status"),
    [([], 1), (["--fail-on", "never"], 0), (["--rule", "acyclic"], 0), (["--rule", "unresolved-reference"], 1)],
)
def test_what_fails_can_be_chosen(kb, synced, words, status):
    write(synced, UNRESOLVED)
    kb("sync")
    assert kb("check", *words).status == status


@pytest.mark.sliced
def test_rules_of_the_project_run_too_and_warnings_fail_when_asked(kb, synced):
    write(synced, ONLY_WARNINGS)
    ran = kb("check")
    assert ran.status == 0
    assert "warning no-web: 1\n  docs/requirements/login.md:2: REQ-1: is for the web" in ran.out
    assert "1 warning" in ran.out
    assert kb("check", "--fail-on", "warning").status == 1
    [run] = kb("check", "--rule", "no-web", "--json").json["rules"]
    assert 0 < run.pop("seconds") < 60
    assert run == {"id": "no-web", "severity": "warning", "status": "ran", "reason": ""}


@pytest.mark.sliced
def test_the_last_line_counts_in_the_singular_and_the_plural(kb, synced):
    write(
        synced,
        UNRESOLVED | ONLY_WARNINGS | {"docs/tests/alone.md": "---\nid: T-9\ntitle: Alone\nstatus: active\n---\n"},
    )
    kb("sync")
    assert kb("check").out.splitlines()[-1] == f"main at seq 2: 1 error, 2 warnings ({len(RULES) + 1} rules ran)"
    one = kb("check", "--rule", "no-web", "--format", "text").out.splitlines()[-1]
    assert one == "main at seq 2: 1 warning (1 rule ran)"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--fail-on=warnin", "error, warning, never. Did you mean 'warning'?"),
        ("--format=xml", "is none of text, short, json, sarif, junit, github."),
    ],
)
def test_an_unknown_choice_is_refused_with_those_that_there_are(kb, root, option, said):
    ran = kb("check", option)
    assert ran.status == 2
    assert said in ran.err.splitlines()[0]


NAMES_IN_DOUBT = """{
"extractors": {"markdwn": {}, "markdown": {"pats": {}, "paths": {"rq": ["docs/*.md"]}}},
"rules": {"cylces": "error"}
}"""


def test_settings_that_name_what_there_is_not_are_refused_by_every_command(kb, ready):
    write(ready, {".kb/config.json": NAMES_IN_DOUBT})
    for words in (["check"], ["query", "--id", "REQ-1"], ["sync"], ["status"], ["schema"], ["log"]):
        ran = kb(*words, "--json")
        assert ran.status == 63, words
        assert [(one["source"], one["path"]) for one in ran.error["details"]] == [
            (".kb/config.json:2", "$.extractors.markdown.pats"),
            (".kb/config.json:2", "$.extractors.markdwn"),
            (".kb/config.json:2", "$.extractors.markdown.paths.rq"),
            (".kb/config.json:3", "$.rules.cylces"),
        ]


def test_the_configuration_changes_levels(kb, synced):
    write(synced, ONLY_WARNINGS | {".kb/config.json": '{"rules": {"no-web": "error"}}'})
    assert kb("check").status == 1
    write(synced, {".kb/config.json": '{"rules": {"no-web": "off"}}'})
    assert kb("check", "--fail-on", "warning").status == 0


@pytest.mark.sliced
def test_a_rule_that_cannot_run_fails_whatever_counts(kb, synced):
    write(synced, {".kb/rules/own.yaml": "rules:\n- id: broken\n  sql: select nothing from nowhere\n"})
    ran = kb("check", "--fail-on", "never")
    assert ran.status == 1
    assert "the rule broken could not run: .kb/rules/own.yaml:3: the SQL reads 'nowhere'" in ran.err
    assert ran.out.splitlines()[-1] == f"main at seq 1: no violations ({len(RULES)} rules ran, 1 could not run)"
    answer = kb("check", "--json").json
    assert answer["ok"] is False
    assert [rule["status"] for rule in answer["rules"] if rule["id"] == "broken"] == ["not_run"]
    assert "could not run in main at seq 1: .kb/rules/own.yaml:3" in " ".join(
        kb("check", "--explain", "broken").out.split()
    )


def test_unknown_rules_and_broken_rules_files_are_refused(kb, synced):
    ran = kb("check", "--rule", "acyclick", "--rule", "orphan")
    assert ran.status == 64
    assert "Did you mean 'acyclic'?" in ran.err
    assert "\n  at --rule\n  --rule: There is no rule 'orphan'. (Did you mean 'orphans'?)\n" in ran.err
    paths = [one["path"] for one in kb("check", "--rule", "a", "--rule", "b", "--json").error["details"]]
    assert paths == ["$.rules[0]", "$.rules[1]"]
    write(synced, {".kb/rules/own.yaml": "rules:\n- id: Bad Name\n  sql: select 1\n"})
    ran = kb("check")
    assert ran.status == 63
    assert ".kb/rules/own.yaml:2" in ran.err
    (synced / ".kb/rules/own.yaml").write_bytes(b"\xff")
    assert kb("check").status == 63


def test_stored_text_in_a_message_is_shown_safely(kb, synced):
    document = LOGIN.replace("REQ-1", '"R\\e[31m"').replace("tags", "links: [GONE]\ntags")
    write(synced, {"docs/requirements/x.md": document})
    kb("sync")
    ran = kb("check")
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.sliced
def test_only_changes_since_a_point_are_reported(kb, synced):
    write(synced, UNRESOLVED)
    kb("sync")
    kb("apply", "-", stdin='{"entities": [{"id": "REQ-3", "type": "req", "title": "t", "status": "open"}]}')
    ran = kb("check", "--since", "2")
    assert (ran.status, ran.out.splitlines()[-1]) == (0, f"main at seq 3, since seq 2: 1 new warning {RAN}")
    assert "REQ-77" not in ran.out
    write(synced, {"docs/tests/b.md": None})
    kb("sync")
    answer = kb("check", "--since", "2", "--json").json
    shape = {"branch", "seq", "freshness", "pending_files", "ok", "violations", "rules", "since", "fixed"}
    assert set(answer) == shape
    assert answer["since"] == {"seq": 2, "commit": None}
    assert [one["rule"] for one in answer["fixed"]] == ["unresolved-reference"]
    assert kb("check", "--since", "2").out.endswith(f"since seq 2: 1 new warning, 1 fixed {RAN}\n")
    assert kb("check", "--since", "2", "--fail-on", "warning", "--rule", "acyclic").status == 0
    assert kb("check", "--since", "2", "--fail-on", "warning").status == 1


@pytest.mark.sliced
def test_only_what_is_staged_is_reported_with_its_line(kb, synced):
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "documents")
    write(synced, UNRESOLVED)
    ran = kb("check", "--staged")
    idle = len(RULES) + 1
    assert (ran.status, ran.out) == (
        0,
        f"main at seq 1, nothing is staged: no new violations (0 rules ran, {idle} not applicable)\n",
    )
    assert ran.err == f"{idle} rules were not run: Nothing is staged.\n"
    git(synced, "add", "docs")
    ran = kb("check", "--staged", "--rule", "unresolved-reference")
    assert ran.status == 1
    assert ran.out.startswith(
        "error unresolved-reference: 1\n  docs/tests/b.md:4: T-2 links to REQ-77, but there is no REQ-77. ("
    )
    answer = kb("check", "--staged", "--json").json
    assert (answer["staged"], answer["fixed"], answer["comments"], answer["seq"]) == (1, [], [], 1)
    assert [one["source"] for one in answer["violations"]] == ["docs/tests/b.md"]


def test_a_comment_that_counts_without_being_a_fact_is_reported(kb, synced):
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "documents")
    settings = json.loads((synced / ".kb/config.json").read_text())
    (synced / ".kb/config.json").write_text(json.dumps({**settings, "staged": {"symbols": ["src/**"]}}))
    write(synced, {"src/a.py": "x = 1\n# kb: implements REQ-1\n"})
    git(synced, "add", "src")
    ran = kb("check", "--staged", "--rule", "staged-symbol")
    assert ran.status == 0
    assert "1 comment `kb: implements` counts for this check only: src/a.py:2 (REQ-1). `kb coverage`" in ran.err
    answer = kb("check", "--staged", "--rule", "staged-symbol", "--json").json
    assert answer["comments"] == [{"file": "src/a.py", "line": 2, "id": "REQ-1"}]


def test_a_comment_in_a_file_that_is_not_checked_is_named_where_it_names_no_requirement(kb, synced):
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "documents")
    files = {"src/q.py": "\n# KB:  implements NO-SUCH, REQ-1\n", "src/r.py": "# kb: implements REQ-1\n"}
    write(synced, {**files, "README.md": "A comment is `kb: implements ID`.\n"})
    git(synced, "add", "--all")
    ran = kb("check", "--staged")
    assert ran.status == 0
    said = "1 comment `kb: implements` names no requirement: src/q.py:2 (NO-SUCH). Only files that `staged.symbols`"
    assert said in ran.err
    answer = kb("check", "--staged", "--json").json
    assert answer["comments_not_checked"] == [{"file": "src/q.py", "line": 2, "id": "NO-SUCH"}]
    git(synced, "commit", "--quiet", "-m", "q")
    write(synced, {"src/s.py": "x = 1\n"})
    git(synced, "add", "--all")
    assert "comments_not_checked" not in kb("check", "--staged", "--json").json


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--staged", "--since", "1"], "leave out --staged or --since"),
        (["--staged", "--require-synced"], "--staged judges what is staged"),
        (["--json", "--format", "sarif"], "contradict each other"),
        (["--staged", "--branch", "other"], "does not write them to other"),
        (["--since", "mian"], "Did you mean 'main'?"),
    ],
)
def test_what_cannot_be_asked_together_or_means_nothing_is_refused(kb, synced, words, said):
    ran = kb("check", *words)
    assert ran.status == 2
    assert said in ran.out + ran.err


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


HOOK = """#!/bin/sh
exec kb check --staged
"""


def hooked(root: Path) -> dict[str, str]:
    """Commit what there is, have git check each commit from then on, and return the environment for git."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "documents")
    hook = root / ".git/hooks/pre-commit"
    hook.write_text(HOOK, encoding="utf-8")
    hook.chmod(0o755)
    return environment({"PATH": path_with_kb()})


@pytest.mark.sliced(1)
@pytest.mark.parametrize("how", [[], ["--all"], ["--only", "docs/requirements/login.md"]])
def test_git_does_not_commit_what_introduces_a_violation(kb, synced, how):
    env = hooked(synced)
    write(synced, {"docs/requirements/login.md": LOGIN.replace("tags:", "links: [GONE]\ntags:")})
    if not how:
        git(synced, "add", "docs")
        write(synced, {"docs/requirements/login.md": LOGIN})  # what is staged counts
    refused = run_git(synced, "commit", *how, "-m", "broken", env=env)
    assert refused.returncode == 1
    assert "REQ-1 links to GONE, but there is no GONE." in refused.stdout + refused.stderr
    write(synced, {"docs/requirements/login.md": LOGIN.replace("Log in", "Sign in")})
    git(synced, "add", *([] if how else ["docs"]))
    done = run_git(synced, "commit", *how, "-m", "whole", env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.sliced
def test_git_does_not_commit_source_code_that_names_no_requirement_in_a_linked_worktree(kb, synced, tmp_path):
    write(synced, {".kb/config.json": '{"staged": {"symbols": ["src/**"]}}'})
    env = hooked(synced)
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    write(linked, {"src/login.py": "def login(): ...\n"})
    git(linked, "add", "src")
    refused = run_git(linked, "commit", "-m", "code", env=env)
    assert refused.returncode == 1
    assert "src/login.py: The file names no requirement." in refused.stdout + refused.stderr
    write(linked, {"src/login.py": "# kb: implements REQ-1\ndef login(): ...\n"})
    git(linked, "add", "src")
    done = run_git(linked, "commit", "-m", "code", env=env)
    assert done.returncode == 0, done.stderr


TESTED = """\
rules:
- id: no-web
  severity: warning
  description: Nothing is for the web.
  params: {tag: web}
  sql: select id, 'is for the web' as message from entity where list_contains(tags, $tag)
  tests:
  - {name: a page, entities: [{id: A, type: req, tags: [web]}], reports: [A]}
  - {name: a job, entities: [{id: A, type: req, tags: [%s]}], passes: [A]}
"""


@pytest.mark.sliced
def test_tests_of_rules_are_run_and_a_failing_one_ends_with_status_1(kb, synced):
    assert "No rule of the project has tests" in kb("check", "--test-rules").out
    write(synced, {".kb/rules/own.yaml": TESTED % "batch"})
    ran = kb("check", "--test-rules")
    assert (ran.status, ran.out) == (0, "2 tests of rules: 2 passed, 0 failed\n")
    write(synced, {".kb/rules/own.yaml": TESTED % "web"})
    ran = kb("check", "--test-rules")
    assert ran.status == 1
    assert ran.out.splitlines() == [
        "failed .kb/rules/own.yaml:9: no-web, a job: Expected not to report A; it reports A. Reported: A.",
        "2 tests of rules: 1 passed, 1 failed",
    ]
    answer = kb("check", "--test-rules", "--rule", "no-web", "--json")
    assert (answer.status, answer.json["ok"]) == (1, False)
    assert set(answer.json["tests"][0]) == {"rule", "test", "source", "ok", "message"}
    assert kb("check", "--test-rules", "--rule", "no-wep").status == 64


@pytest.mark.sliced
def test_a_rule_is_explained_in_full(kb, synced):
    write(synced, {".kb/rules/own.yaml": TESTED % "batch", ".kb/config.json": '{"ruleParams":{"no-web":{"tag":"x"}}}'})
    ran = kb("check", "--explain", "no-web")
    assert ran.status == 0
    for said in (
        "severity    warning, set by .kb/rules/own.yaml:3",
        '$tag        "x", set by .kb/config.json:1 (default "web")',
        "time limit  10 s, set by `ruleTimeLimitSeconds`",
        "now         0 violations in main at seq 1",
        "  select id, 'is for the web' as message from entity where list_contains(tags, $tag)",
        "  passed .kb/rules/own.yaml:8: no-web, a page",
    ):
        assert said in ran.out.splitlines() or f"  {said}" in ran.out.splitlines(), ran.out
    answer = kb("check", "--explain", "must-coverage", "--json").json
    assert set(answer) == {"branch", "seq", "freshness", "pending_files", "rule"}
    assert {"id": "must-coverage", "level": "error", "level_source": "KB", "violations": 0}.items() <= answer[
        "rule"
    ].items()


@pytest.mark.parametrize("instead", [["--explain", "acyclic"], ["--test-rules"]], ids=" ".join)
@pytest.mark.parametrize(
    "other", [["--staged"], ["--since", "1"], ["--format", "sarif"], ["--fail-on", "never"]], ids=" ".join
)
def test_what_says_how_to_judge_is_refused_where_nothing_is_judged_so(kb, synced, instead, other):
    ran = kb("check", *instead, *other)
    assert (ran.status, ran.out) == (2, "")
    assert f"{instead[0]} " in ran.err
    assert f"; leave out {' '.join(other).removesuffix(' 1')}." in ran.err


def test_the_violations_of_a_rule_are_those_of_the_files_and_what_is_accepted_is_said(kb, synced):
    write(synced, {"docs/requirements/must.md": "---\nid: M-1\ntitle: M\nstatus: open\npriority: must\n---\n"})
    ran = kb("check", "--explain", "must-coverage")
    assert "2 violations in main at seq 1" in ran.out
    assert "1 file differs from the records of main" in ran.err
    kb("check", "--write-baseline")
    assert "0 violations in main at seq 1, 2 in the baseline\n" in kb("check", "--explain", "must-coverage").out
    rule = kb("check", "--explain", "must-coverage", "--json").json["rule"]
    assert (rule["violations"], rule["in_baseline"], rule["suppressed"]) == (0, 2, 0)


def test_one_rule_is_explained_at_a_time_and_both_ways_know_json(kb, synced):
    assert (
        "leave out --test-rules and --rule." in kb("check", "--explain", "acyclic", "--rule", "x", "--test-rules").err
    )
    assert kb("check", "--explain", "acyclic", "--format", "json").json["rule"]["id"] == "acyclic"
    assert kb("check", "--test-rules", "--format", "json", "--rule", "acyclic").json == {"ok": True, "tests": []}


def test_an_unknown_rule_to_explain_gets_a_suggestion(kb, synced):
    ran = kb("check", "--explain", "must-coverag")
    assert ran.status == 64
    assert "Did you mean 'must-coverage'?" in ran.err


def test_stored_text_of_a_rule_is_shown_safely(kb, synced):
    text = 'rules:\n- id: no-web\n  description: "a\\e[31m"\n  sql: "select id, \'\\e[31m\' as message from entity"\n'
    write(synced, {".kb/rules/own.yaml": text})
    ran = kb("check", "--explain", "no-web")
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.sliced
def test_a_suspect_edge_is_reported_with_the_command_that_confirms_it(kb, synced):
    kb(
        "apply",
        "-",
        stdin='{"entities": [{"id": "S", "type": "symbol", "title": "s", "status": "active"}], '
        '"edges": [{"type": "implements", "from": "S", "to": "REQ-1"}]}',
    )
    write(synced, {"docs/requirements/login.md": LOGIN + "\nMore is wanted now.\n"})
    kb("sync")
    ran = kb("check", "--rule", "suspect-edge")
    [reported] = [line for line in ran.out.splitlines() if "S implements REQ-1, but REQ-1 has changed at seq 3" in line]
    command = reported.partition("`kb confirm ")[2].partition("`")[0]
    assert kb("confirm", *shlex.split(command)).status == 0
    assert "S implements" not in kb("check", "--rule", "suspect-edge").out
    assert "~ S implements REQ-1 (confirmed)" in kb("show", "4").out
    assert "nothing to change" in kb("revert", "4").out


GREEDY_RULES = """rules:
- id: slow
  timeLimitSeconds: 3600
  sql: select sleep_ms(600000)::varchar as id, '' as message
- id: slower
  sql: select sleep_ms(600000)::varchar as id, '' as message
- id: late
  sql: select id, 'late' as message from entity
"""


@pytest.mark.sliced
def test_a_rule_gets_no_more_time_than_the_user_allows_and_all_rules_have_one_budget(kb, synced, user):
    write(synced, {".kb/rules/slow.yaml": GREEDY_RULES})
    user.setenv("KB_RULE_TIME_SECONDS", "0.5")
    ran = kb("check", "--rule", "slow", "--json")
    assert ran.status == 1
    [slow] = ran.json["rules"]
    assert "within 0.5 s; `KB_RULE_TIME_SECONDS` in the environment is the limit" in slow["reason"]
    assert 0.4 < slow["seconds"] < 30
    user.setenv("KB_RULE_TIME_SECONDS", "100")
    user.setenv("KB_RULES_TIME_SECONDS", "3.5")
    ran = kb("check", "--rule", "slow", "--rule", "slower", "--rule", "late")
    assert ran.status == 1
    for name in ("slow", "slower", "late"):
        assert f"the rule {name} could not run" in ran.err
    assert ran.err.count("all rules of the project have 3.5 s, and none is left") == 3
    assert "Rules that took longest: slow 3." in ran.err


@pytest.mark.sliced
def test_an_answer_of_the_records_alone_says_so(kb, synced):
    assert "not of the files" not in kb("check").err
    git(synced, "checkout", "-q", "-b", "topic")
    said = "note: The answer is only of the records of main, not of the files. topic is checked out"
    for words in (("query", "req"), ("impact", "REQ-1")):
        assert said in kb("--branch", "main", *words).err, words
    for options in ((), ("--statistics",), ("--quiet",), ("--require-synced",)):
        ran = kb("--branch", "main", "check", *options)
        assert (ran.status, "topic is checked out" in ran.err, "--recorded" in ran.err) == (29, True, True)
    kb("branch", "ensure")
    assert "note: The answer is of the records of topic as of seq 1, not of the files." in kb("query", "--at", "1").err
    assert kb("--branch", "main", "check", "--recorded").err == ""


def test_a_check_of_a_project_of_which_nothing_is_read_says_where_the_documents_lie(kb, ready):
    write(ready, {"notes/a.md": LOGIN})
    kb("sync")
    ran = kb("check")
    assert "Nothing is read: no file is where the extractors look (" in ran.err
    assert "1 Markdown file is elsewhere, such as 'notes/a.md'." in ran.err
    with direct(ready) as found:
        assert "1 Markdown file is elsewhere" in found.answer("kb_check")["note"]


@pytest.mark.sliced
def test_a_missing_configuration_is_said_by_what_answers_without_it(kb, synced):
    write(synced, {".kb/schema/own.yaml": "entities: {}\n"})
    assert kb("check").err == ""
    (synced / ".kb/config.json").unlink()
    for words in (("check",), ("query",), ("query", "--json"), ("show", "REQ-1"), ("coverage",), ("impact", "REQ-1")):
        assert kb(*words).err.count(".kb/config.json is missing, so KB's defaults apply.") == 1, words
    with direct(synced) as found:
        assert ".kb/config.json is missing" in found.answer("kb_check")["note"]
        assert ".kb/config.json is missing" in found.answer("kb_query", type="req")["note"]


@pytest.mark.sliced
def test_a_missing_extractor_is_said_by_what_answers_without_it(kb, synced):
    write(synced, {".kb/config.json": '{"extractors": {"todos": {"paths": ["TODO"]}}}'})
    for words in (("check",), ("query",), ("show", "REQ-1")):
        assert kb(*words).err.count("No installed package has the extractor 'todos'.") == 1, words
    with direct(synced) as found:
        for tool, request in (("kb_check", {}), ("kb_query", {"type": "req"})):
            assert "No installed package has the extractor 'todos'." in found.answer(tool, **request)["note"], tool


def test_a_similar_id_is_looked_for_of_the_first_unknown_ids_only(kb, synced):
    ran = kb("check", "--json", *(f"REQ-1x{number}" for number in range(8)))
    details = json.loads(ran.out)["error"]["details"]
    assert [bool(one["hint"]) for one in details] == [True] * 5 + [False] * 3


SERVICES = {
    ".kb/config.json": json.dumps(
        {"extractors": {"markdown": {"paths": {"req": "services/*/docs/*.md", "test": "tests/*.md"}}}}
    ),
    "services/pay/docs/one.md": "---\nid: REQ-11\nstatus: accepted\ntitle: Pay\nlinks: [REQ-77]\n---\n",
    "services/shop/docs/two.md": "---\nid: REQ-12\nstatus: accepted\ntitle: Shop\nlinks: [REQ-78]\n---\n",
    "tests/t.md": "---\nid: TEST-9\nstatus: active\ntitle: T\nlinks: [REQ-11]\n---\n",
}


@pytest.fixture
def services(grown):
    """A repository with the documents of two services and with a test outside of them."""
    return grown(two_services, "ready")


def two_services(root, kb):
    write(root, SERVICES)
    kb("sync")


def test_a_part_of_the_repository_is_judged_by_itself(kb, services):
    whole = kb("check", "--json").json
    assert {one["id"] for one in whole["violations"]} >= {"REQ-11", "REQ-12"}
    answer = kb("check", "--path", "services/pay", "--json").json
    assert {one["id"] for one in answer["violations"]} == {"REQ-11"}
    assert (answer["ok"], answer["paths"]) == (False, ["services/pay"])
    assert kb("check", "--path", "services/*/docs/*.md", "--rule", "unresolved-reference").status == 1
    both = kb("check", "--path", "services/pay", "--path", "services/shop", "--json").json
    assert {one["id"] for one in both["violations"]} == {"REQ-11", "REQ-12"}


def test_an_entity_outside_of_the_part_is_not_reported_although_a_file_in_it_links_it(kb, services):
    assert kb("check", "--path", "tests").status == 0
    assert kb("check", "tests", "--rule", "unresolved-reference").status == 1


def test_targets_are_judged_only_inside_the_part(kb, services):
    assert kb("check", "REQ-12", "--path", "services/shop").status == 1
    ran = kb("check", "REQ-12", "--path", "services/pay")
    assert ran.status == 0
    assert ran.out.splitlines()[-1].startswith("main at seq 1, of what concerns REQ-12, in services/pay: no violations")


def test_the_folder_of_the_part_is_named_from_where_the_command_runs(kb, services):
    answer = kb("check", "--path", ".", "--json", cwd=services / "services/shop").json
    assert {one["id"] for one in answer["violations"]} == {"REQ-12"}


def test_reports_for_other_tools_are_of_the_part(kb, services):
    sarif = kb("check", "--path", "services/pay", "--format", "sarif").json
    assert {one["ruleId"] for one in sarif["runs"][0]["results"]} >= {"unresolved-reference"}
    for format_ in ("sarif", "junit", "github"):
        report = kb("check", "--path", "services/pay", "--format", format_).out
        assert "REQ-77" in report
        assert "REQ-78" not in report


def test_a_part_in_which_there_is_nothing_is_refused(kb, services):
    for path in ("services/pya", "services/pay/*.rst", "REQ-11"):
        ran = kb("check", "--path", path)
        assert ran.status == 64
        assert path in ran.err
    assert kb("check", "--write-baseline", "--path", "services/pay").status == 2


def test_the_baseline_holds_in_a_part_as_in_the_whole(kb, services):
    kb("check", "--write-baseline")
    answer = kb("check", "--path", "services/pay", "--json").json
    assert answer["ok"]
    assert 0 < answer["in_baseline"] < kb("check", "--json").json["in_baseline"]
