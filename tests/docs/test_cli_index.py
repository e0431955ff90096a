"""The index at the top of docs/cli.md names every command once and leads to its section."""

from __future__ import annotations

import re

from kbcli.invocation.command_tree import TASKS
from tests.docs.test_links import anchors
from tests.support.docs.console import ROOT
from tests.support.docs.help_pages import help_blocks

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|]*) \| \[`(kb [a-z ]+)`\]\(#([a-z-]+)\) \| (.+) \|$", re.MULTILINE)
INDEX = ROW.findall(PAGE.partition("\n## ")[0])


def test_every_command_is_in_the_index_exactly_once():
    assert sorted(command for _, command, _, _ in INDEX) == sorted(f"kb {name}" for _, name in help_blocks() if name)


def test_every_entry_of_the_index_leads_to_the_section_of_its_command():
    assert {anchor for _, _, anchor, _ in INDEX} <= anchors(PAGE)
    assert all(anchor == command.replace(" ", "-") for _, command, anchor, _ in INDEX)


def test_every_task_of_the_help_begins_a_group_of_the_index():
    assert [task for task, _, _, _ in INDEX if task.strip()] == list(TASKS)
