"""`answer/1` commits: the run goes on, and ends with success when it fails back to a goal before.

It leaves a choice, by which the program notices that: a cleanup around it runs when the choice is gone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dml.runs import body, ran
from tests.support.dml.scripts import Script, call, does, done

Engine = dict[str, str]

CASES = {
    'answer("a"), log(on), answer("b")': (["a", "b"], ["on"]),
    'answer("a"), fail': (["a"], []),
    'once(answer("a")), fail': (["a"], []),
    'ignore(answer("a")), log(on)': (["a"], ["on"]),
    'catch(( answer("a"), fail ), _, log(caught)), log(on)': (["a"], []),
    'catch(( answer("a"), throw(x) ), x, log(caught)), log(on)': (["a"], ["caught", "on"]),
    'findall(X, ( member(X, [1, 2]), answer("a{X}") ), _), log(on)': (["a1"], []),
    'forall(member(X, [1, 2]), answer("a{X}")), log(on)': (["a1"], []),
    '\\+ answer("a"), log(on)': (["a"], []),
    '\\+ \\+ answer("a"), log(on)': (["a"], []),
    '( answer("a"), fail ; log(on) )': (["a"], []),
    '( answer("a") -> log(then) ; log(else) )': (["a"], ["then"]),
    'setup_call_cleanup(log(s), ( answer("a"), fail ), log(c)), log(on)': (["a"], ["s", "c"]),
    'setup_call_cleanup(log(s), answer("a"), log(c)), log(on)': (["a"], ["s", "on", "c"]),
    'call_cleanup(( answer("a"), member(_, [1, 2]) ), log(c)), log(on), fail': (["a"], ["on", "on", "c"]),
    'maplist(answer, ["a", "b"])': (["a", "b"], []),
    'member(X, [1, 2]), log("{X}"), answer("a"), fail': (["a"], ["1"]),
}


@pytest.mark.sliced
@pytest.mark.parametrize("goal", CASES)
def test_an_answer_commits_the_search(engine: Engine, goal: str) -> None:
    found = ran(f"{body(goal)}\nagent_main :- log(second).", engine)
    assert found.outcome == "success"
    assert (found.answers, found.logs) == CASES[goal]
    assert found.messages[-1] == f"assistant: {found.answers[-1]}"


def test_text_of_json_is_an_answer(engine: Engine) -> None:
    code = body("""X = "a", answer("{\\"a\\": {\\"b\\": [1, {}]}, \\"x\\": \\"{X}\\"}"), answer(_{k: [1, null]})""")
    assert ran(code, engine).answers == ['{"a": {"b": [1, {}]}, "x": "a"}', '{"k":[1,null]}']


def test_an_error_after_an_answer_that_nobody_catches_is_the_outcome(engine: Engine) -> None:
    found = ran(body('answer("a"), throw(x)'), engine)
    assert (found.outcome, found.answers, found.messages) == ("error", ["a"], ["assistant: a"])


def test_a_run_goes_on_after_a_tool_that_has_answered(engine: Engine) -> None:
    code = """
    tool(reply(Text, ok)) :- answer(Text).
    tool(reply_and_throw(Text, _)) :- answer(Text), throw(x).
    tool(reply_and_fail(Text, _)) :- once(answer(Text)), fail.
    agent_main :- task("t"), log("after"), answer("own"), fail.
    """
    model = Script(does(call("reply", arg1="a"), call("reply_and_throw", arg1="b")), done())
    found = ran(code, engine, model=model)
    assert (found.outcome, found.answers, found.logs) == ("success", ["a", "b", "own"], ["after"])
    found = ran(code, engine, model=Script(does(call("reply_and_fail", arg1="a"))))
    assert (found.outcome, found.answers, found.logs) == ("success", ["a"], [])


def test_files_that_are_open_at_the_end_are_written_however_it_comes(engine: Engine, tmp_path: Path) -> None:
    ends = {"true": "success", "fail": "failure", "throw(x)": "error", 'answer("a"), fail': "success"}
    for end, outcome in ends.items():
        found = ran(body(f'open("left.txt", write, S), write(S, {outcome}), {end}'), engine, workspace=tmp_path)
        assert found.outcome == outcome
        assert (tmp_path / "left.txt").read_text() == outcome
        (tmp_path / "left.txt").unlink()
