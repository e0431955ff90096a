"""Runs rules in Prolog on a graph."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kbcore import rules
from kbcore.logic.graph_facts import all_facts
from kbcore.logic.rules import RulesEngine
from kbcore.model.schema import CORE
from kbcore.rules import CheckReport, RuleContext, load_rules
from kbcore.view.relations import RELATIONS
from kbcore.view.sandbox import TimeLeft, Times
from tests.support.repository.repos import git_env
from tests.support.views.graph import Graph

FILE = ".kb/rules/a.pl"
RULE = 'rule(mine, "What is asked for.").\n'
TIME_S = 20.0


def place(
    graph: Graph, engine: dict[str, str], *, times: Times | None = None, left: TimeLeft | None = None
) -> RulesEngine:
    """Return what runs rules over a graph."""
    times = times or Times(TIME_S, now_s=time.monotonic)
    left = left or TimeLeft(times.total_s)
    env = git_env(engine)
    return RulesEngine(env, lambda: sorted(all_facts(graph)), CORE.edges, times, left)  # type: ignore[arg-type]


def report(graph: Graph, files: dict[str, str], prolog: RulesEngine) -> CheckReport:
    """Return what the rules of these files find."""
    project = load_rules(files)
    context = RuleContext(graph.rows, CORE, None, prolog=prolog)
    with prolog:
        return rules.check(context, {}, only=[one.id for one in project], project=project)


def found(graph: Graph, engine: dict[str, str], text: str, *, stated: str = RULE) -> list[tuple[str, str]]:
    """Return id and message of each violation of the rule ``mine``, which must have been able to run."""
    result = report(graph, {FILE: stated + text}, place(graph, engine))
    assert [(one.status, one.reason) for one in result.rules] == [("ran", "")]
    return [(one.id, one.message) for one in result.violations]


def reason(graph: Graph, engine: dict[str, str], text: str, *, stated: str = RULE, times: Times | None = None) -> str:
    """Return why the rule ``mine`` could not run."""
    result = report(graph, {FILE: stated + text}, place(graph, engine, times=times))
    assert ([one.status for one in result.rules], result.violations, result.ok) == (["not_run"], [], False)
    return result.rules[0].reason


def reasons(graph: Graph, engine: dict[str, str], texts: Iterable[str]) -> list[str]:
    """Return of each of these files why its rule ``mine`` could not run, all in one engine."""
    found = []
    with place(graph, engine) as prolog:
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        for number, text in enumerate(texts):
            project = load_rules({f"{number}.pl": RULE + text})
            result = rules.check(context, {}, only=["mine"], project=project)
            assert not result.violations
            found.append(result.rules[0].reason)
    return found


def lend(graph: Graph, table: str, path: str) -> None:
    """Copy a relation of a graph into a database file."""
    graph.connection.execute(f"attach '{path}' as lent")
    graph.connection.execute(f"create table lent.{table} as {RELATIONS[table].select}")
    graph.connection.execute("detach lent")
