"""Rules are chosen, run and reported together."""

from __future__ import annotations

import re

import pytest

from kbcli.messages.violations import short_line, violation_line
from kbcore import rules
from kbcore.errors import NotFound, ResourceLimit
from kbcore.model.schema import CORE
from kbcore.rules import Finding, Rule, RuleContext, Violation
from tests.support.views.graph import graph_of, link, node


def run(graph, levels=None, *, ids=None, **options):
    context = RuleContext(graph.rows, CORE, None if ids is None else frozenset(ids))
    return rules.check(context, levels or {}, **options)


def status_of(report):
    return {one.id: one.status for one in report.rules}


@pytest.fixture
def graph():
    return graph_of(
        [
            node("REQ-2", priority="must"),
            node("REQ-1", priority="must"),
            node("ADR-1", "adr"),
            node("adr-1", "adr", title="Another"),
        ],
        [link("REQ-1", "depends_on", "REQ-2")],
    )


def broken(context):
    msg = "no such\ntable"
    raise RuntimeError(msg)


def test_a_sound_graph_is_ok_and_every_rule_ran():
    sound = graph_of([node("A"), node("B")], [link("A", "depends_on", "B")])
    report = run(sound)
    assert report.ok
    assert report.violations == []
    assert [one.id for one in report.rules] == [rule.id for rule in rules.RULES]
    assert {one.id: (one.status, one.reason) for one in report.rules if one.id != "missing-file"} == {
        rule.id: ("ran", "") for rule in rules.RULES if rule.id != "missing-file"
    }
    assert status_of(report)["missing-file"] == "not_applicable"


def test_an_empty_graph_is_ok():
    assert run(graph_of()).ok


def test_violations_come_in_a_fixed_order_errors_first(graph):
    report = run(graph)
    assert not report.ok
    assert [(one.severity, one.rule, one.id) for one in report.violations] == [
        ("error", "must-coverage", "REQ-1"),
        ("error", "must-coverage", "REQ-1"),
        ("error", "must-coverage", "REQ-2"),
        ("error", "must-coverage", "REQ-2"),
        ("warning", "orphans", "ADR-1"),
        ("warning", "orphans", "adr-1"),
        ("warning", "similar-ids", "ADR-1"),
    ]
    assert run(graph) == report


def test_the_report_has_the_shape_that_scripts_rely_on(graph):
    shown = run(graph, {"orphans": "off"}).as_json()
    assert list(shown) == ["ok", "violations", "rules"]
    assert list(shown["violations"][0]) == ["rule", "severity", "id", "message", "hint", "source", "values"]
    assert {"id": "orphans", "severity": "warning", "status": "off"}.items() <= shown["rules"][9].items()


def test_the_configuration_sets_the_severity_of_a_rule(graph):
    report = run(graph, {"must-coverage": "warning", "orphans": "error", "similar-ids": "off"})
    assert {one.rule: one.severity for one in report.violations} == {"orphans": "error", "must-coverage": "warning"}
    assert status_of(report)["similar-ids"] == "off"


def test_warnings_leave_the_report_ok(graph):
    report = run(graph, {"must-coverage": "warning"})
    assert report.ok
    assert report.passes("error")
    assert not report.passes("warning")
    assert report.passes("never")


def test_only_the_named_rules_run_even_one_that_is_off(graph):
    report = run(graph, {"orphans": "off"}, only=["orphans"])
    assert status_of(report) == {"orphans": "ran"}
    assert [one.severity for one in report.violations] == ["warning", "warning"]


def test_an_unknown_rule_is_refused_with_the_nearest_one(graph):
    with pytest.raises(NotFound, match="'orphan'") as caught:
        run(graph, only=["orphan"])
    assert caught.value.hint == "Did you mean 'orphans'?"


def test_all_unknown_rules_are_reported_at_once(graph):
    with pytest.raises(NotFound) as caught:
        run(graph, only=["orphan", "orphans", "acylic", "staged-symbl"])
    assert [(one.path, one.message, one.hint) for one in caught.value.details] == [
        ("$.rules[0]", "There is no rule 'orphan'.", "Did you mean 'orphans'?"),
        ("$.rules[2]", "There is no rule 'acylic'.", "Did you mean 'acyclic'?"),
        ("$.rules[3]", "There is no rule 'staged-symbl'.", "Did you mean 'staged-symbol'?"),
    ]


def test_a_rule_that_could_not_run_says_why_and_fails_the_command():
    report = run(graph_of(), project=[Rule("mine", "warning", "", broken)])
    last = report.rules[-1]
    assert (last.id, last.status, last.reason) == ("mine", "not_run", "RuntimeError: no such table")
    assert not report.ok
    assert not report.passes("never")
    assert status_of(report)["orphans"] == "ran"


@pytest.mark.parametrize("refused", [RuntimeError("can't start new thread"), MemoryError(), OSError(24, "files")])
def test_a_rule_for_which_the_system_has_no_resources_ends_the_check(refused):
    def run_out(_):
        raise refused

    with pytest.raises(ResourceLimit):
        run(graph_of(), project=[Rule("mine", "warning", "", run_out)])


def test_a_table_that_is_missing_stops_only_the_rules_that_read_it():
    graph = graph_of(old_nodes=[(node("A"), 2)])
    graph.connection.execute("drop table source")
    report = run(graph)
    assert [name for name, status in status_of(report).items() if status == "not_run"] == [
        "conflict",
        "orphans",
        "suspect-edge",
        "unreadable-source",
        "stale-index",
        "secret",
    ]


def test_a_rule_that_is_off_is_not_run():
    assert run(graph_of(), {"mine": "off"}, project=[Rule("mine", "error", "", broken)]).ok


def test_only_what_concerns_the_asked_ids_is_reported(graph):
    report = run(graph, ids=["adr-1"])
    assert [(one.rule, one.id) for one in report.violations] == [("orphans", "adr-1"), ("similar-ids", "ADR-1")]


def test_findings_are_sorted_whatever_order_a_rule_gives_them():
    found = [Finding("B", "x", values=("x",)), Finding("A", "y", values=("y",)), Finding("A", "x", values=("x",))]
    report = run(graph_of(), project=[Rule("mine", "error", "", lambda context: list(found))])
    assert [(one.id, one.message) for one in report.violations] == [("A", "x"), ("A", "y"), ("B", "x")]


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_plain_name_and_says_what_it_asks_for(rule):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.id)
    assert rule.description.endswith(".")
    assert rules.__name__ + "." + rule.id.replace("-", "_") == rule.run.__module__


def test_a_check_of_many_entities_asks_few_questions():
    many = [node(f"N{at}", priority="must") for at in range(300)]
    graph = graph_of(many, [link("N0", "implements", f"X{at}", is_resolved=False) for at in range(300)])
    assert len(run(graph).violations) > 900
    assert len(graph.asked) <= len(rules.RULES) + 4


def test_findings_come_in_the_order_of_the_numbers_in_their_values():
    found = [Finding("A", "Wrong.", values=(value,)) for value in ("REQ-13", "REQ-6")]
    report = run(graph_of(), only=["mine"], project=[Rule("mine", "error", "", lambda _: found)])
    assert [value for one in report.violations for value in one.values] == ["REQ-6", "REQ-13"]


@pytest.mark.parametrize(("names_id", "said"), [(True, "It is wrong."), (False, "REQ-1: It is wrong.")])
def test_a_violation_names_its_entity_unless_the_message_does(names_id, said):
    assert Violation("own", "error", "REQ-1", "It is wrong.", "", "docs/a.md", names_id=names_id).sentence == said


def test_a_violation_of_a_file_names_it_unless_its_line_begins_with_it():
    one = Violation("own", "error", "docs/a.md", "A quote is missing.", "", "docs/a.md", line=3, names_id=False)
    assert (one.sentence, one.beside_file) == ("docs/a.md: A quote is missing.", "A quote is missing.")
    assert short_line(one) == "docs/a.md:3: error: A quote is missing. [own]"
    other = Violation("own", "error", "REQ-1", "docs/a.md:9: is odd", "Mend it.", "docs/a.md", line=3, names_id=False)
    assert short_line(other) == "docs/a.md:3: error: REQ-1: docs/a.md:9: is odd [own]"
    assert violation_line(other) == "docs/a.md:3: REQ-1: docs/a.md:9: is odd (Mend it.) [own]"
