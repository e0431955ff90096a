"""A description becomes a program: attempts, what the model gets, and the file that it is written into."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore.dml import Budget, ModelFailed
from kbcore.dml.check import CallerTools
from kbcore.dml.check_with_engines import errors_finder
from kbcore.dml.compiling import compile_description, instructions, state_of, with_header
from kbcore.dml.tools import tool_of
from kbcore.errors import ModelUnavailable, Problem, ProgramFailed, ResourceLimit
from tests.support.dml.scripts import Script, call, does, says
from tests.support.logic.engines import engine_variables
from tests.support.repository.repos import git_env

GOOD = 'agent_main :- answer("done").\n'
WRONG = 'agent_main :- task("{X}").\n'


@pytest.fixture(scope="module")
def problems():
    return errors_finder("x.dml", CallerTools(), git_env(engine_variables("auto")))


def submit(program):
    return does(call("submit_program", program=program))


def compiled(model, problems, **options):
    return asyncio.run(compile_description("Say done.", model, problems, **options))


def test_a_program_without_faults_is_returned_at_once(problems):
    model = Script(submit(GOOD))
    found = compiled(model, problems)
    assert (found.code, found.attempts, found.usage.tokens) == (GOOD, 1, 15)
    assert model.tool_names(0) == ["submit_program"]
    assert model.asked[0][-1].text == "Say done."


def test_the_faults_of_an_attempt_are_sent_back(problems):
    model = Script(submit(WRONG), submit("agent_main :- foo(.\n"), submit(GOOD))
    assert compiled(model, problems).attempts == 3
    requests = [asked[-1].text for asked in model.asked[1:]]
    assert "x.dml:1: The text has `{X}`, and the clause has no variable `X`." in requests[0]
    assert "x.dml:1: " in requests[1]
    assert [one.role for one in model.asked[1]] == ["system", "user", "assistant", "tool"]


def test_after_three_attempts_it_is_an_error_with_the_faults_of_the_last_one(problems):
    with pytest.raises(ProgramFailed) as failed:
        compiled(Script(*[submit(WRONG)] * 3), problems)
    assert failed.value.details[0].code == "unknown_name"
    assert "in 3 attempts" in failed.value.message


def test_a_program_may_come_as_text_and_a_turn_without_one_is_an_attempt(problems):
    model = Script(says("I will."), says(f"Here:\n```prolog\n{GOOD}```\n"))
    found = compiled(model, problems)
    assert (found.code, found.attempts) == (GOOD, 2)
    assert "No program was handed in" in model.asked[1][-1].text


def test_every_call_of_a_turn_is_answered(problems):
    model = Script(does(call("other"), call("submit_program", program=WRONG), call("submit_program")), submit(GOOD))
    compiled(model, problems)
    assert [one.text for one in model.asked[1] if one.role == "tool"][::2] == ["It is not used."] * 2


def test_a_failure_of_the_model_and_a_used_up_budget_are_errors_of_their_own(problems):
    with pytest.raises(ModelUnavailable, match="no network"):
        compiled(Script(ModelFailed("no network")), problems)
    with pytest.raises(ResourceLimit, match="budget of 20 tokens"):
        compiled(Script(*[submit(WRONG)] * 3), problems, budget=Budget(tokens=20))


def test_the_model_is_told_of_the_language_and_of_the_tools():
    def search(query: str, limit: int = 3) -> list[str]:
        """Search the web."""
        return [query] * limit

    text = instructions([tool_of(search)])
    assert "- search(query, limit): Search the web." in text
    assert "push_context" in text
    assert "There are none." in instructions([])


def test_the_example_of_the_language_is_a_program_that_loads(problems):
    text = instructions([])
    example = "\n".join(line[4:] for line in text.split("\n") if line.startswith("    "))
    assert "agent_main(Topic)" in example
    assert asyncio.run(problems(example)) == []


def test_what_cannot_be_loaded_at_all_is_a_problem(problems):
    [found] = asyncio.run(problems("x" * 2_000_000))
    assert isinstance(found, Problem)
    assert "characters" in found.message


@example(code="a.", description="", added="x", name="a\n:- b.\udcff.md")
@given(st.text(), st.text(), st.text(min_size=1), st.text())
def test_a_file_is_known_to_be_current_outdated_or_edited(code, description, added, name):
    text = with_header(code, description, name)
    assert text.encode().count(b"\n") == code.strip("\n").count("\n") + 5, "the name of a file is on one line"
    assert state_of(text, description) == "current"
    assert state_of(text, description + added) == "outdated"
    assert state_of(text + added, description) == "edited"
    assert state_of(added + text, description) == "edited"


def test_a_file_without_a_header_counts_as_edited():
    assert state_of(GOOD, "Say done.") == "edited"
