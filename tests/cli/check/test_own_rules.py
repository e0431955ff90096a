"""``kb check`` with rules of the project in SQL: levels, limits of time, their tests and their explanation."""

from __future__ import annotations

import pytest

from kbcore.rules import RULES
from tests.cli.check.violations import UNRESOLVED
from tests.support.processes.cli import write

ONLY_WARNINGS = {
    ".kb/rules/own.yaml": "rules:\n- id: no-web\n  severity: warning\n  description: Nothing is for the web.\n"
    "  sql: select id, 'is for the web' as message from entity where list_contains(tags, 'web')\n"
}


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
