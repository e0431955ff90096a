"""Tests that rules of a project bring along, their parameters, and what there is to say of a rule."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from kbcore.checks import explain, run_checks
from kbcore.checks.trials import run_trials
from kbcore.errors import InvalidConfig, NotFound
from kbcore.model.schema import CORE
from kbcore.rules import load_rules
from kbcore.view.sandbox import Times
from tests.support.repository.project import Project, req

RULE = """\
rules:
  - id: low
    severity: warning
    description: Edges are certain.
    params: {least: 0.8, types: [implements, verified_by]}
    timeLimitSeconds: 4
    sql: |
      select from_id as id, 'low' as message from edge
      where confidence < $least and list_contains($types, type)
    tests:
"""
NODES = "{entities: [{id: A, type: req}, {id: B, type: test}], edges: [{type: %s, from: A, to: B, confidence: %s}], %s}"
OWN = ".kb/rules/own.yaml"


def outcomes(*tests, rule=RULE):
    text = rule + "".join(f"      - {test}\n" for test in tests)
    return run_trials(load_rules({OWN: text}), CORE, Times(5), lambda *_: nullcontext())


def test_a_rule_is_tested_on_graphs_of_its_own():
    found = outcomes(
        NODES % ("verified_by", "0.5", "reports: [A], name: a guess"),
        NODES % ("verified_by", "0.8", "passes: [A, B]"),
        NODES % ("depends_on", "0.5", "passes: [A]"),
    )
    assert [(one.rule, one.test, one.source, one.ok) for one in found] == [
        ("low", "a guess", f"{OWN}:11", True),
        ("low", "test 2", f"{OWN}:12", True),
        ("low", "test 3", f"{OWN}:13", True),
    ]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            NODES % ("verified_by", "0.9", "reports: [A]"),
            "Expected to report A; it does not report A. Reported: nothing.",
        ),
        (
            NODES % ("verified_by", "0.1", "reports: [B], passes: [A]"),
            "Expected to report B and not to report A; it does not report B and it reports A. Reported: A.",
        ),
        ("{entities: [{id: A, type: rek}], passes: [A]}", "There is no entity type 'rek'. Did you mean 'req'?"),
    ],
)
def test_a_test_that_fails_says_what_was_expected_and_found(test, said):
    [found] = outcomes(test)
    assert (found.ok, found.message) == (False, said)


def test_a_rule_that_cannot_run_fails_its_tests():
    [found] = outcomes("{entities: [{id: A, type: req}], passes: [A]}", rule=RULE.replace("$least", "$lest"))
    assert found.message.startswith(f"The rule could not run: {OWN}:9: the SQL uses $lest, which is no parameter")


def test_values_of_a_test_are_what_they_look_like_and_the_rest_has_defaults():
    sql = """select id, 'm' as message from entity where title = id and status = 'draft' and file = 'docs/a.md'
        and tags = ['x'] and json_type(attributes, '$.n') = 'UBIGINT' and metadata ->> 'y' = 'true'"""
    rule = f"rules:\n  - id: low\n    sql: {sql}\n    tests:\n"
    entity = "{id: A, type: req, file: docs/a.md, tags: [x], attributes: {n: 7}, metadata: {y: true}}"
    [found] = outcomes(f"{{entities: [{entity}], reports: [A]}}", rule=rule)
    assert found.message == ""


def test_an_end_that_is_missing_leaves_a_link_unresolved():
    rule = "rules:\n  - id: low\n    sql: select to_id as id, 'm' as message from unresolved\n    tests:\n"
    edge = "{type: depends_on, from: A, to: GONE}"
    [found] = outcomes(f"{{entities: [{{id: A, type: req}}], edges: [{edge}], reports: [GONE]}}", rule=rule)
    assert found.ok


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("params: {Least: 1}", "2", "'Least' cannot be a parameter"),
        ("params: {a: {b: 1}}", "2", "must be text"),
        (f"params: {{a: [{'x, ' * 1001}]}}", "2", "at most 1000 values, and this one 1001"),
        ("timeLimitSeconds: 5000", "2", "a number of seconds from 0.1 to 3600"),
        ("timeLimitSeconds: soon", "2", "a number of seconds"),
        ("timeLimitSeconds: true", "2", "a number of seconds"),
        ("tests: [{name: x}]", "2", "does not state what the rule reports"),
        ("tests: [{reports: [A], entitys: []}]", "2", "'entitys'"),
        ("tests: [{reports: [A], entities: [{id: A}]}]", "2", "`type` is missing"),
        ("tests: [{reports: [A], edges: [{type: x, from: A, to: B, confidence: 2}]}]", "2", "a number from 0 to 1"),
        ("tests: text", "2", "a list"),
        (f"tests: [{'{passes: [A]}, ' * 101}]", "2", "at most 100 tests"),
    ],
)
def test_what_is_wrong_with_parameters_and_tests_is_reported_with_its_line(text, line, said):
    with pytest.raises(InvalidConfig) as caught:
        load_rules({OWN: f"rules:\n  - {{id: a, sql: select 1, {text}}}\n"})
    assert any(one.place.endswith(f":{line}") and said in one.message for one in caught.value.details)


@pytest.fixture
def project(tmp_path):
    found = Project(tmp_path / "p")
    found.sync({"docs/requirements/a.md": req("A"), "docs/tests/b.md": req("B"), OWN: RULE.replace("    tests:\n", "")})
    found.apply(edges=[{"type": "verified_by", "from": "A", "to": "B", "confidence": 0.85}])
    return found


def settle(project, text):
    project.write({".kb/config.json": text})


def low(project):
    report = run_checks(project.workspace(), project.view(), branch="main", only=["low"])
    return [one.id for one in report.violations]


def test_the_configuration_gives_values_to_parameters(project):
    assert low(project) == []
    settle(project, '{"ruleParams": {"low": {"least": 0.9}}}')
    assert low(project) == ["A"]
    settle(project, '{"ruleParams": {"low": {"least": 0.9, "types": ["implements"]}}}')
    assert low(project) == []


@pytest.mark.sliced
def test_a_value_is_data_whatever_it_holds(project):
    for value in ("'] or true --", "$least", "'; drop table edge; --"):
        settle(project, f'{{"ruleParams": {{"low": {{"types": ["{value}"]}}}}}}')
        assert low(project) == []


@pytest.mark.parametrize(
    ("said_to", "message"),
    [
        ('{"low": {"leest": 1}}', "There is no parameter of low that is called 'leest'."),
        ('{"low": {"least": "1"}}', "`ruleParams.low.least` must be a number, as the default of the rule is, not '1'."),
        ('{"low": {"least": {}}}', "must be text, a number, true or false, or a list of at most 1000 of these"),
        ('{"lov": {"least": 1}}', "There is no rule 'lov'."),
        ('{"acyclic": {"least": 1}}', "The rule 'acyclic' of KB has no parameters."),
        ('{"low": 3}', "must be an object"),
    ],
)
def test_what_the_configuration_says_to_no_parameter_is_refused(project, said_to, message):
    settle(project, f'{{"ruleParams": {said_to}}}')
    with pytest.raises(InvalidConfig) as caught:
        low(project)
    assert message in caught.value.details[0].message
    assert caught.value.details[0].place == ".kb/config.json:1"


def test_a_rule_of_the_project_is_explained_with_all_that_counts_for_it(project):
    tested = RULE + f"      - {NODES % ('verified_by', '0.85', 'passes: [A]')}\n"
    settle(project, '{\n"rules": {"low": "error"},\n"ruleParams": {"low": {"least": 0.9}}}')
    project.write({OWN: tested})
    found = explain.explain(project.workspace(), project.view(), "low", branch="main")
    assert (found.source, found.level, found.level_source, found.severity) == (
        f"{OWN}:2",
        "error",
        ".kb/config.json:2",
        "warning",
    )
    assert [(one.name, one.value, one.source, one.default) for one in found.params] == [
        ("least", 0.9, ".kb/config.json:3", 0.8),
        ("types", ["implements", "verified_by"], f"{OWN}:5", ["implements", "verified_by"]),
    ]
    assert (found.time_limit_seconds, found.time_limit_source) == (4.0, f"{OWN}:6")
    assert found.sql.startswith("select from_id")
    assert (found.status, found.violations) == ("ran", 1)
    assert [one.ok for one in found.tests] == [True], "a test knows nothing of the configuration"


def test_a_rule_of_kb_is_explained_and_an_unknown_one_gets_a_suggestion(project):
    found = explain.explain(project.workspace(), project.view(), "must-coverage", branch="main")
    assert (found.source, found.level_source, found.sql, found.tests) == ("KB", "KB", "", ())
    assert found.example
    assert found.remedy
    for ask in (
        lambda: explain.explain(project.workspace(), project.view(), "must-coverag", branch="main"),
        lambda: explain.try_rules(project.workspace(), ["must-coverag"]),
    ):
        with pytest.raises(NotFound) as caught:
            ask()
        assert caught.value.hint == "Did you mean 'must-coverage'?"


@pytest.mark.sliced
def test_each_rule_has_its_own_time(project):
    slow = "select count(*)::varchar as id, id as message from range(100000000000), entity group by all"
    text = f"rules:\n- id: slow\n  timeLimitSeconds: 0.2\n  sql: {slow}\n- id: after\n  sql: {slow}\n"
    settle(project, '{"ruleTimeLimitSeconds": 0.3}')
    project.write({OWN: text})
    report = run_checks(project.workspace(), project.view(), branch="main", only=["slow", "after"])
    own, usual = "`timeLimitSeconds` of the rule", "`ruleTimeLimitSeconds` in .kb/config.json"
    assert [one.reason for one in report.rules] == [
        f"{OWN}:4: the SQL was ended: it did not end within 0.2 s; {own} is the limit.",
        f"{OWN}:6: the SQL was ended: it did not end within 0.3 s; {usual} is the limit.",
    ]
