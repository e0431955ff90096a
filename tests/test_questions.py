"""Answers of a search to the questions that agents ask, and the tokens that an answer takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.questions import asking
from tests.support.repository.repos import git_env

DOCUMENTS = os.environ.get("KB_QUESTION_DOCUMENTS", "")
MOST_TOKENS = 250
BY_WORDS, BY_MEANING = 21 / 30, 24 / 30
LEAST_ENTITIES = 10_000


def test_every_second_question_is_held_back():
    for name, least in (("own", 30), ("documents", 30)):
        asked = asking.questions(name)
        assert len(asked) >= least
        assert [one.held_back for one in asked] == [bool(at % 2) for at in range(len(asked))]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    root = tmp_path_factory.mktemp("own") / "repo"
    asking.own_project(root)
    return root


@pytest.mark.parametrize(("mode", "least"), [("off", BY_WORDS), ("on", BY_MEANING)])
def test_questions_about_this_project_are_answered_in_few_tokens(own, mode, least):
    asking.set_meaning(own, mode)
    found = asking.ask_all(own, asking.questions("own"))
    assert found.share >= least, found
    assert found.found_of_held_back / found.held_back >= BY_WORDS, found
    assert found.tokens <= MOST_TOKENS, found


@pytest.mark.skipif(not DOCUMENTS, reason="KB_QUESTION_DOCUMENTS names no folder of the documents of other projects")
def test_questions_about_ten_thousand_entities_are_answered_in_few_tokens(tmp_path):
    root = tmp_path / "repo"
    asking.project_of_documents(root, Path(DOCUMENTS))
    with asking.agent(root) as client:
        assert client.call("kb_query", count=True)["total"] >= LEAST_ENTITIES
    for mode, least in (("off", BY_WORDS), ("on", BY_MEANING)):
        asking.set_meaning(root, mode)
        found = asking.ask_all(root, asking.questions("documents"))
        assert found.share >= least, found
        assert found.tokens <= MOST_TOKENS, found


def test_the_command_and_the_tool_give_one_answer_with_its_ranks(own):
    asking.set_meaning(own, "on")
    question = asking.questions("own")[0].question
    command = [sys.executable, "-m", "kbcli.app", "query", "--text", question, "--fields", "title", "--limit", "5"]
    done = subprocess.run([*command, "--json"], cwd=own, env=git_env(), capture_output=True, text=True, check=True)
    by_command = json.loads(done.stdout)
    by_command["search"].pop("note", None)  # the first question of a worker says that meanings were computed
    with asking.agent(own) as client:
        by_tool = client.call("kb_query", text=question, fields=["title"], limit=5)
    assert by_command["entities"] == by_tool["entities"]
    assert by_command["search"] == by_tool["search"]
    assert all({*entity} == {"id", "title", "score", "ranks"} for entity in by_tool["entities"])
    assert "note" not in by_tool
