"""``kb check`` with rules in Prolog: the reports, the explanation, and what is said without an engine."""

from __future__ import annotations

import json

import pytest

from kbcore.rules import RULES
from tests.mcp.agents import direct
from tests.support.logic.engines import why_missing
from tests.support.processes.cli import write
from tests.support.repository.repos import git

FILE = ".kb/rules/own.pl"
OWN = """% What a page needs.
rule('no-web', "Nothing is for the web.", warning, "Move it.").
violation('no-web', Id, "is for the web") :- attr(Id, tags, Tags), memberchk("web", Tags).
"""


@pytest.fixture
def no_engine(user, tmp_path):
    """A PATH with git alone, and no package of the user."""
    user.setenv("KB_LOGIC_ENGINE", "native")
    user.setenv("KB_SWIPL", str(tmp_path / "none"))


@pytest.mark.sliced
def test_a_violation_is_shown_with_the_line_of_its_entity_and_its_hint(kb, synced, engine):
    write(synced, {FILE: OWN})
    ran = kb("check")
    assert "warning no-web: 1\n  docs/requirements/login.md:2: REQ-1: is for the web (Move it.)" in ran.out
    assert ran.out.splitlines()[-1] == f"main at seq 1: 1 warning ({len(RULES) + 1} rules ran)"
    [one] = kb("check", "--rule", "no-web", "--json").json["violations"]
    assert one == {
        "rule": "no-web",
        "severity": "warning",
        "id": "REQ-1",
        "message": "is for the web",
        "hint": "Move it.",
        "source": "docs/requirements/login.md",
        "line": 2,
    }
    assert kb("check", "--rule", "no-web", "--fail-on", "warning").status == 1


@pytest.mark.sliced
def test_the_explanation_has_the_file_of_the_rule(kb, synced, engine):
    write(synced, {FILE: OWN})
    lines = kb("check", "--explain", "no-web").out.splitlines()
    for said in (
        f"  severity    warning, set by {FILE}:2",
        f"  defined in  {FILE}:2",
        "  now         1 violation in main at seq 1",
        "Prolog",
        "  % What a page needs.",
        "  Move it.",
    ):
        assert said in lines
    assert kb("check", "--explain", "no-web", "--json").json["rule"]["prolog"] == OWN.strip()


@pytest.mark.sliced
def test_the_reports_for_other_programs_have_the_rule(kb, synced, engine):
    write(synced, {FILE: OWN})
    [run] = json.loads(kb("check", "--rule", "no-web", "--format", "sarif").out)["runs"]
    [result] = run["results"]
    assert (result["ruleId"], result["message"]["text"]) == ("no-web", "REQ-1: is for the web. Move it.")
    described = {one["id"]: one["shortDescription"]["text"] for one in run["tool"]["driver"]["rules"]}
    assert described["no-web"] == "Nothing is for the web."
    assert '<testsuite name="no-web"' in kb("check", "--rule", "no-web", "--format", "junit").out
    assert "::warning file=docs/requirements/login.md,line=2" in kb("check", "--format", "github").out


@pytest.mark.sliced
def test_a_fault_of_a_file_is_reported_with_its_line_and_fails_the_check(kb, synced, engine):
    write(synced, {FILE: f"{OWN}p :- assertz(q).\n"})
    ran = kb("check", "--fail-on", "never")
    assert ran.status == 1
    assert f"the rule no-web could not run: {FILE}:4: `assertz/1` is refused in a goal" in ran.err
    assert ran.out.splitlines()[-1] == f"main at seq 1: no violations ({len(RULES)} rules ran, 1 could not run)"


def test_without_an_engine_the_rule_is_not_run_and_all_else_is(kb, synced, no_engine):
    write(synced, {FILE: OWN})
    ran = kb("check")
    assert ran.status == 1
    assert f"the rule no-web could not run: {FILE}:2: there is no Prolog engine on this machine (native: " in ran.err
    assert ran.out.splitlines()[-1] == f"main at seq 1: no violations ({len(RULES)} rules ran, 1 could not run)"
    write(synced, {".kb/config.json": '{"rules": {"no-web": "off"}}'})
    assert kb("check").status == 0
    assert kb("check", "--rule", "acyclic").status == 0
    assert kb("config", "set", "rules.no-web", "error").status == 0
    assert kb("config", "set", "rules.no-wep", "error").status == 63


@pytest.mark.sliced
def test_a_commit_that_a_rule_in_prolog_forbids_is_refused(kb, synced, engine):
    write(synced, {FILE: OWN.replace("warning", "error")})
    git(synced, "add", "-A")
    git(synced, "commit", "--quiet", "-m", "all")
    page = "---\nid: REQ-8\ntitle: A page\nstatus: open\ntags: [web]\nlinks: [REQ-1]\n---\n"
    write(synced, {"docs/requirements/page.md": page})
    git(synced, "add", "docs")
    ran = kb("check", "--staged")
    assert ran.status == 1
    assert "docs/requirements/page.md:2: REQ-8: is for the web" in ran.out
    assert "REQ-1: is" not in ran.out


@pytest.mark.sliced
@pytest.mark.skipif(bool(why_missing("native")), reason="the server of this test gets no other engine")
def test_kb_check_over_mcp_answers_the_same(synced):
    write(synced, {FILE: OWN})
    with direct(synced) as tools:
        answer = tools.answer("kb_check", rules=["no-web"])
        assert [(one["id"], one["hint"]) for one in answer["violations"]] == [("REQ-1", "Move it.")]
        write(synced, {FILE: f"{OWN}foo(.\n"})
        assert f"{FILE}:4: " in json.dumps(tools.answer("kb_check", rules=["no-web"]))
