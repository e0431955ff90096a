"""SARIF as code scanning takes it: valid, with a place for each result, and the same fingerprints in each run."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from kbcli.views.reports import sarif
from kbcore.rules import CheckReport

SCHEMA = Path(__file__).parents[2] / "support/schemas/sarif-2.1.0.json"
"""The schema of SARIF 2.1.0, as the npm package @microsoft/jest-sarif 1.0.0-beta.0 (MIT) ships it."""


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_a_report_is_valid_whatever_text_is_in_it(full_report, validator):
    text = sarif.text(full_report)
    validator.validate(json.loads(text))
    text.encode()
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_report_without_violations_is_valid(full_report, validator):
    validator.validate(json.loads(sarif.text(msgspec.structs.replace(full_report, report=CheckReport(True, [], [])))))


def test_rules_places_and_levels_are_those_of_the_report(full_report):
    [run] = json.loads(sarif.text(full_report))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [(one["id"], one["defaultConfiguration"]["enabled"]) for one in rules[-2:]] == [
        ("slow", True),
        ("idle", False),
    ]
    assert rules[0]["shortDescription"]["text"] == "Links lead somewhere."
    first, second = run["results"][:2]
    assert (first["ruleId"], rules[first["ruleIndex"]]["id"], first["level"]) == ("links", "links", "error")
    assert first["message"]["text"] == "REQ-1 links to GONE. Create it."
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "docs/a%20b%231.md", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 12}
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == ".kb/config.json"
    assert "region" not in second["locations"][0]["physicalLocation"]
    assert [one["level"] for one in run["results"]] == ["error", "error", "error", "warning", "warning"]


def test_fingerprints_are_stable_and_differ_between_results(full_report):
    def marks(text: str) -> list[str]:
        return [one["partialFingerprints"]["kbViolation/v3"] for one in json.loads(text)["runs"][0]["results"]]

    found = marks(sarif.text(full_report))
    assert len(set(found)) == len(found)
    first, *others = full_report.report.violations
    report = msgspec.structs.replace(full_report.report, violations=[msgspec.structs.replace(first, line=99), *others])
    moved = msgspec.structs.replace(full_report, report=report, seq=8)
    assert marks(sarif.text(moved)) == found


def test_a_rule_that_could_not_run_makes_the_execution_unsuccessful(full_report):
    [run] = json.loads(sarif.text(full_report))["runs"]
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is False
    notification, not_checked, _ = invocation["toolExecutionNotifications"]
    assert notification["associatedRule"]["id"] == "slow"
    assert (not_checked["level"], not_checked["message"]["text"]) == (
        "note",
        "Not checked, as no fact comes from it: 'src/a.py'.",
    )
    assert notification["message"]["text"].startswith("The rule slow could not run: too slow")
    ran = CheckReport(True, [], full_report.report.rules[:4])
    [run] = json.loads(sarif.text(msgspec.structs.replace(full_report, report=ran, not_checked=())))["runs"]
    assert run["invocations"] == [{"executionSuccessful": True}]
