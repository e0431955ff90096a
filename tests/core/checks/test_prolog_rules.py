"""Rules in Prolog in a check of a project: the state that they see, their levels, and what is accepted of them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kbcore.checks import descriptions, run_checks, write_baseline
from kbcore.checks.explain import explain, try_rules
from kbcore.checks.introduced.since import check_since
from kbcore.checks.introduced.staged import check_staged
from kbcore.errors import InvalidConfig, NotFound
from kbcore.rules import CheckReport
from kbcore.store import branches
from kbcore.sync.overlay import WorktreeFiles
from tests.support.processes.cli import environment
from tests.support.repository.clauses import change, clause_store
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git

FILE = ".kb/rules/own.pl"
LATE = """rule('no-late', "Nothing is late.", warning).
rule('no-loop', "Nothing depends on itself.").

violation('no-late', Id, "is late") :- attr(Id, tags, Tags), memberchk("late", Tags).
violation('no-loop', Id, "depends on itself") :- depends_on(Id, Id).
"""
SQL = """rules:
- id: no-late-sql
  severity: warning
  description: Nothing is late.
  sql: select id, 'is late' as message from entity where list_contains(tags, 'late')
"""


@pytest.fixture
def project(engine, tmp_path):
    made = Project(tmp_path / "repo")
    made.machine.env |= engine
    made.write({FILE: LATE, ".kb/rules/own.yaml": SQL})
    yield made
    made.close()


def late(number: int) -> dict[str, str]:
    return {f"docs/requirements/{number}.md": req(f"REQ-{number}", tags="[late]")}


def check(project: Project, **asked) -> CheckReport:
    return run_checks(project.workspace(), project.view(), branch="main", **asked)


def ids(report: CheckReport, rule: str) -> list[str]:
    return [one.id for one in report.violations if one.rule == rule]


@pytest.mark.sliced
def test_rules_in_both_languages_run_at_the_levels_of_the_settings(project):
    project.sync(late(1) | {"docs/requirements/2.md": req("REQ-2", depends_on="REQ-2")})
    report = check(project)
    found = {(one.rule, one.severity, one.id, one.source) for one in report.violations if one.rule.startswith("no-")}
    assert found == {
        ("no-late", "warning", "REQ-1", "docs/requirements/1.md"),
        ("no-late-sql", "warning", "REQ-1", "docs/requirements/1.md"),
        ("no-loop", "error", "REQ-2", "docs/requirements/2.md"),
    }
    project.write({".kb/config.json": '{"rules": {"no-late": "error", "no-loop": "off"}}'})
    report = check(project)
    assert {one.severity for one in report.violations if one.rule == "no-late"} == {"error"}
    assert [one.status for one in report.rules if one.id == "no-loop"] == ["off"]
    assert ids(check(project, only=["no-loop"]), "no-loop") == ["REQ-2"]
    assert ids(check(project, ids=["REQ-2"]), "no-late") == []
    assert not any(one.id.startswith("no-") for one in check(project, is_own=True).rules)


def test_an_unknown_rule_is_refused_with_the_name_of_one_in_prolog(project):
    project.sync(late(1))
    with pytest.raises(NotFound, match="There is no rule 'no-lte'") as refused:
        check(project, only=["no-lte"])
    assert "no-late" in refused.value.remedy
    project.write({".kb/config.json": '{"rules": {"no-lte": "error"}}'})
    with pytest.raises(InvalidConfig, match="no-lte"):
        _ = project.workspace().config


@pytest.mark.sliced
def test_what_is_suppressed_or_in_the_baseline_is_only_counted(project):
    project.sync(late(1) | {"docs/requirements/2.md": req("REQ-2", tags="[late]", suppress="{no-late: agreed}")})
    report = check(project, only=["no-late"])
    assert (ids(report, "no-late"), report.suppressed) == (["REQ-1"], 1)
    assert write_baseline(project.workspace(), report) == 1
    project.sync(late(3))
    report = check(project, only=["no-late"])
    assert (ids(report, "no-late"), report.in_baseline) == (["REQ-3"], 1)


@pytest.mark.sliced
def test_the_baseline_keeps_what_it_holds_of_a_rule_that_could_not_run(project):
    project.sync(late(1))
    assert write_baseline(project.workspace(), check(project, only=["no-late"])) == 1
    project.write({FILE: f"{LATE}foo(.\n"})
    report = check(project, only=["no-late"])
    assert report.rules[0].reason.startswith(f"{FILE}:6: ")
    assert write_baseline(project.workspace(), report) == 1


TESTS = """rules:
- id: no-late
  tests:
  - name: one with the tag
    entities: [{id: A, type: req, tags: [late]}, {id: B, type: req}]
    reports: [A]
    passes: [B]
  - name: none
    entities: [{id: A, type: req}]
    passes: [A]
- id: no-loop
  tests:
  - entities: [{id: A, type: req}, {id: B, type: req}]
    edges: [{type: depends_on, from: A, to: A}, {type: depends_on, from: A, to: B}]
    reports: [A, B]
"""


def test_tests_of_rules_in_prolog_run_each_on_its_own_graph(project):
    project.write({".kb/rules/tests.yaml": TESTS})
    first, second, third = try_rules(project.workspace(), [])
    assert [(one.rule, one.test, one.ok) for one in (first, second, third)] == [
        ("no-late", "one with the tag", True),
        ("no-late", "none", True),
        ("no-loop", "test 1", False),
    ]
    assert third.source == ".kb/rules/tests.yaml:13"
    assert "it does not report B. Reported: A." in third.message
    assert [one.rule for one in try_rules(project.workspace(), ["no-loop"])] == ["no-loop"]
    assert [one.test for one in explain(project.workspace(), project.view(), "no-late", branch="main").tests] == [
        "one with the tag",
        "none",
    ]


def test_tests_of_rules_in_prolog_fail_without_an_engine(project):
    project.machine.env["KB_SWIPL"] = project.machine.env["XDG_DATA_HOME"] = "/nowhere"
    project.write({".kb/rules/tests.yaml": TESTS})
    for found in try_rules(project.workspace(), []):
        assert not found.ok
        assert "there is no Prolog engine on this machine" in found.message


def test_tests_of_a_rule_that_no_file_in_prolog_states_are_refused(project):
    project.write({".kb/rules/tests.yaml": TESTS.replace("no-loop", "no-lop")})
    with pytest.raises(InvalidConfig) as caught:
        try_rules(project.workspace(), [])
    [problem] = caught.value.details
    assert (problem.source, problem.line, problem.message) == (
        ".kb/rules/tests.yaml",
        11,
        "`sql` of a rule is missing, and no file of rules in Prolog states 'no-lop'.",
    )


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte-order mark"])
def test_a_file_begins_with_a_rule_whatever_its_editor_writes_before_it(project, mark):
    project.write({FILE: mark + LATE, **late(1)})
    project.sync()
    report = check(project)
    assert ids(report, "no-late") == ["REQ-1"]
    assert "not_run" not in {run.status for run in report.rules}


@pytest.mark.sliced
def test_rules_see_what_files_say_that_no_record_has(project):
    project.sync(late(1))
    project.write(late(2))
    workspace = project.workspace()
    report = WorktreeFiles().read(
        workspace, "main", lambda view, _: run_checks(workspace, view, branch="main"), time_s=20
    )
    assert ids(report, "no-late") == ids(report, "no-late-sql") == ["REQ-1", "REQ-2"]
    assert ids(check(project), "no-late") == ["REQ-1"]


@pytest.mark.sliced
def test_rules_see_no_clause_of_the_workspace(project):
    project.sync(late(1))
    change(clause_store(project), "violation('no-late', 'REQ-1', \"by a clause\").", "helper(x).")
    assert [one.message for one in check(project, only=["no-late"]).violations] == ["is late"]
    project.write({FILE: f"{LATE}violation('no-late', Id, m) :- entity(Id, clause, _, _) ; helper(Id).\n"})
    assert "Unknown predicate helper/1" in check(project, only=["no-late"]).rules[0].reason


@pytest.mark.sliced
def test_only_what_came_since_a_seq_is_reported(project):
    project.sync(late(1))
    project.sync(late(2))
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    found = store.read(lambda view: check_since(workspace, view, choice.branch, "1")).found
    assert ids(found.report, "no-late") == ids(found.report, "no-late-sql") == ["REQ-2"]
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    found = store.read(lambda view: check_since(project.workspace(), view, choice.branch, "2")).found
    assert sorted(one.rule for one in found.fixed) == ["no-late", "no-late-sql"]


@pytest.mark.sliced
def test_only_what_a_commit_of_the_index_would_introduce_is_reported(project):
    project.sync(late(1))
    git(project.root, "add", "docs")
    git(project.root, "commit", "--quiet", "-m", "one")
    project.write(late(2) | late(3))
    git(project.root, "add", "docs/requirements/2.md")
    found = check_staged(project.workspace(), project.view()).found
    assert ids(found.report, "no-late") == ids(found.report, "no-late-sql") == ["REQ-2"]


@pytest.mark.sliced
def test_a_rule_is_explained_with_its_place_its_limit_and_its_file(project):
    project.sync(late(1))
    project.write({".kb/config.json": '{\n"rules": {"no-late": "error"},\n"ruleTimeLimitSeconds": 7}'})
    found = explain(project.workspace(), project.view(), "no-late", branch="main")
    assert (found.source, found.severity, found.level, found.level_source) == (
        f"{FILE}:1",
        "warning",
        "error",
        ".kb/config.json:2",
    )
    assert (found.prolog, found.sql, found.violations, found.status) == (LATE.strip(), "", 1, "ran")
    assert (found.time_limit_seconds, found.time_limit_source) == (7, "`ruleTimeLimitSeconds`")
    assert try_rules(project.workspace(), ["no-late"]) == []


TAKEN = [
    ({"b.pl": 'rule(mine, "b").\n', "a.pl": 'rule(mine, "a").\n'},
     "b.pl:1: .kb/rules/a.pl has a rule 'mine' already."),
    ({"a.pl": 'rule(mine, "a").\n\nrule(mine, "b").\n'}, "a.pl:3: .kb/rules/a.pl has a rule 'mine' already."),
    ({"a.pl": "% x\nrule('no-late-sql', \"a\").\n"}, "own.yaml:2: .kb/rules/a.pl has a rule 'no-late-sql' already."),
    ({"a.pl": 'rule(acyclic, "a").\n'}, "a.pl:1: KB has a rule 'acyclic' already."),
    ({"a.pl": "rule('No Late', \"a\").\n"}, "a.pl:1: 'No Late' cannot be the id of a rule."),
    ({"a.pl": 'rule(a_, "a").\n'}, "a.pl:1: 'a_' cannot be the id of a rule."),
    ({"a.pl": 'p.\nrule(X, "a").\n'}, "a.pl:2: This states no rule"),
    ({"a.pl": "rule(a, Title).\n"}, "a.pl:1: This states no rule"),
    ({"a.pl": 'rule(a, "b", fatal).\n'}, "a.pl:1: This states no rule"),
    ({"a.pl": 'rule(a, "b") :- true.\n'}, "a.pl:1: This states no rule"),
    ({"a.pl": "violation(a, b, c).\n"}, "a.pl:1: The file states no rule."),
    ({"a.pl": ""}, "a.pl:1: The file states no rule."),
    ({"a.pl": b'rule(a, "\xff").\n'}, "a.pl is not UTF-8 at byte 9."),
]  # fmt: skip


@pytest.mark.parametrize(("files", "said"), TAKEN, ids=lambda value: str(value)[:40])
def test_a_statement_of_a_rule_that_cannot_be_is_refused_by_file_and_line(tmp_path, files, said):
    project = Project(tmp_path / "repo")
    project.sync(late(1))
    project.write({".kb/rules/own.yaml": SQL} | {f".kb/rules/{name}": text for name, text in files.items()})
    with pytest.raises(InvalidConfig) as refused:
        check(project)
    assert said in refused.value.message
    project.close()


def test_the_settings_of_a_rule_need_no_engine(tmp_path):
    project = Project(tmp_path / "repo")
    project.machine.env |= {"KB_LOGIC_ENGINE": "native", "PATH": f"{tmp_path}"}
    rules = {"no-late": "off", "no-loop": "warning"}
    project.write({FILE: LATE, ".kb/config.json": json.dumps({"rules": rules})})
    assert project.workspace().config.rules == rules
    assert {"no-late": "Nothing is late."}.items() <= descriptions(project.workspace()).items()
    project.close()


@pytest.mark.sliced
def test_a_check_without_such_rules_imports_nothing_of_engines(tmp_path):
    project = Project(tmp_path / "repo")
    project.sync(late(1) | {".kb/rules/own.yaml": SQL})
    program = (
        "import sys; from kbcli import app; "
        f"app.main(['-C', {str(project.root)!r}, 'check', '--quiet']); "
        "print(sorted(name for name in sys.modules if name.startswith('kbcore.logic')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
    project.close()
