"""The index of docs/durability.md leads from every symptom of damage to a remedy that exists."""

from __future__ import annotations

import re

from kbcore.errors import CommitUncertain, Damaged, KBError
from tests.docs.test_links import fault, links
from tests.support.docs.console import ROOT
from tests.support.docs.help_pages import commands
from tests.support.docs.regenerate_docs import error_classes

PAGE = ROOT / "docs" / "durability.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## From the symptom to the remedy\n")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("| ")
][1:]


def codes(kind: type[KBError]) -> set[str]:
    return {f"`{error.code}` ({error.exit_status})" for error in error_classes() if issubclass(error, kind)}


def test_every_error_of_damage_and_of_an_uncertain_commit_is_a_symptom():
    symptoms = {code for row in ROWS for code in re.findall(r"`[a-z_]+` \(\d+\)", row[0])}
    assert codes(Damaged) | codes(CommitUncertain) <= symptoms <= codes(KBError)


def test_every_row_has_a_remedy_and_links_that_lead_to_a_section():
    for symptom, remedy, more in ROWS:
        assert symptom
        assert remedy
        assert links(more), symptom
        assert not [found for target in links(remedy + more) if (found := fault(PAGE, target))]


def test_every_remedy_names_a_command_and_options_that_exist():
    known = commands()
    remedies = [text for row in ROWS for text in re.findall(r"`kb ([^`]+)`", row[1])]
    assert remedies
    for remedy in remedies:
        words = re.findall(r"(?<!\S)[a-z]+(?!\S)", remedy)
        command = known[" ".join(words)]
        options = {name for parameter in command.params for name in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", remedy)) <= options, remedy
