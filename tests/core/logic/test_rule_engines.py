"""The engine that runs rules in Prolog: when it is started, what ends a rule, and what a check says without one."""

from __future__ import annotations

import os
import threading
import time
from functools import partial

import pytest

from kbcore import rules
from kbcore.logic.engine.installation import node_programs
from kbcore.logic.rules import RulesEngine
from kbcore.model.schema import CORE
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.rules import RuleContext, load_rules
from kbcore.view.sandbox import Sandbox, TimeLeft, Times
from tests.support.logic.rules import FILE, RULE, TIME_S, lend, place, reason, report
from tests.support.repository.repos import git_env

SHORT_S = 1.0


@pytest.mark.sliced
def test_one_engine_serves_all_files_and_it_is_not_started_where_no_rule_runs(graph, engine):
    text = 'rule({0}, "d").\nviolation({0}, \'A\', "m").\n'
    project = load_rules({f"{name}.pl": text.format(name) for name in ("a", "b", "c")})
    pids = set()
    with place(graph, engine) as prolog:
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        rules.check(context, {}, only=["acyclic"], project=project)
        assert prolog._engine is None
        for one in project:
            rules.check(context, {}, only=[one.id], project=project)
            assert prolog._engine is not None
            pids.add(prolog._engine.pid)
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pids.pop(), 0)


ENDLESS = [
    "violation(mine, 'A', m) :- repeat, fail.\n",
    "violation(mine, 'A', m) :- loop.\nloop :- loop.\n",
    "violation(mine, 'A', m) :- repeat.\n",
    "violation(mine, 'A', m) :- X is 7 ** (7 ** 9), atom_length(X, _).\n",
]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("text", ENDLESS, ids=["fails", "calls", "repeats", "integer"])
def test_a_rule_that_does_not_end_is_ended_and_the_next_one_runs(graph, engine, text):
    files = {FILE: f'{RULE}rule(late, "l").\nviolation(late, Id, m) :- depends_on(Id, _).\n{text}'}
    times = Times(SHORT_S, now_s=time.monotonic)
    result = report(graph, files, place(graph, engine, times=times))
    assert [(one.id, one.status) for one in result.rules] == [("mine", "not_run"), ("late", "ran")]
    assert [(one.rule, one.id) for one in result.violations] == [("late", "A")]
    assert result.rules[0].reason in {
        (
            f"{FILE}:1: the rule was ended: it did not end within 1 s; "
            "`ruleTimeLimitSeconds` in .kb/config.json is the limit."
        ),
        f"{FILE}:1: The query took more memory than the 256 MiB it may.",
        f"{FILE}:1: the rule was ended: it takes more than 1024 MiB of memory.",
    }


@pytest.mark.sliced
def test_the_limits_of_the_user_are_named(graph, engine):
    times = Times(TIME_S, most_s=0.5, most_by="`limits.ruleTimeSeconds`", now_s=time.monotonic)
    assert reason(graph, engine, ENDLESS[0], times=times) == (
        f"{FILE}:1: the rule was ended: it did not end within 0.5 s; `limits.ruleTimeSeconds` is the limit."
    )


@pytest.mark.sliced
def test_the_time_of_all_rules_is_shared_with_those_in_sql(graph, engine):
    times = Times(TIME_S, total_s=3.0, total_by="`limits.rulesTimeSeconds`", now_s=time.monotonic)
    left = TimeLeft(times.total_s)
    sql = "rules:\n- id: later\n  sql: select id, 'm' as message from entity\n"
    project = load_rules({FILE: RULE + ENDLESS[0], "b.yaml": sql})
    with Sandbox(partial(lend, graph), times, left) as sandbox, place(graph, engine, times=times, left=left) as prolog:
        context = RuleContext(graph.rows, CORE, None, sandbox, prolog=prolog)
        result = rules.check(context, {}, only=["mine", "later"], project=project)
    said = "all rules of the project have 3 s, and none is left; `limits.rulesTimeSeconds` is the limit."
    assert [one.reason for one in result.rules] == [
        f"{FILE}:1: the rule was ended: {said}",
        f"b.yaml:3: the SQL was ended: {said}",
    ]


@pytest.mark.sliced
def test_the_work_can_be_stopped_while_a_rule_runs(graph, engine):
    work = CurrentWork()
    with place(graph, engine) as prolog, interrupting.done_for(work):
        project = load_rules({FILE: RULE + ENDLESS[0]})
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        threading.Timer(1.5, work.stop).start()
        with pytest.raises(Stopped):
            rules.check(context, {}, only=["mine"], project=project)


@pytest.mark.sliced
def test_an_engine_that_dies_is_started_again_for_the_next_rule(graph, engine):
    files = {FILE: f"{RULE}violation(mine, 'A', m).\n"}
    project = load_rules(files)
    with place(graph, engine) as prolog:
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        check = partial(rules.check, context, {}, only=["mine"], project=project)
        assert check().ok is False
        assert prolog._engine is not None
        os.kill(prolog._engine.pid, 9)
        assert check().rules[0].reason == f"{FILE}:1: The engine was killed."
        assert [one.id for one in check().violations] == ["A"]


def test_without_an_engine_a_rule_is_not_run_and_says_what_is_missing_of_each(graph):
    env = {"PATH": "/nowhere", "HOME": "/nowhere"}
    prolog = RulesEngine(env, list, CORE.edges, Times(TIME_S), TimeLeft(TIME_S))
    result = report(graph, {FILE: f"{RULE}violation(mine, 'A', m).\n"}, prolog)
    [run] = result.rules
    assert (run.status, run.reason.count("\n")) == ("not_run", 0)
    assert run.reason.startswith(f"{FILE}:1: there is no Prolog engine on this machine (native: no `swipl` on the PATH")
    assert "wasm: " in run.reason


@pytest.mark.skipif(not any(node_programs(os.environ)), reason="there is no node")
def test_the_command_that_fetches_the_package_is_named_as_a_shell_takes_it(graph, tmp_path):
    env = git_env({"KB_LOGIC_ENGINE": "wasm", "XDG_DATA_HOME": str(tmp_path)})
    prolog = RulesEngine(env, list, CORE.edges, Times(TIME_S), TimeLeft(TIME_S))
    result = report(graph, {FILE: f"{RULE}violation(mine, 'A', m).\n"}, prolog)
    assert result.rules[0].reason.endswith("is not installed; `kb prolog install` fetches it).")
