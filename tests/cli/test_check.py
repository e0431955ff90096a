"""``kb check``: violations as lines and as JSON, and a status to build on."""

from __future__ import annotations

import pytest

from tests.support.cli import LOGIN, write

UNRESOLVED = {"docs/tests/b.md": "---\nid: T-2\nstatus: active\nlinks: [REQ-77]\n---\n# B\n"}
ONLY_WARNINGS = {
    ".kb/rules/own.yaml": "rules:\n- id: no-web\n  severity: warning\n  description: Nothing is for the web.\n"
    "  sql: select id, 'is for the web' as message from node where list_contains(tags, 'web')\n"
}


def test_check_answers_in_the_fixed_shape(kb, synced):
    ran = kb("check", "--json")
    assert ran.status == 0
    answer = ran.json
    assert set(answer) == {"branch", "seq", "ok", "violations", "rules"}
    assert (answer["branch"], answer["seq"], answer["ok"]) == ("main", 1, True)
    assert set(answer["rules"][0]) == {"id", "severity", "status", "reason"}
    assert {rule["status"] for rule in answer["rules"]} == {"ran"}


def test_violations_end_with_status_1_and_name_file_and_remedy(kb, synced):
    write(synced, UNRESOLVED)
    kb("sync")
    ran = kb("check")
    assert ran.status == 1
    first = ran.out.splitlines()[0]
    assert first.startswith("error docs/tests/b.md: ")
    assert "REQ-77" in first
    assert first.endswith("[unresolved-reference]")
    assert ran.out.splitlines()[-1].startswith("main at seq 2: 1 error")
    answer = kb("check", "--json").json
    assert answer["ok"] is False
    assert set(answer["violations"][0]) == {"rule", "severity", "id", "message", "hint", "source"}
    assert answer["violations"][0]["source"] == "docs/tests/b.md"


@pytest.mark.parametrize(
    ("words", "status"),
    [([], 1), (["--fail-on", "never"], 0), (["--rule", "acyclic"], 0), (["--rule", "unresolved-reference"], 1)],
)
def test_what_fails_can_be_chosen(kb, synced, words, status):
    write(synced, UNRESOLVED)
    kb("sync")
    assert kb("check", *words).status == status


def test_rules_of_the_project_run_too_and_warnings_fail_when_asked(kb, synced):
    write(synced, ONLY_WARNINGS)
    ran = kb("check")
    assert ran.status == 0
    assert "warning docs/requirements/login.md: REQ-1: is for the web" in ran.out
    assert "1 warning" in ran.out
    assert kb("check", "--fail-on", "warning").status == 1
    assert kb("check", "--rule", "no-web", "--json").json["rules"] == [
        {"id": "no-web", "severity": "warning", "status": "ran", "reason": ""}
    ]


def test_the_last_line_counts_in_the_singular_and_the_plural(kb, synced):
    write(synced, UNRESOLVED | ONLY_WARNINGS)
    kb("sync")
    assert kb("check").out.splitlines()[-1] == "main at seq 2: 1 error, 2 warnings (12 rules ran)"
    one = kb("check", "--rule", "no-web", "--format", "text").out.splitlines()[-1]
    assert one == "main at seq 2: 1 warning (1 rule ran)"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--fail-on=warnin", "error, warning, never. Did you mean 'warning'?"),
        ("--format=xml", "is none of text, json."),
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


def test_a_rule_that_cannot_run_fails_whatever_counts(kb, synced):
    write(synced, {".kb/rules/own.yaml": "rules:\n- id: broken\n  sql: select nothing from nowhere\n"})
    ran = kb("check", "--fail-on", "never")
    assert ran.status == 1
    assert "the rule broken could not run: .kb/rules/own.yaml:3: the SQL reads 'nowhere'" in ran.err
    assert ran.out.splitlines()[-1] == "main at seq 1: no violations (11 rules ran, 1 could not run)"
    answer = kb("check", "--json").json
    assert answer["ok"] is False
    assert [rule["status"] for rule in answer["rules"] if rule["id"] == "broken"] == ["not_run"]


def test_unknown_rules_and_broken_rules_files_are_refused(kb, synced):
    ran = kb("check", "--rule", "acyclick", "--rule", "orphan")
    assert ran.status == 64
    assert "Did you mean 'acyclic'?" in ran.err
    assert "Did you mean 'orphans'?" in ran.err
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
