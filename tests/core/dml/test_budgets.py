"""Each budget of a run ends it with the reason, and with what it has used; a task that has used its rounds fails."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.dml import Budget, Turn, Usage
from kbcore.dml import memory as memories
from tests.support.dml.runs import Ran, body, ran
from tests.support.dml.scripts import Script, call, does, done, says

Engine = dict[str, str]

LOOP = "loop :- loop."


def exceeded(found: Ran, budget: str, said: str) -> dict[str, Any]:
    """Return what the run has used, which ended for a budget."""
    assert found.error.code == "resource_limit"
    assert found.error.content == f"The run has used its budget of {said}."
    assert found.error.data["budget"] == budget
    assert f"`{budget}`" in found.error.data["hint"]
    spent: dict[str, Any] = found.error.data["spent"]
    assert found.events[-1].data["spent"] == spent
    return spent


GAS: dict[str, str] = {
    "plain": "agent_main :- loop.",
    "caught": "agent_main :- catch(loop, _, true), log(never).",
    "caught again": "agent_main :- catch(loop, _, loop).",
    "ignored": "agent_main :- ignore(catch(loop, _, fail)), log(never).\nagent_main :- log(never).",
    "in a cleanup": "agent_main :- setup_call_cleanup(true, true, loop), log(never).",
    "in a cleanup after an error": "agent_main :- catch(setup_call_cleanup(true, throw(x), loop), _, log(never)).",
    "in a cleanup after steps": "agent_main :- catch(setup_call_cleanup(true, loop, loop), _, log(never)).",
    "in a cleanup after the answer": """agent_main :- call_cleanup(( answer("a"), fail ), loop), log(never).""",
    "in findall": "agent_main :- findall(X, repeat_with(X), _).\nrepeat_with(X) :- loop, X = 1.",
    "in a tool": 'tool(work(_, _)) :- catch(loop, _, true), log(never).\nagent_main :- task("t"), log(never).',
    "in a task of a tool": """tool(work(_, R)) :- task("u", R), loop.
        agent_main :- catch(task("t"), _, true), log(never).""",
}


@pytest.mark.parametrize("name", GAS)
def test_steps_end_the_run_wherever_they_are_used(engine: Engine, name: str) -> None:
    model = Script(does(call("work", arg1="x")), done(R=1))
    found = ran(f"{GAS[name]}\n{LOOP}", engine, model=model, budget=Budget(gas=100_000))
    spent = exceeded(found, "gas", "100,000 steps")
    assert 100_000 <= spent["inferences"] < 110_000
    assert found.logs == []


def test_the_wall_clock_ends_the_run_also_in_a_cleanup_after_an_error(engine: Engine) -> None:
    outside = "log(a), setup_call_cleanup(true, member(_, [1, 2]), loop), throw(x)"
    for code in (body("log(a), loop", LOOP), body(outside, LOOP)):
        found = ran(code, engine, budget=Budget(timeout_s=1.5))
        exceeded(found, "timeout_s", "1.5 seconds")
        assert found.logs in ([], ["a"])  # the start of the engine counts too


def test_turns_tokens_and_money_end_the_run(engine: Engine) -> None:
    code = body('user(u), task("t", X)')
    model = Script(forever=says("x"))
    spent = exceeded(ran(code, engine, model=model, budget=Budget(rounds=7)), "rounds", "7 turns of the model")
    assert (len(model.asked), spent["rounds"], spent["input_tokens"], spent["output_tokens"]) == (7, 7, 70, 35)
    model = Script(forever=says("x"))
    spent = exceeded(ran(code, engine, model=model, budget=Budget(tokens=50)), "tokens", "50 tokens")
    assert (len(model.asked), spent["input_tokens"] + spent["output_tokens"]) == (4, 60)
    model = Script(forever=Turn("x", (), Usage(1, 1, 0.5)))
    spent = exceeded(ran(code, engine, model=model, budget=Budget(cost_usd=1.2)), "cost_usd", "1.2 US dollars")
    assert (len(model.asked), spent["cost_usd"]) == (3, 1.5)
    assert spent["inferences"] > 0


def test_a_task_that_has_used_its_rounds_fails_and_the_run_goes_on(engine: Engine) -> None:
    model = Script(says("x"), says("x"), done())
    found = ran(body('( task("t") ; task("u"), log(other) )'), engine, model=model, budget=Budget(task_rounds=2))
    assert (found.outcome, found.logs) == ("success", ["other"])
    assert found.notes == [("task_failed", "A task failed: it took 2 turns of the model, the most that a task may.")]
    assert found.events[-1].data["spent"]["rounds"] == 3


MEMORY = {
    "findall(X, repeat, _)": ("memory", "The program took more memory than it may."),
    "length(_, 100_000_000)": ("memory", "The program took more memory than it may."),
    "repeat, write(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa), fail": (
        "output_limit", "The program printed more at once than it may.",
    ),
    "deep(X), log(X)": ("memory", "The program took more memory than it may."),
}  # fmt: skip


@pytest.mark.parametrize("goal", MEMORY)
def test_a_program_that_holds_or_prints_too_much_ends(engine: Engine, goal: str) -> None:
    found = ran(body(goal, "deep(a(X)) :- deep(X)."), engine)
    kind, message = MEMORY[goal]
    assert (found.error.code, found.error.data["kind"], found.error.content) == ("resource_limit", kind, message)


def test_the_messages_of_a_run_are_limited_with_those_that_are_undone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "MAX_CONVERSATION_CHARS", 10_000)
    found = ran(body("repeat, user(x), fail"), engine)
    assert found.error.code == "resource_limit"
    assert "those included that it has undone" in found.error.content
    model = Script(forever=does(call("unknown", long=[{"x" * 1000: "x" * 1000}])))
    found = ran(body('task("t")'), engine, model=model)
    assert (found.error.code, len(model.asked)) == ("resource_limit", 5)


def test_a_program_that_is_too_long_is_refused(engine: Engine) -> None:
    found = ran("% " + "x" * 1024 * 1024, engine)
    assert found.error.content == "The program has 1,048,578 characters; 1,048,576 are the most."
