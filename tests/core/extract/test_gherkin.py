"""Feature files become scenarios; what is wrong with one is said line by line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kbcore.extract.facts import SourceFile
from kbcore.extract.gherkin import EXTRACTOR, MAX_LINES
from tests.support.repository.project import Project

FEATURE = """@billing
Feature: Invoices

  Background:
    Given a customer

  @links:REQ-1 @slow
  Scenario: An invoice is sent
    When the month ends

  @id:INV-2
  Scenario: An invoice is sent
    When asked

  Rule: No empty invoices
    @links:REQ-1
    Scenario Outline:
      Given <n> items
      Examples:
        | n |
        | 0 |
"""


def extract(text: str, path: str = "features/invoices.feature"):
    return EXTRACTOR.extract(SourceFile(path, text.encode(), "scenario"), {"paths": ["features/**/*.feature"]})


def test_each_scenario_is_an_entity_known_by_path_and_place():
    facts = extract(FEATURE)
    assert [(one.id, one.line) for one in facts.entities] == [
        ("features/invoices.feature#1", 8),
        ("INV-2", 12),
        ("features/invoices.feature#3", 17),
    ]
    assert facts.is_complete
    assert not facts.problems


def test_tags_are_inherited_and_some_of_them_mean_something():
    first, second, third = extract(FEATURE).entities
    assert first.fields["tags"] == ["billing", "slow"]
    assert second.fields["tags"] == ["billing"]
    assert third.fields["attributes.rule"] == "No empty invoices"
    assert [(one.subject, one.target) for one in extract(FEATURE).links] == [
        ("features/invoices.feature#1", "REQ-1"),
        ("features/invoices.feature#3", "REQ-1"),
    ]


def test_a_scenario_without_a_name_is_called_after_its_feature():
    assert extract(FEATURE).entities[2].fields["title"] == "Invoices (3)"


def test_other_languages_and_line_ends_are_read():
    facts = extract("# language: fr\r\nFonctionnalité: Panier\r\n\r\n  Scénario: vide\r\n    Soit un panier\r\n")
    assert [one.fields["title"] for one in facts.entities] == ["vide"]
    assert facts.entities[0].line == 4


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("not gherkin\n", [1]),
        ("Feature: a\n  Scenario: b\n    Given c\n      | x |\n      | y | z |\n", [5]),
        ("# language: no-such\nFeature: a\n", [1]),
        ("Feature: a\nScenario: b\nGiven c\n nonsense\n more\n", [4, 5]),
    ],
)
def test_a_fault_is_reported_at_its_line_and_takes_nothing_away(text, lines):
    facts = extract(text)
    assert [problem.line for problem in facts.problems] == lines
    assert not facts.is_complete
    assert not facts.entities


@pytest.mark.parametrize("text", ["", "# only a comment\n", "Feature: nothing yet\n"])
def test_a_file_without_a_scenario_is_passed_over_with_a_note(text):
    facts = extract(text)
    assert [(one.code, one.severity) for one in facts.problems] == [("passed_over", "note")]
    assert facts.is_complete


def test_the_text_of_a_file_is_never_taken_for_a_path(tmp_path):
    other = tmp_path / "other.feature"
    other.write_text(FEATURE)
    assert not extract(str(other)).entities


def test_no_feature_file_is_read_unless_the_configuration_names_it(project: Project):
    project.write({".kb/config.json": "{}"})
    assert project.sync({"features/a.feature": FEATURE}).scanned == 0
    project.write({".kb/config.json": '{"extractors": {"gherkin": {"paths": ["features/**/*.feature"]}}}'})
    project.sync({"docs/requirements/1.md": "---\nid: REQ-1\ntitle: T\nstatus: open\n---\n"})
    assert project.edges("REQ-1") == {
        ("REQ-1", "specified_by", "features/a.feature#1", True),
        ("REQ-1", "specified_by", "features/a.feature#3", True),
    }


def test_a_missing_package_is_named_with_the_remedy():
    code = (
        "import sys; sys.modules['gherkin'] = None\n"
        "from kbcore.extract.gherkin import EXTRACTOR\n"
        "from kbcore.extract.registry import missing_package\n"
        "print(missing_package(EXTRACTOR).hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "kb-memory[gherkin]" in done.stdout


def test_a_file_of_too_many_lines_is_not_parsed():
    facts = EXTRACTOR.extract(SourceFile("a.feature", b"Feature: x\n" + b"\n" * MAX_LINES, None), {})
    assert [(one.code, one.line) for one in facts.problems] == [("too_long", 1)]
    assert not facts.is_complete
