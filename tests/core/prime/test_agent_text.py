"""The text for agents: short, in the form of a skill, and all that it names exists."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kbcli.invocation.context import Session
from kbcli.terminal.output import Output
from kbcore.model.schema import CORE
from kbcore.prime import agent_text as texts
from kbcore.text.tokens import tokens_of
from kbmcp.tools.hints import spelled
from kbmcp.tools.tool_list import TOOLS
from tests.support.docs.help_pages import commands

CODE = re.findall(r"`([^`]+)`", texts.agent_guide())
COMMANDS = [one for one in dict.fromkeys(CODE) if one.startswith("kb ") and "-" not in one[:4]]
CALLS = re.findall(r"`(kb_[a-z]+)` with `([^`]+)`", texts.agent_guide())
FRONT = yaml.safe_load(texts.skill_text().split("---\n")[1])


def test_each_form_is_as_short_as_its_place_allows():
    assert tokens_of(texts.agent_text(is_full=False)) <= 80
    assert tokens_of(texts.agent_text(is_full=True)) <= 300
    assert len(texts.skill_text().split()) <= 500
    assert texts.agent_text(is_full=True) in texts.agent_guide()
    assert texts.skill_text().endswith("---\n" + texts.agent_guide())


def test_the_front_matter_is_what_the_specification_of_skills_asks_for():
    assert texts.skill_front_matter() == FRONT
    assert FRONT["name"] == texts.SKILL_NAME
    assert len(FRONT["description"]) <= 1024
    assert len(FRONT["compatibility"]) <= 500
    assert {*FRONT} <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert all(isinstance(one, str) for one in FRONT["metadata"].values())


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_that_the_text_names_can_be_understood(line):
    words = shlex.split(line)[1:]
    known = commands()
    if words == ["--help"]:
        return
    name = next(one for one in (" ".join(words[:2]), words[0]) if one in known)
    context = known[name].make_context(name, words[len(name.split()) :], obj=Session({}, Output({})))
    assert context.params is not None


@pytest.mark.parametrize(("tool", "said"), CALLS)
def test_every_call_that_the_text_names_is_one_of_the_tool(tool, said):
    [found] = [one for one in TOOLS if spelled(one.key, is_dotted=False) == tool]
    assert found.read(json.loads(said))[1] == []


def test_every_tool_type_and_argument_that_the_text_names_is_there():
    assert len(COMMANDS) > 10
    assert len(CALLS) > 7
    named = {one for one in CODE if re.fullmatch("kb_[a-z]+", one)}
    assert named == {"kb_query", "kb_upsert", "kb_check", "kb_history"}
    assert named <= {spelled(one.key, is_dotted=False) for one in TOOLS}
    assert {"req", "note", "task"} <= {*CORE.entities}
    assert "verified_by" in CORE.edges


@given(st.integers(0, len(texts.skill_text())), st.text(max_size=5), st.booleans())
def test_a_skill_is_known_as_unchanged_whatever_its_line_ends_until_it_is_edited(at, more, is_windows):
    text = texts.skill_text()
    edited = text[:at] + more + text[at:]
    found = edited.replace("\n", "\r\n") if is_windows else edited
    assert texts.is_unchanged_skill(found) == (found.replace("\r\n", "\n") == text)
